"""The filter of DKN and FDKN: each pixel is a weighted sum of a few places near it, chosen for that pixel."""

from __future__ import annotations

import torch
from torch import Tensor

KERNEL = 3
"""The kernel has KERNEL^2 places."""
FILTER = 15
"""Places further than the square of FILTER x FILTER pixels around a pixel count as 0."""


def deformable_filter(depth: Tensor, weights: Tensor, offsets: Tensor) -> Tensor:
    """Filter a depth with a kernel for each pixel whose residual is added to it (Eqs. 2 and 5 of the paper).

    The places are bilinear samples. As in the released code, which the released weights rely on, the regular
    grid that the offsets are added to is not centred but goes from -0.5 to 1.5 pixels, and the first axis of the
    kernel runs along x.

    Args:
        depth: [B, 1, H, W].
        weights: [B, 9, H, W], of each place; they sum to 0 at each pixel.
        offsets: [B, 18, H, W], x and y of each place in pixels, added to the grid.

    Returns:
        [B, 1, H, W].
    """
    batch, _, height, width = depth.shape
    taps = torch.arange(KERNEL**2, device=depth.device)
    x = (taps // KERNEL - 0.5)[:, None, None] + offsets[:, 0::2]
    y = (taps % KERNEL - 0.5)[:, None, None] + offsets[:, 1::2]
    left, top = x.detach().floor(), y.detach().floor()
    right_share, bottom_share = x - left, y - top
    column = torch.arange(width, device=depth.device)
    row = torch.arange(height, device=depth.device)[:, None]
    flat = depth.reshape(batch, 1, -1).expand(-1, KERNEL**2, -1)
    total = torch.zeros_like(weights)
    for down in (0, 1):
        for right in (0, 1):
            dx, dy = (left + right).long(), (top + down).long()
            to_column, to_row = column + dx, row + dy
            inside = (to_column >= 0) & (to_column < width) & (to_row >= 0) & (to_row < height)
            inside &= (dx.abs() <= FILTER // 2) & (dy.abs() <= FILTER // 2)
            place = to_row.clamp(0, height - 1) * width + to_column.clamp(0, width - 1)
            value = flat.gather(2, place.flatten(2)).view_as(weights)
            share = (right_share if right else 1 - right_share) * (bottom_share if down else 1 - bottom_share)
            total = total + torch.where(inside, share * value, 0)
    return depth + (weights * total).sum(1, keepdim=True)
