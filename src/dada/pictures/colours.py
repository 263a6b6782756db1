"""Colour scales: from values to colours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dada.errors import InputError

from .values import NEUTRAL, Range, robust_range, thin

if TYPE_CHECKING:
    from matplotlib.colors import Colormap

DIVERGING = "RdBu_r"  # white is no error
ROBUST_ERROR = 97  # percentile of absolute errors: they are few and large, along edges


@dataclass(frozen=True)
class Scale:
    """Colours of values."""

    limits: Range
    colormap: Colormap
    extend: str  # ends of the scale that some values exceed: neither, min, max or both
    empty: bool = False  # no valid value: the limits are arbitrary

    @classmethod
    def of(cls, values: NDArray[Any], limits: Range, colormap: str) -> Scale:
        import matplotlib

        if not (np.isfinite(limits).all() and limits[0] < limits[1]):
            raise InputError(f"the range {limits[0]:g} to {limits[1]:g} is empty: give a lower and a greater value")
        if colormap not in matplotlib.colormaps:
            raise InputError(f"unknown colour map {colormap!r}: use one of matplotlib's, such as viridis or magma")
        below, above = bool((values < limits[0]).any()), bool((values > limits[1]).any())
        extend = {(0, 0): "neither", (1, 0): "min", (0, 1): "max", (1, 1): "both"}[below, above]
        return cls(limits, matplotlib.colormaps[colormap], extend, not values.size)

    @classmethod
    def robust(cls, data: NDArray[Any], known: NDArray[np.bool_], limits: Range | None, colormap: str) -> Scale:
        values = thin(data, known)
        return cls.of(values, robust_range(values) if limits is None else limits, colormap)

    @classmethod
    def symmetric(cls, errors: list[NDArray[Any]], limit: float | None) -> Scale:
        values = np.concatenate(errors)
        size = np.abs(values)
        if limit is None:
            limit = float(np.percentile(size, ROBUST_ERROR)) if size.size else 1.0
            limit = limit or float(size.max()) or 1.0
        return cls.of(values, (-limit, limit), DIVERGING)

    def paint(self, data: NDArray[Any], known: NDArray[np.bool_]) -> NDArray[np.uint8]:
        low, high = self.limits
        place = (np.where(known, data, low).astype(np.float64) - low) / (high - low)
        image = self.colormap(np.clip(place, 0, 1), bytes=True)[..., :3]
        image[~known] = NEUTRAL
        return image
