"""The operators of the saddle system (system.py) in plain torch, on any device. The reference for the compiled ones.

Images that are not `active` may be computed all the same: what becomes of them is not looked at.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from . import multigrid
from .blocks import Blocks, block_sum, spread
from .coefficients import Coefficients, laplacian
from .measurement import Measurement
from .multigrid import OMEGA, TINY, Grid, Level

Array = Tensor
Pair = tuple[Tensor, Tensor]


class TorchBackend:
    """Operators for N images of one size; see `System` for what they are used for."""

    xp = torch

    def __init__(self, c: Coefficients, measurement: Measurement) -> None:
        self.c, self.blocks = Coefficients(*(edges.detach() for edges in c)), measurement.blocks
        self.cv, self.ch = self.c
        self.measured = None if measurement.measured is None else measurement.measured.to(c.vertical.dtype)
        self.eps = torch.finfo(c.vertical.dtype).eps

    # ---- arrays

    def cells(self, values: Array) -> Array:
        return values.detach().to(self.cv.dtype)

    def field(self, values: Array) -> Array:
        """A copy of an image."""
        return values.detach().clone()

    def tensor(self, values: Array) -> Array:
        return values

    def per_image(self, numbers: Array) -> Array:
        """[N] as [N, 1, 1], to be used beside fields."""
        return numbers[:, None, None]

    def new_field(self) -> Array:
        return self.cv.new_zeros(len(self.cv), *self.blocks.target_size)

    def as_layout(self, blocks: Blocks) -> Blocks:
        return blocks

    def level(self, blocks: Blocks, constrained: bool = True) -> Level:
        """A grid that is still to be filled."""
        field, cells = (self.cv.new_zeros(len(self.cv), *size) for size in (blocks.target_size, blocks.source_size))
        return Level(blocks, None, field, field, field, field, cells, cells, constrained)

    # ---- the system

    def assemble(self, level: Level, y: Array, used: Array, which: Array) -> None:
        vertical, horizontal = self.c
        wv = pad(vertical * y[:, 1:] * y[:, :-1], (0, 0, 1, 1))
        wh = pad(horizontal * y[:, :, 1:] * y[:, :, :-1], (1, 1))
        g = y**2 if self.measured is None else self.measured * y**2
        diagonal = _edge_sum(wv, wh)
        least = spread(self._block_max(diagonal) * used, self.blocks) * self.eps
        new = _scale(wv, wh, g, torch.maximum(diagonal, least).clamp(min=TINY).sqrt(), self.blocks)
        _replace(level, new, which)

    def _block_max(self, values: Array) -> Array:
        by_row = torch.stack([values[:, a:b].amax(1) for a, b in pairwise(self.blocks.rows)], 1)
        return torch.stack([by_row[:, :, a:b].amax(2) for a, b in pairwise(self.blocks.cols)], 2)

    def coarsen(self, fine: Level, coarse: Level, which: Array) -> None:
        """Fill a grid within blocks: groups of pixels of the finer one become one pixel each."""
        groups, sd = fine.groups, fine.sd
        vertical = fine.wv[:, 1:-1] * sd[:, 1:] * sd[:, :-1]
        horizontal = fine.wh[:, :, 1:-1] * sd[:, :, 1:] * sd[:, :, :-1]
        vertical, horizontal = multigrid.between_groups(vertical, horizontal, groups)
        wv, wh = pad(vertical, (0, 0, 1, 1)), pad(horizontal, (1, 1))
        root = _edge_sum(wv, wh).clamp(min=TINY).sqrt()
        _replace(coarse, _scale(wv, wh, block_sum(fine.g * sd, groups), root, coarse.layout), which)

    def across_cells(self, fine: Level, coarse: Level, grid: Grid, slack: Array) -> None:
        made = multigrid.across_cells(grid, fine.wv, fine.wh, fine.sd, fine.g, slack)
        for name, values in made.items():
            setattr(coarse, name, values.to(self.cv.dtype))

    def flow(self, y: Array, f: Array | None, active: Array) -> Array:
        """L y - f."""
        return laplacian(y, self.c) if f is None else laplacian(y, self.c) - f

    # ---- values

    def block_sums(self, a: Array, b: Array | None = None, active: Array | None = None) -> Array:
        """Sums of m a, or m a b, over each block."""
        values = a if b is None else a * b
        return block_sum(values if self.measured is None else values * self.measured, self.blocks)

    def add(self, values: Array, a: Array | None, cells: Array, active: Array | None) -> None:
        """values += m a cells, with the cell that holds the pixel; None: a = 1."""
        wide = spread(cells, self.blocks)
        wide = wide if self.measured is None else wide * self.measured
        wide = wide if active is None else wide * active[:, None, None]
        values += wide if a is None else a * wide

    def update(self, y: Array, x: Array, sd: Array, active: Array) -> Array:
        """y *= 1 + u, kept positive, with u = x / sd; return the largest |u|."""
        u = x / sd
        factor = torch.where(u > -0.5, 1 + u, 0.25 / (-u).clamp(min=0.5))
        y.copy_(torch.where(active[:, None, None], (y * factor).clamp(min=TINY), y))
        return u.abs().amax((1, 2))

    # ---- conjugate gradients

    def step(self, r: Array, q: Array, level: Level, alpha: Array, inverse: Array, active: Array) -> Pair:
        """r -= alpha q less multiples of g; return the block sums of g r before that, and r'r."""
        r -= torch.where(active, alpha, 0.0)[:, None, None] * q
        sums = block_sum(level.g * r, self.blocks)
        r -= level.g * spread(sums * inverse, self.blocks)
        return sums, r.square().sum((1, 2))

    def turn(self, x: Array, p: Array, z: Array, alpha: Array, beta: Array, active: Array) -> None:
        """x += alpha p, then p = z + beta p."""
        x += torch.where(active, alpha, 0.0)[:, None, None] * p
        p.copy_(torch.where(active[:, None, None], z + beta[:, None, None] * p, p))

    def multiply(self, level: Level, p: Array, q: Array, active: Array) -> Array:
        q.copy_(p - _neighbours(level, p))
        return (p * q).sum((1, 2))

    def plus_constraint(self, level: Level, values: Array, kappa: Array, active: Array, out: str = "") -> Array:
        """values + g kappa, in their place unless there is a name for the result."""
        added = level.g * spread(kappa, self.blocks)
        return values + added if out else values.add_(added)

    def move(self, x: Array, p: Array, alpha: Array) -> None:
        x += alpha[:, None, None] * p

    # ---- the V-cycle

    def project(self, level: Level, r: Array, active: Array) -> Pair:
        """r - g kappa under the constraint, and kappa."""
        kappa = block_sum(level.g * r, level.layout) * level.inverse
        return r - level.g * spread(kappa, level.layout), kappa

    def restrict(self, level: Level, coarse: Level, r: Array, rest: Array, active: Array) -> Array:
        """What z = OMEGA rest leaves of r, on the coarser grid."""
        left = (1 - OMEGA) * r + OMEGA * _neighbours(level, rest)  # r - g OMEGA kappa - K z
        return self.unscaled(coarse, block_sum(level.sd * left, level.groups))

    def prolong(self, level: Level, coarse: Level, rest: Array, z: Array, factor: float, active: Array) -> Array:
        """OMEGA rest and the coarser grid's z."""
        correction: Array = level.sd * spread(factor * self.unscaled(coarse, z), level.groups)
        return OMEGA * rest + correction

    def smooth(self, level: Level, r: Array, z: Array, kappa: Array, active: Array) -> tuple[Array, Array, Array]:
        left = r - level.g * spread(kappa, level.layout) - z + _neighbours(level, z)
        last = OMEGA * block_sum(level.g * left, level.layout) * level.inverse
        z = z + OMEGA * left - level.g * spread(last, level.layout)
        return z, last, (r * z).sum(2)

    def unscaled(self, level: Level, z: Array) -> Array:
        """z / sd, 0 where sd is 0."""
        return torch.where(level.sd > 0, z / torch.where(level.sd > 0, level.sd, 1), 0.0)


