"""Models without learning: what their coefficients depend on, and that seeing the result helps."""

import dataclasses

import numpy as np
import pytest
import torch

import dada
from dada.diffusion import Coefficients
from dada.models.learning_free import Dynamic, LearningFree, bilateral
from dada.models.model import Model, Round
from dada.models.registry import load_model
from dada.sample import Sample, make_sample
from dada.scene import render

MODELS = [LearningFree(), Dynamic()]


@pytest.fixture(scope="module")
def scene():
    return render(128, 160)


def sample_of(scene, factor=8, bands=3) -> Sample:
    guide = torch.from_numpy(scene.guide).permute(2, 0, 1)[None].float() / 255
    target = torch.from_numpy(scene.depth)[None, None].float()
    guide = guide.mean(1, keepdim=True).expand(-1, bands, -1, -1)
    return make_sample(guide, target, torch.ones_like(target, dtype=torch.bool), factor, interpolation="torch")


def rounds_of(model: Model, sample: Sample, result: torch.Tensor) -> list[Coefficients]:
    """The coefficients of every round, if each ended with `result`."""
    guidance, found = model.prepare(sample), list[Coefficients]()
    for number in range(model.rounds):
        found.append(guidance.coefficients(Round(number - 1, found[-1], result) if found else None))
    return found


def first_of(model: Model, sample: Sample) -> Coefficients:
    return model.prepare(sample).coefficients()


@pytest.mark.parametrize("model", MODELS, ids=lambda m: m.name)
def test_is_a_model_with_coefficients_in_0_to_1(model, scene):
    assert isinstance(model, Model)
    sample = sample_of(scene)
    for c in rounds_of(model, sample, sample.initial):
        assert c.size == sample.size
        assert all(bool(((part > 0) & (part <= 1)).all()) for part in c)


@pytest.mark.parametrize("model", MODELS, ids=lambda m: m.name)
def test_does_not_depend_on_the_unit_of_the_source(model, scene):
    sample = sample_of(scene)
    metres = dataclasses.replace(sample, source=sample.source / 1000, initial=sample.initial / 1000)
    one, two = rounds_of(model, sample, sample.initial)[-1], rounds_of(model, metres, metres.initial)[-1]
    for a, b in zip(one, two, strict=True):
        torch.testing.assert_close(a, b, rtol=2e-2, atol=1e-6)


@pytest.mark.parametrize("bands", [1, 2, 4, 7])
def test_ours_does_not_depend_on_the_number_of_bands(bands, scene):
    one, many = sample_of(scene, bands=1), sample_of(scene, bands=bands)
    for a, b in zip(first_of(Dynamic(), one), first_of(Dynamic(), many), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("model", MODELS, ids=lambda m: m.name)
@pytest.mark.parametrize("value", [0.0, 5.1])
def test_a_constant_source_leaves_the_guide_alone_to_decide(model, value, scene):
    sample = sample_of(scene)
    flat = dataclasses.replace(
        sample, source=torch.full_like(sample.source, value), initial=torch.full_like(sample.initial, value)
    )
    assert float(flat.deviation()) == 0
    assert all(bool(torch.isfinite(part).all()) for part in rounds_of(model, flat, flat.initial)[-1])


def test_a_jump_of_the_result_becomes_an_edge(scene):
    sample = sample_of(scene)
    split = sample.initial.clone()
    split[..., 80:] += float(sample.deviation())
    before, after = (rounds_of(Dynamic(), sample, result)[1] for result in (sample.initial, split))
    assert bool((after.horizontal[..., 79] < 0.5 * before.horizontal[..., 79]).all())


def test_the_guide_is_smoothed_for_large_factors_only(scene):
    sample = sample_of(scene, factor=16)
    smooth, sharp = first_of(Dynamic(), sample), first_of(Dynamic(smooth_from=100), sample)
    assert not torch.equal(smooth.vertical, sharp.vertical)
    small = sample_of(scene, factor=8)
    assert torch.equal(first_of(Dynamic(), small).vertical, first_of(Dynamic(smooth_from=100), small).vertical)


@pytest.mark.parametrize("bands", [1, 3, 4])
def test_the_bilateral_filter_takes_away_grain_and_leaves_edges(bands):
    rng = np.random.default_rng(0)
    image = torch.zeros(1, bands, 20, 20)
    image[..., 10:] = 0.5
    grain = torch.from_numpy(rng.normal(0, 0.01, image.shape)).float()
    found = bilateral(image + grain)
    assert found.shape == image.shape
    assert float((found - image).std()) < 0.6 * float(grain.std())
    assert float((found[..., 10] - found[..., 9]).mean()) > 0.48


@pytest.mark.parametrize("factor", [4, 8, 16])
def test_seeing_the_result_leaves_less_error(factor):
    scene = render(192, 256)
    source = scene.depth.reshape(192 // factor, factor, 256 // factor, factor).mean((1, 3))
    error = {
        name: np.abs(dada.upsample(source, scene.guide, model=name).values - scene.depth).mean()
        for name in ("none", "dynamic")
    }
    assert error["dynamic"] < error["none"]


def test_the_report_counts_the_rounds(scene):
    source = scene.depth.reshape(16, 8, 20, 8).mean((1, 3))
    report = dada.upsample(source, scene.guide, model="dynamic").report
    assert (report.model, report.rounds) == ("dynamic", 3)
    assert report.consistency_max < 1e-5 * source.max()
    assert dada.upsample(source, scene.guide, model="none").report.rounds == 1


def test_settings_of_ours_come_from_a_json_file(tmp_path):
    path = tmp_path / "mine.json"
    path.write_text('{"model": "dynamic", "rounds": 2, "result_weight": 8}')
    assert load_model(path) == Dynamic(rounds=2, result_weight=8, name="mine.json")
    path.write_text('{"model": "dynamic", "distance": "euclidean"}')
    with pytest.raises(dada.InputError, match="settings of dynamic must be some of kappa, source_weight"):
        load_model(path)
    path.write_text('{"model": "dynamic", "rounds": 1.5}')
    with pytest.raises(dada.InputError, match="rounds must be a whole number"):
        load_model(path)
    path.write_text('{"model": "best"}')
    with pytest.raises(dada.InputError, match="must be none or dynamic"):
        load_model(path)
