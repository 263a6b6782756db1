"""The sensor softens, frays and shifts as asked, and leaves alone what it should."""

from dataclasses import replace

import cv2
import numpy as np
import pytest
import torch

from dada.datasets.pair import Pair
from dada.datasets.sensor import Sensor, noisy_source
from dada.errors import InputError
from dada.sample import make_sample

CLEAN = Sensor(share=1, lost=0, ragged=0, soft=0, noise=0, holes=0, shift=0, rotation=0, zoom=0)


@pytest.fixture
def step() -> Pair:
    """A near square before a far wall, both flat, and a rod of two pixels."""
    target = np.full((90, 121), 2000, np.float32)
    target[20:70, 30:80] = 1000
    target[:, 100:102] = 1000
    guide = np.where(target < 1500, 220, 40).astype(np.uint8)
    return Pair(np.repeat(guide[..., None], 3, 2), target, "step")


def many(sensor: Sensor, pair: Pair, count: int = 12) -> list[Pair]:
    rng = np.random.default_rng(0)
    return [sensor(pair, rng) for _ in range(count)]


def mixed(pair: Pair) -> int:
    """Pixels that are neither near nor far."""
    return int(((pair.target > 1100) & (pair.target < 1900)).sum())


def test_same_generator_same_pair(step: Pair) -> None:
    sensor = Sensor(share=1, holes=6)
    a, b = (sensor(step, np.random.default_rng(5)) for _ in range(2))
    np.testing.assert_array_equal(a.guide, b.guide)
    np.testing.assert_array_equal(a.target, b.target)
    assert a.name == step.name


def test_nothing_asked_for_nothing_done(step: Pair) -> None:
    for pair in many(CLEAN, step):
        np.testing.assert_array_equal(pair.guide, step.guide)
        np.testing.assert_array_equal(pair.target, step.target)


def test_input_is_not_changed(step: Pair) -> None:
    guide, target = step.guide.copy(), step.target.copy()
    many(Sensor(share=1, holes=6), step)
    np.testing.assert_array_equal(step.guide, guide)
    np.testing.assert_array_equal(step.target, target)


def test_only_a_share_is_touched(step: Pair) -> None:
    touched = [pair is not step for pair in many(Sensor(share=0.3), step, 100)]
    assert 15 < sum(touched) < 45


def test_soft_edges_have_mixed_pixels_and_flat_parts_stay(step: Pair) -> None:
    softened = many(replace(CLEAN, soft=3), step)
    assert np.mean([mixed(pair) for pair in softened]) > 100
    for pair in softened:
        np.testing.assert_allclose(pair.target[40:50, 50:60], 1000, rtol=1e-5)
        assert pair.target.min() >= 1000 - 1e-2
        assert pair.target.max() <= 2000 + 1e-2


def test_ragged_edges_have_none(step: Pair) -> None:
    frayed = many(replace(CLEAN, ragged=3), step)
    assert all(mixed(pair) == 0 for pair in frayed)
    assert any((pair.target != step.target).sum() > 50 for pair in frayed)


def test_thin_things_vanish_and_thick_ones_stay(step: Pair) -> None:
    pairs = many(replace(CLEAN, lost=6), step)
    assert any((pair.target[:, 100:102] == 2000).all() for pair in pairs)
    assert all((pair.target[30:60, 40:70] == 1000).all() for pair in pairs)


def test_noise_grows_with_depth(step: Pair) -> None:
    spread = [
        (pair.target[30:60, 40:70].std(), pair.target[:20].std()) for pair in many(replace(CLEAN, noise=1e-5), step)
    ]
    near, far = np.mean(spread, axis=0)
    assert near > 0.5
    assert far > 2 * near


def test_holes_lie_on_the_far_side_of_jumps(step: Pair) -> None:
    pierced = many(replace(CLEAN, holes=6), step)
    assert any(np.isnan(pair.target).any() for pair in pierced)
    for pair in pierced:
        hole = np.isnan(pair.target)
        assert (step.target[hole] == 2000).all()
        assert not hole[:, :20].any()


def test_old_holes_are_kept(step: Pair) -> None:
    target = step.target.copy()
    target[:10, :10] = np.nan
    for pair in many(replace(CLEAN, soft=3, noise=1e-6), Pair(step.guide, target, "holes")):
        assert np.isnan(pair.target[:10, :10]).all()
        assert np.isfinite(pair.target[10:]).all()
        assert pair.target[10:].max() < 2100


def test_the_guide_moves_and_the_target_does_not(step: Pair) -> None:
    shifts = []
    for pair in many(replace(CLEAN, shift=8), step, 40):
        np.testing.assert_array_equal(pair.target, step.target)
        (x, y), _ = cv2.phaseCorrelate(step.guide[..., 0].astype(np.float32), pair.guide[..., 0].astype(np.float32))
        shifts.append(np.hypot(x, y))
    assert max(shifts) > 2
    assert max(shifts) < 8.5
    assert np.median(shifts) < 2  # small shifts are the rule


@pytest.mark.parametrize(("bands", "dtype"), [(1, np.uint8), (3, np.float32), (4, np.uint16)])
def test_guides_of_any_kind(step: Pair, bands: int, dtype: type) -> None:
    guide: np.ndarray = np.ones((90, 121, bands), dtype)
    moved = Sensor(share=1)(Pair(guide, step.target, "other"), np.random.default_rng(0)).guide
    assert moved.dtype == dtype
    np.testing.assert_allclose(moved, guide)


def test_a_pair_without_any_depth_passes(step: Pair) -> None:
    empty = Pair(step.guide, np.full_like(step.target, np.nan), "empty")
    assert np.isnan(Sensor(share=1)(empty, np.random.default_rng(0)).target).all()


def test_mistakes_are_named() -> None:
    with pytest.raises(InputError, match="soft is -1"):
        Sensor(soft=-1)
    with pytest.raises(InputError, match="share is 2"):
        Sensor(share=2)


def test_source_noise_leaves_the_truth_alone() -> None:
    target = torch.full((1, 1, 32, 48), 2.0)
    sample = make_sample(torch.zeros(1, 3, 32, 48), target, torch.ones_like(target, dtype=torch.bool), 8)
    noisy = noisy_source(sample, 0.01, np.random.default_rng(0))
    assert noisy.target is sample.target
    assert 0.01 < float((noisy.source - sample.source).std()) < 0.1  # 0.01 * 2 ** 2
    assert noisy.initial.shape == sample.initial.shape
    assert not torch.equal(noisy.initial, sample.initial)
