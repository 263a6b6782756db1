"""DataArrays in and out: coordinates, projection, laziness; and Zarr."""

import numpy as np
import pytest

import dada
from dada.rasters import Settings
from tests.rasters.conftest import average

rioxarray = pytest.importorskip("rioxarray")
QUICK = Settings(model="none", tile=96)


def test_a_dataarray_comes_back_finer_with_coordinates_and_projection(pair, cells):
    source, guide = (rioxarray.open_rasterio(path, masked=True) for path in pair)
    fine = dada.upsample_xarray(source[0], guide, settings=QUICK)
    assert fine.dims == ("y", "x")
    assert fine.shape == guide.shape[1:]
    np.testing.assert_allclose(fine.x, guide.x)
    np.testing.assert_allclose(fine.y, guide.y)
    assert fine.rio.crs == guide.rio.crs
    assert fine.rio.transform() == guide.rio.transform()
    np.testing.assert_allclose(average(fine.values), cells, atol=1e-6)


def test_a_slice_of_a_guide_is_enough(pair, cells):
    source, guide = (rioxarray.open_rasterio(path) for path in pair)
    part = guide[:, 8:72, 16:112]
    fine = dada.upsample_xarray(source, part, settings=QUICK)
    np.testing.assert_allclose(fine.x, part.x)
    np.testing.assert_allclose(average(fine.values), cells[2:18, 4:28], atol=1e-6)


def test_what_is_lazy_stays_lazy_and_is_the_same(pair, monkeypatch):
    from dada.rasters import arrays

    source, guide = (rioxarray.open_rasterio(path) for path in pair)
    eager = dada.upsample_xarray(source, guide, settings=QUICK)
    monkeypatch.setattr(arrays, "CHUNK", 100)
    lazy = dada.upsample_xarray(source, rioxarray.open_rasterio(pair[1], chunks={"x": 64, "y": 64}), settings=QUICK)
    assert lazy.chunks == ((100, 92), (100, 100, 56))
    np.testing.assert_array_equal(lazy.compute(scheduler="threads").values, eager.values)


def test_what_is_measured_of_a_zarr_is_the_zarr(tmp_path, pair, monkeypatch):
    """One pixel is damaged after it was written; it shows."""
    import zarr

    from dada.rasters import arrays, run

    def damaged(plan, folder, target):
        arrays.write_zarr(plan, folder, target)
        values = zarr.open_array(target / "values", mode="r+")
        values[40, 50] = values[40, 50] + 160

    monkeypatch.setattr(run, "_write", damaged)
    report = dada.upsample_raster(*pair, tmp_path / "out.zarr", settings=QUICK, workers=1)
    assert report.measured.consistency_max == pytest.approx(10, rel=1e-3)


def test_a_result_may_be_a_zarr(tmp_path, pair, cells):
    import xarray

    dada.upsample_raster(*pair, tmp_path / "out.zarr", settings=QUICK, workers=1)
    with xarray.open_zarr(tmp_path / "out.zarr", consolidated=False, decode_coords="all") as found:
        np.testing.assert_allclose(average(found["values"].values.astype(np.float64)), cells, atol=1e-6)
        assert found.rio.crs.to_epsg() == 32633


@pytest.mark.parametrize(
    ("break_it", "said"),
    [
        (lambda source, guide: (source.values, guide), "no DataArray"),
        (lambda source, guide: (guide, source), "has 3 bands"),
        (lambda source, guide: (source, guide.assign_coords(x=guide.x + 1e6)), "do not overlap"),
    ],
)
def test_dataarrays_that_do_not_fit_are_refused(pair, break_it, said):
    source, guide = (rioxarray.open_rasterio(path) for path in pair)
    with pytest.raises(dada.InputError, match=said):
        dada.upsample_xarray(*break_it(source, guide), settings=QUICK)
