"""A file of weights is numbers: code that it holds is never run."""

import pickle
from functools import partial
from pathlib import Path

import pytest
import torch

import dada
from dada.errors import InputError


class Attack:
    """What unpickling would turn into a call."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


@pytest.mark.parametrize("name", ["weights.pt", "weights.pth", "weights.ckpt", "weights.safetensors"])
@pytest.mark.parametrize("form", ["torch", "pickle"])
def test_code_in_a_file_of_weights_is_not_run(tmp_path: Path, name, form):
    path, harm = tmp_path / name, tmp_path / "harm"
    with path.open("wb") as file:
        (torch.save if form == "torch" else partial(pickle.dump, protocol=2))({"model": {"a": Attack(harm)}}, file)
    for model in (str(path), f"msg:{path}", f"dada:{path}"):
        with pytest.raises(InputError, match="weights"):
            dada.load_model(model)
    assert not harm.exists()
