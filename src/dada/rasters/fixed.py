"""A window solved again with everything around it fixed.

The solver knows cells and their means, not fixed pixels. A pixel that is a cell of its own has a fixed value, but
blocks are rows times columns: beside a block s pixels wide, a row of single pixels cannot be s cells. So each fixed
neighbour is placed farther out, one row of cells for each column of a block:

    . . 3        ring: rows of cells one pixel high; in each, one pixel of a block is measured, which is fixed
    . 2 |
    1 | |
    a b c        first row of the window, a block three pixels wide

A column whose fixed value lies n edges away has coefficients n c on these edges, where c is the one between the two
neighbours. Conductors in series: the flow is exactly that of one edge with c. Nothing is approximated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from dada.diffusion import Coefficients, Solution, equilibrium
from dada.diffusion.blocks import Blocks, from_starts, spread
from dada.diffusion.measurement import Adjust

# views of an array whose last rows are the ring of a side, from the window outwards
_OUTWARDS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "top": lambda a: a[::-1],
    "bottom": lambda a: a,
    "left": lambda a: a.T[::-1],
    "right": lambda a: a.T,
}


@dataclass(frozen=True)
class Surroundings:
    """What lies on one side of a window: values of the pixels next to it, and the coefficients to them, [n] each."""

    values: np.ndarray
    coefficients: np.ndarray


@dataclass(frozen=True)
class FixedWindow:
    """A window whose surroundings are fixed.

    Attributes:
        values: [H, W], where the solution starts.
        vertical, horizontal: coefficients [H - 1, W] and [H, W - 1].
        source, valid: [h, w] of its cells.
        blocks: which pixels each cell covers.
        sides: what lies on each side: top, bottom, left, right; one that is an end of the image is missing.
        measured: [H, W] bool, the pixels whose mean a cell is; None: all of them.
    """

    values: np.ndarray
    vertical: np.ndarray
    horizontal: np.ndarray
    source: np.ndarray
    valid: np.ndarray
    blocks: Blocks
    sides: dict[str, Surroundings]
    measured: np.ndarray | None = None


def solve_window(window: FixedWindow, adjust: Adjust, tolerance_energy: float) -> tuple[np.ndarray, float, Solution]:
    """Solve a window with its surroundings fixed.

    Args:
        window: with what is known around it.
        adjust: "ratio" or "shift".
        tolerance_energy: energy of the error, y'L y, at which the solution may stop.

    Returns:
        The values [H, W], the energy of what changed, and the solution of the window with its rings.
    """
    padded = _with_rings(window)
    c = Coefficients(*(torch.from_numpy(edges)[None] for edges in (padded.vertical, padded.horizontal)))
    source, mask = (torch.from_numpy(cells)[None, None] for cells in (padded.source, padded.valid))
    reference = _energy(spread(source[0, 0], padded.blocks), c)
    tolerance = float(np.clip((tolerance_energy / max(reference, 1e-300)) ** 0.5, 1e-9, 0.5))
    solution = equilibrium(
        source, c, initial=torch.from_numpy(padded.values)[None, None], adjust=adjust, mask=mask,
        coverage=torch.from_numpy(padded.measured)[None, None], blocks=padded.blocks, tolerance=tolerance, warn=False,
    )  # fmt: skip
    change = solution.values[0, 0] - torch.from_numpy(padded.values)
    values = solution.values[0, 0][padded.inner].numpy()
    return np.ascontiguousarray(values), _energy(change, c), solution


def _energy(y: Tensor, c: Coefficients) -> float:
    """y'L y."""
    down, right = (c.vertical[0] * y.diff(dim=-2).square()).double(), c.horizontal[0] * y.diff(dim=-1).square()
    return float(down.sum() + right.double().sum())


@dataclass(frozen=True)
class _Padded:
    """A window with its rings; see `FixedWindow`."""

    values: np.ndarray
    vertical: np.ndarray
    horizontal: np.ndarray
    source: np.ndarray
    valid: np.ndarray
    measured: np.ndarray  # [H, W] bool
    blocks: Blocks
    inner: tuple[slice, slice]  # the window in it


