"""Which grids the V-cycle uses, and their memory.

Within the blocks, pixels are paired in each direction until no block is more than two wide; in wide blocks the first
grid takes four by four at once. Where cells are not hard (no measurement, or a soft one), coarser grids follow: first
one pixel for each cell, without the hard ones, then these paired in turn; a hole thus costs no more iterations than a
block.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import cycle, pairwise

import numpy as np

from . import _numba_grids
from ._numba_cycle import ACROSS, CELLS, WITHIN
from ._numba_joined import TINY
from ._numba_rows import LINE
from .blocks import Blocks

PAGE = 4096  # bytes after which caches put numbers in the same places again
OMEGA = 0.9  # damping of the smoother
# By how much coarse corrections are enlarged around holes: a group of pixels moves as one, and its steps at the borders
# make it look stiffer than what it stands for. With 1.45 and more, iterations are more again; with soft cells they are
# with any, and images without holes take as many.
OVER = 1.3
# A V-cycle costs about 3.5 plain iterations. It pays where blocks are wide, or a region without hard cells is.
WIDE = 24
FIRST_GROUP = 4  # pixels a side, of the first grid in wide blocks: more iterations than with 2, of less time each


@dataclass(frozen=True)
class Grid:
    """One grid below the finest: its blocks, and which rows and columns of the grid above each of its own covers."""

    kind: int
    rows: np.ndarray
    cols: np.ndarray
    prow: np.ndarray
    pcol: np.ndarray


@lru_cache(maxsize=128)  # a large image has tiles of many sizes
def grids(blocks: Blocks, loose: bool) -> tuple[Grid, ...]:
    """The grids below the finest, finer first; those across blocks only where some cells are not hard."""
    out = []
    rows, cols = blocks.rows, blocks.cols
    size = FIRST_GROUP if widest_block(blocks) >= WIDE else 2
    while max(np.diff(rows).max(), np.diff(cols).max()) > 2:
        (prow, rows), (pcol, cols) = _group_within(rows, size), _group_within(cols, size)
        out.append(Grid(WITHIN, rows, cols, prow, pcol))
        size = 2
    if loose:
        kind, prow, pcol = CELLS, rows, cols
        while True:
            h, w = len(prow) - 1, len(pcol) - 1
            out.append(Grid(kind, np.arange(h + 1), np.arange(w + 1), prow, pcol))
            if max(h, w) <= 2:
                break
            kind, prow, pcol = ACROSS, *(np.append(np.arange(0, n, 2), n) for n in (h, w))
    return tuple(out)


def _group_within(starts: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Group pixels within each block; blocks no wider than two stay as they are. Returns groups and new blocks."""
    groups = [np.arange(a, b, size if b - a > 2 else 1) for a, b in pairwise(starts)]
    return np.append(np.concatenate(groups), starts[-1]), np.cumsum([0] + [len(group) for group in groups])


def worth_it(blocks: Blocks, hard: np.ndarray) -> bool:
    """Whether a V-cycle will be faster than plain Jacobi; `hard` is [h, w] bool."""
    side = widest_block(blocks)
    return side >= WIDE or (not hard.all() and side * widest(~hard) >= WIDE)


@lru_cache(maxsize=128)  # a large image has tiles of many sizes
def widest_block(blocks: Blocks) -> int:
    return int(max(np.diff(blocks.rows).max(), np.diff(blocks.cols).max()))


def enlargement(loose: bool, soft: bool) -> float:
    """By how much coarse corrections are enlarged; `loose`: some cells are not hard, `soft`: some of these are soft."""
    return OVER if loose and not soft else 1.0


