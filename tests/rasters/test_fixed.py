"""A window solved again with its surroundings window fixed returns to the solution of the whole."""

import numpy as np
import pytest
import torch

from dada.diffusion import Coefficients, equilibrium, partition
from dada.diffusion.blocks import from_starts
from dada.rasters.fixed import FixedWindow, Surroundings, solve_window


@pytest.mark.parametrize("adjust", ["shift", "ratio"])
@pytest.mark.parametrize("size", [(60, 70), (53, 67)], ids=["whole blocks", "blocks of two sizes"])
@pytest.mark.parametrize(
    "cut", [(3, 7, 4, 9), (0, 5, 4, 9), (3, 12, 0, 4)], ids=["inside", "at the top", "in a corner"]
)
def test_a_disturbed_window_returns_to_the_solution(adjust, size, cut):
    random = torch.Generator().manual_seed(0)
    h, w, (H, W) = 12, 14, size

    def some(*shape: int) -> torch.Tensor:
        return torch.rand(*shape, dtype=torch.float64, generator=random)

    c = Coefficients(some(1, H - 1, W) ** 2 + 0.01, some(1, H, W - 1) ** 2 + 0.01)
    source, mask = some(1, 1, h, w) + 0.5, some(1, 1, h, w) > 0.15
    whole = equilibrium(source, c, adjust=adjust, tolerance=1e-9, mask=mask).values[0, 0].numpy()
    blocks, (a, b, d, e) = partition((h, w), size), cut
    top, bottom, left, right = blocks.rows[a], blocks.rows[b], blocks.cols[d], blocks.cols[e]
    down, across = c.vertical[0].numpy(), c.horizontal[0].numpy()
    rows, cols = slice(top, bottom), slice(left, right)
    sides = {}
    if top:
        sides["top"] = Surroundings(whole[top - 1, cols], down[top - 1, cols])
    if bottom < H:
        sides["bottom"] = Surroundings(whole[bottom, cols], down[bottom - 1, cols])
    if left:
        sides["left"] = Surroundings(whole[rows, left - 1], across[rows, left - 1])
    if right < W:
        sides["right"] = Surroundings(whole[rows, right], across[rows, right - 1])
    noise = np.random.default_rng(0).standard_normal((bottom - top, right - left))
    window = FixedWindow(
        whole[rows, cols] * (1 + 0.01 * noise),
        down[top : bottom - 1, cols],
        across[rows, left : right - 1],
        (source * mask)[0, 0, a:b, d:e].numpy(),
        mask[0, 0, a:b, d:e].numpy(),
        from_starts(blocks.rows[a : b + 1] - top, blocks.cols[d : e + 1] - left),
        sides,
    )
    found, change, solution = solve_window(window, adjust, 1e-14)
    assert bool(solution.converged)
    assert change > 1e-4
    np.testing.assert_allclose(found, whole[rows, cols], atol=3e-6)


def test_blocks_whose_sizes_happen_to_divide_are_not_taken_for_equal_ones():
    assert from_starts(np.array([0, 3, 4]), np.array([0, 2, 4])).uniform is None
    assert partition((2, 2), (4, 4)).uniform == (2, 2)
