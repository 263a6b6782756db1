"""The unit of stored depth values, and the stored value that marks invalid pixels."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dada.errors import InputError
from dada.io.raster import Raster


@dataclass(frozen=True)
class Unit:
    """A depth scale.

    Attributes:
        name: "mm", "cm", "m", "tum", "raw", or the number as given.
        per_metre: stored units in one metre (1000 for millimetres); None if values are not metric ("raw"),
            such as disparity or temperature.
    """

    name: str
    per_metre: float | None


MILLIMETRES = Unit("mm", 1000.0)
METRES = Unit("m", 1.0)
RAW = Unit("raw", None)
KITTI = Unit("kitti", 256.0)
UNITS = {unit.name: unit for unit in (MILLIMETRES, Unit("cm", 100.0), METRES, Unit("tum", 5000.0), KITTI, RAW)}


def parse_unit(text: str | float) -> Unit:
    """Return the unit of a name (mm, cm, m, tum, kitti, raw) or of a number of stored units in one metre."""
    name = str(text).strip().lower()
    if name in UNITS:
        return UNITS[name]
    try:
        per_metre = float(name)
    except ValueError:
        per_metre = math.nan
    if not math.isfinite(per_metre) or per_metre <= 0:
        raise InputError(
            f"unit {text!r} is unknown. Use one of {', '.join(UNITS)}, or how many stored units make a "
            "metre, such as 1000 for millimetres or 5000 for TUM RGB-D."
        )
    return Unit(name, per_metre)


def default_unit(raster: Raster) -> Unit:
    """Return the unit a depth file of this kind usually has.

    Floats are metres; 16-bit integers are millimetres, or metres if georeferenced (elevation models); any
    other integer is raw: 8 bits hold disparity or relative values.
    """
    dtype = raster.values.dtype
    if dtype.kind == "f":
        return METRES
    if dtype.kind in "ui" and dtype.itemsize == 2:
        return METRES if raster.georeference is not None else MILLIMETRES
    return RAW


def default_invalid(raster: Raster) -> float | None:
    """Return the value that marks invalid pixels in a file of this kind.

    The declared nodata if there is one; NaN for floats; 0 for integers, but None (no marker) for
    georeferenced integers without nodata, where 0 is sea level.
    """
    if raster.nodata is not None:
        return raster.nodata
    if raster.values.dtype.kind == "f":
        return math.nan
    return None if raster.georeference is not None else 0.0


def valid_pixels(values: np.ndarray, invalid: float | None) -> np.ndarray:
    """Return where `values` are finite and not the invalid marker, as bool of the same shape.

    The marker is compared in the dtype of the values: a nodata of -3.4028234663852886e+38 is meant as
    float32.
    """
    valid: np.ndarray = np.isfinite(values)
    if invalid is None or math.isnan(invalid):
        return valid
    if values.dtype.kind == "f":
        with np.errstate(over="ignore"):
            return np.asarray(valid & (values != values.dtype.type(invalid)))
    if not float(invalid).is_integer():
        return valid
    return np.asarray(valid & (values != int(invalid)))
