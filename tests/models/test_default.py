"""Facts about the model that comes with the package, and when something else is used."""

import os
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
import torch

import dada
from dada.evaluation.methods import resolve
from dada.models import default
from dada.models.dada import DADA
from dada.models.learning_free import Dynamic
from dada.models.model import Model
from dada.models.registry import load_model
from dada.sample import Sample, make_sample
from dada.scene import render
from dada.upsampling import UpsampleWarning

CANOPY = Path(os.environ.get("DADA_TEST_DATA", Path(__file__).parents[3] / "shared" / "data")) / "pixtransform_vhm"


@pytest.fixture(scope="module")
def scene():
    return render(192, 256)


def averaged(values: np.ndarray, factor: int) -> np.ndarray:
    h, w = values.shape
    return values.reshape(h // factor, factor, w // factor, factor).mean((1, 3))


def test_the_weights_are_small_and_come_with_the_package():
    size = files("dada").joinpath("weights", "learned.safetensors").stat().st_size
    assert 1e6 < size < 12e6


def test_names():
    chosen = load_model("default")
    assert isinstance(chosen, default.Default)
    assert isinstance(chosen, Model)
    network = load_model("learned")
    assert isinstance(network, DADA)
    assert network is chosen.network
    assert not network.training


def test_fast_is_the_same_network_without_its_last_round(scene):
    chosen = load_model("fast")
    assert isinstance(chosen, default.Default)
    assert (chosen.rounds, load_model("default").rounds) == (2, 3)
    weights = load_model("learned").state_dict()
    for name, weight in chosen.network.state_dict().items():
        assert torch.equal(weight, weights[name][: len(weight)] if weight.dim() else weights[name])
    assert dada.upsample(averaged(scene.depth, 8), scene.guide, model="fast").report.model == "fast"


@pytest.mark.parametrize("factor", [2, 4, 8, 16, 32])
def test_better_than_what_learned_nothing_on_a_scene_of_its_own_kind(scene, factor):
    source = averaged(scene.depth, factor)
    error = {
        model: np.abs(dada.upsample(source, scene.guide, model=model).values - scene.depth).mean()
        for model in ("default", "none")
    }
    assert error["default"] < error["none"]


@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e4])
def test_the_unit_does_not_matter(scene, unit):
    source = averaged(scene.depth, 8)
    plain, scaled = (dada.upsample(u * source, scene.guide).values for u in (1, unit))
    np.testing.assert_allclose(scaled, unit * plain, rtol=2e-3)


def test_of_more_than_three_bands_the_first_three_are_used_and_this_is_said(scene):
    source, guide = averaged(scene.depth, 8), np.dstack([scene.guide, scene.guide[..., ::-1]])
    with pytest.warns(UpsampleWarning, match="6 bands, and the learned model uses the first three"):
        result = dada.upsample(source, guide)
    assert result.report.model == "learned"
    np.testing.assert_allclose(result.values, dada.upsample(source, scene.guide).values, rtol=1e-6)
    with pytest.raises(dada.InputError, match="made for 3"):
        dada.upsample(source, guide, model="learned")


def test_of_two_bands_both_and_their_mean_are_used(scene):
    source, two = averaged(scene.depth, 8), scene.guide[..., :2] / np.float32(255)
    with pytest.warns(UpsampleWarning, match="2 bands, and the learned model uses both and their mean"):
        result = dada.upsample(source, two)
    three = np.dstack([two, two.mean(axis=-1)])
    np.testing.assert_allclose(result.values, dada.upsample(source, three).values, rtol=1e-4)


@pytest.mark.skipif(not CANOPY.is_dir(), reason="the canopy heights are not here")
@pytest.mark.parametrize("factor", [4, 16])
def test_canopy_heights_with_four_bands_are_better_than_without_learning(factor):
    errors = {"default": 0.0, "dynamic": 0.0}
    for scene in ("0", "1", "2"):
        with np.load(CANOPY / scene / "original.npz") as file:
            guide, truth = np.moveaxis(file["guide"], 0, -1), file["target"]
        for model in errors:
            errors[model] += float(
                np.square(dada.upsample(averaged(truth, factor), guide, model=model).values - truth).mean()
            )
    assert errors["default"] < 0.95 * errors["dynamic"]


def test_grey_guides_are_welcome(scene):
    grey = scene.guide.mean(-1).astype(np.uint8)
    assert dada.upsample(averaged(scene.depth, 8), grey).report.model == "learned"


def test_too_little_memory_falls_back_and_says_so(monkeypatch):
    monkeypatch.setattr(default, "available_memory", lambda: 10_000_000)
    chosen, why = default.Default().suited(3, (1000, 1000))
    assert isinstance(chosen, Dynamic)
    assert "0.9 GB of memory" in why


def test_the_bench_runs_what_upsample_runs(scene):
    guide = torch.from_numpy(scene.guide).permute(2, 0, 1)[None].float() / 255
    depth = torch.from_numpy(scene.depth)[None, None]
    sample: Sample = make_sample(guide, depth, torch.ones_like(depth, dtype=torch.bool), 8, interpolation="torch")
    with torch.no_grad():
        bench = resolve("default").method(sample)[0, 0].numpy()
    used = dada.upsample(sample.source[0, 0].numpy(), scene.guide, precision="float32").values
    np.testing.assert_allclose(bench, used, rtol=0, atol=1e-6 * np.ptp(scene.depth))


@pytest.mark.parametrize(("model", "adjust"), [("default", "shift"), ("none", "ratio")])
def test_the_bench_adjusts_as_the_model_was_made_to(scene, monkeypatch, model, adjust):
    from dada.upsampling import solver

    used, plain = [], solver.equilibrium
    monkeypatch.setattr(solver, "equilibrium", lambda *a, **k: (used.append(k["adjust"]), plain(*a, **k))[1])
    depth = torch.from_numpy(scene.depth)[None, None]
    guide = torch.from_numpy(scene.guide).permute(2, 0, 1)[None].float() / 255
    sample = make_sample(guide, depth, torch.ones_like(depth, dtype=torch.bool), 8, interpolation="torch")
    with torch.no_grad():
        resolve(model).method(sample)
    assert set(used) == {adjust}


def test_nothing_is_downloaded():
    code = """
import socket
def refuse(*args, **kwargs): raise OSError("no network here")
socket.socket.connect = socket.getaddrinfo = refuse
import numpy as np, dada
source, guide = 1 + np.eye(4, dtype=np.float32), np.zeros((16, 16, 3), np.uint8)
print(dada.upsample(source, guide).report.model)
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "learned", done.stderr
