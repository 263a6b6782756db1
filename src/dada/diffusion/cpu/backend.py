"""The operators of the saddle system (system.py) on the CPU: NumPy arrays, and the compiled kernels of this folder."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .. import multigrid
from ..blocks import Blocks
from ..coefficients import Coefficients
from ..measurement import Adjust, Measurement
from ..multigrid import TINY, Grid, Level
from . import grids, iteration, loop, outputs, smoothing, system
from .compiling import Kernel, Variant, several_threads

BAND = 64  # least pixel rows of a band, which is what one task of a kernel works on
ALL_MEASURED = {kind: np.ones((1, 1, 1), kind) for kind in (np.float32, np.float64)}

Array = np.ndarray
Layout = tuple[Array, Array, Array]  # first rows and columns of the blocks, and first block rows of the bands


@lru_cache(maxsize=256)
def bands_of(blocks: Blocks) -> Layout:
    """Blocks as kernels take them. Bands do not depend on the number of threads, and so neither do results."""
    block_rows = blocks.source_size[0]
    count = max(1, min(block_rows, blocks.target_size[0] // BAND))
    return blocks.rows, blocks.cols, block_rows * np.arange(count + 1) // count


class CpuBackend:
    """Operators for N images of one size; see `System` for what they are used for."""

    xp = np

    def __init__(self, c: Coefficients, measurement: Measurement) -> None:
        self.cv, self.ch = (edges.detach().contiguous().numpy() for edges in c)
        self.blocks, self.layout = measurement.blocks, bands_of(measurement.blocks)
        self.kind = self.cv.dtype.type
        self.eps = float(np.finfo(self.kind).eps)
        self.partly = measurement.measured is not None
        self.measured = ALL_MEASURED[self.kind]
        if measurement.measured is not None:
            self.measured = measurement.measured.to(c.vertical.dtype).contiguous().numpy()
        self.shape = (len(self.cv), *self.blocks.target_size)
        self.of_bands = np.zeros((len(self.cv), len(self.layout[2]) - 1))  # a number for each band
        self.all_images = np.ones(len(self.cv), bool)
        self.variant = Variant(self.kind, several_threads(int(np.prod(self.shape))))

    def _call(self, kernel: Kernel, *arguments: Any) -> None:
        kernel[self.variant](*arguments)

    # ---- arrays

    def cells(self, values: Tensor) -> Array:
        return values.detach().double().numpy()

    def field(self, values: Tensor) -> Array:
        """A copy of an image."""
        return np.array(values.detach().numpy(), order="C")

    def tensor(self, values: Array) -> Tensor:
        return torch.from_numpy(values)

    def per_image(self, numbers: Array) -> Array:
        """[N] as [N, 1, 1], to be used beside fields."""
        return numbers.astype(self.kind)[:, None, None]

    def host(self, values: Array) -> Array:
        return values

    def new_field(self) -> Array:
        return np.zeros(self.shape, self.kind)

    def as_layout(self, blocks: Blocks) -> Layout:
        return bands_of(blocks)

    def finest(self) -> Level:
        return self._level(self.blocks)

    def level(self, grid: Grid) -> Level:
        """Memory for a coarser grid."""
        blocks = Blocks((len(grid.rows) - 1, len(grid.cols) - 1), grid.size, grid.rows, grid.cols)
        return self._level(blocks, constrained=grid.kind == "within")

    def _level(self, blocks: Blocks, constrained: bool = True) -> Level:
        N, (H, W) = len(self.cv), blocks.target_size
        wv, wh = np.zeros((N, H + 1, W), self.kind), np.zeros((N, H, W + 1), self.kind)
        sd, g, z, out, r = (np.zeros((N, H, W), self.kind) for _ in range(5))
        squares, inverse, kappa, last = (np.zeros((N, *blocks.source_size)) for _ in range(4))
        products = np.zeros((N, len(bands_of(blocks)[2]) - 1))
        memory = {"z": z, "out": out, "r": r, "kappa": kappa, "last": last, "products": products}
        return Level(bands_of(blocks), None, wv, wh, sd, g, squares, inverse, constrained, memory=memory)

    # ---- the system

    def assemble(self, level: Level, y: Array, at_y: Array, used: Array, which: Array) -> None:
        given = self.cv, self.ch, y, at_y, self.measured, self.partly, which
        self._call(system.weigh, *given, level.layout, level.wv, level.wh, level.g)
        self._scale(level, used, self.eps, which)

    def _scale(self, level: Level, used: Array, share: float, which: Array) -> None:
        self._call(system.root, level.wv, level.wh, used, share, TINY, which, level.layout, level.sd)
        self._call(system.scale, level.wv, level.wh, level.g, level.sd, which, level.layout, level.squares)

    def coarsen(self, fine: Level, coarse: Level, which: Array) -> None:
        """Fill a grid within blocks: groups of pixels of the finer one become one pixel each."""
        given = fine.wv, fine.wh, fine.g, fine.sd, which, fine.groups
        self._call(grids.gather, *given, coarse.wv, coarse.wh, coarse.g)
        self._scale(coarse, coarse.squares > -1, 0.0, which)

    def across_cells(self, fine: Level, coarse: Level, grid: Grid, slack: Array) -> None:
        given = (torch.from_numpy(values) for values in (fine.wv, fine.wh, fine.sd, fine.g, slack))
        for name, values in multigrid.across_cells(*given, grid).items():
            kind = np.float64 if name == "gain" else self.kind
            setattr(coarse, name, np.ascontiguousarray(values.numpy(), kind))

    def isolated(self) -> Array:
        """Pixels without any edge."""
        edges = np.zeros(self.shape, self.kind)
        edges[:, 1:] += self.cv
        edges[:, :-1] += self.cv
        edges[:, :, 1:] += self.ch
        edges[:, :, :-1] += self.ch
        return edges == 0

    def flow(self, y: Array, f: Array | None, active: Array) -> Array:
        """L y - f."""
        out = np.empty_like(y)
        given = y, y if f is None else f, f is not None, self.cv, self.ch
        self._call(system.flow, *given, active, self.layout, out)
        return out

    def right_hand_side(
        self, r: Array, y: Array, at_y: Array, a: Array, mu: Array, k: Array, flow: Array, level: Level, which: Array
    ) -> None:
        """r = y (m (mu a - k) - flow) / sd, and without the factor y unless `at_y`."""
        given = y, at_y, a, mu, k, flow, level.sd, self.measured, self.partly
        self._call(system.right_hand_side, *given, which, level.layout, r)

    # ---- values

    def block_sums(self, a: Array, b: Array | None = None, active: Array | None = None) -> Array:
        """Sums of m a, or m a b, over each block, in float64."""
        out = np.zeros((len(a), *self.blocks.source_size))
        given = a, a if b is None else b, b is not None, self.measured, self.partly
        self._call(outputs.block_sums, *given, self._images(active), self.layout, out)
        return out

    def _images(self, active: Array | None) -> Array:
        return self.all_images if active is None else active

    def change_blocks(self, y: Array, change: Array, ratio: bool, active: Array | None) -> None:
        given = y, change, ratio, self.measured, self.partly
        self._call(outputs.change_blocks, *given, self._images(active), self.layout)

    def update(self, y: Array, x: Array, sd: Array, relative: Array, active: Array) -> Array:
        """y *= 1 + u, kept positive, with u = x / sd, or x / (sd y) unless `relative`; return the largest |u|."""
        self._call(outputs.update, y, x, sd, relative, active, self.layout, self.of_bands)
        return self.of_bands.max(1)

    def nearest_energy(self, cells: Array) -> Array:
        """y'L y of the nearest-neighbour image of cells: only edges between blocks count."""
        rows, cols, _ = self.layout
        vertical = np.add.reduceat(self.cv[:, rows[1:-1] - 1], cols[:-1], axis=2, dtype=np.float64)
        horizontal = np.add.reduceat(self.ch[:, :, cols[1:-1] - 1], rows[:-1], axis=1, dtype=np.float64)
        down, right = np.diff(cells, axis=1) ** 2, np.diff(cells, axis=2) ** 2
        return (vertical * down).sum((1, 2)) + (horizontal * right).sum((1, 2))

    def energy(self, y: Array) -> Array:
        """y'L y."""
        down, right = np.diff(y, axis=1) ** 2, np.diff(y, axis=2) ** 2
        return (self.cv * down).sum((1, 2), dtype=np.float64) + (self.ch * right).sum((1, 2), dtype=np.float64)

    def edge_total(self) -> Array:
        """[N] sum of the coefficients."""
        return self.cv.sum((1, 2), dtype=np.float64) + self.ch.sum((1, 2), dtype=np.float64)

    # ---- conjugate gradients

    def step(
        self, x: Array, r: Array, p: Array, q: Array, level: Level, alpha: Array, active: Array, inverse: Array
    ) -> tuple[Array, Array]:
        """x += alpha p, r -= alpha q less multiples of g; return the block sums of g r before that, and r'r."""
        sums = level.memory["last"]
        self._call(iteration.step, x, r, p, q, level.g, alpha, active, inverse, level.layout, sums, self.of_bands)
        return sums, self.of_bands.sum(1)

    def turn(self, p: Array, z: Array, beta: Array, active: Array) -> None:
        self._call(iteration.turn, p, z, beta, active, self.layout)

    def multiply(self, level: Level, p: Array, q: Array, active: Array) -> Array:
        self._call(iteration.multiply, p, level.wv, level.wh, active, level.layout, q, self.of_bands)
        return self.of_bands.sum(1)

    def add_constraint(self, out: Array, values: Array, level: Level, kappa: Array, active: Array) -> None:
        self._call(iteration.add_constraint, out, values, level.g, kappa, active, level.layout)

    def move(self, x: Array, p: Array, alpha: Array) -> None:
        x += alpha.astype(self.kind)[:, None, None] * p

    # ---- the V-cycle

    def smooth_from_zero(self, level: Level, r: Array, active: Array) -> tuple[Array, Array]:
        z, kappa = level.memory["z"], level.memory["kappa"]
        self._call(smoothing.smooth_from_zero, r, level.g, level.inverse, active, level.layout, z, kappa)
        return z, kappa

    def restrict(self, level: Level, coarse: Level, r: Array, z: Array, active: Array) -> Array:
        out = coarse.memory["r"]
        self._call(smoothing.restrict, r, z, level.wv, level.wh, level.sd, coarse.sd, active, level.groups, out)
        return out

    def prolong(
        self, level: Level, coarse: Level, z: Array, correction: Array, enlargement: float, active: Array
    ) -> None:
        self._call(smoothing.prolong, z, level.sd, correction, coarse.sd, enlargement, active, level.groups)

    def smooth(self, level: Level, r: Array, z: Array, kappa: Array, active: Array) -> tuple[Array, Array, Array]:
        out, last = level.memory["out"], level.memory["last"]
        products = level.memory["products"]
        given = r, z, level.g, kappa, level.inverse, level.wv, level.wh, active, level.layout
        self._call(smoothing.smooth, *given, out, last, products)
        return out, last, products.sum(1)

    def unscaled(self, level: Level, z: Array) -> Array:
        """z / sd, 0 where sd is 0."""
        return np.divide(z, level.sd, out=np.zeros_like(z), where=level.sd > 0)


def run_loop(
    y: Tensor, weights: Coefficients, measurement: Measurement, pull: Tensor, adjust: Adjust, epsilon: float, steps: int
) -> Tensor:
    """`steps` steps of Eq. 1 and Eq. 3 from y [N, H, W]; the weights are coefficients times the step size."""
    pad = torch.nn.functional.pad
    wv, wh = pad(weights.vertical, (0, 0, 1, 1)), pad(weights.horizontal, (1, 1))
    share = torch.where(measurement.count > 0, 1 / measurement.count.double(), 0.0)
    measured = y.new_ones(1, 1, 1) if measurement.measured is None else measurement.measured
    given = (v.detach().to(y.dtype).contiguous().numpy() for v in (wv, wh, measurement.source, pull, share, measured))
    both = np.array(y.detach().numpy(), order="C"), np.empty(y.shape, y.numpy().dtype)
    variant = Variant(both[0].dtype.type, len(y) > 1 and several_threads(y.numel()))
    loop.loop[variant](*both, *given, adjust == "ratio", epsilon, bands_of(measurement.blocks), steps)
    return torch.from_numpy(both[steps % 2])
