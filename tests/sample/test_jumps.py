"""Jumps are found alike in arrays, tensors and batches, never across an invalid pixel."""

import numpy as np
import pytest
import torch

from dada.sample.jumps import flying, jump_edges, jumps, sides, widen

ROW = [[1.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0]] * 2  # a jump in the middle


@pytest.mark.parametrize("kind", [np.array, torch.tensor])
def test_a_jump_has_two_sides(kind) -> None:
    found = jumps(kind(ROW), kind([[True] * 8] * 2), 0.5)
    assert found.tolist() == [[False, False, False, True, True, False, False, False]] * 2


def test_a_jump_is_one_edge_between_two_neighbours() -> None:
    valid = np.ones((2, 8), bool)
    vertical, horizontal = jump_edges(np.array(ROW), valid, 0.5)
    assert vertical.shape == (1, 8)
    assert not vertical.any()
    assert horizontal.tolist() == [[False, False, False, True, False, False, False]] * 2
    above, _ = jump_edges(np.array(ROW).T, valid.T, 0.5)
    np.testing.assert_array_equal(above, horizontal.T)


def test_a_difference_of_just_the_size_is_no_jump() -> None:
    assert not jumps(np.array(ROW), np.ones((2, 8), bool), 1.0).any()


@pytest.mark.parametrize("hole", [np.nan, 9.0])
def test_no_jump_across_an_invalid_pixel(hole: float) -> None:
    values, valid = np.array(ROW), np.ones((2, 8), bool)
    values[:, 4], valid[:, 4] = hole, False
    assert not jumps(values, valid, 0.5).any()
    assert valid.sum() == 14


def test_batches_give_what_their_images_give(rng) -> None:
    values, valid = torch.from_numpy(rng.random((3, 1, 7, 9))), torch.from_numpy(rng.random((3, 1, 7, 9)) < 0.9)
    batch = widen(jumps(values, valid, 0.4), 1)
    assert batch.shape == values.shape
    for one, value, mask in zip(batch, values, valid, strict=True):
        torch.testing.assert_close(one[0], widen(jumps(value[0], mask[0], 0.4), 1))


def test_widening_reaches_rows_and_columns() -> None:
    mask = torch.zeros(5, 6, dtype=torch.bool)
    mask[2, 3] = True
    assert widen(mask, 1).nonzero().tolist() == [[i, j] for i in (1, 2, 3) for j in (2, 3, 4)]
    assert widen(mask, 0) is mask


def test_flying_pixels_lie_between_two_sides_and_far_from_both():
    truth = torch.tensor([[1.0, 1.0, 1.0, 1.0, 3.0, 3.0, 3.0, 3.0]]).repeat(4, 1)
    low, high = sides(truth, torch.ones_like(truth, dtype=torch.bool), 2)
    blurred = torch.tensor([[1.0, 1.0, 1.1, 1.7, 2.4, 2.8, 3.0, 3.0]]).repeat(4, 1)
    assert flying(blurred, low, high, 0.2)[0].tolist() == [False, False, False, True, True, False, False, False]
    assert not flying(truth, low, high, 0.2).any()
