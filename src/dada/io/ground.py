"""Images with a place on the ground: their coordinate systems, and what brings a guide to the grid of a source."""

from __future__ import annotations

import math
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dada.errors import InputError
from dada.io.raster import Georeference

Size = tuple[int, int]


@dataclass(frozen=True)
class Placed:
    """An image with a place on the ground.

    Attributes:
        size: height, width.
        place: where it lies.
        name: its file, for messages.
        in_memory: there is no file.
    """

    size: Size
    place: Georeference
    name: str
    in_memory: bool = False


def cure(source: Placed, guide: Placed) -> str:
    """The command that brings the guide to the grid of the source. It takes no measurement away."""
    if guide.in_memory:
        return "Warp the guide to a grid whose pixels divide the source's cells, for example with guide.rio.reproject."
    general = "dada raster warps the guide to the grid of the source"
    if _lie_apart(source, guide):
        return "They do not overlap either: name a guide of the same area."
    grid = _wanted_grid(source, guide)
    if grid is None:
        return f"{general}; so does gdalwarp."
    west, south, east, north, width, height = grid
    target = ["-t_srs", crs_name(source.place.crs, whole=True)] if source.place.crs else []
    bounds = ["-te", *(f"{number:.12g}" for number in (west, south, east, north))]
    aligned = str(Path(guide.name).with_name(f"{Path(guide.name).stem}_aligned.tif"))
    words = ["gdalwarp", "-r", "cubic", *target, *bounds, "-ts", str(width), str(height), guide.name, aligned]
    return f"{general}; so does `{shlex.join(words)}`."


def _lie_apart(source: Placed, guide: Placed) -> bool:
    """Whether the bounds of both are known, in the source's coordinate system, and share no point."""
    own, other = _extent(source, source.place.crs), _extent(guide, source.place.crs)
    if own is None or other is None:
        return False
    (west, south, east, north), (low_x, low_y, high_x, high_y) = own[0], other[0]
    return high_x < west or low_x > east or high_y < south or low_y > north


def _wanted_grid(source: Placed, guide: Placed) -> tuple[float, float, float, float, int, int] | None:
    """West, south, east, north, width and height of a guide whose pixels divide the source's cells; None: cannot be."""
    a, b, c, d, e, f = source.place.transform
    extent = _extent(guide, source.place.crs)
    if b or d or not a or not e or extent is None:
        return None
    (low_x, low_y, high_x, high_y), (pixel_x, pixel_y) = extent
    columns = sorted(((low_x - c) / a, (high_x - c) / a))
    rows = sorted(((low_y - f) / e, (high_y - f) / e))
    left, right = max(0, math.ceil(columns[0] - 1e-6)), min(source.size[1], math.floor(columns[1] + 1e-6))
    top, bottom = max(0, math.ceil(rows[0] - 1e-6)), min(source.size[0], math.floor(rows[1] + 1e-6))
    if left >= right or top >= bottom:
        return None
    across, down = (max(1, round(abs(cell) / pixel)) for cell, pixel in ((a, pixel_x), (e, pixel_y)))
    x, y = sorted((c + a * left, c + a * right)), sorted((f + e * top, f + e * bottom))
    return x[0], y[0], x[1], y[1], (right - left) * across, (bottom - top) * down


def _extent(guide: Placed, crs: str | None) -> tuple[tuple[float, ...], tuple[float, float]] | None:
    """Bounds of the guide and the size of its pixels in a coordinate system; None: it has no place there."""
    a, b, c, d, e, f = guide.place.transform
    height, width = guide.size
    corners = [(a * x + b * y + c, d * x + e * y + f) for x in (0, width) for y in (0, height)]
    bounds = (*(min(axis) for axis in zip(*corners, strict=True)), *(max(axis) for axis in zip(*corners, strict=True)))
    if guide.place.crs and crs and guide.place.crs != crs:
        from rasterio.warp import transform_bounds

        try:
            bounds = transform_bounds(read_crs(guide.place.crs), read_crs(crs), *bounds)
        except Exception:  # rasterio has several families of errors, none derived from another
            return None
    if not all(map(math.isfinite, bounds)):
        return None
    west, south, east, north = bounds
    return bounds, ((east - west) / width, (north - south) / height)


def read_crs(text: str) -> Any:
    """The coordinate system of a WKT.

    Raises:
        InputError: it is none.
    """
    from rasterio.crs import CRS

    try:
        return CRS.from_wkt(text)
    except Exception:  # rasterio has several families of errors, none derived from another
        raise InputError(f"the coordinate system {text[:40]!r} cannot be read. Name it anew.") from None


def crs_name(text: str | None, whole: bool = False) -> str:
    """As "EPSG:32632"; of a system without a number its name, or all of it."""
    if text is None:
        return "none"
    authority = read_crs(text).to_authority()
    if authority:
        return ":".join(authority)
    return text if whole else text.partition('"')[2].partition('"')[0] or "one without a name"


def ground_unit(guide: Placed) -> str:
    """Of the guide's coordinates."""
    if guide.place.crs is None:
        return "units"
    crs = read_crs(guide.place.crs)
    return "degrees" if crs.is_geographic else {"metre": "metres"}.get(crs.linear_units, crs.linear_units or "units")
