"""Facts about the files of DADA: what they hold, what is refused."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn.functional import avg_pool2d, interpolate

from dada import InputError, upsample
from dada.features.backbones import import_smp
from dada.io.weights import read_safetensors
from dada.models.config import PAPER, DadaConfig
from dada.models.dada import DADA
from dada.models.default import WEIGHTS as SHIPPED
from dada.models.files import read_config, save
from dada.models.registry import load_method, load_model

from .samples import SMALL, random_sample


@pytest.mark.parametrize(
    "config",
    [
        SMALL,
        replace(SMALL, rounds=2, edges=True, direct=True, adjust="auto", distance="mean_absolute"),
        replace(SMALL, rounds=3, edges=True, direct=True, feedback="refinement"),
    ],
)
def test_a_saved_network_comes_back(tmp_path: Path, config: DadaConfig) -> None:
    model = DADA(config).eval()
    with torch.no_grad():
        model.logk.fill_(-2.0)
    model.save_pretrained(tmp_path / "folder")
    save(model, tmp_path / "one.safetensors")
    sample = random_sample()
    for read in (
        DADA.from_pretrained(tmp_path / "folder"),
        DADA.load(tmp_path / "folder"),
        DADA.load(tmp_path / "one.safetensors"),
        load_method(f"dada:{tmp_path / 'one.safetensors'}"),
    ):
        assert read.config == config
        with torch.no_grad():
            assert torch.equal(read(sample), model(sample))
    assert read.name == "one.safetensors"
    assert not read.training


def test_upsample_takes_a_saved_network_whatever_the_unit(tmp_path: Path) -> None:
    save(DADA(SMALL), tmp_path / "net.safetensors")
    guide, source = np.random.default_rng(0).random((24, 32, 3), np.float32), np.arange(12.0).reshape(3, 4) + 5
    metres = upsample(source, guide, model=tmp_path / "net.safetensors")
    millimetres = upsample(1000 * source, guide, model=tmp_path / "net.safetensors")
    assert metres.report.model == "net.safetensors"
    assert metres.report.consistency_max < 1e-5
    np.testing.assert_allclose(millimetres.values, 1000 * metres.values, rtol=1e-3)


def test_half_precision_halves_the_file_and_hardly_the_quality(tmp_path: Path) -> None:
    model = DADA(SMALL).eval()
    save(model, tmp_path / "full.safetensors")
    save(model, tmp_path / "half.safetensors", half=True)
    assert (tmp_path / "half.safetensors").stat().st_size < 0.51 * (tmp_path / "full.safetensors").stat().st_size
    sample, read = random_sample(), DADA.load(tmp_path / "half.safetensors")
    assert read.extractor.net.stem.weight.dtype == torch.float32
    with torch.no_grad():
        torch.testing.assert_close(read(sample), model(sample), rtol=0, atol=1e-3)


def test_a_checkpoint_of_the_authors_gives_the_features_of_the_plain_network(tmp_path: Path) -> None:
    plain = import_smp("unet-resnet50").Unet("resnet50", encoder_weights=None, classes=64, in_channels=4).eval()
    weights = {f"feature_extractor.1.{name}": value for name, value in plain.state_dict().items()}
    weights |= {"logk": torch.tensor(-3.0), "logk2": torch.tensor(0.0)}
    weights |= {"mean_guide": torch.zeros(3), "std_guide": torch.ones(3)}
    torch.save({"model": weights, "epoch": 3}, tmp_path / "best_model.pth")
    model = DADA.load(tmp_path / "best_model.pth")
    assert model.config == PAPER
    assert model.logk.item() == -3.0
    image = torch.randn(1, 4, 32, 32)
    twice = interpolate(image, scale_factor=2.0, mode="bicubic")
    with torch.no_grad():
        torch.testing.assert_close(model.extractor(image), avg_pool2d(plain(twice), 2))


def test_wrong_files_say_what_was_found(tmp_path: Path) -> None:
    (tmp_path / "text.pth").write_text("not a checkpoint")
    (tmp_path / "text.safetensors").write_text("nor this")
    (tmp_path / "empty").mkdir()
    torch.save([1, 2], tmp_path / "list.pth")
    torch.save({"model": {"conv.weight": torch.zeros(1)}}, tmp_path / "other.pth")
    torch.save({"model": {"feature_extractor.1.x": torch.zeros(1), "logk": torch.zeros(())}}, tmp_path / "part.pth")
    torch.save({"model": Path("code")}, tmp_path / "code.pth")
    for name, said in {
        "text.pth": "neither",
        "text.safetensors": "not a .safetensors",
        "empty": "holds no model.safetensors",
        "list.pth": "holds a list",
        "other.pth": "`conv.weight`",
        "part.pth": "is missing",
        "code.pth": "could run code",
        "absent.pth": "no such file",
    }.items():
        with pytest.raises(InputError, match=said):
            DADA.load(tmp_path / name)


def test_a_config_of_another_kind_is_refused(tmp_path: Path) -> None:
    DADA(SMALL).save_pretrained(tmp_path)
    for text, said in {'{"layers": 3}': "unknown layers", "[": "not JSON", '{"features": 9}': "instead of"}.items():
        (tmp_path / "config.json").write_text(text)
        with pytest.raises(InputError, match=said):
            DADA.load(tmp_path)


OLD = {
    "extractor": "light", "features": 8, "bands": 3, "pretrained": False, "upsample": False, "kappa": 0.03,
    "distance": "euclidean", "edges": True, "direct": True, "source": "own", "rounds": 3, "sees": "review",
    "review": "deep", "adjust": "shift", "method": "equilibrium", "tolerance": 0.0005, "steps": 9024,
}  # fmt: skip


def test_weights_that_came_with_the_package_have_old_names_and_load() -> None:
    names = read_safetensors(SHIPPED)[0].keys()
    assert {"logw", "logg", "logs", "review.turn", "review.seen.weight", "review.felt.weight"} <= names
    model = DADA.load(SHIPPED)
    assert (model.config.feedback, model.config.solver, model.rounds) == ("refinement", "equilibrium", 3)
    assert model.refinement.offsets.any()


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "refinement"),
        ({"sees": "coefficients", "review": "near"}, "coefficients"),
        ({"review": "wide"}, "earlier version"),
        ({"sees": "features", "review": "near"}, "earlier version"),
    ],
)
def test_settings_in_old_words_are_understood_or_refused_by_name(changes, expected) -> None:
    if expected == "earlier version":
        with pytest.raises(InputError, match=f"model x: .*{expected}"):
            read_config(OLD | changes, "model x")
    else:
        assert read_config(OLD | changes, "model x").feedback == expected


@pytest.mark.parametrize("name", ["nowhere.safetensors", "runs/best", "weights.pth"])
def test_weights_that_are_not_there_are_missing_and_not_unknown(name):
    with pytest.raises(InputError, match=f"model {name}: there is no such file or folder"):
        load_model(name)
