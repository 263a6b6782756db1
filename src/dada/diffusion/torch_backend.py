"""The operators of the saddle system (system.py) in plain torch, on any device. The reference for the compiled ones.

Images that are not `active` may be computed all the same: what becomes of them is not looked at.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from . import multigrid
from .blocks import Blocks, block_sum, spread
from .coefficients import Coefficients, laplacian
from .measurement import Measurement
from .multigrid import OMEGA, TINY, Grid, Level


class TorchBackend:
    """Operators for N images of one size; see `System` for what they are used for."""

    xp = torch

    def __init__(self, c: Coefficients, measurement: Measurement) -> None:
        self.c, self.blocks = Coefficients(*(edges.detach() for edges in c)), measurement.blocks
        self.measured = None if measurement.measured is None else measurement.measured.to(c.vertical.dtype)
        self.eps = torch.finfo(c.vertical.dtype).eps

    # ---- arrays

    def cells(self, values: Tensor) -> Tensor:
        return values.detach().to(self.c.vertical.dtype)

    def field(self, values: Tensor) -> Tensor:
        """A copy of an image."""
        return values.detach().clone()

    def tensor(self, values: Tensor) -> Tensor:
        return values

    def per_image(self, numbers: Tensor) -> Tensor:
        """[N] as [N, 1, 1], to be used beside fields."""
        return numbers[:, None, None]

    def host(self, values: Tensor) -> np.ndarray:
        return values.cpu().numpy()

    def new_field(self) -> Tensor:
        return self.c.vertical.new_zeros(len(self.c.vertical), *self.blocks.target_size)

    def as_layout(self, blocks: Blocks) -> Blocks:
        return blocks

    def finest(self) -> Level:
        zero = self.new_field()
        return Level(self.blocks, None, zero, zero, zero, zero, zero, zero, memory={"z": self.new_field()})

    def level(self, grid: Grid) -> Level:
        blocks = Blocks((len(grid.rows) - 1, len(grid.cols) - 1), grid.size, grid.rows, grid.cols)
        empty = self.c.vertical.new_zeros(0)
        level = Level(blocks, None, empty, empty, empty, empty, empty, empty, constrained=grid.kind == "within")
        if not level.constrained:
            level.g = level.inverse = self.c.vertical.new_zeros(len(self.c.vertical), *grid.size)
        return level

    # ---- the system

    def assemble(self, level: Level, y: Tensor, at_y: Tensor, used: Tensor, which: Tensor) -> None:
        vertical, horizontal = self.c
        state = torch.where(at_y[:, None, None], y, 1.0)
        wv = pad(vertical * state[:, 1:] * state[:, :-1], (0, 0, 1, 1))
        wh = pad(horizontal * state[:, :, 1:] * state[:, :, :-1], (1, 1))
        g = state**2 if self.measured is None else self.measured * state**2
        diagonal = _edge_sum(wv, wh)
        least = spread(self._block_max(diagonal) * used, self.blocks) * self.eps
        new = _scale(wv, wh, g, torch.maximum(diagonal, least).clamp(min=TINY).sqrt(), self.blocks)
        _replace(level, new, which)

    def _block_max(self, values: Tensor) -> Tensor:
        by_row = torch.stack([values[:, a:b].amax(1) for a, b in pairwise(self.blocks.rows)], 1)
        return torch.stack([by_row[:, :, a:b].amax(2) for a, b in pairwise(self.blocks.cols)], 2)

    def coarsen(self, fine: Level, coarse: Level, which: Tensor) -> None:
        """Fill a grid within blocks: groups of pixels of the finer one become one pixel each."""
        groups, sd = fine.groups, fine.sd
        vertical = fine.wv[:, 1:-1] * sd[:, 1:] * sd[:, :-1]
        horizontal = fine.wh[:, :, 1:-1] * sd[:, :, 1:] * sd[:, :, :-1]
        vertical, horizontal = multigrid.between_groups(vertical, horizontal, groups)
        wv, wh = pad(vertical, (0, 0, 1, 1)), pad(horizontal, (1, 1))
        root = _edge_sum(wv, wh).clamp(min=TINY).sqrt()
        _replace(coarse, _scale(wv, wh, block_sum(fine.g * sd, groups), root, coarse.layout), which)

    def across_cells(self, fine: Level, coarse: Level, grid: Grid, slack: Tensor) -> None:
        made = multigrid.across_cells(fine.wv, fine.wh, fine.sd, fine.g, slack, grid)
        for name, values in made.items():
            setattr(coarse, name, values.to(self.c.vertical.dtype))

    def isolated(self) -> Tensor:
        """Pixels without any edge."""
        return _edge_sum(pad(self.c.vertical, (0, 0, 1, 1)), pad(self.c.horizontal, (1, 1))) == 0

    def flow(self, y: Tensor, f: Tensor | None, active: Tensor) -> Tensor:
        """L y - f."""
        return laplacian(y, self.c) if f is None else laplacian(y, self.c) - f

    def right_hand_side(
        self, r: Tensor, y: Tensor, at_y: Tensor, a: Tensor, mu: Tensor, k: Tensor, flow: Tensor, level: Level,
        which: Tensor,
    ) -> None:  # fmt: skip
        """r = y (m (mu a - k) - flow) / sd, and without the factor y unless `at_y`."""
        push = spread(mu, self.blocks) * a - spread(k, self.blocks)
        push = push if self.measured is None else push * self.measured
        new = torch.where(at_y[:, None, None], y, 1.0) * (push - flow) / level.sd
        r.copy_(torch.where(which[:, None, None], new, r))

    # ---- values

    def block_sums(self, a: Tensor, b: Tensor | None = None, active: Tensor | None = None) -> Tensor:
        """Sums of m a, or m a b, over each block."""
        values = a if b is None else a * b
        return block_sum(values if self.measured is None else values * self.measured, self.blocks)

    def change_blocks(self, y: Tensor, change: Tensor, ratio: bool, active: Tensor | None) -> None:
        wide = spread(change, self.blocks)
        wide = wide if self.measured is None else wide * self.measured
        wide = wide if active is None else wide * active[:, None, None]
        y += y * wide if ratio else wide

    def update(self, y: Tensor, x: Tensor, sd: Tensor, relative: Tensor, active: Tensor) -> Tensor:
        """y *= 1 + u, kept positive, with u = x / sd, or x / (sd y) unless `relative`; return the largest |u|."""
        u = torch.where(relative[:, None, None], x / sd, x / (sd * y))
        factor = torch.where(u > -0.5, 1 + u, 0.25 / (-u).clamp(min=0.5))
        y.copy_(torch.where(active[:, None, None], (y * factor).clamp(min=TINY), y))
        return u.abs().amax((1, 2))

    def nearest_energy(self, cells: Tensor) -> Tensor:
        """y'L y of the nearest-neighbour image of cells."""
        return self.energy(spread(cells, self.blocks))

    def energy(self, y: Tensor) -> Tensor:
        """y'L y."""
        vertical, horizontal = self.c
        return (vertical * y.diff(dim=1) ** 2).sum((1, 2)) + (horizontal * y.diff(dim=2) ** 2).sum((1, 2))

    def edge_total(self) -> Tensor:
        """[N] sum of the coefficients."""
        return self.c.vertical.sum((1, 2)) + self.c.horizontal.sum((1, 2))

    # ---- conjugate gradients

    def step(
        self, x: Tensor, r: Tensor, p: Tensor, q: Tensor, level: Level, alpha: Tensor, active: Tensor, inverse: Tensor
    ) -> tuple[Tensor, Tensor]:
        """x += alpha p, r -= alpha q less multiples of g; return the block sums of g r before that, and r'r."""
        length = torch.where(active, alpha, 0.0)[:, None, None]
        x += length * p
        r -= length * q
        sums = block_sum(level.g * r, self.blocks)
        r -= level.g * spread(sums * inverse, self.blocks)
        return sums, r.square().sum((1, 2))

    def turn(self, p: Tensor, z: Tensor, beta: Tensor, active: Tensor) -> None:
        p.copy_(torch.where(active[:, None, None], z + beta[:, None, None] * p, p))

    def multiply(self, level: Level, p: Tensor, q: Tensor, active: Tensor) -> Tensor:
        q.copy_(p - _neighbours(level, p))
        return (p * q).sum((1, 2))

    def add_constraint(self, out: Tensor, values: Tensor, level: Level, kappa: Tensor, active: Tensor) -> None:
        out.copy_(values + level.g * spread(kappa, self.blocks))

    def move(self, x: Tensor, p: Tensor, alpha: Tensor) -> None:
        x += alpha[:, None, None] * p

    # ---- the V-cycle

    def smooth_from_zero(self, level: Level, r: Tensor, active: Tensor) -> tuple[Tensor, Tensor]:
        kappa = OMEGA * block_sum(level.g * r, level.layout) * level.inverse
        return OMEGA * r - level.g * spread(kappa, level.layout), kappa

    def restrict(self, level: Level, coarse: Level, r: Tensor, z: Tensor, active: Tensor) -> Tensor:
        left = (1 - OMEGA) * r + _neighbours(level, z)  # r - g kappa - K z
        return self.unscaled(coarse, block_sum(level.sd * left, level.groups))

    def prolong(
        self, level: Level, coarse: Level, z: Tensor, correction: Tensor, enlargement: float, active: Tensor
    ) -> None:
        z += level.sd * spread(enlargement * self.unscaled(coarse, correction), level.groups)

    def smooth(
        self, level: Level, r: Tensor, z: Tensor, kappa: Tensor, active: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        left = r - level.g * spread(kappa, level.layout) - z + _neighbours(level, z)
        last = OMEGA * block_sum(level.g * left, level.layout) * level.inverse
        z = z + OMEGA * left - level.g * spread(last, level.layout)
        return z, last, (r * z).sum((1, 2))

    def unscaled(self, level: Level, z: Tensor) -> Tensor:
        """z / sd, 0 where sd is 0."""
        return torch.where(level.sd > 0, z / torch.where(level.sd > 0, level.sd, 1), 0.0)


def _neighbours(level: Level, z: Tensor) -> Tensor:
    """Sum of w z over the four neighbours."""
    vertical, horizontal = level.wv[:, 1:-1], level.wh[:, :, 1:-1]
    return (
        pad(vertical * z[:, 1:], (0, 0, 0, 1))
        + pad(vertical * z[:, :-1], (0, 0, 1, 0))
        + pad(horizontal * z[:, :, 1:], (0, 1))
        + pad(horizontal * z[:, :, :-1], (1, 0))
    )


def _edge_sum(wv: Tensor, wh: Tensor) -> Tensor:
    """Sum of the bordered weights at each pixel."""
    return wv[:, 1:] + wv[:, :-1] + wh[:, :, 1:] + wh[:, :, :-1]


def _scale(wv: Tensor, wh: Tensor, g: Tensor, sd: Tensor, blocks: Blocks) -> dict[str, Tensor]:
    """The system scaled to a unit diagonal; names as in `Level`."""
    inner_v, inner_h = sd[:, 1:] * sd[:, :-1], sd[:, :, 1:] * sd[:, :, :-1]
    g = g / sd
    wv, wh = pad(wv[:, 1:-1] / inner_v, (0, 0, 1, 1)), pad(wh[:, :, 1:-1] / inner_h, (1, 1))
    return {"wv": wv, "wh": wh, "sd": sd, "g": g, "squares": block_sum(g**2, blocks)}


def _replace(level: Level, new: dict[str, Any], which: Tensor) -> None:
    """Take the new system of some images."""
    for name, values in new.items():
        old = getattr(level, name)
        kept = old.shape == values.shape and not bool(which.all())
        setattr(level, name, torch.where(which[:, None, None], values, old) if kept else values)
