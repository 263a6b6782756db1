"""A result that is pulled towards the last one keeps its cell means, and shows no cell borders."""

import numpy as np
import pytest
import torch

from dada.diffusion import Coefficients, down
from dada.streams.temporal import pulled
from dada.upsampling.problem import Problem
from dada.upsampling.solve import Solved

CELLS, SIZE, SIDE = (8, 10), (64, 80), 8


def jumps(image: torch.Tensor) -> tuple[float, float]:
    """Mean |difference| of neighbours across the borders of cells, and within cells."""
    across, within = [], []
    for steps in (image.diff(dim=0), image.diff(dim=1).T):
        border = torch.arange(1, len(steps) + 1) % SIDE == 0
        across.append(steps[border].abs().flatten())
        within.append(steps[~border].abs().flatten())
    return float(torch.cat(across).mean()), float(torch.cat(within).mean())


def pulled_to(last: torch.Tensor, values: torch.Tensor, exact: torch.Tensor) -> torch.Tensor:
    source = down(values, CELLS)[None, None]
    c = Coefficients(torch.ones(SIZE[0] - 1, SIZE[1]), torch.ones(SIZE[0], SIZE[1] - 1))
    weight = torch.where(exact, torch.inf, 0.5)[None, None]
    problem = Problem(torch.zeros(1, 3, *SIZE), source, torch.ones(1, 1, *CELLS, dtype=torch.bool), weight)
    solved = Solved(values, "shift", 1, 0, 0.0, True, "", coefficients=c)
    return pulled(solved, problem, last, torch.full(SIZE, 0.8), 1e-5).values


@pytest.mark.parametrize("uncertain", [False, True])
def test_no_cell_shows_its_border_where_the_last_result_lay_on_a_slope(uncertain):
    """The step to it has another mean in each cell. Taken back by a constant in each, it would be a staircase."""
    row, col = torch.meshgrid(torch.arange(SIZE[0]), torch.arange(SIZE[1]), indexing="ij")
    values = 2 + 0.002 * col + 0.001 * row
    last = values + 0.02 * col * torch.sin(row / 20)
    exact = torch.ones(CELLS, dtype=torch.bool)
    exact[2:4, 3:6] = not uncertain
    found = pulled_to(last, values, exact)
    assert np.abs((down(found, CELLS) - down(values, CELLS))[exact]).max() < 1e-5
    across, within = jumps(found - values)
    assert across < 1.5 * within


def test_what_is_alike_in_all_cells_is_taken_over():
    """A pattern whose mean is that of the result in each cell already needs nothing taken back."""
    row, col = torch.meshgrid(torch.arange(SIZE[0]), torch.arange(SIZE[1]), indexing="ij")
    values = torch.full(SIZE, 2.0)
    last = values + 0.1 * torch.where((row + col) % 2 == 0, 1.0, -1.0)
    found = pulled_to(last, values, torch.ones(CELLS, dtype=torch.bool))
    assert torch.allclose(found, values + 0.8 * (last - values), atol=1e-6)
