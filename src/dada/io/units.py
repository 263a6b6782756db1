"""The unit of stored depth values, and the stored value that marks invalid pixels."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace

import numpy as np

from dada.errors import InputError
from dada.io.raster import Raster


@dataclass(frozen=True)
class Unit:
    """What 1 stands for.

    Attributes:
        name: "mm", "cm", "m", "tum", "raw", "K", "C", the number as given, or as a file spells it.
        per_metre: units in one metre (1000 for millimetres); None if values are no lengths, such as disparity or
            temperature.
    """

    name: str
    per_metre: float | None


MILLIMETRES = Unit("mm", 1000.0)
METRES = Unit("m", 1.0)
RAW = Unit("raw", None)
CENTIMETRES = Unit("cm", 100.0)
TUM, KITTI = Unit("tum", 5000.0), Unit("kitti", 256.0)
KELVIN, CELSIUS = Unit("K", None), Unit("C", None)
UNITS = {u.name.lower(): u for u in (MILLIMETRES, CENTIMETRES, METRES, TUM, RAW, KELVIN, CELSIUS, KITTI)}
SPELLED = {
    MILLIMETRES: ("mm", "millimetre", "millimetres", "millimeter", "millimeters"),
    CENTIMETRES: ("cm", "centimetre", "centimetres", "centimeter", "centimeters"),
    METRES: ("m", "metre", "metres", "meter", "meters"),
    Unit("km", 0.001): ("km", "kilometre", "kilometres", "kilometer", "kilometers"),
    Unit("ft", 1 / 0.3048): ("ft", "foot", "feet"),
    KELVIN: ("k", "kelvin", "kelvins", "degk"),
    CELSIUS: ("c", "celsius", "degc", "deg c", "°c", "degree celsius", "degrees celsius", "degree_celsius"),
}
"""How files spell units."""


def parse_unit(text: str | float) -> Unit:
    """Return the unit of a name (mm, cm, m, tum, raw, K, C, kitti) or of a number of stored units in one metre."""
    name = str(text).strip().lower()
    if name in UNITS:
        return UNITS[name]
    try:
        per_metre = float(name)
    except ValueError:
        per_metre = math.nan
    if not math.isfinite(per_metre) or per_metre <= 0:
        raise InputError(
            f"unit {text!r} is unknown. Use one of {', '.join(unit.name for unit in UNITS.values())}, or how many "
            "stored units make a metre, such as 1000 for millimetres or 5000 for TUM RGB-D."
        )
    return Unit(name, per_metre)


def parse_amount(text: str, unit: Unit) -> float:
    """Return an amount such as "20mm" or "0.5 K" in a unit; a number alone is in that unit.

    Raises:
        InputError: it is no amount, or its unit cannot be converted.
    """
    found = re.fullmatch(r"\s*(\d*\.?\d+(?:[eE][-+]?\d+)?)\s*([^\W\d]*)\s*", text)
    if found is None:
        raise InputError(f"{text!r} is no amount of 0 or more. Give a number and its unit, such as 20mm or 0.5K.")
    number, given = float(found[1]), parse_unit(found[2]) if found[2] else unit
    if given == unit:
        return number
    if given.per_metre is None or unit.per_metre is None:
        raise InputError(
            f"{text!r} cannot be converted to the unit of the source, {unit.name}. State that with --unit, or leave "
            "the unit of the amount out."
        )
    return number * unit.per_metre / given.per_metre


def declared_unit(raster: Raster) -> Unit | None:
    """Return the unit that the file itself names, or None; one that is not known here keeps its name."""
    spelling = " ".join((raster.meaning.unit or "").split())
    if not spelling:
        return None
    known = (unit for unit, spellings in SPELLED.items() if spelling.lower() in spellings)
    return next(known, Unit(spelling[:40], None))


def default_unit(raster: Raster) -> Unit:
    """Return the unit a depth file of this kind usually has, for files that name none.

    Floats are metres; 16-bit integers are millimetres, or metres if georeferenced (elevation models); any
    other integer is raw: 8 bits hold disparity or relative values. What has a scale or an offset is raw too.
    """
    dtype = raster.values.dtype
    if raster.meaning.scaled:
        return RAW
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


def scaled(raster: Raster, valid: np.ndarray) -> Raster:
    """Return a raster with its scale and offset applied, and NaN where it is not valid; one without them as it is.

    Raises:
        InputError: no pixel is valid.
    """
    values, meaning = raster.values, raster.meaning
    if not meaning.scaled:
        return raster
    if not valid.any():
        raise InputError(
            f"{raster.path}: none of its pixels is valid. Check the file, or state its marker (--invalid)."
        )
    kind = np.float32 if values.dtype.itemsize <= (2 if values.dtype.kind in "ui" else 4) else np.float64
    real = values.astype(np.float64) * meaning.scale + meaning.offset
    return replace(raster, values=np.where(valid, real, np.nan).astype(kind))


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
