"""Estimate the sub-pixel offset between guide and target of a training pair, and shift the guide back.

Published pairs are registered to about a pixel: third-size Middlebury pairs of 2005 are off by a third of a pixel,
others by up to a half, and a zoom enlarges this. A network trained on such pairs does not rely on the exact position
of edges.

Where the target jumps, the guide should change. The offset maximises the mean logarithm of the guide's differences at
the target's jumps; a parabola gives it to a fraction of a pixel. Rendered pairs give offsets below 0.1.
"""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np

from dada.datasets.pair import Pair
from dada.sample.jumps import jump_edges

REACH = 3  # pixels searched in each direction; found offsets are smaller
JUMP = 0.15  # of the target, in its standard deviations
JUMPS = 200  # with fewer jumps no offset is estimated
CLEAR = 1.2  # the best agreement must exceed the median by this factor
STEP = 0.02  # difference of a guide in 0..1 at which the logarithm begins to grow


def register(pair: Pair) -> Pair:
    """Return the pair with its guide shifted onto the target."""
    rows, cols = offset(pair)
    return replace(pair, guide=move(pair.guide, rows, cols)) if rows or cols else pair


def offset(pair: Pair) -> tuple[float, float]:
    """Return rows and columns by which the guide lies below and right of the target; 0, 0 where it is ambiguous."""
    guide: np.ndarray = pair.guide.astype(np.float32)
    if pair.guide.dtype.kind == "u":
        guide /= np.iinfo(pair.guide.dtype).max
    guide = cv2.GaussianBlur(guide, (0, 0), 0.7).reshape(guide.shape)
    target = pair.target
    least = JUMP * float(np.nanstd(target)) if pair.valid.any() else np.inf
    if min(target.shape) <= 4 * REACH or not 0 < least < np.inf:
        return 0.0, 0.0
    edges = jump_edges(target, pair.valid, least)
    steps = [np.log1p(np.sqrt(np.square(np.diff(guide, axis=axis)).sum(-1)) / STEP) for axis in (0, 1)]
    inside = [jump[REACH:-REACH, REACH:-REACH] for jump in edges]
    count = sum(int(jump.sum()) for jump in inside)
    if count < JUMPS:
        return 0.0, 0.0

    def agreement(row: int, col: int) -> float:
        total = 0.0
        for jump, step in zip(inside, steps, strict=True):
            height, width = jump.shape
            total += float(step[REACH + row :, REACH + col :][:height, :width][jump].sum())
        return total / count

    around = range(-REACH, REACH + 1)
    found = np.array([[agreement(row, col) for col in around] for row in around])
    best = np.unravel_index(found[1:-1, 1:-1].argmax(), (2 * REACH - 1,) * 2)
    i, j = (int(k) + 1 for k in best)
    if not found[i, j] >= CLEAR * np.median(found):
        return 0.0, 0.0
    return i - REACH + _top(found[i - 1 : i + 2, j]), j - REACH + _top(found[i, j - 1 : j + 2])


def move(guide: np.ndarray, rows: float, cols: float) -> np.ndarray:
    """Shift the guide up and to the left by cubic interpolation; the border is mirrored."""
    change = np.array([[1, 0, cols], [0, 1, rows]], np.float64)
    how = cv2.INTER_CUBIC | cv2.WARP_INVERSE_MAP
    size = guide.shape[1], guide.shape[0]
    return cv2.warpAffine(guide, change, size, flags=how, borderMode=cv2.BORDER_REFLECT_101).reshape(guide.shape)


def _top(three: np.ndarray) -> float:
    """Position of the maximum of the parabola through three values, within half a step of the middle one."""
    before, here, after = (float(v) for v in three)
    bend = 2 * here - before - after
    return float(np.clip(0.5 * (after - before) / bend, -0.5, 0.5)) if bend > 0 else 0.0
