"""In which type, unit and with which invalid marker a result is stored, and where it lies on the ground."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dada.errors import InputError
from dada.io import Georeference, Raster, Unit, default_invalid, default_unit, parse_unit
from dada.io.detect import SUFFIXES
from dada.io.rounding import holds
from dada.io.units import METRES, MILLIMETRES
from dada.pairs.options import Options

WORDS = {"mm": "millimetres", "cm": "centimetres", "m": "metres", "tum": "1/5000 m"}


@dataclass(frozen=True)
class Storage:
    """How the source is read and the result written."""

    unit: Unit  # of the source
    invalid: float | None  # in the source
    dtype: np.dtype  # of the result, as all below
    output_unit: Unit
    marker: float | None

    @property
    def factor(self) -> float:
        """Result's units in one of the source's."""
        if self.unit.per_metre is None or self.output_unit.per_metre is None:
            return 1.0
        return self.output_unit.per_metre / self.unit.per_metre

    @property
    def words(self) -> str:
        """Type and unit, as in "uint16 millimetres"."""
        name = self.output_unit.name
        if self.output_unit.per_metre is None:
            return str(self.dtype)
        return f"{self.dtype} {WORDS.get(name, f'1/{name} m')}"

    @property
    def label(self) -> str:
        """The unit as it stands beside a number."""
        return self.output_unit.name if self.output_unit.name in ("mm", "cm", "m") else ""


def choose_storage(raster: Raster, output: Path, options: Options) -> Storage:
    """Keep type, unit and marker of the source, unless options or the format of the output ask for others.

    Where an integer type gives way to a float one or the reverse, a metric unit becomes the usual one of that
    kind: metres for floats and georeferenced files, millimetres for integers.

    Raises:
        InputError: the format cannot hold the result, or units that cannot be converted.
    """
    unit = parse_unit(options.unit) if options.unit is not None else default_unit(raster)
    invalid = options.invalid if options.invalid is not None else default_invalid(raster)
    _check_marker(options.invalid, raster)
    dtype = np.dtype(options.dtype) if options.dtype else _fitting(raster.values.dtype, unit, output, options)
    same_kind = (dtype.kind == "f") == (raster.values.dtype.kind == "f")
    if options.output_unit is not None:
        wanted = parse_unit(options.output_unit)
        if (wanted.per_metre is None) != (unit.per_metre is None):
            raise InputError(
                f"{raster.path}: the unit {unit.name} cannot be converted to {wanted.name}. State the unit "
                "of the source with --unit, or leave --output-unit out."
            )
    elif same_kind or unit.per_metre is None:
        wanted = unit
    else:
        wanted = METRES if dtype.kind == "f" or raster.georeference is not None else MILLIMETRES
    marker = invalid if same_kind else (math.nan if dtype.kind == "f" else 0.0)
    return Storage(unit, invalid, dtype, wanted, marker)


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


def _fitting(dtype: np.dtype, unit: Unit, output: Path, options: Options) -> np.dtype:
    """The source's type, or the one nearest to it that the format of the output holds."""
    kind = SUFFIXES.get(output.suffix.lower())
    if kind in ("pfm", "exr") and not (kind == "exr" and dtype == np.float16):
        return np.dtype(np.float32)
    if kind == "tiff" and dtype == np.float16:
        return np.dtype(np.float32)
    if kind == "png" and dtype.name not in ("uint8", "uint16"):
        if dtype.kind == "f" and (unit.per_metre is not None or options.output_unit is not None):
            return np.dtype(np.uint16)
        raise InputError(
            f"{output}: PNG holds 8 or 16 bits without sign, and the source is {dtype} of unit {unit.name}. "
            "Name a .tiff or .npy file, or round with --dtype uint16."
        )
    return dtype


def ground(source: Raster, guide: Raster) -> tuple[Georeference | None, list[str]]:
    """Return where the result lies: where the guide does, or else the source; and what is odd about it."""
    if guide.georeference is None:
        return (None if source.georeference is None else _refine(source, guide)), []
    if source.georeference is None:
        return guide.georeference, []
    notes = []
    if source.georeference.crs != guide.georeference.crs and source.georeference.crs and guide.georeference.crs:
        notes.append(
            "source and guide have different coordinate systems; they are laid corner on corner. Reproject "
            "one to the other's unless they show the same area"
        )
        return guide.georeference, notes
    corners = [_corners(raster) for raster in (source, guide)]
    cell = np.abs(corners[0][1] - corners[0][0]) / source.values.shape[1::-1]
    apart = np.abs(corners[0] - corners[1]).max(axis=0)
    if (apart > np.maximum(cell, 1e-12)).any():
        notes.append(
            f"by their georeference source and guide cover different areas (corners up to {apart.max():g} "
            f"apart, a source cell is {cell.max():g}); they are laid corner on corner. Crop them to the "
            "same area"
        )
    return guide.georeference, notes


def _corners(raster: Raster) -> np.ndarray:
    """First and last corner on the ground, [2, 2] of (x, y)."""
    assert raster.georeference is not None
    a, b, c, d, e, f = raster.georeference.transform
    rows, columns = raster.values.shape[:2]
    return np.array([(c, f), (a * columns + b * rows + c, d * columns + e * rows + f)])


def _refine(source: Raster, guide: Raster) -> Georeference:
    """The georeference of the source for pixels of the guide's size."""
    assert source.georeference is not None
    a, b, c, d, e, f = source.georeference.transform
    down, across = (n / m for n, m in zip(source.values.shape[:2], guide.values.shape[:2], strict=True))
    return Georeference(source.georeference.crs, (a * across, b * down, c, d * across, e * down, f))
