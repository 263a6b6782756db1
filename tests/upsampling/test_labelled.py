"""Facts about xarray's arrays: any order of axes in, the same kind out, laid on each other by their coordinates."""

import numpy as np
import pytest

import dada
from dada.upsampling import UpsampleWarning

from .averaging import averaged

xarray = pytest.importorskip("xarray")
rioxarray = pytest.importorskip("rioxarray")


def raster(values: np.ndarray, cell: float, west: float = 500_000.0, north: float = 5_200_000.0, **options):
    """(band, y, x), as rioxarray reads it."""
    bands = values[None] if values.ndim == 2 else np.moveaxis(values, -1, 0)
    coords = {
        "band": np.arange(1, len(bands) + 1),
        "y": north - cell * (np.arange(bands.shape[1]) + 0.5),
        "x": west + cell * (np.arange(bands.shape[2]) + 0.5),
    }
    array = xarray.DataArray(bands, coords, ("band", "y", "x"), **options)
    return array.rio.write_crs("EPSG:32632")


@pytest.fixture
def guide(scene):
    return raster(scene.guide, 1.0)


def test_band_y_x_in_y_x_out_with_the_place_of_the_guide(scene, source, guide):
    given = raster(source, 8.0, name="height", attrs={"units": "m", "_FillValue": -9999.0})
    result = dada.upsample(given, guide)
    assert isinstance(result.values, xarray.DataArray)
    assert (result.values.dims, result.values.name, result.values.attrs) == (("y", "x"), "height", {"units": "m"})
    assert result.values.rio.crs.to_epsg() == 32632
    assert tuple(result.values.rio.transform())[:6] == (1.0, 0.0, 500_000.0, 0.0, -1.0, 5_200_000.0)
    assert result.valid.dtype == bool
    np.testing.assert_array_equal(result.values.values, dada.upsample(source, scene.guide).values)


def test_they_are_laid_on_each_other_by_their_coordinates(scene, source, guide):
    wide = np.pad(source, ((1, 2), (3, 1)), constant_values=9)
    given = raster(wide, 8.0, 500_000.0 - 24, 5_200_000.0 + 8)
    confidence = xarray.ones_like(given)
    confidence[0, 1, 3] = 0  # the first cell that lies on the guide
    with pytest.warns(UpsampleWarning, match="cut to the area that both cover: 32 x 24 of 36 x 27 source cells"):
        result = dada.upsample(given, guide, confidence=confidence)
    assert result.report.consistency_max < 1e-5
    assert np.isnan(result.values.values).sum() == np.isnan(result.values.values[:8, :8]).sum() == 64
    turned = given.isel(y=slice(None, None, -1))
    with pytest.warns(UpsampleWarning, match="cut"):
        np.testing.assert_array_equal(dada.upsample(turned, guide).values, dada.upsample(given, guide).values)
    with pytest.raises(dada.InputError, match=r"no common area"):
        dada.upsample(raster(source, 8.0, 600_000.0), guide)
    with pytest.raises(dada.InputError, match=r"systems differ.*guide.rio.reproject"):
        dada.upsample(raster(source, 8.0).rio.write_crs("EPSG:3857"), guide)


def test_nodata_is_the_marker_and_zero_on_the_ground_is_a_height(source, guide):
    heights = np.rint(source * 100).astype(np.int16)
    heights[3, 3], heights[5, 5] = 0, -32768
    declared = raster(heights, 8.0, attrs={"_FillValue": -32768})
    assert dada.upsample(declared, guide).report.invalid_cells == 1
    assert dada.upsample(declared, guide, invalid=0).report.invalid_cells == 1
    assert np.isnan(dada.upsample(declared, guide).values.values[40:48, 40:48]).all()


def test_without_coordinates_only_the_names_of_the_axes_count(scene, source):
    plain = dada.upsample(source, scene.guide).values
    given = xarray.DataArray(source.T, dims=("x", "y"))
    colours = xarray.DataArray(np.moveaxis(scene.guide, -1, 1), dims=("y", "channel", "x"))
    numbered = colours.assign_coords(x=np.arange(256), y=np.arange(192))
    for fine in (colours, numbered, scene.guide):
        result = dada.upsample(given, fine).values
        assert result.dims == ("y", "x")
        np.testing.assert_array_equal(result.values, plain)
    assert isinstance(dada.upsample(source, colours).values, np.ndarray)


def test_coordinates_of_the_source_are_refined_for_a_guide_without_any(scene, source):
    result = dada.upsample(raster(source, 8.0), scene.guide).values
    np.testing.assert_allclose(result.x.values[[0, -1]], [500_000.5, 500_255.5])
    np.testing.assert_allclose(result.y.values[[0, -1]], [5_199_999.5, 5_199_808.5])


@pytest.mark.parametrize("dims", [("time", "y", "x"), ("a", "b", "c")])
def test_axes_that_are_not_clear_are_refused(scene, source, dims):
    with pytest.raises(dada.InputError, match=r"expected y and x.*isel"):
        dada.upsample(xarray.DataArray(np.stack([source] * 2), dims=dims), scene.guide)


def test_rasters_that_rioxarray_reads_and_writes(tmp_path, scene, source, guide):
    raster(source.astype(np.float32), 8.0).rio.to_raster(tmp_path / "dsm.tif")
    guide.rio.to_raster(tmp_path / "ortho.tif")
    first, second = (rioxarray.open_rasterio(tmp_path / name) for name in ("dsm.tif", "ortho.tif"))
    result = dada.upsample(first, second).values
    result.rio.to_raster(tmp_path / "fine.tif")
    with rioxarray.open_rasterio(tmp_path / "fine.tif") as back:
        assert back.rio.transform() == second.rio.transform()
        np.testing.assert_array_equal(back.values[0], result.values)
    assert averaged(result.values.astype(np.float64), 24, 32) == pytest.approx(source, abs=1e-5)