def _with_rings(window: FixedWindow) -> _Padded:
    """Place the fixed neighbours around a window."""
    heights, widths = np.diff(window.blocks.rows), np.diff(window.blocks.cols)
    above, below = (int(widths.max()) if side in window.sides else 0 for side in ("top", "bottom"))
    before, after = (int(heights.max()) if side in window.sides else 0 for side in ("left", "right"))
    depth = (above, below), (before, after)
    H, W = window.values.shape
    pixels, edge_v, edge_h = (
        (H + above + below, W + before + after),
        (H + above + below - 1, W + before + after),
        (H + above + below, W + before + after - 1),
    )
    inner = slice(above, above + H), slice(before, before + W)
    values, measured = np.pad(window.values, depth, mode="edge"), np.ones(pixels, bool)
    source, valid = np.pad(window.source, depth, mode="edge"), np.pad(window.valid, depth, constant_values=True)
    vertical, horizontal = np.zeros(edge_v, values.dtype), np.zeros(edge_h, values.dtype)
    if window.measured is not None:
        measured[inner] = window.measured
    vertical[above : above + H - 1, inner[1]] = window.vertical
    horizontal[inner[0], before : before + W - 1] = window.horizontal
    _corners(values, source, depth)
    for side in window.sides:
        flip = _OUTWARDS[side]
        tall = side in ("top", "bottom")
        starts, across = (window.blocks.cols, before) if tall else (window.blocks.rows, above)
        count = {"top": above, "bottom": below, "left": before, "right": after}[side]
        edges = vertical if tall else horizontal
        cut = slice(across, across + (W if tall else H))
        cells = slice(across, across + len(starts) - 1)
        _ring(
            window.sides[side], starts, flip(values)[-count - 1 :, cut], flip(edges)[-count:, cut],
            flip(measured)[-count:, cut], flip(source)[-count:, cells],
        )  # fmt: skip
    rows, cols = _padded_starts(window.blocks.rows, *depth[0]), _padded_starts(window.blocks.cols, *depth[1])
    return _Padded(values, vertical, horizontal, source, valid, measured, from_starts(rows, cols), inner)


def _ring(
    side: Surroundings,
    starts: np.ndarray,
    values: np.ndarray,
    edges: np.ndarray,
    measured: np.ndarray,
    source: np.ndarray,
) -> None:
    """Fill one ring in place.

    Args:
        side: what is fixed there.
        starts: first pixel of each block along the side, and the end.
        values: [1 + depth, n], from the last row of the window outwards.
        edges: [depth, n], that from row k to row k + 1 of the values.
        measured: [depth, n] bool.
        source: [depth, blocks].
    """
    widths = np.diff(starts)
    place = np.arange(starts[-1]) - np.repeat(starts[:-1], widths)  # of each pixel in its block
    last = place == np.repeat(widths, widths) - 1
    step = np.arange(1, len(edges) + 1)[:, None]
    count = place + 1  # edges to the fixed value
    share = np.minimum(step / count, 1).astype(values.dtype)
    values[1:] = values[0] + (side.values - values[0]) * share
    edges[:] = np.where(step <= count, count * side.coefficients, 1)  # beyond, pixels follow the fixed one
    measured[:] = (step == count) | (last & (step > count))
    rows, pixels = np.nonzero(measured)
    block = np.repeat(np.arange(len(widths)), widths)
    source[rows, block[pixels]] = side.values[pixels]


def _corners(values: np.ndarray, source: np.ndarray, depth: tuple[tuple[int, int], tuple[int, int]]) -> None:
    """Cells in corners between two rings have no neighbours; they are fixed at what stands there."""
    (above, below), (before, after) = depth
    for rows in (slice(0, above), slice(values.shape[0] - below, None)):
        for cols in (slice(0, before), slice(values.shape[1] - after, None)):
            tall, wide = rows.start > 0, cols.start > 0
            part = (
                slice(source.shape[0] - below, None) if tall else slice(0, above),
                slice(source.shape[1] - after, None) if wide else slice(0, before),
            )
            source[part] = values[rows, cols]


def _padded_starts(starts: np.ndarray, before: int, after: int) -> np.ndarray:
    """First pixels of blocks, with single pixels before and after them."""
    return np.concatenate([np.arange(before), starts + before, starts[-1] + before + 1 + np.arange(after)])
