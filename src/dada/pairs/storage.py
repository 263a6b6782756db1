"""In which type, unit and with which invalid marker a result is stored."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dada.errors import InputError
from dada.io import Meaning, Raster, Unit, default_invalid, default_unit, parse_unit
from dada.io.detect import SUFFIXES
from dada.io.rounding import check_fits, holds, limits
from dada.io.units import METRES, MILLIMETRES, declared_unit
from dada.pairs.options import Options

WORDS = {
    "mm": "millimetres",
    "cm": "centimetres",
    "m": "metres",
    "km": "kilometres",
    "ft": "feet",
    "tum": "1/5000 m",
    "kitti": "1/256 m",
}
NO_UNITS = ("raw", "tum", "kitti")  # names that do not stand beside a number


@dataclass(frozen=True)
class Storage:
    """How the source is read and the result written."""

    unit: Unit  # of the source's values, its scale and offset applied
    assumed: bool  # the unit is the usual one of such files: neither the file nor the user stated it
    invalid: float | None  # as stored in the source
    dtype: np.dtype  # of the result, as all below
    output_unit: Unit
    marker: float | None  # as stored
    meaning: Meaning

    @property
    def factor(self) -> float:
        """Result's units in one of the source's."""
        if self.unit.per_metre is None or self.output_unit.per_metre is None:
            return 1.0
        return self.output_unit.per_metre / self.unit.per_metre

    @property
    def words(self) -> str:
        """Type and unit, as in "uint16 millimetres"."""
        scale = f" (scale {self.meaning.scale:g}, offset {self.meaning.offset:g})" if self.meaning.scaled else ""
        return f"{self.dtype} {unit_words(self.output_unit)}".rstrip() + scale

    @property
    def label(self) -> str:
        """The unit as it stands beside a number."""
        plain = self.output_unit.name in WORDS or self.output_unit.per_metre is None
        return self.output_unit.name if plain and self.output_unit.name not in NO_UNITS else ""

    @property
    def limits(self) -> tuple[float, float]:
        """The least and the largest value that can be stored, in the unit of the source."""
        ends = sorted((end * self.meaning.scale + self.meaning.offset) / self.factor for end in limits(self.dtype))
        return ends[0], ends[1]

    def stored(self, values: np.ndarray) -> np.ndarray:
        """Values in the source's unit as the numbers that the file holds, not yet rounded."""
        values = values if self.factor == 1 else values * self.factor
        return (values - self.meaning.offset) / self.meaning.scale if self.meaning.scaled else values

    def read_back(self, stored: np.ndarray) -> np.ndarray:
        """Numbers of the file as values in the result's unit."""
        return stored * self.meaning.scale + self.meaning.offset if self.meaning.scaled else stored


def unit_words(unit: Unit) -> str:
    """A unit written out; nothing if it is raw."""
    if unit.per_metre is None:
        return "" if unit.name == "raw" else unit.name
    return WORDS.get(unit.name, f"1/{unit.name} m")


def choose_storage(raster: Raster, output: Path, options: Options) -> Storage:
    """Keep type, unit, scale and marker of the source, unless options or the format of the output ask for others.

    Where an integer type gives way to a float one or the reverse, a metric unit becomes the usual one of that
    kind: metres for floats, millimetres for integers.

    Raises:
        InputError: the format cannot hold the result, or units that cannot be converted.
    """
    stated = parse_unit(options.unit) if options.unit is not None else declared_unit(raster)
    unit = stated or default_unit(raster)
    invalid = options.invalid if options.invalid is not None else default_invalid(raster)
    _check_marker(options.invalid, raster)
    dtype = np.dtype(options.dtype) if options.dtype else _fitting(raster, unit, output, options)
    same_kind = (dtype.kind == "f") == (raster.values.dtype.kind == "f")
    if options.output_unit is not None:
        wanted = parse_unit(options.output_unit)
        if wanted != unit and None in (wanted.per_metre, unit.per_metre):
            raise InputError(
                f"{raster.path}: the unit {unit.name} cannot be converted to {wanted.name}. State the unit "
                "of the source with --unit, or leave --output-unit out."
            )
    elif same_kind or unit.per_metre is None:
        wanted = unit
    else:
        wanted = METRES if dtype.kind == "f" else MILLIMETRES
    marker = invalid if same_kind else (math.nan if dtype.kind == "f" else 0.0)
    meaning = _meaning(raster, output, same_kind, unit, wanted, known=stated is not None)
    return Storage(unit, stated is None and unit.per_metre is not None, invalid, dtype, wanted, marker, meaning)


def _meaning(raster: Raster, output: Path, same_kind: bool, unit: Unit, wanted: Unit, known: bool) -> Meaning:
    """What the result declares: the source's scale, offset and spelling of the unit, where they still hold."""
    before, kept = raster.meaning, same_kind and wanted == unit and SUFFIXES[output.suffix.lower()] == "tiff"
    scale, offset = (before.scale, before.offset) if kept else (1.0, 0.0)
    own = declared_unit(raster) == wanted
    named = wanted.name if known and (wanted.per_metre is None or wanted.name in WORDS) else None
    spelling = before.unit if own else None if named in NO_UNITS else named
    return Meaning(scale, offset, spelling, before.description)


def check_storable(raster: Raster, valid: np.ndarray, storage: Storage) -> None:
    """Refuse before the work begins what could not be stored after it: values out of the type's range."""
    if storage.dtype.kind not in "uif":  # such a source is refused where all are read
        return
    values = storage.stored(np.where(valid, raster.values, 0).astype(np.float64))
    check_fits(np.rint(values) if storage.dtype.kind in "ui" else values, valid, storage.dtype, _range_of(storage))


def _range_of(storage: Storage) -> str:
    unit = unit_words(storage.output_unit)
    return f"the source in {unit}" if unit and storage.factor != 1 else "the source as it would be stored"


def _check_marker(invalid: float | None, raster: Raster) -> None:
    """Refuse a marker that no pixel of the source can have; NaN stands for no marker at all."""
    dtype = raster.values.dtype
    if invalid is None or math.isnan(invalid) or dtype.kind == "f" or holds(dtype, invalid):
        return
    info = np.iinfo(dtype)
    raise InputError(
        f"{raster.path}: --invalid {invalid:g} marks no pixel, for the source is {dtype}, whole numbers from "
        f"{info.min} to {info.max}. State the marker as it is stored, or leave it out."
    )


def _fitting(raster: Raster, unit: Unit, output: Path, options: Options) -> np.dtype:
    """The source's type, or the one nearest to it that the format of the output holds."""
    kind, dtype = SUFFIXES.get(output.suffix.lower()), raster.values.dtype
    what = f"{dtype} of unit {unit.name}"
    if raster.meaning.scaled and kind != "tiff":  # only TIFF holds the scale
        what = f"{what} with a scale"
        dtype = np.dtype(np.float32 if dtype.itemsize <= 2 else np.float64)
    if kind in ("pfm", "exr") and not (kind == "exr" and dtype == np.float16):
        return np.dtype(np.float32)
    if kind == "tiff" and dtype == np.float16:
        return np.dtype(np.float32)
    if kind == "png" and dtype.name not in ("uint8", "uint16"):
        if dtype.kind == "f" and (unit.per_metre is not None or options.output_unit is not None):
            return np.dtype(np.uint16)
        raise InputError(
            f"{output}: PNG holds 8 or 16 bits without sign, and the source is {what}. "
            "Name a .tiff or .npy file, or round with --dtype uint16."
        )
    return dtype
