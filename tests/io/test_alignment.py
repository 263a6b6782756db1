"""Pairs with georeferences are laid on each other by them, or refused with the cure; never corner on corner."""

import re
import shlex
import shutil
import subprocess

import numpy as np
import pytest

from dada.errors import InputError
from dada.io import Georeference, read_image, write_image
from dada.io.alignment import align, common_area
from dada.io.ground import Placed

rasterio = pytest.importorskip("rasterio")
pytest.importorskip("rasterio.warp")

UTM, MERCATOR = (rasterio.CRS.from_epsg(number).to_wkt() for number in (32632, 3857))
CELL, PIXEL = 80.0, 10.0
WEST, NORTH = 500_000.0, 5_200_000.0


def placed(size, transform, crs=UTM, name="a.tif"):
    return Placed(size, Georeference(crs, transform), name)


def north_up(cell, west=WEST, north=NORTH):
    return (cell, 0.0, west, 0.0, -cell, north)


GUIDE = placed((96, 128), north_up(PIXEL), name="ortho.tif")


def sliced(size, part):
    return np.arange(size[0] * size[1]).reshape(size)[part]


@pytest.mark.parametrize(
    ("size", "transform", "source", "guide"),
    [
        ((12, 16), north_up(CELL), np.s_[0:12, 0:16], np.s_[0:96, 0:128]),
        # larger than the guide on every side
        ((20, 20), north_up(CELL, WEST - 160, NORTH + 240), np.s_[3:15, 2:18], np.s_[0:96, 0:128]),
        # smaller than it, and partly outside
        ((5, 5), north_up(CELL, WEST + 960, NORTH - 80), np.s_[0:5, 0:4], np.s_[8:48, 96:128]),
        # south-up and mirrored
        ((12, 16), (CELL, 0, WEST, 0, CELL, NORTH - 960), np.s_[::-1, :], np.s_[0:96, 0:128]),
        ((12, 16), (-CELL, 0, WEST + 1280, 0, -CELL, NORTH), np.s_[:, ::-1], np.s_[0:96, 0:128]),
        ((20, 16), (CELL, 0, WEST, 0, CELL, NORTH - 1040), np.s_[12:0:-1, :], np.s_[0:96, 0:128]),
        # 7.5 pixels a cell: borders agree at every other cell
        ((12, 16), north_up(75.0), np.s_[0:12, 0:16], np.s_[0:90, 0:120]),
        ((12, 16), north_up(75.0, WEST - 35), np.s_[0:12, 1:15], np.s_[0:90, 4:109]),
        # any ratio where the outlines agree
        ((7, 9), (1280 / 9, 0, WEST, 0, -960 / 7, NORTH), np.s_[0:7, 0:9], np.s_[0:96, 0:128]),
        # coordinates rounded in the file
        ((12, 16), (80.0004, 0, WEST + 0.3, 0, -79.9996, NORTH), np.s_[0:12, 0:16], np.s_[0:96, 0:128]),
    ],
)  # fmt: skip
def test_grids_that_fit_are_cut_to_the_common_area(size, transform, source, guide):
    found = align(placed(size, transform), GUIDE)
    np.testing.assert_array_equal(sliced(size, found.source), sliced(size, source))
    np.testing.assert_array_equal(sliced(GUIDE.size, found.guide), sliced(GUIDE.size, guide))
    row, column = found.guide[0].start, found.guide[1].start
    assert found.georeference == Georeference(UTM, north_up(PIXEL, WEST + 10 * column, NORTH - 10 * row))


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (placed((12, 16), north_up(CELL, WEST + 100_000)), "98720 metres apart"),
        (placed((12, 16), north_up(CELL, north=NORTH + 2000)), "1040 metres apart"),
        (placed((12, 16), north_up(CELL, WEST + 5)), "0.5 guide pixels from those of the guide.*gdalwarp"),
        (placed((40, 40), north_up(20.0, WEST + 3)), "a source cell is 2 guide pixels wide.*dada raster"),
        (placed((12, 16), north_up(CELL), MERCATOR), "EPSG:3857 and EPSG:32632"),
        (placed((12, 16), (80.0, 3.0, WEST, 3.0, -80.0, NORTH)), "rotated or sheared"),
        (placed((12, 16), (0.0, 80.0, WEST, 80.0, 0.0, NORTH)), "rotated or sheared"),
        (placed((12, 16), (0.0, 0.0, WEST, 0.0, 0.0, NORTH)), "no area"),
        (placed((960, 1280), north_up(1.0)), "coarser than the source"),
        (placed((4, 4), north_up(900.0, WEST - 200)), "less than one whole source cell"),
    ],
)  # fmt: skip
def test_grids_that_do_not_fit_are_refused_with_the_cure(source, said):
    with pytest.raises(InputError, match=said):
        align(source, GUIDE)


def test_one_coordinate_system_spelled_in_two_ways_is_one():
    other = rasterio.CRS.from_epsg(32632).to_wkt(version="WKT2_2019")
    assert other != UTM
    assert align(placed((12, 16), north_up(CELL), other), GUIDE).cut == ""
    assert align(placed((12, 16), north_up(CELL), None), GUIDE).georeference.crs == UTM


@pytest.mark.skipif(shutil.which("gdalwarp") is None, reason="gdalwarp is not installed")
@pytest.mark.parametrize("crs", [UTM, MERCATOR])
def test_the_command_that_the_message_names_mends_the_pair(tmp_path, crs):
    scale = 1.0 if crs == UTM else 1.47
    x, y = (WEST, NORTH) if crs == UTM else (1_001_875.4, 5_934_500.0)
    place = Georeference(crs, (PIXEL * scale, 0.0, x - 503.0, 0.0, -PIXEL * scale, y + 404.0))
    write_image(tmp_path / "a guide.tif", np.zeros((400, 400, 3), np.uint8), georeference=place)
    here = rasterio.warp.transform(rasterio.CRS.from_wkt(crs), rasterio.CRS.from_wkt(UTM), [x], [y])
    coarse = Georeference(UTM, north_up(CELL, round(here[0][0]), round(here[1][0])))
    write_image(tmp_path / "dsm.tif", np.ones((12, 16), np.float32), georeference=coarse)
    source = read_image(tmp_path / "dsm.tif")
    with pytest.raises(InputError) as refused:
        common_area(source, read_image(tmp_path / "a guide.tif", role="guide"))
    command = shlex.split(re.search("`(gdalwarp .*)`", str(refused.value))[1])
    subprocess.run(command, check=True, capture_output=True)
    mended = common_area(source, read_image(command[-1], role="guide"))
    assert (mended.source.values.shape, mended.cut) == ((12, 16), "")
    assert mended.guide.values.shape[:2] == (96, 128)


def test_files_far_apart_in_other_systems_are_not_told_to_be_warped():
    """Only a guide of the same area helps there."""
    alps = Georeference(rasterio.crs.CRS.from_epsg(32632).to_wkt(), (10.0, 0.0, 500000.0, 0.0, -10.0, 5200000.0))
    iowa = Georeference(rasterio.crs.CRS.from_epsg(26915).to_wkt(), (3.0, 0.0, 425047.0, 0.0, -3.0, 4615780.0))
    with pytest.raises(InputError, match=r"coordinate systems differ.*do not overlap either: name a guide") as refused:
        align(Placed((8, 8), alps, "alps.tif"), Placed((64, 64), iowa, "iowa.tif"))
    assert "gdalwarp" not in str(refused.value)
