"""Where source and guide lie to each other: the target grid, and which of its pixels belong to each source cell."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from dada.errors import InputError
from dada.rasters.axis import common
from dada.rasters.files import Info, Six
from dada.rasters.tile import Geometry

SKEW = 0.01  # of a pixel: by how much rows may lean over a whole guide and still count as parallel
FINER = 1.001  # least factor: below, there is nothing to make finer


@dataclass(frozen=True)
class Match:
    """How two rasters fit together.

    Attributes:
        geometry: the target grid and its cells.
        first_cell: row and column of the first cell in the source file.
        first_pixel: row and column of the first pixel in the guide, or in the warped guide.
        transform: of the target.
        crs: of the target, as WKT.
        warp: the grid that the guide is warped to; None if it is not.
        notes: what a user should know.
    """

    geometry: Geometry
    first_cell: tuple[int, int]
    first_pixel: tuple[int, int]
    transform: Six
    crs: str | None
    warp: dict[str, Any] | None
    notes: list[str] = field(default_factory=list)


def match(source: Info, guide: Info) -> Match:
    """Find the target grid: the guide's, cut to the cells that it covers.

    A guide in another projection, or rotated against the source, is warped to a grid of whole pixels for each cell. The
    source is never resampled.

    Raises:
        InputError: the two do not fit; the message says why and what to do.
    """
    notes: list[str] = []
    same = _same_projection(source, guide, notes)
    relative = _between(source, guide) if same else None
    if relative is None or not _parallel(relative, guide):
        return _warped(source, guide, same, notes)
    a, _, c, _, e, f = relative
    _check_factors(source, guide, 1 / e, 1 / a)
    _check_overlap(source, guide, (c, f, c + a * guide.size[1], f + e * guide.size[0]))
    rows, cols = common(source.size[0], guide.size[0], e, f), common(source.size[1], guide.size[1], a, c)
    if rows is None or cols is None:
        raise InputError(_no_whole_cell(source, guide))
    first_pixel = rows[2], cols[2]
    place = _moved(guide.transform, *first_pixel)
    geometry = Geometry(rows[0], cols[0])
    notes += _about_cut(source, geometry)
    return Match(geometry, (rows[1], cols[1]), first_pixel, place, guide.crs, None, notes)


def _same_projection(source: Info, guide: Info, notes: list[str]) -> bool:
    import rasterio

    for info, other in ((source, guide), (guide, source)):
        if info.crs is None and other.crs is not None:
            raise InputError(
                f"{info.path}: it names no projection, and the other raster does ({_name(other.crs)}). State it with "
                "gdal_edit.py -a_srs EPSG:CODE."
            )
    if source.crs is None or guide.crs is None:
        notes.append("neither raster names a projection; both are taken to lie in the same plane")
        return True
    return bool(rasterio.CRS.from_wkt(source.crs) == rasterio.CRS.from_wkt(guide.crs))


def _name(wkt: str) -> str:
    import rasterio

    crs = rasterio.CRS.from_wkt(wkt)
    epsg = crs.to_epsg()
    return f"EPSG:{epsg}" if epsg else wkt.split('"')[1] if '"' in wkt else wkt[:40]


def _between(source: Info, guide: Info) -> Six:
    """The transform from pixels of the guide to cells of the source."""
    import rasterio

    there = ~rasterio.Affine(*source.transform) * rasterio.Affine(*guide.transform)
    a, b, c, d, e, f = (float(v) for v in tuple(there)[:6])
    return a, b, c, d, e, f


def _parallel(relative: Six, guide: Info) -> bool:
    a, b, _, d, e, _ = relative
    return a > 0 and e > 0 and abs(b) * guide.size[0] < SKEW * a and abs(d) * guide.size[1] < SKEW * e


def _moved(transform: Six, row: int, col: int) -> Six:
    a, b, c, d, e, f = transform
    return a, b, c + a * col + b * row, d, e, f + d * col + e * row


# ---- guides that must be warped


def _warped(source: Info, guide: Info, same: bool, notes: list[str]) -> Match:
    cells_per_pixel, bounds = _seen_from_source(source, guide)
    factor = round(1 / cells_per_pixel)
    _check_factors(source, guide, 1 / cells_per_pixel, 1 / cells_per_pixel)
    factor = max(factor, 2)
    _check_overlap(source, guide, bounds)
    spans = []
    for low, high, limit in ((bounds[1], bounds[3], source.size[0]), (bounds[0], bounds[2], source.size[1])):
        first, last = max(0, math.floor(low + 1e-6)), min(limit, math.ceil(high - 1e-6))
        spans.append((first, last))
    (top, bottom), (left, right) = spans
    rows, cols = (
        common(bottom - top, (bottom - top) * factor, 1 / factor, 0.0),
        common(right - left, (right - left) * factor, 1 / factor, 0.0),
    )
    assert rows is not None
    assert cols is not None
    geometry = Geometry(rows[0], cols[0])
    a, b, c, d, e, f = _moved(source.transform, top, left)
    place = a / factor, b / factor, c, d / factor, e / factor, f
    why = "its rows are not parallel to those of the source" if same else f"its projection is {_name(guide.crs or '')}"
    notes.append(
        f"the guide was warped to {factor} x {factor} pixels for each source cell, for {why}; the source was "
        "not resampled"
    )
    warp = {"crs": source.crs or guide.crs, "transform": place, "size": geometry.size}
    notes += _about_cut(source, geometry)
    return Match(geometry, (top, left), (0, 0), place, source.crs, warp, notes)


def _seen_from_source(source: Info, guide: Info) -> tuple[float, tuple[float, float, float, float]]:
    """How many cells wide a pixel of the guide is at its centre, and its bounds (left, top, right, bottom) in cells."""
    import numpy as np
    import rasterio
    from rasterio.warp import transform

    H, W = guide.size
    edge = np.linspace(0, 1, 21)
    one, zero = np.ones_like(edge), np.zeros_like(edge)
    cols = np.concatenate([edge, edge, zero, one]) * W
    rows = np.concatenate([zero, one, edge, edge]) * H
    cols, rows = np.append(cols, [W / 2, W / 2 + 1, W / 2]), np.append(rows, [H / 2, H / 2, H / 2 + 1])
    a, b, c, d, e, f = guide.transform
    x, y = a * cols + b * rows + c, d * cols + e * rows + f
    if source.crs and guide.crs:
        try:
            x, y = (np.array(v) for v in transform(guide.crs, source.crs, x.tolist(), y.tolist()))
        except Exception:
            raise InputError(
                f"{guide.path}: its projection ({_name(guide.crs)}) cannot be converted to that of the source "
                f"({_name(source.crs)}). Reproject one of them with gdalwarp -t_srs."
            ) from None
    u, v = ~rasterio.Affine(*source.transform) * (x, y)
    if not (np.isfinite(u).all() and np.isfinite(v).all()):
        raise InputError(
            f"{guide.path}: it lies outside of the area for which the projection of the source "
            f"({_name(source.crs or '')}) is made. Reproject the source with gdalwarp -t_srs, or check both "
            "projections."
        )
    right, down = (u[-2] - u[-3], v[-2] - v[-3]), (u[-1] - u[-3], v[-1] - v[-3])
    area = abs(right[0] * down[1] - right[1] * down[0])
    edges = u[:-3], v[:-3]
    bounds = float(edges[0].min()), float(edges[1].min()), float(edges[0].max()), float(edges[1].max())
    return math.sqrt(area), bounds


# ---- pairs that do not fit


def _check_factors(source: Info, guide: Info, down: float, across: float) -> None:
    """Refuse a source that is not coarser than its guide."""
    if down >= FINER and across >= FINER:
        return
    ratio = f"a cell of the source is {across:.3g} x {down:.3g} pixels of the guide"
    if max(down, across) < 1 / FINER:
        hint = "Swap the two files" if len(guide.bands) == 1 else "Give a guide finer than the source"
        raise InputError(
            f"{source.path} is finer than its guide {guide.path}: {ratio}. {hint}: the source is the coarse raster, "
            "the guide the fine one."
        )
    if max(down, across) <= FINER:
        raise InputError(f"{source.path} is as fine as its guide {guide.path}: there is nothing to make finer.")
    raise InputError(
        f"{guide.path} is finer than the source {source.path} in one direction only: {ratio}. Resample the guide to "
        "pixels that are smaller than a cell in both directions."
    )


def _check_overlap(source: Info, guide: Info, bounds: tuple[float, float, float, float]) -> None:
    """Refuse rasters apart; bounds (left, top, right, bottom) of the guide are in cells of the source."""
    left, top, right, bottom = bounds
    if left < source.size[1] and top < source.size[0] and right > 0 and bottom > 0:
        return
    raise InputError(
        f"{source.path} and {guide.path} do not overlap: in cells of the source, which has {source.size[1]} x "
        f"{source.size[0]}, the guide covers columns {left:.6g} to {right:.6g} and rows {top:.6g} to {bottom:.6g}. "
        "Check that both show the same area, and that their projections are stated rightly."
    )


def _no_whole_cell(source: Info, guide: Info) -> str:
    return (
        f"{guide.path} covers no source cell of {source.path} as a whole, and a cell that is covered in part cannot be "
        "kept to its measurement. Give a guide of a larger area."
    )


def _about_cut(source: Info, geometry: Geometry) -> list[str]:
    h, w = geometry.cells
    if (h, w) == source.size:
        return []
    return [
        f"the guide covers {w} x {h} of the source's {source.size[1]} x {source.size[0]} cells: the result is cut to "
        "these"
    ]
