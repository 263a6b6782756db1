"""Units and invalid markers are what people who hold such files expect."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dada.errors import InputError
from dada.io import (
    Georeference,
    Meaning,
    Raster,
    default_invalid,
    default_unit,
    parse_amount,
    parse_unit,
    valid_pixels,
)
from dada.io.units import declared_unit

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


@pytest.mark.parametrize(
    ("spelled", "name"),
    [
        ("metre", "m"),
        ("Meters", "m"),
        ("mm", "mm"),
        ("K", "K"),
        ("degrees Celsius", "C"),
        ("feet", "ft"),
        ("dBZ", "dBZ"),
    ],
)
def test_units_that_files_declare(spelled, name):
    file = replace(raster("float32"), meaning=Meaning(unit=f" {spelled} "))
    assert declared_unit(file).name == name
    assert declared_unit(raster("float32")) is None


def test_what_is_scaled_has_no_usual_unit():
    assert default_unit(replace(raster("uint16", georeference=PLACE), meaning=Meaning(0.1, -5.0))).name == "raw"


@pytest.mark.parametrize(
    ("text", "unit", "amount"),
    [
        ("20mm", "mm", 20),
        ("20 mm", "m", 0.02),
        ("1.5cm", "tum", 75),
        ("7", "m", 7),
        ("0.5K", "K", 0.5),
        ("1e-2m", "mm", 10),
    ],
)
def test_amounts_are_converted(text, unit, amount):
    assert parse_amount(text, parse_unit(unit)) == pytest.approx(amount)


@pytest.mark.parametrize(("text", "said"), [("-5mm", "no amount"), ("mm", "no amount"), ("5K", "cannot be converted")])
def test_amounts_that_are_none_are_refused(text, said):
    with pytest.raises(InputError, match=said):
        parse_amount(text, parse_unit("mm"))
