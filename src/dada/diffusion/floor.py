"""The nearest image that is nowhere below a floor and has the same cell means."""

from __future__ import annotations

import torch
from torch import Tensor

from .blocks import block_sum, partition, spread

ROUNDS = 64  # of finding what stays above the floor; a handful is usual


def not_below(values: Tensor, means: Tensor, floor: float = 0.0) -> Tensor:
    """Project an image on those that are nowhere below a floor and have the given means.

    `shift` bends an image as far as a measurement asks for, and so below zero beside a high jump, where heights or
    depths cannot be. In a cell of n pixels the nearest values that can be are max(y - tau, floor), with tau such that
    their sum is n times the mean (the projection on a simplex). Pixels once below the floor stay there: tau only grows
    (Michelot 1986). Cells without a pixel below the floor are left alone, whatever their mean.

    Args:
        values: [H, W].
        means: [h, w], at least the floor; NaN in cells that are only to be cut off at it.
        floor: least value of the result.

    Returns:
        [H, W] of the same dtype.
    """
    blocks = partition((means.shape[0], means.shape[1]), (values.shape[0], values.shape[1]))
    touched = block_sum((values < floor).to(torch.float64), blocks) > 0
    if not bool(touched.any()):
        return values
    bound = touched & torch.isfinite(means)
    over = values.double() - floor
    total = torch.where(bound, (means.double() - floor) * torch.from_numpy(blocks.area).to(over), 0)
    above = torch.ones_like(over, dtype=torch.bool)
    tau = torch.zeros_like(total)
    for _ in range(ROUNDS):
        count = block_sum(above.double(), blocks)
        tau = torch.where(bound & (count > 0), (block_sum(over * above, blocks) - total) / count.clamp(min=1), tau)
        now = above & (over > spread(tau, blocks))
        if bool((now == above).all()):
            break
        above = now
    changed = ((over - spread(tau, blocks)).clamp(min=0) + floor).to(values.dtype)
    return torch.where(spread(touched, blocks), changed, values)