def widest(region: np.ndarray) -> int:
    """Side of the largest square inside the region, among the squares of a dyadic grid; 0 if it is empty."""
    side = 0
    while region.any():
        side = max(1, 2 * side)
        h, w = (n // 2 * 2 for n in region.shape)
        region = np.asarray(region[:h, :w].reshape(h // 2, 2, w // 2, 2).all(axis=(1, 3)))
    return side


@dataclass
class Level:
    """Arrays of one grid, as views of the packed ones; names as in `_numba.py`, isd = 1 / sd or 0."""

    wv: np.ndarray
    wh: np.ndarray
    sd: np.ndarray
    isd: np.ndarray
    g: np.ndarray
    r: np.ndarray
    t: np.ndarray
    inverse: np.ndarray
    kappa: np.ndarray
    s: np.ndarray
    multiplier: np.ndarray


class Hierarchy:
    """The levels of one image, packed into flat arrays for the compiled cycle."""

    def __init__(self, blocks: Blocks, loose: bool, kind: np.dtype):
        self.grids, self.over = grids(blocks, loose), OVER
        self.parents = self.grids[0].prow, self.grids[0].pcol
        self.cells = blocks.source_size
        table, starts, at = [], [], np.zeros(5, np.int64)  # at: pixels, wv, wh, cells, starts
        for grid, following in zip(self.grids, (*self.grids[1:], None), strict=True):
            H, W, h, w = grid.rows[-1], grid.cols[-1], len(grid.rows) - 1, len(grid.cols) - 1
            parts = [grid.rows, grid.cols] + ([following.prow, following.pcol] if following else [])
            places = at[4] + np.cumsum([0] + [len(part) for part in parts])
            table.append((H, W, h, w, *at[:4], *np.resize(places[:-1], 4), grid.kind))
            starts += parts
            ends = np.array((at[0] + H * W, at[1] + (H + 1) * W, at[2] + H * (W + 1), at[3] + h * w, places[-1]))
            at = np.append(-(-ends[:4] // LINE) * LINE, ends[4])  # each level begins at a line of the cache
        self.table, self.starts = np.array(table, np.int64), np.concatenate(starts).astype(np.int64)
        self.wv, self.wh = aligned(at[1], kind), aligned(at[2], kind)
        self.sd, self.isd, self.g, self.r, self.t = (aligned(at[0], kind) for _ in range(5))
        self.inverse, self.kappa, self.s, self.multiplier = (np.zeros(at[3]) for _ in range(4))
        self.gain = np.zeros(self.cells[0] * self.cells[1])
        self.packed = (
            self.wv, self.wh, self.sd, self.isd, self.g, self.r, self.t,
            self.inverse, self.kappa, self.s, self.multiplier, self.gain,
        )  # fmt: skip
        self.levels = [self._view(row) for row in self.table]
        self.first = self.levels[0]

    def _view(self, row: np.ndarray) -> Level:
        H, W, h, w, pixel, v, side, cell = row[:8]
        sd, isd, g, r, t = (a[pixel : pixel + H * W].reshape(H, W) for a in (self.sd, self.isd, self.g, self.r, self.t))
        wv = self.wv[v : v + (H + 1) * W].reshape(H + 1, W)
        wh = self.wh[side : side + H * (W + 1)].reshape(H, W + 1)
        cells = (self.inverse, self.kappa, self.s, self.multiplier)
        return Level(wv, wh, sd, isd, g, r, t, *(a[cell : cell + h * w].reshape(h, w) for a in cells))

    def build_across(
        self, wv: np.ndarray, wh: np.ndarray, sd: np.ndarray, g: np.ndarray, slack: np.ndarray, tile: bool
    ) -> None:
        """Fill the levels across blocks, if there are, after those within (`_numba_joined`); given the finest one."""
        fine = wv, wh, sd, g
        for level, grid in zip(self.levels, self.grids, strict=True):
            if grid.kind == CELLS:
                out = (level.wv, level.wh, level.sd, level.isd, level.g)
                _numba_grids.aggregate(*fine, grid.prow, grid.pcol, tile, TINY, *out)
                self.gain[:] = _free_cells(level, slack, TINY).ravel()
            elif grid.kind == ACROSS:
                _pair_cells(fine, grid, level)
            fine = (level.wv, level.wh, level.sd, level.g)


_places = cycle(range(0, PAGE, 5 * LINE))  # where in a page the next ones begin


def aligned(shape: int | tuple[int, ...], kind: np.dtype) -> np.ndarray:
    """Zeros that begin at a line of the cache, on another line of their page than those made just before.

    Where several images begin in the same place of a page, a pass that reads them all has them push each other out of
    the cache. At lines of their own, passes took up to a quarter less time.
    """
    size, item = int(np.prod(shape)), np.dtype(kind).itemsize
    memory = np.zeros(size * item + PAGE, np.uint8)
    skip = (next(_places) - memory.ctypes.data) % PAGE
    return memory[skip : skip + size * item].view(kind).reshape(shape)


def reciprocal(total: np.ndarray) -> np.ndarray:
    """1 / total, and 0 where total is 0 or infinite."""
    usable = (total > 0) & np.isfinite(total)
    return np.where(usable, 1 / np.where(usable, total, 1), 0)


def _unscaled(wv: np.ndarray, wh: np.ndarray, sd: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Inner edges and diagonal of a scaled level, in float64."""
    wide = sd.astype(np.float64)
    return wv[1:-1] * wide[:-1] * wide[1:], wh[:, 1:-1] * wide[:, :-1] * wide[:, 1:], wide**2


def _fill(level: Level, vertical: np.ndarray, horizontal: np.ndarray, diagonal: np.ndarray, active: np.ndarray) -> None:
    """Scale edges and diagonal into a level without constraint; inactive pixels take no part."""
    isd = np.where(active, 1 / np.sqrt(np.where(active, diagonal, 1)), 0)
    level.isd[:] = isd
    level.sd[:] = np.where(active, np.sqrt(np.where(active, diagonal, 1)), 0)
    level.wv[:] = 0
    level.wh[:] = 0
    level.wv[1:-1] = vertical * isd[:-1] * isd[1:]
    level.wh[:, 1:-1] = horizontal * isd[:, :-1] * isd[:, 1:]
    level.g[:] = 0
    level.inverse[:] = 0


def _edge_sum(vertical: np.ndarray, horizontal: np.ndarray) -> np.ndarray:
    """Sum of the edges at each pixel."""
    total = np.zeros((horizontal.shape[0], vertical.shape[1]))
    total[:-1] += vertical
    total[1:] += vertical
    total[:, :-1] += horizontal
    total[:, 1:] += horizontal
    return total


def _free_cells(level: Level, slack: np.ndarray, floor: float) -> np.ndarray:
    """Turn an aggregated level of one pixel for each cell into one without the hard cells.

    Returns how much multiplier a unit correction of a cell brings.
    """
    vertical, horizontal, _ = _unscaled(level.wv, level.wh, level.sd)
    total = level.g * level.sd.astype(np.float64)
    pull = total * reciprocal(slack)
    diagonal = np.maximum(_edge_sum(vertical, horizontal) + total * pull, floor)
    _fill(level, vertical, horizontal, diagonal, slack > 0)
    return np.where(slack > 0, pull, 0)


def _pair_cells(fine: tuple, grid: Grid, level: Level) -> None:
    """Aggregate a level without constraint: edges inside a group vanish, the rest of the diagonal is kept."""
    vertical, horizontal, diagonal = _unscaled(*fine[:3])
    prow, pcol = grid.prow, grid.pcol

    def groups(image: np.ndarray) -> np.ndarray:
        return np.add.reduceat(np.add.reduceat(image, prow[:-1], 0), pcol[:-1], 1)

    inner_v, inner_h = np.zeros_like(diagonal), np.zeros_like(diagonal)
    inner_v[:-1], inner_h[:, :-1] = vertical, horizontal
    inner_v[prow[1:] - 1], inner_h[:, pcol[1:] - 1] = 0, 0
    across_v = np.add.reduceat(vertical[prow[1:-1] - 1], pcol[:-1], 1)
    across_h = np.add.reduceat(horizontal[:, pcol[1:-1] - 1], prow[:-1], 0)
    active = groups(diagonal) > 0
    kept = np.maximum(groups(diagonal) - 2 * groups(inner_v + inner_h), _edge_sum(across_v, across_h))
    kept = np.maximum(kept, 1e-12 * groups(diagonal))
    _fill(level, across_v, across_h, kept, active)
