"""Weights trained in the unit of a data set: what they are given, whatever the unit of the user's file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn.functional import avg_pool2d, interpolate

from dada import InputError, load_model, upsample
from dada.baselines.lgr import Lgr
from dada.diffusion import coefficients, iterate
from dada.evaluation.methods import resolve
from dada.features.backbones import import_smp
from dada.features.standardising import standardise
from dada.io import read_image, write_image
from dada.models.config import DadaConfig
from dada.models.dada import DADA
from dada.models.files import save
from dada.sample import DataUnit, Sample, initialise
from dada.upsampling.result import UpsampleWarning

SIZE, CELLS, STEPS = 64, 8, 300


@pytest.fixture(scope="module")
def plain() -> torch.nn.Module:
    """The authors' network of features, with weights of which an edge is what differs by some."""
    torch.manual_seed(0)
    return import_smp("unet-resnet50").Unet("resnet50", encoder_weights=None, classes=64, in_channels=4).eval()


@pytest.fixture(scope="module")
def checkpoint(plain, tmp_path_factory) -> Path:
    """Its file in the authors' layout."""
    state = {f"feature_extractor.1.{key}": value for key, value in plain.state_dict().items()}
    path = tmp_path_factory.mktemp("authors") / "best_model.pth"
    torch.save({"model": state | {"logk": torch.tensor(-1.5)}, "epoch": 7}, path)
    return path


@pytest.fixture
def files(tmp_path, scene) -> tuple[Path, Path]:
    """A crop of the scene in float32 millimetres with two cells without a measurement, and its guide."""
    depth = 1000 * scene.depth[16 : 16 + SIZE, 32 : 32 + SIZE]
    source = depth.reshape(CELLS, 8, CELLS, 8).mean(axis=(1, 3)).astype(np.float32)
    source[2, 3] = source[5, 5] = np.nan
    write_image(tmp_path / "depth.npy", source)
    write_image(tmp_path / "rgb.png", scene.guide[16 : 16 + SIZE, 32 : 32 + SIZE])
    return tmp_path / "depth.npy", tmp_path / "rgb.png"


def sample_of(files: tuple[Path, Path], deviation: float) -> Sample:
    """What the authors' code makes of the files: depth divided by the deviation, 0 in holes, Clough-Tocher."""
    source = torch.from_numpy(read_image(files[0]).values)[None, None] / deviation
    mask = source.isfinite()
    source = torch.where(mask, source, 0)
    guide = torch.from_numpy(read_image(files[1], role="guide").values).permute(2, 0, 1)[None].float() / 255
    return Sample(guide, source, mask, initialise(source, mask, (SIZE, SIZE), "clough-tocher"), unit=deviation)


def released_loop(plain: torch.nn.Module, sample: Sample) -> torch.Tensor:
    """The released code written out: the network on twice the size, coefficients, lifted values, the loop."""
    inputs = torch.cat([standardise(sample.guide), sample.initial - sample.initial.mean()], dim=1)
    with torch.no_grad():
        features = avg_pool2d(plain(interpolate(inputs, scale_factor=2.0, mode="bicubic")), 2)
    c = coefficients(features, torch.tensor(-1.5).exp(), "mean_absolute")
    lifted = sample.source + 0.1, c
    start = {"initial": sample.initial + 0.1, "mask": sample.source_mask, "epsilon": 1e-8, "steps": STEPS}
    return iterate(*lifted, **start).values[0, 0] - 0.1


@pytest.mark.parametrize(("name", "deviation"), [("middlebury", 1122.7), ("nyuv2", 1386.05), ("1000", 1000.0)])
def test_a_checkpoint_of_the_authors_through_the_command_is_their_loop(dada, files, checkpoint, plain, name, deviation):
    expected = deviation * released_loop(plain, sample_of(files, deviation)).numpy()
    options = ["--solver", "iterate", "--steps", STEPS, "--adjust", "ratio", "--fill"]
    for unit, factor in (("mm", 1), ("m", 1000)):
        source = read_image(files[0]).values / np.float32(factor)
        write_image(files[0].with_name(f"{unit}.npy"), source)
        ran = dada("upsample", files[0].with_name(f"{unit}.npy"), files[1], "-o", files[0].with_name("fine.npy"),
                   "--unit", unit, "--model", f"{checkpoint}?unit={name}", *options)  # fmt: skip
        assert ran.code == 0, ran.err
        assert "trained in the unit" not in ran.err
        values = factor * read_image(files[0].with_name("fine.npy")).values
        assert np.abs(values - expected).max() < 2e-5 * np.abs(expected).max()


def test_what_is_assumed_is_said_where_a_unit_is_not_known(dada, files, checkpoint):
    few = ["--solver", "iterate", "--steps", 5]
    ran = dada("upsample", *files, "--model", checkpoint, *few)
    assert ran.code == 0
    assert "their file does not tell which: the standard deviation of this source was taken for it" in ran.err
    assert "FILE?unit=middlebury" in ran.err
    ran = dada("upsample", *files, "--unit", "raw", "--model", f"{checkpoint}?unit=diml", *few)
    assert ran.code == 0
    assert "the unit of the source is not stated: the standard deviation of this source was taken" in ran.err


