"""The nearest image without negative values that has the same cell means."""

from __future__ import annotations

import torch
from torch import Tensor

from .blocks import block_sum, partition, spread

ROUNDS = 64  # of finding what stays above zero; a handful is usual


def nonnegative(values: Tensor, means: Tensor) -> Tensor:
    """Project an image on those that are nowhere below zero and have the given means; cells that are stay as they are.

    `shift` bends an image as far as a measurement asks for, and so below zero beside a high jump, where heights or
    depths cannot be. In a cell of n pixels the nearest values that can be are max(y - tau, 0), with tau such that their
    sum is n times the mean (the projection on a simplex). Pixels once below tau stay there: tau only grows
    (Michelot 1986).

    Args:
        values: [H, W].
        means: [h, w], at least 0; NaN in cells that are only to be cut off at zero.

    Returns:
        [H, W] of the same dtype.
    """
    blocks = partition((means.shape[0], means.shape[1]), (values.shape[0], values.shape[1]))
    low = values < 0
    touched = block_sum(low.to(torch.float64), blocks) > 0
    if not bool(touched.any()):
        return values
    bound = touched & torch.isfinite(means)
    exact = values.double()
    total = torch.where(bound, means.double() * torch.from_numpy(blocks.area).to(exact), 0)
    above = torch.ones_like(low)
    tau = torch.zeros_like(total)
    for _ in range(ROUNDS):
        count = block_sum(above.double(), blocks)
        tau = torch.where(bound & (count > 0), (block_sum(exact * above, blocks) - total) / count.clamp(min=1), tau)
        now = above & (exact > spread(tau, blocks))
        if bool((now == above).all()):
            break
        above = now
    changed = (exact - spread(tau, blocks)).clamp(min=0).to(values.dtype)
    return torch.where(spread(touched, blocks), changed, values)
