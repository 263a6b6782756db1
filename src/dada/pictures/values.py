"""The values of a picture: their validity, their range, the enlarged part and the number of pixels drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import sqrt
from typing import Any

import cv2
import numpy as np
from numpy.typing import ArrayLike, NDArray

from dada.errors import InputError
from dada.sample.jumps import jump_edges

NEUTRAL = (158, 158, 158)  # pixels without a value: a gray that neither of our colour maps contains
DISPLAY = 1400  # pixels: a longer side is thinned out before it is drawn
SAMPLE = 2_000_000  # values used for a robust range
ROBUST = (1, 99)  # percentiles of values

Range = tuple[float, float]
Size = tuple[int, ...]
Window = tuple[slice, slice]  # rows and columns of the target
Mask = NDArray[np.bool_]
Map = tuple[NDArray[Any], Mask]  # values and where they are valid, both [H, W]


def checked(values: ArrayLike, valid: ArrayLike | None, name: str) -> Map:
    """The map as an array, and where it has a value."""
    data = np.asarray(values)
    if data.ndim != 2 or not data.size:
        raise InputError(f"{name} has shape {data.shape}: expected height x width, neither of them 0")
    if data.dtype.kind not in "fiub":
        raise InputError(f"{name} holds {data.dtype}: expected real numbers")
    known = np.isfinite(data)
    if valid is not None:
        mask = np.asarray(valid, bool)
        if mask.shape != data.shape:
            raise InputError(f"the valid mask of {name} has shape {mask.shape}: expected {data.shape}, as {name}")
        known &= mask
    return (data if data.dtype.kind == "f" else data.astype(np.float32)), known


def same_size(size: Size, images: Mapping[str, NDArray[Any]]) -> None:
    for name, image in images.items():
        if image.shape[:2] != size:
            raise InputError(f"{name} has shape {image.shape}, the others {size}: they must agree in height and width")


def thin(data: NDArray[Any], known: Mask) -> NDArray[Any]:
    """Valid values, evenly chosen where there are very many."""
    step = max(1, round(sqrt(data.size / SAMPLE)))
    return data[::step, ::step][known[::step, ::step]]


def whole_window(size: Size) -> Window:
    return slice(0, size[0]), slice(0, size[1])


def pick(data: NDArray[Any], known: Mask, size: Size, window: Window) -> Map:
    """A map of any resolution in a window of the target: nearest neighbours, at most DISPLAY a side."""
    axes = []
    for own, target, part in zip(data.shape, size, window, strict=True):
        length = part.stop - part.start
        drawn = min(length, DISPLAY)
        at = part.start + (np.arange(drawn) + 0.5) * length / drawn
        axes.append((at.astype(int) + 0.5) * own // target)
    cells = np.ix_(*(a.astype(int) for a in axes))
    return data[cells], known[cells]


def busiest(data: NDArray[Any], known: Mask, limits: Range, *, square: bool) -> Window:
    """The window with the most jumps: a quarter of each side, or a square on a third of the shorter side.

    A jump is here a difference of more than 1/25 of the range, as it is visible in the picture.
    """
    H, W = data.shape
    small, known_there = pick(data, known, data.shape, whole_window(data.shape))
    filled = np.where(known_there, small, limits[0]).astype(np.float32)
    vertical, horizontal = jump_edges(filled, known_there, float(np.float32((limits[1] - limits[0]) / 25)))
    edges = np.zeros_like(filled)
    edges[1:] += vertical
    edges[:, 1:] += horizontal

    share = min(1.0, max(1 / 3 if square else 1 / 4, 6 / min(H, W)))  # at least 6 pixels
    rows, columns = (max(1, round(share * (min(H, W) if square else n))) for n in (H, W))
    h, w = edges.shape[0], edges.shape[1]
    box = max(1, columns * w // W), max(1, rows * h // H)
    density = cv2.boxFilter(edges, -1, box, borderType=cv2.BORDER_CONSTANT)
    i, j = np.unravel_index(np.argmax(density), density.shape) if density.any() else (h // 2, w // 2)
    top = int(np.clip((i + 0.5) * H / h - rows / 2, 0, H - rows))
    left = int(np.clip((j + 0.5) * W / w - columns / 2, 0, W - columns))
    return slice(top, top + rows), slice(left, left + columns)


def guide_painter(guide: NDArray[Any]) -> Callable[[Window], NDArray[np.uint8]]:
    """A function from a window to its RGB image: the first three bands, or the first as gray."""
    if guide.ndim not in (2, 3) or not guide.size or guide.dtype.kind not in "fiub":
        raise InputError(f"guide has shape {guide.shape} of {guide.dtype}: expected height x width (x bands)")
    bands = guide[..., None] if guide.ndim == 2 else guide
    bands = bands[..., :3] if bands.shape[2] >= 3 else bands[..., :1]
    low, high = 0.0, 255.0
    if guide.dtype != np.uint8:
        step = max(1, round(sqrt(bands.size / SAMPLE)))
        sample = bands[::step, ::step].astype(np.float32)
        low, high = robust_range(sample[np.isfinite(sample)])
        if guide.dtype.kind == "f" and low >= 0 and 0.5 < high <= 1:
            low, high = 0.0, 1.0  # already the usual range of float images

    def paint(window: Window) -> NDArray[np.uint8]:
        part = bands[window]
        thinner = tuple(max(1, n // (2 * DISPLAY)) for n in part.shape[:2])
        part = part[:: thinner[0], :: thinner[1]].astype(np.float32)
        shown = 255 * np.clip((part - np.float32(low)) / np.float32(high - low), 0, 1)
        shown = np.where(np.isfinite(part), shown, np.float32(NEUTRAL[0]))
        drawn = tuple(min(n, DISPLAY) for n in shown.shape[1::-1])
        if drawn != shown.shape[1::-1]:
            shown = cv2.resize(shown, drawn, interpolation=cv2.INTER_AREA).reshape(*drawn[::-1], -1)
        return np.broadcast_to(np.rint(shown).astype(np.uint8), (*shown.shape[:2], 3))

    return paint


def error_text(error: NDArray[Any], unit: str, *, rmse: bool = False) -> str:
    finite = error[np.isfinite(error)].astype(np.float64)
    if not finite.size:
        return "no value to compare"
    text = f"MAE {_digits(np.abs(finite).mean())} {unit}".strip()
    return text + (f", RMSE {_digits(sqrt((finite**2).mean()))} {unit}".rstrip() if rmse else "")


def _digits(value: float) -> str:
    """Three significant digits."""
    return f"{value:#.3g}".rstrip(".") if 1e-4 <= value < 1000 else f"{value:.4g}"


def size_text(size: Size) -> str:
    return f"{size[1]} × {size[0]}"


def robust_range(values: NDArray[Any]) -> Range:
    """The `ROBUST` percentiles; the extremes if those are equal; an interval around a constant."""
    if not values.size:
        return 0.0, 1.0
    low, high = (float(v) for v in np.percentile(values.astype(np.float64), ROBUST))
    if low == high:
        low, high = float(values.min()), float(values.max())
    pad = 0.0 if high - low > 1e-9 * max(abs(low), abs(high)) else 0.1 * abs(low) or 1.0
    return low - pad, high + pad
