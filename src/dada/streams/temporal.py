"""Pull a result towards the last one where nothing moved, without contradicting the measurement."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from dada.diffusion import Coefficients, down, equilibrium
from dada.diffusion.blocks import block_mean, partition, spread
from dada.upsampling.problem import Problem
from dada.upsampling.solve import Solved


def pulled(solved: Solved, problem: Problem, last: Tensor, share: Tensor, tolerance: float) -> Solved:
    """Bring a solution nearer to the last result.

    What this would change of the means of exact cells is taken back by an image that the same coefficients make
    smooth, so that no cell shows its border.

    Args:
        solved: of the problem of one image.
        problem: whose exact cells keep their means.
        last: [H, W], the last result.
        share: [H, W] in 0..1, how much of the way to it is gone.
        tolerance: of the image that takes back.
    """
    assert solved.coefficients is not None
    step = share * (last - solved.values)
    exact = problem.exact
    values = solved.values + step
    if bool(exact.any()) and bool((step != 0).any()):
        c = Coefficients(*(part[None].to(step) for part in solved.coefficients))
        off = torch.where(exact, -down(step[None, None], problem.cells), 0)
        back = equilibrium(off, c, adjust="shift", mask=exact, tolerance=tolerance, warn=False)
        values = values + back.values[0, 0]
    return replace(solved, values=_met(values, problem))


def _met(values: Tensor, problem: Problem) -> Tensor:
    """[H, W] with the means of exact cells brought to all digits of the source."""
    blocks, fine = partition(problem.cells, problem.size), values.double()[None, None]
    left = torch.where(problem.exact, problem.source.double() - block_mean(fine, blocks), 0)
    return (fine + spread(left, blocks))[0, 0].to(values.dtype)


def flicker(values: Tensor, last: Tensor, still: Tensor) -> float | None:
    """Mean |change| from the last result where nothing moved, in the unit of the source; None: all of it moved."""
    count = int(still.sum())
    return float(((values - last).abs() * still).sum(dtype=torch.float64)) / count if count else None
