"""What is written comes back exactly: values, dtype, nodata, georeference; equal input, equal bytes."""

import warnings
from pathlib import Path

import numpy as np
import pytest

from dada.errors import InputError
from dada.io import Georeference, ImageWarning, read_image, write_image

SHAPE = (37, 53)  # odd and not square
HOLDS = {
    ".png": ["uint8", "uint16"],
    ".tif": ["uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float32", "float64"],
    ".tiff": ["uint16"],
    ".pfm": ["float32"],
    ".exr": ["float16", "float32"],
    ".npy": ["bool", "uint8", "uint16", "int16", "int64", "float16", "float32", "float64"],
    ".npz": ["bool", "uint8", "uint16", "int16", "int64", "float16", "float32", "float64"],
}


def sample(dtype: str, *channels: int) -> np.ndarray:
    """Values over the whole range of the dtype, with its extremes; floats also with NaN and infinity."""
    random = np.random.default_rng(3)
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return random.random((*SHAPE, *channels)) > 0.5
    if kind.kind == "f":
        values = random.normal(0, 100, (*SHAPE, *channels)).astype(kind)
        values[0, 0], values[1, 1], values[2, 2] = np.nan, np.inf, -np.inf
        return values
    info = np.iinfo(kind)
    values = random.integers(info.min, info.max, (*SHAPE, *channels), dtype=kind, endpoint=True)
    values[0, 0], values[1, 1] = info.min, info.max
    return values


@pytest.mark.parametrize(("suffix", "dtype"), [(s, d) for s, dtypes in HOLDS.items() for d in dtypes])
def test_values_and_dtype_come_back_exactly(tmp_path: Path, suffix: str, dtype: str):
    values = sample(dtype)
    write_image(tmp_path / f"a{suffix}", values)
    read = read_image(tmp_path / f"a{suffix}")
    assert read.values.dtype == values.dtype
    np.testing.assert_array_equal(read.values, values)
    assert read.nodata is None
    assert read.georeference is None
    assert read.path == tmp_path / f"a{suffix}"


@pytest.mark.parametrize(("suffix", "dtype"), [(s, d) for s, dtypes in HOLDS.items() for d in dtypes])
def test_three_channels_come_back_in_order(tmp_path: Path, suffix: str, dtype: str):
    values = sample(dtype, 3)
    write_image(tmp_path / f"a{suffix}", values)
    read = read_image(tmp_path / f"a{suffix}", role="guide")
    assert read.values.dtype == values.dtype
    np.testing.assert_array_equal(read.values, values)


@pytest.mark.parametrize("suffix", [".tif", ".npy", ".npz"])
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32"])
@pytest.mark.parametrize("channels", [2, 4, 5, 12])
def test_many_bands_come_back_without_one_taken_for_alpha(tmp_path: Path, suffix, dtype, channels):
    values = sample(dtype, channels)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        write_image(tmp_path / f"a{suffix}", values)
        read = read_image(tmp_path / f"a{suffix}", role="guide")
    np.testing.assert_array_equal(read.values, values)


@pytest.mark.parametrize("suffix", HOLDS)
def test_one_channel_is_an_image_of_two_axes(tmp_path: Path, suffix: str):
    values = sample(HOLDS[suffix][-1])
    write_image(tmp_path / f"a{suffix}", values[..., None])
    np.testing.assert_array_equal(read_image(tmp_path / f"a{suffix}").values, values)


@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (9, 1)])
@pytest.mark.parametrize("suffix", HOLDS)
def test_single_rows_and_columns_come_back(tmp_path: Path, suffix: str, shape):
    values = np.arange(9)[: max(shape)].reshape(shape).astype(HOLDS[suffix][-1])
    write_image(tmp_path / f"a{suffix}", values)
    np.testing.assert_array_equal(read_image(tmp_path / f"a{suffix}").values, values)


