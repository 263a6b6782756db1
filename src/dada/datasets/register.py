"""Find by what part of a pixel the guide of a training pair lies beside its target, and move it back.

Published pairs are registered to about a pixel: third-size Middlebury pairs of 2005 are a third of a pixel off, others
up to a half, which zooming makes a pixel and more. A network trained on them learns not to trust edges to the pixel.

Where the target jumps, the guide should change: the offset is where the mean logarithm of its steps at the target's
jumps is largest, to a part of a pixel by a parabola. Rendered pairs give offsets below 0.1, the pairs mentioned 0.3.
"""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np

from dada.datasets.jumps import jump_edges
from dada.datasets.pair import Pair

REACH = 3  # pixels that are looked at in each direction; offsets are below
JUMP = 0.15  # of the target, in its standard deviations
JUMPS = 200  # fewer say nothing
CLEAR = 1.2  # the best place must be that much better than the usual one
STEP = 0.02  # of a guide in 0..1, that counts as a step at all


def register(pair: Pair) -> Pair:
    """The pair with its guide moved to where the target is."""
    rows, cols = offset(pair)
    return replace(pair, guide=move(pair.guide, rows, cols)) if rows or cols else pair


def offset(pair: Pair) -> tuple[float, float]:
    """Rows and columns by which the guide lies below and to the right of the target; 0, 0 where that is not clear."""
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
    """The guide moved up and to the left, by cubic interpolation; what comes in is mirrored."""
    change = np.array([[1, 0, cols], [0, 1, rows]], np.float64)
    how = cv2.INTER_CUBIC | cv2.WARP_INVERSE_MAP
    size = guide.shape[1], guide.shape[0]
    return cv2.warpAffine(guide, change, size, flags=how, borderMode=cv2.BORDER_REFLECT_101).reshape(guide.shape)


def _top(three: np.ndarray) -> float:
    """Where the parabola through three values has its top, within half a step of the middle one."""
    before, here, after = (float(v) for v in three)
    bend = 2 * here - before - after
    return float(np.clip(0.5 * (after - before) / bend, -0.5, 0.5)) if bend > 0 else 0.0
