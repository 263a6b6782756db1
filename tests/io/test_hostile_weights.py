"""A file of weights is numbers: code that it holds is never run, and its settings make nothing larger than itself."""

import pickle
from functools import partial
from pathlib import Path

import pytest
import torch

import dada
from dada.errors import InputError
from dada.io.weights import write_weights


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


@pytest.mark.parametrize(
    ("model", "metadata"),
    [
        ("{}", {"dada": '{"features": 2000000000}'}),
        ("{}", {"dada": '{"rounds": 1000000000000}'}),
        ("{}", {"dada": "[" * 100_000}),
        ("fdkn:{}", {"method": "fdkn", "config": '{"kernel_size": 1000000000}'}),
        ("fdkn:{}", {"method": "fdkn", "config": "[" * 100_000}),
    ],
)
def test_settings_beside_weights_make_no_network_larger_than_its_file(tmp_path: Path, model, metadata):
    path = tmp_path / "weights.safetensors"
    write_weights(path, {"a": torch.ones(3)}, metadata)
    with pytest.raises(InputError, match=r"but the file holds 3 numbers|is not JSON|are damaged"):
        dada.load_model(model.format(path))


@pytest.mark.parametrize("text", ["[" * 100_000, '{"model": {}}', '{"model": []}', '{"kappa": {}}', "{"])
def test_settings_of_any_form_are_explained(tmp_path: Path, text):
    path = tmp_path / "settings.json"
    path.write_text(text)
    with pytest.raises(InputError, match=r"model .*settings\.json"):
        dada.load_model(path)
