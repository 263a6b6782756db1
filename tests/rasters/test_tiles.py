"""Tiles are the image solved at once, to the tolerance; and the file that is written is what was promised."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
import rasterio
from rasterio.transform import Affine

import dada
from dada.models.registry import load_model
from dada.rasters import Settings, planning, upsample_raster
from dada.rasters.axis import Axis
from dada.rasters.reach import reach_of
from dada.rasters.tile import Geometry
from dada.upsampling.source import Cells
from tests.rasters.conftest import FACTOR, NODATA, PLACE, average, read, write

HOLE = np.s_[10:36, 12:50]  # of 48 x 64 cells: larger than a tile of 96 x 96 pixels


def difference(a: np.ndarray, b: np.ndarray, cells: np.ndarray) -> tuple[float, float]:
    """Mean and largest, over the range of the source."""
    apart = np.abs(a - b)[np.isfinite(b)] / (cells.max() - cells.min())
    return float(apart.mean()), float(apart.max())


@pytest.mark.parametrize(
    ("adjust", "holes"),
    [("shift", False), ("ratio", False), ("ratio", True)],
    ids=["shift", "ratio", "a hole larger than a tile"],
)
def test_tiles_give_the_image_solved_at_once(tmp_path, guide, cells, adjust, holes):
    """At a tolerance at which the solution in memory is exact to 1e-4, so are the tiles."""
    cells = cells.astype(np.float64)
    if holes:
        cells[HOLE] = NODATA
    source = write(tmp_path / "s.tif", cells, PLACE * Affine.scale(FACTOR), nodata=NODATA)
    fine = write(tmp_path / "g.tif", guide)
    settings = Settings(model="none", adjust=adjust, tolerance=1e-6, tile=96)
    report = upsample_raster(source, fine, tmp_path / "out.tif", settings=settings, workers=1)
    assert report.tiles == (2, 3)
    assert report.converged
    out = read(tmp_path / "out.tif")
    valid = cells != NODATA
    kwargs = {"model": "none", "adjust": adjust, "invalid": NODATA}
    memory = dada.upsample(cells, scene_of(guide), tolerance=1e-6, **kwargs).values
    mean, largest = difference(out, memory, cells[valid])
    assert mean < 1e-5
    assert largest < 2e-3
    np.testing.assert_array_equal(np.isfinite(out), np.kron(valid, np.ones((FACTOR, FACTOR), bool)))


def scene_of(guide: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(np.moveaxis(guide, 0, -1))


def test_without_the_seams_solved_again_tiles_would_differ_more(tmp_path, pair, cells, guide, monkeypatch):
    """With the least of halos, so that it shows."""
    from dada.rasters import run

    monkeypatch.setattr(planning, "HALO_CELLS", 0)
    monkeypatch.setattr(planning, "HALO_PIXELS", 0)
    memory = dada.upsample(cells, scene_of(guide), model="none", adjust="shift", tolerance=1e-6).values
    apart = []
    for sweeps in (0, 30):
        monkeypatch.setattr(run, "SWEEPS", sweeps)
        settings = Settings(model="none", adjust="shift", tolerance=1e-5, tile=96, dtype="float64")
        upsample_raster(*pair, tmp_path / "out.tif", settings=settings, workers=1)
        apart.append(difference(read(tmp_path / "out.tif"), memory, cells)[1])
    assert apart[1] < 0.5 * apart[0]


def test_no_pixel_of_tiles_is_farther_than_three_tolerances_from_where_the_loop_ends(tmp_path, pair, cells, guide):
    """What tiles add is less than what the tolerance leaves: the solve in memory is farther off."""
    upsample_raster(*pair, tmp_path / "out.tif", settings=Settings(model="none", tile=96), workers=1)
    exact = dada.upsample(cells.astype(np.float64), scene_of(guide), model="none", tolerance=1e-7).values
    mean, largest = difference(read(tmp_path / "out.tif"), exact, cells)
    assert mean < 1e-5
    assert largest < 3 * 2e-4
    memory = dada.upsample(cells, scene_of(guide), model="none").values
    assert largest < difference(memory, exact, cells)[1]


def test_the_learned_model_gives_the_same_in_tiles(tmp_path, pair, cells, guide):
    settings = Settings(model="learned", tile=128)
    upsample_raster(*pair, tmp_path / "out.tif", settings=settings, workers=1)
    memory = dada.upsample(cells, scene_of(guide), model="learned").values
    mean, _ = difference(read(tmp_path / "out.tif"), memory, cells)
    assert mean < 3 * 2e-4


def test_a_guide_hole_larger_than_a_tile_leaves_no_seam(tmp_path, guide, cells):
    holed = np.concatenate([guide, np.full((1, *guide.shape[1:]), 255, np.uint8)])
    holed[3, 20:170, 30:230] = 0  # alpha
    source = write(tmp_path / "s.tif", cells, PLACE * Affine.scale(FACTOR))
    fine = write(tmp_path / "g.tif", holed, photometric="RGB", alpha="YES")
    report = upsample_raster(source, fine, tmp_path / "out.tif", settings=Settings(model="none", tile=96), workers=1)
    out = read(tmp_path / "out.tif")
    np.testing.assert_allclose(average(out), cells, atol=1e-6)
    assert any("of the guide has no value" in text for text in report.warnings)
    assert report.measured.seam_ratio == pytest.approx(1, abs=0.35)


@pytest.mark.parametrize(("factor", "side"), [(4, 512), (8, 592), (32, 2048)])
def test_tiles_are_small_enough_to_stay_near_the_processor_and_large_beside_their_halo(cells, factor, side):
    axis = Axis(625, 625 * factor, 1 / factor, 0.0)
    geometry = Geometry(axis, axis)
    known = Cells(cells, np.ones(cells.shape, bool), cells.dtype, None)
    model = load_model("none")
    halo = planning._halo(geometry, *reach_of(model, 3))
    assert planning._tile_side(Settings(), 8e9, 3, known, model, halo, geometry) == side
    assert planning._tile_side(Settings(), 0.65e9, 3, known, model, halo, geometry) < side


# ---- the file


@pytest.mark.parametrize(
    ("dtype", "scale", "half"), [("float32", 1, None), ("uint16", 1000, 0.5), ("int16", 100, 0.5)], ids=str
)
def test_the_file_averages_to_the_source_within_half_a_unit(tmp_path, guide, cells, dtype, scale, half):
    """Read by rasterio alone."""
    stored = np.rint(cells * scale).astype(dtype) if half else cells
    source = write(tmp_path / "s.tif", stored, PLACE * Affine.scale(FACTOR))
    fine = write(tmp_path / "g.tif", guide)
    upsample_raster(source, fine, tmp_path / "out.tif", settings=Settings(model="none", tile=96), workers=1)
    with rasterio.open(tmp_path / "out.tif") as file, rasterio.open(fine) as other:
        assert file.dtypes == (dtype,)
        assert file.crs == other.crs
        assert file.transform == other.transform
        assert file.shape == other.shape
        out = file.read(1).astype(np.float64)
    apart = np.abs(average(out) - stored).max()
    assert apart <= (half or np.spacing(np.float32(stored.max())) / 2)


def test_the_file_is_a_valid_cloud_optimised_geotiff(tmp_path, pair):
    from rio_cogeo.cogeo import cog_validate

    upsample_raster(*pair, tmp_path / "out.tif", settings=Settings(model="none"), workers=1)
    valid, errors, warnings = cog_validate(tmp_path / "out.tif", quiet=True)
    assert (valid, errors, warnings) == (True, [], [])
    with rasterio.open(tmp_path / "out.tif") as file:
        assert file.nodata == NODATA
        assert file.compression.name == "deflate"
    assert not list(tmp_path.glob("*.tiles"))


def test_overviews_are_averages(tmp_path, guide, cells):
    big = np.kron(np.pad(guide, ((0, 0), (0, 64), (0, 0)), mode="edge"), np.ones((1, 3, 3), np.uint8))
    tall = np.pad(cells, ((0, 16), (0, 0)), mode="edge")
    source = write(tmp_path / "s.tif", tall, PLACE * Affine.scale(12))
    fine = write(tmp_path / "g.tif", big)
    upsample_raster(source, fine, tmp_path / "out.tif", settings=Settings(model="none"), workers=1)
    with rasterio.open(tmp_path / "out.tif") as file:
        assert file.overviews(1) == [2]
        full = file.read(1).astype(np.float64)
    with rasterio.open(tmp_path / "out.tif", overview_level=0) as file:
        np.testing.assert_allclose(file.read(1), average(full, 2), atol=1e-5)


def test_scale_offset_type_and_nodata_of_the_result(tmp_path, guide, cells):
    """A thermal band: stored = 100 * (kelvin - 200), holes kept, written in kelvin."""
    stored = np.rint(cells * 1000).astype(np.uint16)
    stored[5:9, 6:10] = 0
    source = tmp_path / "s.tif"
    write(source, stored, PLACE * Affine.scale(FACTOR), nodata=0)
    with rasterio.open(source, "r+") as file:
        file.scales, file.offsets = (0.01,), (200.0,)
    fine = write(tmp_path / "g.tif", guide)
    kept = Settings(model="none")
    upsample_raster(source, fine, tmp_path / "kept.tif", settings=kept, workers=1)
    with rasterio.open(tmp_path / "kept.tif") as file:
        assert (file.scales, file.offsets, file.nodata) == ((0.01,), (200.0,), 0.0)
    real = Settings(model="none", dtype="float32", scale=1.0, offset=0.0, nodata=-1.0)
    upsample_raster(source, fine, tmp_path / "real.tif", settings=real, workers=1)
    out = read(tmp_path / "real.tif")
    measured = stored > 0
    np.testing.assert_allclose(average(out)[measured], (stored * 0.01 + 200)[measured], rtol=1e-6)
    assert np.isnan(average(out)[~measured]).all()


def test_holes_are_filled_when_asked(tmp_path, guide, cells):
    cells = cells.copy()
    cells[HOLE] = NODATA
    source = write(tmp_path / "s.tif", cells, PLACE * Affine.scale(FACTOR), nodata=NODATA)
    fine = write(tmp_path / "g.tif", guide)
    settings = Settings(model="none", fill=True, tile=96)
    report = upsample_raster(source, fine, tmp_path / "out.tif", settings=settings, workers=1)
    assert report.invalid_pixels == 0
    assert np.isfinite(read(tmp_path / "out.tif")).all()


def test_of_more_than_three_bands_the_learned_model_uses_three_and_says_so_once(tmp_path, guide, cells):
    source = write(tmp_path / "s.tif", cells, PLACE * Affine.scale(FACTOR))
    fine = write(tmp_path / "g.tif", guide)
    more = write(tmp_path / "m.tif", np.concatenate([guide, guide[:2]]), photometric="minisblack", alpha="unspecified")
    three, five = (
        upsample_raster(source, file, tmp_path / f"{file.stem}.out.tif", settings=Settings(tile=96), workers=1)
        for file in (fine, more)
    )
    assert (three.model, five.model) == ("learned", "learned")
    assert sum("uses the first three" in text for text in five.warnings) == 1
    np.testing.assert_array_equal(read(tmp_path / "g.out.tif"), read(tmp_path / "m.out.tif"))


def test_a_network_that_does_not_take_the_bands_falls_to_dynamic_and_says_so_once(tmp_path, guide, cells):
    source = write(tmp_path / "s.tif", cells, PLACE * Affine.scale(FACTOR))
    fine = write(tmp_path / "g.tif", guide[:2], photometric="minisblack", alpha="unspecified")
    report = upsample_raster(source, fine, tmp_path / "out.tif", settings=Settings(tile=96), workers=1)
    assert report.model == "dynamic"
    assert sum("learned nothing" in text for text in report.warnings) == 1


def test_a_network_for_which_the_memory_is_too_little_falls_to_dynamic(tmp_path, pair):
    report = upsample_raster(*pair, tmp_path / "out.tif", settings=Settings(), workers=1, memory=0.72e9)
    assert report.model == "dynamic"
    assert any("which learned nothing: 0.7 GB" in text for text in report.warnings)


# ---- resuming


def test_a_run_goes_on_where_it_stopped_and_gives_the_same_bytes(tmp_path, pair, monkeypatch):
    from dada.rasters import tasks

    settings = Settings(model="none", tile=64)
    upsample_raster(*pair, tmp_path / "calm.tif", settings=settings, workers=1)
    whole, count = tasks.solve_tile, 0

    def killed(*given):
        nonlocal count
        count += 1
        if count == 5:
            raise KeyboardInterrupt
        return whole(*given)

    monkeypatch.setattr(tasks, "solve_tile", killed)
    with pytest.raises(KeyboardInterrupt):
        upsample_raster(*pair, tmp_path / "out.tif", settings=settings, workers=1)
    assert not (tmp_path / "out.tif").exists()
    manifest = json.loads((tmp_path / "out.tif.tiles" / "manifest.json").read_text())
    assert len(manifest["files"]) == 12
    report = upsample_raster(*pair, tmp_path / "out.tif", settings=settings, workers=1)
    assert report.resumed == 4
    assert count == 5 + 8
    assert (tmp_path / "out.tif").read_bytes() == (tmp_path / "calm.tif").read_bytes()


def test_tiles_of_other_settings_are_not_used(tmp_path, pair, monkeypatch):
    from dada.rasters import run

    monkeypatch.setattr(run.Run, "store", lambda self: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        upsample_raster(*pair, tmp_path / "out.tif", settings=Settings(model="none", tile=96), workers=1)
    monkeypatch.undo()
    report = upsample_raster(*pair, tmp_path / "out.tif", settings=Settings(model="none", tile=64), workers=1)
    assert report.resumed == 0


def test_a_tile_that_fails_is_tried_again_and_then_named(tmp_path, pair, monkeypatch):
    from dada.rasters import tasks

    whole, failures = tasks.solve_tile, {(0, 1): 1, (1, 2): 2}

    def fails(plan, folder, task):
        if failures.get((task.row, task.col), 0):
            failures[task.row, task.col] -= 1
            raise MemoryError("no room")
        return whole(plan, folder, task)

    monkeypatch.setattr(tasks, "solve_tile", fails)
    with pytest.raises(dada.InputError, match=r"tile in row 2, column 3 failed twice: MemoryError: no room"):
        upsample_raster(*pair, tmp_path / "out.tif", settings=Settings(model="none", tile=64), workers=1)
    assert failures == {(0, 1): 0, (1, 2): 0}


# ---- a real scene


def test_nine_tiles_of_a_real_scene(tmp_path):
    folder = Path(os.environ.get("DADA_TEST_DATA", Path(__file__).parents[3] / "shared" / "data"))
    art = folder / "middlebury_2005_full" / "Art"
    if not art.is_dir():
        pytest.skip(f"no scene at {art} (set DADA_TEST_DATA)")
    from dada.io import read_image

    factor = 8
    disparity = read_image(art / "disp1_filled.png").values[:1088, :1376].astype(np.float64)
    colour = read_image(art / "rgb.png", role="guide").values[:1088, :1376]
    depth = average(3740 * 160 / (disparity + 100), factor).astype(np.float32)
    depth[40:60, 30:120] = NODATA  # across seams
    source = write(tmp_path / "s.tif", depth, PLACE * Affine.scale(factor), nodata=NODATA)
    fine = write(tmp_path / "g.tif", np.moveaxis(colour, -1, 0))
    report = upsample_raster(source, fine, tmp_path / "out.tif", settings=Settings(model="none", tile=400), workers=1)
    assert report.tiles == (3, 3)
    out = read(tmp_path / "out.tif")
    valid = depth != NODATA
    memory = dada.upsample(depth, colour, model="none", invalid=NODATA)
    mean, _ = difference(out, memory.values, depth[valid])
    assert mean < 3 * 2e-4
    assert seam_ratio(out, report, factor) == pytest.approx(seam_ratio(memory.values, report, factor), rel=0.05)
    assert report.measured.seam_ratio == pytest.approx(seam_ratio(out, report, factor), rel=1e-6)


def seam_ratio(values: np.ndarray, report, factor: int) -> float:
    """By hand: the mean jump across the seams of tiles over that at the borders of cells beside them."""
    at, beside = [], []
    for image, count, cells in ((values, report.tiles[0], report.source_size[0]),
                                (values.T, report.tiles[1], report.source_size[1])):  # fmt: skip
        for number in range(1, count):
            for off, to in ((-1, beside), (0, at), (1, beside)):
                row = (cells * number // count + off) * factor
                to.append(np.abs(image[row] - image[row - 1]))
    return float(np.nanmean(np.concatenate(at)) / np.nanmean(np.concatenate(beside)))
