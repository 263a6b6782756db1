"""Targets are enlarged and turned without values that were not there, and without stairs."""

import numpy as np
import pytest

from dada.datasets.snap import snap

SAME = np.array([[1.0, 0, 0], [0, 1, 0]])


def enlarge(image: np.ndarray, times: int) -> np.ndarray:
    step = 1 / times
    matrix = np.array([[step, 0, (step - 1) / 2], [0, step, (step - 1) / 2]])
    return snap(image, matrix, (image.shape[0] * times, image.shape[1] * times))


def test_no_motion_changes_nothing(rng):
    image = rng.random((7, 9)).astype(np.float32)
    image[2, 3] = np.nan
    np.testing.assert_array_equal(snap(image, SAME, image.shape), image)


def test_a_slanted_edge_becomes_straighter():
    y, x = np.mgrid[:24, :24]
    coarse = np.where(x > y, 1.0, 3.0).astype(np.float32)  # a stair of steps of one pixel, 4 after enlarging
    fine = enlarge(coarse, 4)
    rows = (fine == 1).argmax(axis=1)[8:-8]  # where the near surface begins in each row
    assert np.diff(rows).max() == 2
    nearest = np.kron(coarse, np.ones((4, 4)))
    assert set(np.diff((nearest == 1).argmax(axis=1)[8:-8])) == {0, 4}


@pytest.mark.parametrize("times", [2, 3])
def test_only_values_that_were_there(rng, times):
    image = rng.random((9, 11)).astype(np.float32)
    assert set(np.unique(enlarge(image, times))) <= set(np.unique(image))


def test_holes_are_as_large_as_they_were(rng):
    image = rng.random((12, 12)).astype(np.float32)
    image[4:7, 5:8] = np.nan
    np.testing.assert_array_equal(np.isnan(enlarge(image, 3)), np.kron(np.isnan(image), np.ones((3, 3), bool)))


def test_beyond_the_borders_nothing_is_known():
    moved = snap(np.ones((4, 5), np.float32), np.array([[1.0, 0, -2], [0, 1, 1]]), (4, 5))
    np.testing.assert_array_equal(np.isnan(moved), [[True, True, False, False, False]] * 3 + [[True] * 5])


def test_other_memory_layouts(rng):
    image = rng.random((8, 6)).astype(np.float32)
    np.testing.assert_array_equal(enlarge(image.T, 2), enlarge(np.ascontiguousarray(image.T), 2))
