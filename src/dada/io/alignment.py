"""A pair laid on each other by its georeferences: the area that both cover, in whole source cells.

A position in the guide is found from one in the source by way of the ground. Where that takes the borders of cells to
borders of pixels, both are cut there. Where it does not, the pair is refused with the command that mends it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from dada.errors import InputError
from dada.io.ground import Placed, Size, crs_name, cure, ground_unit, read_crs
from dada.io.raster import Georeference, Raster

NEAR = 0.1  # of a guide pixel: how far borders may be apart that are taken as one
SEARCHED = 4  # cells given up at each end of the common area to find borders that agree, as with 7.5 pixels a cell

Part = tuple[slice, slice]  # of rows and columns


@dataclass(frozen=True)
class Alignment:
    """Which parts of source and guide show the same area.

    Attributes:
        source: rows and columns of the source; they run backwards where source and guide are mirrored.
        guide: rows and columns of the guide.
        georeference: of that part of the guide.
        cut: what was left out, in words; empty: nothing.
    """

    source: Part
    guide: Part
    georeference: Georeference
    cut: str = ""


class Pair(NamedTuple):
    """Source and guide of the same area.

    Attributes:
        source: cut to it.
        guide: cut to it.
        part: rows and columns of the source as read, for what comes with it, such as its confidence.
        place: of the guide's pixels; None: neither file has one.
        cut: what was left out, in words; empty: nothing.
    """

    source: Raster
    guide: Raster
    part: Part
    place: Georeference | None
    cut: str


def common_area(source: Raster, guide: Raster) -> Pair:
    """Cut a pair to the area that both cover. Where only one has a place, both show the same area as they are.

    Raises:
        InputError: by their georeferences they cannot be laid on each other; see `align`.
    """
    sizes: list[Size] = [(one.values.shape[0], one.values.shape[1]) for one in (source, guide)]
    whole = slice(0, sizes[0][0]), slice(0, sizes[0][1])
    if not has_place(source.georeference) or not has_place(guide.georeference):
        place = guide.georeference or (source.georeference and _refined(source.georeference, *sizes))
        return Pair(source, guide, whole, place, "")
    assert source.georeference is not None
    assert guide.georeference is not None
    found = align(
        Placed(sizes[0], source.georeference, str(source.path)), Placed(sizes[1], guide.georeference, str(guide.path))
    )
    coarse, fine = (
        np.ascontiguousarray(one.values[part]) for one, part in ((source, found.source), (guide, found.guide))
    )
    return Pair(
        replace(source, values=coarse),
        replace(guide, values=fine, georeference=found.georeference),
        found.source,
        found.georeference,
        found.cut,
    )


def has_place(georeference: Georeference | None) -> bool:
    """Whether it says where pixels lie; a coordinate system alone does not."""
    return georeference is not None and georeference.transform != (1.0, 0.0, 0.0, 0.0, 1.0, 0.0)


def _refined(place: Georeference, source: Size, guide: Size) -> Georeference:
    """The georeference of a source for pixels of a guide of the same area."""
    a, b, c, d, e, f = place.transform
    down, across = (n / m for n, m in zip(source, guide, strict=True))
    return Georeference(place.crs, (a * across, b * down, c, d * across, e * down, f))


def align(source: Placed, guide: Placed) -> Alignment:
    """Find the parts of source and guide that show the same area.

    Raises:
        InputError: they do not overlap, or their grids do not fit; the message says how to make them fit.
    """
    crs = _common_crs(source, guide)
    (rows, row_step), (columns, column_step) = _steps(source, guide)
    vertical = _along(source, guide, 0, rows, row_step)
    horizontal = _along(source, guide, 1, columns, column_step)
    a, b, c, d, e, f = guide.place.transform
    row, column = vertical[1].start, horizontal[1].start
    moved = (a, b, c + a * column + b * row, d, e, f + d * column + e * row)
    parts = (vertical[0], horizontal[0]), (vertical[1], horizontal[1])
    cut = _what_was_cut(source.size, guide.size, parts)
    return Alignment(*parts, Georeference(crs, moved), cut)


def _what_was_cut(source: Size, guide: Size, parts: tuple[Part, Part]) -> str:
    kept = [[abs((part.stop if part.stop is not None else -1) - part.start) for part in both] for both in parts]
    if kept == [list(source), list(guide)]:
        return ""
    (h, w), (height, width) = kept
    return (
        f"source and guide were cut to the area that both cover: {w} x {h} of {source[1]} x {source[0]} source cells, "
        f"{width} x {height} of {guide[1]} x {guide[0]} guide pixels"
    )


def _common_crs(source: Placed, guide: Placed) -> str | None:
    """The coordinate system of both; one that names none is taken to have the other's."""
    first, second = source.place.crs, guide.place.crs
    if first is None or second is None or first == second or read_crs(first) == read_crs(second):
        return second or first
    named = " and ".join(crs_name(text) for text in (first, second))
    raise InputError(
        f"{source.name} and {guide.name}: their coordinate systems differ ({named}), so their grids do not fit. "
        f"{cure(source, guide)}"
    )


