"""The grids of the V-cycle in plain torch operations, a batch at once: see `_levels.py` for which there are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ._levels import ACROSS, CELLS, Grid
from .blocks import Blocks, block_sum, spread

TINY = 1e-30


@dataclass
class Level:
    """One grid: its blocks, its scaled system, and how its pixels group into the next coarser grid."""

    blocks: Blocks | None  # None: no constraint on this grid
    wv: Tensor
    wh: Tensor
    sd: Tensor
    g: Tensor
    inverse: Tensor  # 1 / (slack + sum g^2), 0 where there is no constraint
    groups: Blocks | None = None
    gain: Tensor | None = None  # on a grid of cells: the multiplier that a unit correction brings

    def apply(self, z: Tensor) -> Tensor:
        """K z."""
        return z - neighbours(z, self.wv, self.wh)

    def kappa(self, r: Tensor) -> Tensor:
        """(sum g r) / (slack + sum g^2), [N, h, w]."""
        return block_sum(self.g * r, self.blocks) * self.inverse if self.blocks else torch.zeros_like(self.inverse)

    def times_g(self, cells: Tensor) -> Tensor:
        """g times the cell's value."""
        return self.g * spread(cells, self.blocks) if self.blocks else torch.zeros_like(self.g)


def neighbours(z: Tensor, wv: Tensor, wh: Tensor) -> Tensor:
    """Sum of w z over the four neighbours."""
    pad = torch.nn.functional.pad
    return (
        pad(wv * z[:, 1:], (0, 0, 0, 1))
        + pad(wv * z[:, :-1], (0, 0, 1, 0))
        + pad(wh * z[:, :, 1:], (0, 1))
        + pad(wh * z[:, :, :-1], (1, 0))
    )


def edge_sum(wv: Tensor, wh: Tensor) -> Tensor:
    """Sum of the edges at each pixel."""
    ones = wv.new_ones(wh.shape[0], wh.shape[1], wv.shape[2])
    return neighbours(ones, wv, wh)


def reciprocal(total: Tensor) -> Tensor:
    usable = (total > 0) & torch.isfinite(total)
    return torch.where(usable, 1 / torch.where(usable, total, 1), 0)


def scale(wv: Tensor, wh: Tensor, isd: Tensor) -> tuple[Tensor, Tensor]:
    return wv * isd[:, 1:] * isd[:, :-1], wh * isd[:, :, 1:] * isd[:, :, :-1]


def coarser(fine: Level, grid: Grid, slack: Tensor) -> Level:
    """The next level of `_levels.grids`, and the groups that lead to it."""
    coarse_size = len(grid.prow) - 1, len(grid.pcol) - 1
    groups = Blocks(coarse_size, (int(grid.prow[-1]), int(grid.pcol[-1])), grid.prow, grid.pcol)
    fine.groups = groups
    unscaled_v, unscaled_h = scale(fine.wv, fine.wh, fine.sd)
    cross_v, cross_h = _across(unscaled_v, unscaled_h, groups)
    if grid.kind == ACROSS:
        total = block_sum(fine.sd**2, groups)
        inside = total - block_sum(edge_sum(unscaled_v, unscaled_h), groups)
        diagonal = torch.maximum(inside + edge_sum(cross_v, cross_h), 1e-12 * total)
        return _without_constraint(cross_v, cross_h, diagonal, total > 0)
    g = block_sum(fine.g * fine.sd, groups)
    if grid.kind == CELLS:
        pull = g * reciprocal(slack)
        diagonal = (edge_sum(cross_v, cross_h) + g * pull).clamp(min=TINY)
        level = _without_constraint(cross_v, cross_h, diagonal, slack > 0)
        level.gain = torch.where(slack > 0, pull, 0.0)
        return level
    sd = edge_sum(cross_v, cross_h).clamp(min=TINY).sqrt()
    blocks = Blocks((len(grid.rows) - 1, len(grid.cols) - 1), coarse_size, grid.rows, grid.cols)
    g = g / sd
    return Level(blocks, *scale(cross_v, cross_h, 1 / sd), sd, g, reciprocal(slack + block_sum(g**2, blocks)))


def _across(wv: Tensor, wh: Tensor, groups: Blocks) -> tuple[Tensor, Tensor]:
    """Sum the edges between groups."""
    rows, cols = (torch.from_numpy(v[1:-1] - 1).to(wv.device) for v in (groups.rows, groups.cols))
    (h, w), (H, W) = groups.source_size, groups.target_size
    within_cols = Blocks((h - 1, w), (h - 1, W), np.arange(h), groups.cols)
    within_rows = Blocks((h, w - 1), (H, w - 1), groups.rows, np.arange(w))
    vertical, horizontal = wv[:, rows], wh[:, :, cols]
    return (
        block_sum(vertical, within_cols) if h > 1 else vertical.new_zeros(len(wv), 0, w),
        block_sum(horizontal, within_rows) if w > 1 else horizontal.new_zeros(len(wh), h, 0),
    )


def _without_constraint(wv: Tensor, wh: Tensor, diagonal: Tensor, active: Tensor) -> Level:
    """A level on which each pixel stands for itself; inactive ones take no part."""
    sd = torch.where(active, diagonal.sqrt(), 0.0)
    wv, wh = scale(wv, wh, reciprocal(sd))
    return Level(None, wv, wh, sd, torch.zeros_like(sd), torch.zeros_like(sd))


# ---- a batch ------------------------------------------------------------------------------------------------------
