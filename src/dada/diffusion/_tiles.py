"""How a large image is parted into tiles: with a margin around each, across the seams between these, and between."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np

from .blocks import Blocks

SIDE = 256  # pixels of a tile without its margin, whose arrays a cache about holds
WIDE_SIDE, WIDE = 384, 16  # the same for blocks so wide that margins would else be most of a tile
MARGIN = 16  # pixels around a tile, at least, and at least one cell
FEW = 4  # tiles: an image of fewer is solved at once


@dataclass(frozen=True, eq=False)
class Tile:
    """A part of an image: what is cut out of it, and what of that is used."""

    blocks: Blocks  # of what is cut out
    cells: tuple[slice, slice]  # that are cut out
    pixels: tuple[slice, slice]  # that are cut out
    core: tuple[slice, slice]  # pixels of the image that are used
    inner: tuple[slice, slice]  # the same in what is cut out

    def edges(self, cv: np.ndarray, ch: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The coefficients within the tile."""
        rows, cols = self.pixels
        return (
            np.ascontiguousarray(cv[rows.start : rows.stop - 1, cols]),
            np.ascontiguousarray(ch[rows, cols.start : cols.stop - 1]),
        )

    def beyond(self, cv: np.ndarray, ch: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The coefficients over the border of the tile and the values behind it, as `_numba.flow_row` takes them."""
        (H, W), (rows, cols) = y.shape, self.pixels
        ends, sides = (np.zeros((2, 2, s.stop - s.start), y.dtype) for s in (cols, rows))
        if rows.start > 0:
            ends[:, 0] = cv[rows.start - 1, cols], y[rows.start - 1, cols]
        if rows.stop < H:
            ends[:, 1] = cv[rows.stop - 1, cols], y[rows.stop, cols]
        if cols.start > 0:
            sides[:, 0] = ch[rows, cols.start - 1], y[rows, cols.start - 1]
        if cols.stop < W:
            sides[:, 1] = ch[rows, cols.stop - 1], y[rows, cols.stop]
        return ends, sides


Parts = tuple[Tile, ...]


@lru_cache(maxsize=16)
def tiles(blocks: Blocks) -> tuple[Parts, ...]:
    """The tiles of an image with margins, those across their seams without, and of wide blocks a third set between.

    There are none if the image is too small.
    """
    directions = _cuts(blocks.rows), _cuts(blocks.cols)
    if len(directions[0][0]) * len(directions[1][0]) < FEW:
        return ()
    sets = 3 if max(_mean_block(blocks.rows), _mean_block(blocks.cols)) >= WIDE else 2
    return tuple(
        tuple(_tile(blocks, rows, cols) for rows in directions[0][k] for cols in directions[1][k]) for k in range(sets)
    )


def _mean_block(starts: np.ndarray) -> float:
    return float(starts[-1] / (len(starts) - 1))


Cut = tuple[int, int, int, int]  # first and last cell of what is cut out, and of what is used


def _cuts(starts: np.ndarray) -> tuple[list[Cut], list[Cut], list[Cut]]:
    """Along one direction, tiles with margins, all of one size, tiles across their seams, and a third set.

    That begins a quarter of a tile behind the first, so that it has inside what lies on the borders of both others.
    """
    cells, length = len(starts) - 1, int(starts[-1])
    block = _mean_block(starts)
    side, around = SIDE if block < WIDE else WIDE_SIDE, int(np.ceil(MARGIN / block))
    number = max(1, min(cells // (2 * around), round(length / side)))
    seams = [cells * n // number for n in range(number + 1)]
    size = min(cells, max(b - a for a, b in pairwise(seams)) + 2 * around)
    begin = [min(max(a - around, 0), cells - size) for a in seams[:-1]]
    middles = [0, *((a + b) // 2 for a, b in pairwise(seams)), cells] if number > 1 else seams
    quarters = sorted({0, *((3 * a + b) // 4 for a, b in pairwise(seams)), cells}) if number > 1 else seams
    return (
        [(at, at + size, a, b) for at, (a, b) in zip(begin, pairwise(seams), strict=True)],
        [(a, b, a, b) for a, b in pairwise(middles)],
        [(a, b, a, b) for a, b in pairwise(quarters)],
    )


def _tile(blocks: Blocks, rows: Cut, cols: Cut) -> Tile:
    cells = slice(*rows[:2]), slice(*cols[:2])
    pixels, core = (
        (slice(int(blocks.rows[r[0]]), int(blocks.rows[r[1]])), slice(int(blocks.cols[c[0]]), int(blocks.cols[c[1]])))
        for r, c in ((rows[:2], cols[:2]), (rows[2:], cols[2:]))
    )
    inner = tuple(slice(a.start - b.start, a.stop - b.start) for a, b in zip(core, pixels, strict=True))
    return Tile(_part(blocks, *cells), cells, pixels, core, inner)  # type: ignore[arg-type]


def _part(blocks: Blocks, height: slice, width: slice) -> Blocks:
    """The blocks of a tile."""
    rows, cols = blocks.rows[height.start : height.stop + 1], blocks.cols[width.start : width.stop + 1]
    return _shared((rows - rows[0]).tobytes(), (cols - cols[0]).tobytes())


@lru_cache(maxsize=256)
def _shared(rows: bytes, cols: bytes) -> Blocks:
    """One object for all tiles alike: what is made for a tile is kept by it."""
    starts = [np.frombuffer(of, np.int64).copy() for of in (rows, cols)]
    source, target = (len(starts[0]) - 1, len(starts[1]) - 1), (int(starts[0][-1]), int(starts[1][-1]))
    return Blocks(source, target, starts[0], starts[1])