def _steps(source: Placed, guide: Placed) -> tuple[tuple[float, float], tuple[float, float]]:
    """Where the source begins in the guide and how many guide pixels a cell takes, down and across."""
    onto = _onto(source, guide)
    if onto is None:
        raise InputError(
            f"{source.name} and {guide.name}: a georeference gives its pixels no area. Check how it was exported."
        )
    (across, turned, column), (turned_too, down, row) = onto
    drift = abs(turned) * source.size[0], abs(turned_too) * source.size[1]
    if max(drift) > NEAR:
        raise InputError(
            f"{source.name} and {guide.name}: by their georeferences one is rotated or sheared against the other, so "
            f"their grids do not fit. {cure(source, guide)}"
        )
    return (row, down), (column, across)


def _onto(source: Placed, guide: Placed) -> np.ndarray | None:
    """[2, 3], from (column, row, 1) of the source to (column, row) of the guide."""
    first, second = (np.array([*one.place.transform, 0, 0, 1], float).reshape(3, 3) for one in (source, guide))
    if not np.linalg.det(second[:2, :2]) or not np.linalg.det(first[:2, :2]):
        return None
    origin = second[:2, 2].copy()  # coordinates are large, differences are not
    first[:2, 2] -= origin
    second[:2, 2] = 0
    found: np.ndarray = (np.linalg.inv(second) @ first)[:2]
    return found


def _along(source: Placed, guide: Placed, axis: int, begin: float, step: float) -> tuple[slice, slice]:
    """The parts of one axis: source cells, backwards if the step is negative, and guide pixels."""
    cells, pixels = source.size[axis], guide.size[axis]
    borders = begin + step * np.arange(cells + 1)
    if step < 0:
        borders = borders[::-1]
    inside = np.flatnonzero((borders >= -NEAR) & (borders <= pixels + NEAR))
    if inside.size < 2:
        raise InputError(_too_little_in_common(source, guide, borders, axis))
    fitting = inside[np.abs(borders[inside] - np.rint(borders[inside])) <= NEAR]
    if fitting.size < 2 or fitting[0] - inside[0] > SEARCHED or inside[-1] - fitting[-1] > SEARCHED:
        if abs(step) < 1 - NEAR / cells:
            raise InputError(_guide_coarser(source, guide, abs(step)))
        raise InputError(
            f"{source.name} and {guide.name}: their grids do not fit: a source cell is {abs(step):.6g} guide pixels "
            f"{('high', 'wide')[axis]}, and its borders lie {_offset(borders[inside]):.2g} guide pixels from those of "
            f"the guide. {cure(source, guide)}"
        )
    first, last = int(fitting[0]), int(fitting[-1])
    part = slice(round(borders[first]), round(borders[last]))
    if part.stop - part.start < last - first:
        raise InputError(_guide_coarser(source, guide, abs(step)))
    if step > 0:
        return slice(first, last), part
    return slice(cells - 1 - first, cells - 1 - last if last < cells else None, -1), part


def _offset(borders: np.ndarray) -> float:
    return float(np.abs(borders - np.rint(borders)).max())


def _too_little_in_common(source: Placed, guide: Placed, borders: np.ndarray, axis: int) -> str:
    low, high = float(borders[0]), float(borders[-1])
    gap = max(-high, low - guide.size[axis])
    names = f"{source.name} and {guide.name}"
    if gap < 0:
        return f"{names}: by their georeferences they share less than one whole source cell. Check the files."
    pixel = math.hypot(*(guide.place.transform[at] for at in ((1, 4), (0, 3))[axis]))
    return (
        f"{names}: by their georeferences they lie {gap * pixel:.6g} {ground_unit(guide)} apart and show no common "
        "area. Name a pair of the same place."
    )


def _guide_coarser(source: Placed, guide: Placed, step: float) -> str:
    return (
        f"{source.name} and {guide.name}: by their georeferences a source cell is {step:.3g} guide pixels, so the "
        "guide is coarser than the source. Name a finer guide."
    )
