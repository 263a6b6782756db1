"""One tile with its halo: the problem that is solved there, as the whole image would have it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from dada.diffusion.blocks import Blocks, from_starts
from dada.rasters.axis import Axis
from dada.rasters.interpolation import TAPS, bicubic_window
from dada.rasters.sampled import SUPPORT, in_window, share_of
from dada.sample import MEAN, Sampling, Whole
from dada.upsampling.problem import Problem

Span = tuple[int, int]


@dataclass(frozen=True)
class Window:
    """Target pixels, from the first row and column to beyond the last."""

    rows: Span
    cols: Span

    @property
    def size(self) -> tuple[int, int]:
        """Height and width."""
        return self.rows[1] - self.rows[0], self.cols[1] - self.cols[0]

    def within(self, other: Window) -> tuple[slice, slice]:
        """Where this one lies in an array of the other."""
        return (
            slice(self.rows[0] - other.rows[0], self.rows[1] - other.rows[0]),
            slice(self.cols[0] - other.cols[0], self.cols[1] - other.cols[0]),
        )


@dataclass(frozen=True)
class Geometry:
    """The target grid and its cells."""

    rows: Axis
    cols: Axis

    @property
    def size(self) -> tuple[int, int]:
        """H, W."""
        return self.rows.pixels, self.cols.pixels

    @property
    def cells(self) -> tuple[int, int]:
        """h, w."""
        return self.rows.cells, self.cols.cells

    def cells_of(self, window: Window) -> tuple[Span, Span]:
        """Rows and columns of the cells that have some pixel of a window."""
        return self.rows.cells_of(*window.rows), self.cols.cells_of(*window.cols)

    def pixels_of(self, rows: Span, cols: Span) -> Window:
        """The pixels of cells."""
        a, b = self.rows.starts, self.cols.starts
        return Window((int(a[rows[0]]), int(a[rows[1]])), (int(b[cols[0]]), int(b[cols[1]])))

    def blocks(self, window: Window) -> Blocks:
        """The cells of a window, those at its ends cut off by it."""
        (a, b), (c, d) = self.cells_of(window)
        rows = np.clip(self.rows.starts[a : b + 1], *window.rows) - window.rows[0]
        cols = np.clip(self.cols.starts[c : d + 1], *window.cols) - window.cols[0]
        return from_starts(rows, cols)

    def sampled(self, window: Window, sampling: Sampling) -> Sampling:
        """How the source of a window was made."""
        return in_window(sampling, (self.rows, self.cols), (window.rows, window.cols), self.blocks(window))

    def resized(self, window: Window) -> Window:
        """A window with all pixels that a bicubic resize to its cells looks at."""
        spans = self.cells_of(window)
        more = [(max(0, a - SUPPORT - 1), min(n, b + SUPPORT + 1)) for (a, b), n in zip(spans, self.cells, strict=True)]
        return self.pixels_of(more[0], more[1])

    def complete(self, window: Window) -> np.ndarray:
        """[h, w] bool, which cells of a window have all their pixels in it."""
        (a, b), (c, d) = self.cells_of(window)
        rows, cols = self.rows.starts, self.cols.starts
        tall = (rows[a:b] >= window.rows[0]) & (rows[a + 1 : b + 1] <= window.rows[1])
        wide = (cols[c:d] >= window.cols[0]) & (cols[c + 1 : d + 1] <= window.cols[1])
        whole: np.ndarray = tall[:, None] & wide[None, :]
        return whole

    def around(self, window: Window, reach: int, cells: int, step: int) -> Window:
        """A window with its halo.

        Args:
            window: the core.
            reach: pixels that the model looks at around a pixel.
            cells: of the halo beside these.
            step: pixels between the places at which a network may begin; 1: the halo ends with whole cells.
        """
        return Window(
            _widened(self.rows, window.rows, reach, cells, step), _widened(self.cols, window.cols, reach, cells, step)
        )


def _widened(axis: Axis, span: Span, reach: int, cells: int, step: int) -> Span:
    more = reach + int(np.ceil(cells * axis.factor))
    first, last = max(0, span[0] - more), min(axis.pixels, span[1] + more)
    begin, end = axis.cells_of(first, last)
    first, last = int(axis.starts[begin]), int(axis.starts[end])
    return first // step * step, last


def margin_of(span: Span, limit: int) -> Span:
    """Cells with those that the interpolation of their pixels looks at."""
    return max(0, span[0] - TAPS // 2), min(limit, span[1] + TAPS // 2)


@dataclass(frozen=True)
class Cells:
    """The source of a window and `margin_of` it, [h, w] each."""

    values: np.ndarray
    valid: np.ndarray
    filled: np.ndarray


def tile_problem(
    geometry: Geometry, window: Window, cells: Cells, guide: torch.Tensor, whole: Whole, sampling: Sampling = MEAN
) -> Problem:
    """The problem of a window.

    At the ends of a window that are not ends of the image, cells without a measurement are held at their interpolated
    values: a hole that goes on outside has no other ends here.

    Args:
        geometry: of the image.
        window: some pixels of it.
        cells: of the window with its margin.
        guide: [C, H, W] in 0..1.
        whole: what is known of the image.
        sampling: how the source was made.
    """
    spans = geometry.cells_of(window)
    margins = [margin_of(span, limit) for span, limit in zip(spans, geometry.cells, strict=True)]
    inner = tuple(slice(s[0] - m[0], s[1] - m[0]) for s, m in zip(spans, margins, strict=True))
    shares = share_of(sampling)
    rows = geometry.rows.positions(*window.rows, shares[0]) - margins[0][0]
    cols = geometry.cols.positions(*window.cols, shares[1]) - margins[1][0]
    interpolated = bicubic_window(cells.filled, rows, cols, (whole.low, whole.high))
    valid = cells.valid[inner] & geometry.complete(window)
    kept = ends_of(geometry, window) & ~cells.valid[inner]
    values = np.where(kept, cells.filled[inner], np.where(valid, cells.values[inner], 0))
    source, known = (torch.from_numpy(v)[None, None] for v in (values, valid | kept))
    start = interpolated[None, None].to(source.dtype)
    blocks, how = geometry.blocks(window), MEAN if sampling == MEAN else geometry.sampled(window, sampling)
    return Problem(guide[None], source, known, whole=whole, blocks=blocks, interpolated=start, sampling=how)


def ends_of(geometry: Geometry, window: Window) -> np.ndarray:
    """[h, w] bool, the cells at the ends of a window that are not ends of the image."""
    (a, b), (c, d) = geometry.cells_of(window)
    ends = np.zeros((b - a, d - c), bool)
    ends[0] |= a > 0
    ends[-1] |= b < geometry.cells[0]
    ends[:, 0] |= c > 0
    ends[:, -1] |= d < geometry.cells[1]
    return ends
