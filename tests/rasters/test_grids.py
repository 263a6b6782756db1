"""The target grid: the guide's, cut to the cells it covers; nothing is resampled but a guide that does not fit."""

import numpy as np
import pytest
import rasterio
import rasterio.shutil
from rasterio.transform import Affine
from rasterio.vrt import WarpedVRT

from dada.rasters import Settings, upsample_raster
from dada.rasters.axis import common
from dada.rasters.files import read_info
from dada.rasters.grids import match
from tests.rasters.conftest import FACTOR, NODATA, PLACE, average, read, write

QUICK = Settings(model="none", tile=80)


def test_an_axis_has_the_blocks_of_the_partition_by_pixel_centres():
    from dada.diffusion import partition

    for cells, pixels in ((48, 192), (7, 30), (137, 1097), (5, 5)):
        axis, first_cell, first_pixel = common(cells, pixels, cells / pixels, 0.0)
        assert (first_cell, first_pixel) == (0, 0)
        np.testing.assert_array_equal(axis.starts, partition((cells, 1), (pixels, 1)).rows)


def test_a_guide_of_another_extent_is_cut_to_whole_cells(tmp_path, guide, cells):
    """The guide begins inside cell (2, 3) and ends inside another: these are left out, and the rest is exact."""
    source = write(tmp_path / "s.tif", cells, PLACE * Affine.scale(FACTOR))
    part = write(tmp_path / "g.tif", guide[:, 9:150, 14:203], PLACE * Affine.translation(14, 9))
    found = match(read_info(source, "source"), read_info(part, "guide"))
    assert found.first_cell == (3, 4)
    assert found.first_pixel == (3, 2)
    assert found.geometry.cells == (34, 46)
    assert found.warp is None
    report = upsample_raster(source, part, tmp_path / "out.tif", settings=QUICK, workers=1)
    out = read(tmp_path / "out.tif")
    np.testing.assert_allclose(average(out), cells[3:37, 4:50], atol=1e-6)
    with rasterio.open(tmp_path / "out.tif") as file:
        assert file.transform == PLACE * Affine.translation(16, 12)
    assert any("cut to these" in text for text in report.warnings)


def test_a_shifted_origin_and_an_odd_ratio_use_the_partition_by_pixel_centres(tmp_path, guide, cells):
    place = PLACE * Affine.translation(3.37, -1.71) * Affine.scale(4.6)  # a cell is 4.6 pixels
    source = write(tmp_path / "s.tif", cells[:30, :40], place)
    fine = write(tmp_path / "g.tif", guide)
    report = upsample_raster(source, fine, tmp_path / "out.tif", settings=QUICK, workers=1)
    assert report.measured.consistency_max < 1e-6
    with rasterio.open(tmp_path / "out.tif") as file:
        out, where = file.read(1).astype(np.float64), ~place * file.transform
    rows, cols = np.indices(out.shape)
    x, y = where * (cols + 0.5, rows + 0.5)  # by hand: each pixel belongs to the cell that holds its centre
    for row, col in ((5, 7), (29, 39), (12, 0)):
        inside = (np.floor(x) == col) & (np.floor(y) == row)
        if inside.any():
            assert out[inside].mean() == pytest.approx(cells[row, col], abs=1e-6)


@pytest.mark.parametrize("how", ["rotated", "projected"])
def test_a_guide_that_does_not_fit_is_warped_and_the_source_is_not(tmp_path, guide, cells, how):
    source = write(tmp_path / "s.tif", cells, PLACE * Affine.scale(FACTOR))
    if how == "rotated":
        fine = write(tmp_path / "g.tif", guide, PLACE * Affine.translation(20, -15) * Affine.rotation(5))
    else:
        upright = write(tmp_path / "u.tif", guide)
        fine = tmp_path / "g.tif"
        with rasterio.open(upright) as file, WarpedVRT(file, crs="EPSG:3857") as warped:
            rasterio.shutil.copy(warped, fine, driver="GTiff")
    report = upsample_raster(source, fine, tmp_path / "out.tif", settings=QUICK, workers=1)
    assert any("warped" in text and "not resampled" in text for text in report.warnings)
    with rasterio.open(tmp_path / "out.tif") as file:
        out, where = file.read(1).astype(np.float64), ~(PLACE * Affine.scale(FACTOR)) * file.transform
    factor = round(1 / where.a)
    row, col = round(where.f), round(where.c)
    h, w = (n // factor for n in out.shape)
    np.testing.assert_allclose(average(out, factor), cells[row : row + h, col : col + w], atol=1e-6)


def test_a_warped_guide_still_leads_edges_to_their_places(tmp_path, guide, cells, scene):
    """A guide turned by half a circle is the same picture: warped back, it serves as well."""
    source = write(tmp_path / "s.tif", cells, PLACE * Affine.scale(FACTOR), nodata=NODATA)
    turned = PLACE * Affine.translation(256, 192) * Affine.scale(-1, -1)
    fine = write(tmp_path / "g.tif", np.ascontiguousarray(guide[:, ::-1, ::-1]), turned)
    upright = write(tmp_path / "u.tif", guide)
    errors = []
    for name in (fine, upright):
        upsample_raster(source, name, tmp_path / "out.tif", settings=QUICK, workers=1)
        errors.append(np.abs(read(tmp_path / "out.tif") - scene.depth).mean())
    assert errors[0] == pytest.approx(errors[1], rel=0.02)
