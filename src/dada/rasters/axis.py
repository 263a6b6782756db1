"""One direction of a raster: which target pixels each source cell covers, and where tiles begin."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

ROUNDING = 1e-6  # of a pixel: how far from a border a centre still counts as on it


@dataclass(frozen=True)
class Axis:
    """The rows, or the columns, of a target and of the cells that it is cut to.

    Attributes:
        cells: number of source cells.
        pixels: number of target pixels; every cell has one at least.
        scale: cells in one pixel.
        offset: where pixel 0 begins, in cells from the beginning of cell 0.
    """

    cells: int
    pixels: int
    scale: float
    offset: float

    @cached_property
    def starts(self) -> np.ndarray:
        """[cells + 1] first pixel of each cell, then the end: a pixel belongs to the cell that holds its centre."""
        borders = (np.arange(self.cells + 1) - self.offset) / self.scale - 0.5
        starts: np.ndarray = np.ceil(borders - ROUNDING).astype(np.int64)
        starts[0], starts[-1] = 0, self.pixels
        return starts

    @property
    def factor(self) -> float:
        """Pixels in one cell."""
        return 1 / self.scale

    @property
    def whole_numbers(self) -> bool:
        """Whether every cell is the same whole number of pixels."""
        return len(set(np.diff(self.starts).tolist())) == 1

    def points(self, share: float) -> np.ndarray:
        """[cells] the pixel of each cell at a share of its length; it is one of the cell's own."""
        nearest = np.floor((np.arange(self.cells) + share - self.offset) / self.scale + ROUNDING).astype(np.int64)
        points: np.ndarray = np.clip(nearest, self.starts[:-1], self.starts[1:] - 1)
        return points

    def positions(self, first: int, last: int, share: float | None = None) -> np.ndarray:
        """Where the centres of these pixels lie, in cells from the centre of cell 0, or from its point."""
        if share is not None:
            between: np.ndarray = np.interp(np.arange(first, last), self.points(share), np.arange(self.cells))
            return between
        positions: np.ndarray = (np.arange(first, last) + 0.5) * self.scale + self.offset - 0.5
        return positions

    def cells_of(self, first: int, last: int) -> tuple[int, int]:
        """The cells that have some of these pixels, from the first to beyond the last."""
        begin = int(np.searchsorted(self.starts, first, side="right")) - 1
        return begin, int(np.searchsorted(self.starts, last, side="left"))

    def cut(self, size: int) -> list[int]:
        """Cells at which tiles of about `size` pixels begin, and the end; tiles are of nearly equal size."""
        count = max(1, min(self.cells, round(self.pixels / size)))
        return [self.cells * n // count for n in range(count + 1)]


def common(source_cells: int, guide_pixels: int, scale: float, offset: float) -> tuple[Axis, int, int] | None:
    """Cut source and guide to the cells whose pixels the guide has, all of them.

    Args:
        source_cells: of the file.
        guide_pixels: of the file.
        scale: cells in one pixel.
        offset: where the guide begins, in cells from the beginning of the source.

    Returns:
        The axis, the first cell and the first pixel in the files; None if no cell is covered.
    """
    borders = (np.arange(source_cells + 1) - offset) / scale - 0.5
    starts = np.ceil(borders - ROUNDING).astype(np.int64)
    inside = (starts[:-1] >= 0) & (starts[1:] <= guide_pixels) & (starts[1:] > starts[:-1])
    kept = np.flatnonzero(inside)
    if not len(kept):
        return None
    first, last = int(kept[0]), int(kept[-1]) + 1
    begin, end = int(starts[first]), int(starts[last])
    moved = offset + begin * scale - first
    nearest = round(moved)
    if math.isclose(moved, nearest, abs_tol=1e-9 * max(1.0, abs(offset) + source_cells)):
        moved = float(nearest)
    return Axis(last - first, end - begin, scale, moved), first, begin
