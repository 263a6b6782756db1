"""The nearest image that is nowhere below a floor, or above a ceiling, and has the same cell means."""

from __future__ import annotations

import torch
from torch import Tensor

from dada.diffusion.blocks import Blocks, partition, spread

ROUNDS = 64  # of finding what stays above the floor; a handful is usual


def between(values: Tensor, means: Tensor, least: float, most: float, blocks: Blocks | None = None) -> Tensor:
    """Bring an image [H, W] between two values by `not_below`, with the given means [h, w].

    The means lie from `least` to `most`; cells whose mean is NaN are only cut off.
    """
    values = not_below(values, means, least, blocks)
    return -not_below(-values, -means, -most, blocks) if bool((values > most).any()) else values


def not_below(values: Tensor, means: Tensor, floor: float = 0.0, blocks: Blocks | None = None) -> Tensor:
    """Project an image on those that are nowhere below a floor and have the given means.

    `shift` bends an image as far as a measurement asks for, and so below zero beside a high jump, where heights or
    depths cannot be. In a cell of n pixels the nearest values that can be are max(y - tau, floor), with tau such that
    their sum is n times the mean (the projection on a simplex). Pixels once below the floor stay there: tau only grows
    (Michelot 1986). Cells without a pixel below the floor are left alone, whatever their mean.

    Args:
        values: [H, W].
        means: [h, w], at least the floor; NaN in cells that are only to be cut off at it.
        floor: least value of the result.
        blocks: which pixels each cell covers; `partition` of the two sizes where not given.

    Returns:
        [H, W] of the same dtype.
    """
    below = values < floor
    if not bool(below.any()):
        return values
    cells, size = (means.shape[0], means.shape[1]), (values.shape[0], values.shape[1])
    blocks = blocks or partition(cells, size)
    row, col = blocks.owners(values.device)
    touched = torch.zeros(cells, dtype=torch.bool, device=values.device)
    i, j = below.nonzero(as_tuple=True)
    touched[row[i], col[j]] = True
    i, j = spread(touched, blocks).nonzero(as_tuple=True)  # only these pixels are looked at from here on
    at, over = row[i] * cells[1] + col[j], values[i, j].double() - floor

    def sums(part: Tensor) -> Tensor:
        return over.new_zeros(means.numel()).index_add_(0, at, part)

    mean = means.double().flatten() - floor
    bound = torch.isfinite(mean)
    total = torch.where(bound, mean, 0) * sums(torch.ones_like(over))
    above = torch.ones_like(over, dtype=torch.bool)
    tau = torch.zeros_like(total)
    for _ in range(ROUNDS):
        count = sums(above.double())
        tau = torch.where(bound & (count > 0), (sums(over * above) - total) / count.clamp(min=1), tau)
        now = above & (over > tau[at])
        if bool((now == above).all()):
            break
        above = now
    result = values.clone()
    result[i, j] = ((over - tau[at]).clamp(min=0) + floor).to(values.dtype)
    return result