@pytest.mark.parametrize(
    ("text", "said"),
    [("?unit=kitti", "not that of a data set"), ("?unit=-3", "not that of a data set"), ("?kappa=1", "no setting"),
     ("?unit", "NAME=VALUE")],
)  # fmt: skip
def test_settings_that_cannot_be_are_refused(checkpoint, text, said):
    with pytest.raises(InputError, match=said):
        load_model(f"{checkpoint}{text}")


def test_weights_that_take_any_unit_say_so(tmp_path):
    save(DADA(DadaConfig(features=8, source="own")), tmp_path / "own.safetensors")
    with pytest.raises(InputError, match="take any unit"):
        load_model(f"{tmp_path / 'own.safetensors'}?unit=nyuv2")


def test_our_weights_carry_their_unit(tmp_path, files, recwarn):
    torch.manual_seed(0)
    network = DADA(DadaConfig(features=8, tolerance=1e-6)).eval()
    network.carry(DataUnit(2796.32, 1386.05))
    save(network, tmp_path / "net.safetensors")
    read = load_model(tmp_path / "net.safetensors")
    assert read.data_unit == (2796.32, 1386.05)
    source, guide = read_image(files[0]).values, read_image(files[1], role="guide").values
    found = upsample(source, guide, model=read, unit="mm", adjust="ratio", fill=True, tolerance=1e-6)
    with torch.no_grad():
        expected = 1386.05 * network(sample_of(files, 1386.05), solver="equilibrium")[0, 0].numpy()
    assert np.abs(found.values - expected).max() < 1e-4 * expected.max()
    assert not [warning for warning in recwarn if "unit of a data set" in str(warning.message)]
    with pytest.warns(UpsampleWarning, match="unit of the source is not stated"):
        other = upsample(source, guide, model=read, fill=True)
    assert np.abs(other.values - expected).max() > 1e-3 * expected.max()


@pytest.mark.parametrize("file", ["net.safetensors", "folder"])
def test_the_bench_gives_them_the_unit_of_the_data_as_the_paper_does(tmp_path, files, file):
    network = DADA(DadaConfig(features=8)).eval()
    save(network, tmp_path / "net.safetensors")
    network.save_pretrained(tmp_path / "folder")
    entry = resolve(f"{tmp_path / file}?unit=nyuv2")
    assert (entry.name, entry.label) == ("dada", f"dada:{file}?unit=nyuv2")
    sample = sample_of(files, 1122.7)
    with torch.no_grad():
        assert torch.equal(entry.method(sample), network(sample))


def test_lgr_works_in_the_unit_and_about_the_mean_of_its_data_set(tmp_path, files):
    torch.manual_seed(0)
    network = Lgr("light", channels=8, centre="dataset", strength=0.01).eval()
    network.save(tmp_path / "lgr.safetensors")
    source, guide = read_image(files[0]).values, read_image(files[1], role="guide").values
    sample = sample_of(files, 1154.29)
    for solver in ("authors", "equilibrium"):
        model = f"lgr:{tmp_path / 'lgr.safetensors'}?unit=diml&solver={solver}"
        found = upsample(source / 1000, guide, model=model, unit="m", fill=True)
        network.accept(solver=solver)
        with torch.no_grad():
            expected = 1.15429 * network(sample)[0, 0].numpy()
        np.testing.assert_allclose(found.values, expected, rtol=1e-3 if solver == "authors" else 1e-4)
    for text, said in (("solver=exact", "authors or equilibrium"), ("rounds=2", "no setting")):
        with pytest.raises(InputError, match=said):
            load_model(f"lgr:{tmp_path / 'lgr.safetensors'}?{text}")


def test_a_network_without_settings_refuses_them(tmp_path):
    from dada.baselines.fdsr import Fdsr

    Fdsr(8).save(tmp_path / "fdsr.safetensors")
    with pytest.raises(InputError, match="no settings beside its weights"):
        load_model(f"fdsr:{tmp_path / 'fdsr.safetensors'}?unit=nyuv2")


@pytest.mark.parametrize("model", ["none", "lgr-free"])
def test_the_unit_does_not_change_a_model_that_takes_any(files, model):
    source, guide = read_image(files[0]).values, read_image(files[1], role="guide").values
    plain = upsample(source, guide, model=model).values
    for unit in ("mm", 1000 / 1122.7):
        np.testing.assert_array_equal(plain, upsample(source, guide, model=model, unit=unit).values)
    with pytest.raises(InputError, match="unit 'furlong' is unknown"):
        upsample(source, guide, unit="furlong")


def test_a_config_says_which_unit_cannot_be():
    for settings in ({"unit": -1.0}, {"mean": float("nan")}, {"unit": True}):
        with pytest.raises(InputError, match="length in mm"):
            replace(DadaConfig(), **settings)
