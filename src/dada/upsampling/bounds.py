"""How far beyond its measurements "auto" lets a result go."""

from __future__ import annotations

import torch
from torch import Tensor

from dada.diffusion import down
from dada.diffusion.bounds import between
from dada.upsampling.problem import Problem

LEAST_SHARE = 0.1  # of the least value of a source: how low a result may go
MARGIN, HIDDEN = 0.05, 1024  # how far out of the range of its source a result may go, see `bounds`


def bounds(low: float, high: float, pixels: float) -> tuple[float, float]:
    """Between which values "auto" keeps a result.

    What lies out of the range of all measurements shares its cells with something else, and the fewer pixels a cell
    has, the less can hide in it. Where a cell holds a few pixels of a far hill and the coefficients leave it fewer
    still, these would have to be far behind the hill to make up for the rest. Positive values stay positive.

    Args:
        low: least value of the source.
        high: its largest value.
        pixels: of a source cell.

    Returns:
        The least and the largest value: a twentieth of the source's range on either side, and the whole range for each
        1024 pixels of a cell (x32); no lower than a tenth of the least value of a source that is nowhere below zero.
    """
    reach = (MARGIN + pixels / HIDDEN) * (high - low)
    return max(low - reach, LEAST_SHARE * low) if low >= 0 else low - reach, high + reach


def bounded(values: Tensor, problem: Problem, ends: tuple[float, float]) -> Tensor:
    """Return the nearest image [H, W] between two values, with the means of exact cells.

    Uncertain cells keep their own mean, as far as it lies between them too; so do all cells of a source that was
    resized. Points lie between the two values themselves.

    Args:
        values: [H, W].
        problem: of one image.
        ends: least and largest value of the result.
    """
    source, valid, exact = problem.source[0, 0], problem.valid[0, 0], problem.exact[0, 0]
    if problem.sampling.kind == "point" or problem.points is not None:
        return values.clamp(*ends)
    means = source.double()
    if problem.sampling.kind == "bicubic" or not torch.equal(exact, valid):
        own = down(values.double(), (source.shape[0], source.shape[1])).clamp(*ends)
        means = torch.where(exact & (problem.sampling.kind == "mean"), means, own)
    return between(values, torch.where(valid, means, torch.nan), *ends)
