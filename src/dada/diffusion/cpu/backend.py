"""The operators of the saddle system (system.py) on the CPU: NumPy arrays, and the compiled kernels of this folder."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dada.compiling import Kernel, in_threads, threads_for

from .. import multigrid
from ..blocks import Blocks
from ..coefficients import Coefficients
from ..measurement import Measurement
from ..multigrid import TINY, Grid, Level
from . import iteration, smoothing, system

LINE = 64  # bytes of a line of the processor's cache
BAND = 1 << 14  # least pixels of a band, which is what one task of a kernel works on

Array = np.ndarray
Pair = tuple[Array, Array]
Layout = tuple[Array, Array, Array]  # first row and column of each block, and the end; tasks (see cpu/system.py)


@lru_cache(maxsize=256)
def layout_of(blocks: Blocks, images: int) -> Layout:
    """Blocks as kernels take them. Bands do not depend on the number of threads, and so neither do results."""
    block_rows, (H, W) = blocks.source_size[0], blocks.target_size
    count = max(1, min(block_rows, H * W // BAND))
    starts = block_rows * np.arange(count + 1) // count
    tasks = [(n, band, starts[band], starts[band + 1]) for n in range(images) for band in range(count)]
    return blocks.rows, blocks.cols, np.array(tasks)


def zeros(shape: tuple[int, ...], kind: Any) -> Array:
    """A field that begins where a line of the cache does: vectors across two lines take twice as long."""
    memory = np.zeros(int(np.prod(shape)) * np.dtype(kind).itemsize + LINE, np.uint8)
    begin = -memory.__array_interface__["data"][0] % LINE
    return memory[begin : begin + len(memory) - LINE].view(kind).reshape(shape)


def shares(layout: Layout, threads: int) -> list[Layout]:
    """The layout in parts, one for each thread."""
    rows, cols, tasks = layout
    return [(rows, cols, part) for part in np.array_split(tasks, min(threads, len(tasks)))]


class CpuBackend:
    """Operators for N images of one size; see `System` for what they are used for."""

    xp = np

    def __init__(self, c: Coefficients, measurement: Measurement) -> None:
        self.cv, self.ch = (edges.detach().contiguous().numpy() for edges in c)
        self.kind, self.blocks = self.cv.dtype.type, measurement.blocks
        self.eps = float(np.finfo(self.kind).eps)
        self.shape = (len(self.cv), *self.blocks.target_size)
        self.layout = self.as_layout(self.blocks)
        self.measured = np.ones((1, 1, 1), self.kind)
        self.partly = measurement.measured is not None
        if measurement.measured is not None:
            self.measured = measurement.measured.to(c.vertical.dtype).contiguous().numpy()
        self.last_active: Array | None = None
        self.all_active = True
        self.of_bands = np.zeros((len(self.cv), self.layout[2][-1, 1] + 1))  # a number for each band of each image
        self.threads = threads_for(int(np.prod(self.shape)))

    def _call(self, kernel: Kernel, layout: Layout, *arguments: Any) -> None:
        if self.threads == 1:
            kernel[self.kind](layout, *arguments)
        else:
            in_threads(kernel[self.kind], shares(layout, self.threads), *arguments)

    def _only(self, layout: Layout, active: Array | None) -> Layout:
        """The layout with the tasks of active images."""
        if active is not self.last_active:  # the same one comes several times in turn
            self.last_active, self.all_active = active, active is None or np.count_nonzero(active) == len(active)
        if active is None or self.all_active:
            return layout
        rows, cols, tasks = layout
        return rows, cols, tasks[active[tasks[:, 0]]]

    # ---- arrays

    def cells(self, values: Tensor) -> Array:
        return values.detach().double().numpy()

    def field(self, values: Tensor) -> Array:
        """A copy of an image."""
        out = zeros(tuple(values.shape), self.kind)
        out[:] = values.detach().numpy()
        return out

    def tensor(self, values: Array) -> Tensor:
        return torch.from_numpy(values)

    def per_image(self, numbers: Array) -> Array:
        """[N] as [N, 1, 1], to be used beside fields."""
        return numbers.astype(self.kind)[:, None, None]

    def new_field(self) -> Array:
        return zeros(self.shape, self.kind)

    def as_layout(self, blocks: Blocks) -> Layout:
        return layout_of(blocks, len(self.cv))

    def level(self, blocks: Blocks, constrained: bool = True) -> Level:
        """Memory for a grid."""
        N, (H, W) = len(self.cv), blocks.target_size
        sizes = (N, H + 1, W), (N, H, W + 1), (N, H, W), (N, H, W)
        wv, wh, sd, g = (zeros(size, self.kind) for size in sizes)
        squares = np.zeros((N, *blocks.source_size))
        return Level(self.as_layout(blocks), None, wv, wh, sd, g, squares, 0 * squares, constrained)

    def _memory(self, level: Level, name: str) -> Array:
        """A field of a level that is kept from one call to the next, or cells for the names of multipliers."""
        if name not in level.memory:
            cells = name in ("kappa", "last")
            level.memory[name] = np.zeros_like(level.squares) if cells else zeros(level.sd.shape, self.kind)
        return level.memory[name]

    # ---- the system

    def assemble(self, level: Level, y: Array, used: Array, which: Array) -> None:
        layout = self._only(level.layout, which)
        self._call(system.weigh, layout, self.cv, self.ch, y, level.wv, level.wh, level.g)
        if self.partly:
            level.g *= self.measured
        self._scale(level, used, self.eps, layout)

    def _scale(self, level: Level, used: Array, share: float, layout: Layout) -> None:
        self._call(system.root, layout, level.wv, level.wh, used, share, TINY, level.sd)
        self._call(system.scale, layout, level.wv, level.wh, level.g, level.sd, level.squares)

    def coarsen(self, fine: Level, coarse: Level, which: Array) -> None:
        """Fill a grid within blocks: groups of pixels of the finer one become one pixel each."""
        groups = self._only(fine.groups, which)
        self._call(system.gather, groups, fine.wv, fine.wh, fine.g, fine.sd, coarse.wv, coarse.wh, coarse.g)
        self._scale(coarse, coarse.squares > -1, 0.0, self._only(coarse.layout, which))

    def across_cells(self, fine: Level, coarse: Level, grid: Grid, slack: Array) -> None:
        given = (torch.from_numpy(values) for values in (fine.wv, fine.wh, fine.sd, fine.g, slack))
        for name, values in multigrid.across_cells(grid, *given).items():
            kind = np.float64 if name == "gain" else self.kind
            setattr(coarse, name, np.ascontiguousarray(values.numpy(), kind))

    def flow(self, y: Array, f: Array | None, active: Array) -> Array:
        """L y - f."""
        out = np.empty_like(y)
        self._call(system.flow, self._only(self.layout, active), y, self.cv, self.ch, out)
        return out if f is None else np.subtract(out, f, out=out)

    # ---- values

    def block_sums(self, a: Array, b: Array | None = None, active: Array | None = None) -> Array:
        """Sums of m a, or m a b, over each block, in float64."""
        out = np.zeros((len(a), *self.blocks.source_size))
        if self.partly:
            a = a * self.measured
        self._call(system.block_sums, self._only(self.layout, active), a, a if b is None else b, b is not None, out)
        return out

    def add(self, values: Array, a: Array | None, cells: Array, active: Array | None) -> None:
        """values += m a cells, with the cell that holds the pixel; None: a = 1."""
        g = self.measured * (np.ones_like(values) if a is None else a)
        self._call(iteration.add_constraint, self._only(self.layout, active), values, g, cells)

    def update(self, y: Array, x: Array, sd: Array, active: Array) -> Array:
        """y *= 1 + u, kept positive, with u = x / sd; return the largest |u|."""
        self._call(system.update, self._only(self.layout, active), y, x, sd, self.of_bands)
        return self.of_bands.max(1)

    # ---- conjugate gradients

    def step(self, r: Array, q: Array, level: Level, alpha: Array, inverse: Array, active: Array) -> Pair:
        """r -= alpha q less multiples of g; return the block sums of g r before that, and r'r."""
        sums, layout = self._memory(level, "last"), self._only(self.layout, active)
        self._call(iteration.step, layout, r, q, level.g, alpha, inverse, sums, self.of_bands)
        return sums, np.add.reduce(self.of_bands, 1)

    def turn(self, x: Array, p: Array, z: Array, alpha: Array, beta: Array, active: Array) -> None:
        """x += alpha p, then p = z + beta p."""
        self._call(iteration.turn, self._only(self.layout, active), x, p, z, alpha, beta)

    def multiply(self, level: Level, p: Array, q: Array, active: Array) -> Array:
        """q = K p; return p'q."""
        self._call(iteration.multiply, self._only(self.layout, active), p, level.wv, level.wh, q, self.of_bands)
        return np.add.reduce(self.of_bands, 1)

    def plus_constraint(self, level: Level, values: Array, kappa: Array, active: Array, out: str = "") -> Array:
        """values + g kappa, in their place or in a field that is kept under a name."""
        if out:
            kept = self._memory(level, out)
            kept[:], values = values, kept
        self._call(iteration.add_constraint, self._only(self.layout, active), values, level.g, kappa)
        return values

    def move(self, x: Array, p: Array, alpha: Array) -> None:
        """x += alpha p."""
        x += self.per_image(alpha) * p

    # ---- the V-cycle

    def project(self, level: Level, r: Array, active: Array) -> Pair:
        """r - g kappa under the constraint, and kappa."""
        rest, kappa = self._memory(level, "rest"), self._memory(level, "kappa")
        self._call(smoothing.project, self._only(level.layout, active), r, level.g, level.inverse, rest, kappa)
        return rest, kappa

    def restrict(self, level: Level, coarse: Level, r: Array, rest: Array, active: Array) -> Array:
        """What z = OMEGA rest leaves of r, on the coarser grid."""
        out, groups = self._memory(coarse, "r"), self._only(level.groups, active)
        self._call(smoothing.restrict, groups, r, rest, level.wv, level.wh, level.sd, coarse.sd, out)
        return out

    def prolong(self, level: Level, coarse: Level, rest: Array, z: Array, factor: float, active: Array) -> Array:
        """OMEGA rest and the coarser grid's z."""
        out, groups = self._memory(level, "z"), self._only(level.groups, active)
        self._call(smoothing.prolong, groups, rest, level.sd, z, coarse.sd, factor, out)
        return out

    def smooth(self, level: Level, r: Array, z: Array, kappa: Array, active: Array) -> tuple[Array, Array, Array]:
        out, last = self._memory(level, "out"), self._memory(level, "last")
        given = r, z, level.g, kappa, level.inverse, level.wv, level.wh
        self._call(smoothing.smooth, self._only(level.layout, active), *given, out, last, self.of_bands)
        return out, last, self.of_bands

    def unscaled(self, level: Level, z: Array) -> Array:
        """z / sd, 0 where sd is 0."""
        return np.divide(z, level.sd, out=np.zeros_like(z), where=level.sd > 0)