@pytest.mark.parametrize("nodata", [None, 0, -9999, 255, float("nan"), -3.4028234663852886e38])
@pytest.mark.parametrize("epsg", [None, 32632, 4326, 2056])
def test_tiff_keeps_nodata_and_georeference(tmp_path: Path, nodata, epsg):
    rasterio = pytest.importorskip("rasterio")
    wkt = rasterio.CRS.from_epsg(epsg).to_wkt() if epsg else None
    georeference = Georeference(wkt, (0.5, 0.0, 399_960.125, 0.0, -0.5, 5_300_040.25))
    write_image(tmp_path / "a.tif", sample("float32"), nodata=nodata, georeference=georeference)
    read = read_image(tmp_path / "a.tif")
    assert read.georeference == georeference
    assert read.nodata == nodata or (np.isnan(read.nodata) and np.isnan(nodata))
    write_image(tmp_path / "b.tif", read.values, nodata=read.nodata, georeference=read.georeference)
    assert (tmp_path / "a.tif").read_bytes() == (tmp_path / "b.tif").read_bytes()


def test_a_sheared_transform_is_kept(tmp_path: Path):
    georeference = Georeference(None, (0.5, 0.1, 7.0, -0.1, -0.5, 9.0))
    write_image(tmp_path / "a.tif", sample("uint16"), georeference=georeference)
    assert read_image(tmp_path / "a.tif").georeference == georeference


@pytest.mark.parametrize("suffix", [s for s in HOLDS if not s.startswith(".tif")])
def test_a_georeference_that_the_format_cannot_hold_is_dropped_with_a_warning(tmp_path: Path, suffix: str):
    georeference = Georeference(None, (0.5, 0.0, 7.0, 0.0, -0.5, 9.0))
    with pytest.warns(ImageWarning, match="georeference"):
        write_image(tmp_path / f"a{suffix}", sample(HOLDS[suffix][-1]), georeference=georeference)


@pytest.mark.parametrize("suffix", HOLDS)
def test_equal_input_gives_equal_bytes(tmp_path: Path, suffix: str):
    values = sample(HOLDS[suffix][-1])
    write_image(tmp_path / f"a{suffix}", values)
    write_image(tmp_path / f"b{suffix}", np.asfortranarray(values))
    assert (tmp_path / f"a{suffix}").read_bytes() == (tmp_path / f"b{suffix}").read_bytes()


@pytest.mark.parametrize(
    ("name", "dtype", "named"),
    [
        ("a.png", "float32", ".tiff"),
        ("a.png", "int16", ".tiff"),
        ("a.pfm", "uint16", ".tiff"),
        ("a.pfm", "float64", ".npy"),
        ("a.exr", "uint16", ".tiff"),
        ("a.exr", "float64", "float32"),
        ("a.tif", "float16", "float32"),
        ("a.tif", "bool", "uint8"),
        ("a.jpg", "uint8", ".png"),
        ("a.gif", "uint8", ".png"),
        ("a", "uint8", ".png"),
        ("a.npy", "complex64", "real"),
    ],
)
def test_what_a_format_cannot_hold_is_refused_with_one_that_can(tmp_path: Path, name, dtype, named):
    with pytest.raises(InputError) as refused:
        write_image(tmp_path / name, np.ones(SHAPE, dtype))
    assert named in str(refused.value)
    assert str(tmp_path / name) in str(refused.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "shape"), [("a.png", (5, 5, 4)), ("a.pfm", (5, 5, 2)), ("a.exr", (5, 5, 4)), ("a.npy", (5,))]
)
def test_channels_that_a_format_cannot_hold_are_refused(tmp_path: Path, name, shape):
    dtype = "uint8" if name == "a.png" else "float32"
    with pytest.raises(InputError):
        write_image(tmp_path / name, np.ones(shape, dtype))
    assert list(tmp_path.iterdir()) == []


def test_a_nodata_outside_the_dtype_is_refused(tmp_path: Path):
    with pytest.raises(InputError, match="-9999"):
        write_image(tmp_path / "a.tif", np.ones(SHAPE, np.uint16), nodata=-9999)
