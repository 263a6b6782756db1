"""Facts about guides that lie beside their targets."""

import numpy as np
import pytest

from dada.datasets import load_dataset
from dada.datasets.pair import Pair
from dada.datasets.register import move, offset, register
from dada.scene import render


@pytest.fixture(scope="module")
def pair() -> Pair:
    scene = render(192, 256)
    return Pair(scene.guide, scene.depth, "scene")


def test_what_lies_right_is_left_alone(pair: Pair) -> None:
    assert np.abs(offset(pair)).max() < 0.2


@pytest.mark.parametrize(("rows", "cols"), [(0.4, -0.3), (-1.3, 0.6), (0.0, 2.0)])
def test_an_offset_is_found_and_taken_back(pair: Pair, rows: float, cols: float) -> None:
    beside = Pair(move(pair.guide, -rows, -cols), pair.target, "beside")
    assert np.abs(np.subtract(offset(beside), np.add(offset(pair), (rows, cols)))).max() < 0.2
    back = register(beside)
    inner = (slice(8, -8), slice(8, -8))
    known = Pair(move(beside.guide, rows, cols), pair.target, "by the true offset")  # what interpolating twice costs
    far, near, best = (np.abs(p.guide[inner].astype(float) - pair.guide[inner]).mean() for p in (beside, back, known))
    assert near < 0.5 * (far + best)
    assert back.guide.dtype == pair.guide.dtype


def test_holes_and_whole_pixels(pair: Pair) -> None:
    target = pair.target.copy()
    target[40:60] = np.nan
    rows, cols = offset(Pair(np.roll(pair.guide, 1, axis=0), target, "down by one"))
    assert rows == pytest.approx(1 + offset(pair)[0], abs=0.25)
    assert abs(cols) < 0.25


def test_nothing_clear_is_nothing_moved(pair: Pair) -> None:
    noise = np.random.default_rng(0).integers(0, 255, pair.guide.shape).astype(np.uint8)
    for guide, target in [
        (noise, pair.target),
        (pair.guide, np.ones_like(pair.target)),
        (pair.guide, np.full_like(pair.target, np.nan)),
        (pair.guide[:9, :9], pair.target[:9, :9]),
    ]:
        odd = Pair(guide, target, "odd")
        assert offset(odd) == (0.0, 0.0)
        assert register(odd) is odd


def test_painted_scenes_are_registered() -> None:
    for index in range(2):
        assert np.abs(offset(load_dataset("painted:1,10", split="train")[index])).max() < 0.5