def _neighbours(level: Level, z: Array) -> Array:
    """Sum of w z over the four neighbours."""
    tall, wide = pad(z, (0, 0, 1, 1)), pad(z, (1, 1))
    vertical = level.wv[:, :-1] * tall[:, :-2] + level.wv[:, 1:] * tall[:, 2:]
    result: Array = vertical + level.wh[:, :, :-1] * wide[:, :, :-2] + level.wh[:, :, 1:] * wide[:, :, 2:]
    return result


def _edge_sum(wv: Array, wh: Array) -> Array:
    """Sum of the bordered weights at each pixel."""
    return wv[:, 1:] + wv[:, :-1] + wh[:, :, 1:] + wh[:, :, :-1]


def _scale(wv: Array, wh: Array, g: Array, sd: Array, blocks: Blocks) -> dict[str, Array]:
    """The system scaled to a unit diagonal; names as in `Level`."""
    inner_v, inner_h = sd[:, 1:] * sd[:, :-1], sd[:, :, 1:] * sd[:, :, :-1]
    g = g / sd
    wv, wh = pad(wv[:, 1:-1] / inner_v, (0, 0, 1, 1)), pad(wh[:, :, 1:-1] / inner_h, (1, 1))
    return {"wv": wv, "wh": wh, "sd": sd, "g": g, "squares": block_sum(g**2, blocks)}


def _replace(level: Level, new: dict[str, Any], which: Array) -> None:
    """Take the new system of some images."""
    for name, values in new.items():
        old = getattr(level, name)
        setattr(level, name, torch.where(which[:, None, None], values, old) if old.shape == values.shape else values)
