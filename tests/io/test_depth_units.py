"""Units and invalid markers are what people who hold such files expect."""

import math
from pathlib import Path

import numpy as np
import pytest

from dada.errors import InputError
from dada.io import Georeference, Raster, default_invalid, default_unit, parse_unit, valid_pixels

PLACE = Georeference(None, (1.0, 0.0, 0.0, 0.0, -1.0, 0.0))


def raster(dtype: str, nodata=None, georeference=None) -> Raster:
    return Raster(np.ones((2, 3), dtype), nodata, georeference, Path("a"), "tiff")


@pytest.mark.parametrize(
    ("text", "per_metre"),
    [
        ("mm", 1000),
        ("cm", 100),
        ("m", 1),
        ("tum", 5000),
        ("raw", None),
        (" MM ", 1000),
        ("5000", 5000),
        (256, 256),
    ],
)
def test_names_and_numbers(text, per_metre):
    assert parse_unit(text).per_metre == per_metre


@pytest.mark.parametrize("text", ["", "inch", "0", "-1000", "nan", "inf", "1,5"])
def test_unknown_units_are_refused_with_the_known_ones(text):
    with pytest.raises(InputError, match="mm, cm, m, tum, raw"):
        parse_unit(text)


@pytest.mark.parametrize(
    ("dtype", "georeference", "unit", "invalid"),
    [
        ("uint16", None, "mm", 0),
        ("int16", None, "mm", 0),
        ("uint8", None, "raw", 0),
        ("int32", None, "raw", 0),
        ("float32", None, "m", math.nan),
        ("float64", PLACE, "m", math.nan),
        ("int16", PLACE, "m", None),
    ],
)
def test_defaults(dtype, georeference, unit, invalid):
    file = raster(dtype, georeference=georeference)
    assert default_unit(file).name == unit
    assert default_invalid(file) == pytest.approx(invalid, nan_ok=True)


def test_declared_nodata_comes_first():
    assert default_invalid(raster("int16", nodata=-32768.0, georeference=PLACE)) == -32768
    assert default_invalid(raster("float32", nodata=-9999.0)) == -9999


@pytest.mark.parametrize(
    ("values", "invalid", "valid"),
    [
        (np.array([0, 1, 2], np.uint16), 0.0, [False, True, True]),
        (np.array([0, 1, 2], np.uint16), -9999.0, [True, True, True]),
        (np.array([0, 1, 2], np.uint8), math.nan, [True, True, True]),
        (np.array([0, 1, 2], np.uint8), 0.5, [True, True, True]),
        (np.array([0, np.nan, np.inf], np.float32), None, [True, False, False]),
        (np.array([0, np.nan, 1], np.float32), 0.0, [False, False, True]),
        (np.array([np.finfo(np.float32).min, 1, 2], np.float32), -3.4028234663852886e38, [False, True, True]),
        (np.array([-0.1, 1, 2], np.float32), -0.1, [False, True, True]),
    ],
)
def test_valid_pixels(values, invalid, valid):
    assert valid_pixels(values, invalid).tolist() == valid
