"""Arrays with names and coordinates, xarray's DataArray: in, and out of the same kind.

xarray itself is not imported: whoever passes such an array has it, and the result is made from what was passed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from dada.errors import InputError
from dada.io.alignment import Part, align
from dada.io.ground import Placed
from dada.io.raster import Georeference
from dada.upsampling.result import Result
from dada.upsampling.source import Marker

AXES = (("y", "x"), ("lat", "lon"), ("latitude", "longitude"), ("northing", "easting"), ("row", "col"))
STRAIGHT = 1e-3  # of a step: how far coordinates may be from evenly spaced ones

Warn = Callable[[str], None]


def is_labelled(array: Any) -> bool:
    """Whether an array is a DataArray."""
    return type(array).__module__.partition(".")[0] == "xarray" and hasattr(array, "dims")


class Labelled(NamedTuple):
    """A pair of which at least one is labelled, as plain arrays of the area that both cover.

    Attributes:
        source: (h, w).
        guide: (H, W) or (H, W, bands).
        part: of the source as given.
        invalid: value that marks invalid cells.
        wrap: gives a result the names and coordinates of the pair.
        notes: what the user should know.
    """

    source: Any
    guide: Any
    part: Part
    invalid: Marker
    wrap: Callable[[Result], Result]
    notes: list[str]


def plain_pair(source: Any, guide: Any, invalid: Marker) -> Labelled:
    """Take names and coordinates off a pair, and cut it to the area that both cover by them.

    Raises:
        InputError: axes that are not clear, or coordinates by which the two cannot be laid on each other.
    """
    coarse, fine = _image(source, "source"), _image(guide, "guide")
    first, second = (_place(one) if is_labelled(one) else None for one in (coarse, fine))
    sizes = [_size(one) for one in (coarse, fine)]
    parts: tuple[Part, Part] = ((slice(None), slice(None)), (slice(None), slice(None)))
    notes = []
    if first is not None and second is not None:
        found = align(Placed(sizes[0], first, "source", True), Placed(sizes[1], second, "guide", True))
        parts = found.source, found.guide
        notes = [found.cut] if found.cut else []
    coarse, fine = coarse[parts[0]], fine[parts[1]]
    marker = _marker(source, first) if isinstance(invalid, str) else invalid

    def wrap(result: Result) -> Result:
        return _wrapped(result, coarse, fine) if is_labelled(source) else result

    values = [np.asarray(one.values) if is_labelled(one) else one for one in (coarse, fine)]
    return Labelled(values[0], values[1], parts[0], marker, wrap, notes)


def plain_cells(given: Any, part: Part) -> Any:
    """What comes with the source, such as a mask, as a plain array of the part that is used."""
    if given is None or np.ndim(given) < 2:
        return given
    image = _image(given, "array beside the source")
    return (np.asarray(image.values) if is_labelled(image) else image)[part]


def _image(array: Any, what: str) -> Any:
    """A labelled array with its axes in the order y, x and, of a guide, bands; another one as it is."""
    if not is_labelled(array):
        return array
    dims = [str(dim) for dim in array.dims]
    lower = {dim.lower(): dim for dim in dims}
    axes = next(((lower[y], lower[x]) for y, x in AXES if y in lower and x in lower), None)
    if axes is None and len(dims) == 2:
        axes = dims[0], dims[1]
    others = [dim for dim in dims if axes is None or dim not in axes]
    if axes is not None and what != "guide":
        array = array.squeeze([dim for dim in others if array.sizes[dim] == 1], drop=True)
        others = [dim for dim in others if dim in array.dims]
    if axes is None or len(others) > (what == "guide"):
        wanted = "y, x and at most one for bands" if what == "guide" else "y and x"
        raise InputError(
            f"the {what} has the axes {', '.join(dims)} of lengths {tuple(array.shape)}; expected {wanted}. Choose one "
            "image with .isel, or rename the axes."
        )
    return array.transpose(*axes, *others)


def _size(array: Any) -> tuple[int, int]:
    """Height and width of an image whose axes are in order; tensors have their bands first."""
    shape = tuple(array.shape)
    rows, columns = shape[-2:] if not isinstance(array, np.ndarray) and not is_labelled(array) else shape[:2]
    return int(rows), int(columns)


def _place(array: Any) -> Georeference | None:
    """Where its pixels lie by its coordinates; None: it has none, or they are not evenly spaced."""
    rows, columns = (_even(array, dim) for dim in array.dims[:2])
    if rows is None or columns is None:
        return None
    (top, down), (left, across) = rows, columns
    crs = None
    for name in ("spatial_ref", "crs"):
        if name in array.coords:
            crs = crs or array.coords[name].attrs.get("crs_wkt") or array.coords[name].attrs.get("spatial_ref")
    if crs is None and down == across == 1 and top == left and top in (-0.5, 0.0, 0.5):
        return None  # numbers of rows and columns
    return Georeference(crs, (across, 0.0, left, 0.0, down, top))


def _even(array: Any, dim: str) -> tuple[float, float] | None:
    """Where the first pixel of an axis begins, and its size."""
    if dim not in array.coords or array.coords[dim].dtype.kind not in "uif" or array.sizes[dim] < 2:
        return None
    centres = np.asarray(array.coords[dim].values, np.float64)
    step = float(centres[-1] - centres[0]) / (len(centres) - 1)
    if not step or np.abs(centres - (centres[0] + step * np.arange(len(centres)))).max() > STRAIGHT * abs(step):
        return None
    return float(centres[0]) - step / 2, step


def _marker(source: Any, place: Georeference | None) -> Marker:
    """What the source declares invalid; of whole numbers with a place none, as 0 is sea level."""
    if not is_labelled(source):
        return "auto"
    declared = source.attrs.get("_FillValue", source.attrs.get("nodata"))
    if declared is not None:
        return float(declared)
    return None if place is not None and place.crs is not None else "auto"


def _wrapped(result: Result, source: Any, guide: Any) -> Result:
    """A result with the axes of the source, the coordinates of the guide, and all else that the source says."""
    rows, columns = source.dims
    coords = {name: value for name, value in source.coords.items() if not value.dims}
    if is_labelled(guide):
        for dim, fine in zip((rows, columns), guide.dims[:2], strict=True):
            if fine in guide.coords:
                coords[dim] = (dim, guide.coords[fine].values, guide.coords[fine].attrs)
        coords |= {name: guide.coords[name] for name in ("spatial_ref", "crs") if name in guide.coords}
    else:
        coords |= _refined(source, result.values.shape)
    coords = {name: _without_transform(value) for name, value in coords.items()}
    attrs = {name: value for name, value in source.attrs.items() if name not in ("_FillValue", "nodata")}
    make = type(source)
    return Result(
        make(result.values, coords, source.dims, name=source.name, attrs=attrs),
        make(result.valid, coords, source.dims),
        result.report,
    )


def _without_transform(value: Any) -> Any:
    """A coordinate system beside coordinates; the transform of the whole guide would not be that of a part."""
    if isinstance(value, tuple) or "GeoTransform" not in value.attrs:
        return value
    kept = value.copy()
    kept.attrs = {name: attr for name, attr in value.attrs.items() if name != "GeoTransform"}
    return kept


def _refined(source: Any, size: tuple[int, int]) -> dict[str, Any]:
    """The coordinates of the source for the pixels of a guide without any."""
    found = {}
    for dim, count in zip(source.dims, size, strict=True):
        axis = _even(source, dim)
        if axis is not None:
            begin, step = axis
            pixel = step * source.sizes[dim] / count
            found[dim] = (dim, begin + pixel * (np.arange(count) + 0.5), source.coords[dim].attrs)
    return found
