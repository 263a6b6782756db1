"""Rasters whose source is single pixels, or was resized: tiles are the image solved at once, and the file is kept to
what was measured."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import rasterio
import torch
from rasterio.transform import Affine

import dada
from dada.errors import InputError
from dada.rasters import Settings, upsample_raster
from dada.rasters.axis import Axis
from dada.rasters.sampled import in_window
from dada.rasters.tile import Geometry, Window
from dada.sample import Sampling
from tests.rasters.conftest import NODATA, PLACE, read, write

pytestmark = pytest.mark.filterwarnings("ignore::dada.upsampling.UpsampleWarning")
HOLE = np.s_[10:36, 12:50]  # of 48 x 64 cells: larger than a tile of 96 x 96 pixels
RESIZED = 1e-4  # of the range: what is promised of a resized source


@pytest.fixture
def sampled(tmp_path, scene, guide):
    """Write a source of so many cells of the scene, and its guide."""

    def make(kind: str, cells: tuple[int, int], dtype: str = "float64", hole: bool = False, scale: float = 1.0):
        depth = torch.from_numpy(scene.depth.astype(np.float64))
        source = (scale * Sampling.of(kind).down(depth, cells).numpy()).round(0 if scale > 1 else 12).astype(dtype)
        if hole:
            source[HOLE] = NODATA
        high, wide = (n / k for n, k in zip(scene.depth.shape, cells, strict=True))
        coarse = write(tmp_path / "s.tif", source, PLACE * Affine.scale(wide, high), nodata=NODATA if hole else None)
        return source, coarse, write(tmp_path / "g.tif", guide)

    return make


def measured(kind: str, values: np.ndarray, cells: tuple[int, int]) -> np.ndarray:
    return Sampling.of(kind).down(torch.from_numpy(values), cells).numpy()


@pytest.mark.parametrize(
    ("kind", "cells", "adjust"),
    [
        ("point", (48, 64), "ratio"),
        ("point:0.9,0", (41, 53), "shift"),  # cells that are not whole numbers of pixels
        ("point", (24, 32), "shift"),
        ("bicubic", (48, 64), "shift"),
        ("bicubic", (41, 53), "ratio"),
    ],
)
def test_tiles_give_the_image_solved_at_once(tmp_path, scene, sampled, kind, cells, adjust):
    source, coarse, fine = sampled(kind, cells)
    settings = Settings(model="none", adjust=adjust, tolerance=1e-6, tile=96, sampling=kind)
    report = upsample_raster(coarse, fine, tmp_path / "out.tif", settings=settings, workers=1)
    assert report.tiles == (2, 3)
    assert report.converged
    out, span = read(tmp_path / "out.tif"), np.ptp(source)
    memory = dada.upsample(source, scene.guide, model="none", adjust=adjust, tolerance=1e-6, sampling=kind).values
    assert np.abs(out - memory).mean() < 1e-5 * span
    assert np.abs(out - memory).max() < 2e-3 * span
    wrong = np.abs(measured(kind, out, cells) - source).max()
    assert wrong <= (RESIZED * span if kind == "bicubic" else 0)
    assert report.measured.consistency_max == pytest.approx(wrong, rel=1e-6, abs=1e-12 * span)
    assert (report.sampling, report.promise) == (kind, Sampling.of(kind).promise)


@pytest.mark.parametrize("kind", ["point", "bicubic"])
def test_holes_larger_than_a_tile(tmp_path, scene, sampled, kind):
    source, coarse, fine = sampled(kind, (48, 64), hole=True)
    settings = Settings(model="none", adjust="shift", tolerance=1e-6, tile=96, sampling=kind)
    report = upsample_raster(coarse, fine, tmp_path / "out.tif", settings=settings, workers=1)
    out, valid = read(tmp_path / "out.tif"), source != NODATA
    memory = dada.upsample(
        source, scene.guide, model="none", adjust="shift", tolerance=1e-6, sampling=kind, invalid=NODATA
    ).values
    span = np.ptp(source[valid])
    np.testing.assert_array_equal(np.isfinite(out), np.isfinite(memory))
    assert np.nanmean(np.abs(out - memory)) < 2e-5 * span
    assert report.measured.consistency_max <= (RESIZED * span if kind == "bicubic" else 0)
    assert report.measured.cells <= valid.sum()


@pytest.mark.parametrize("kind", ["point", "bicubic"])
def test_what_a_disturbed_seam_returns_to(tmp_path, sampled, monkeypatch, kind):
    """All tiles but one begin a little off at their borders: seams take that back."""
    from dada.rasters import run, tasks

    _, coarse, fine = sampled(kind, (48, 64))
    solve, found = tasks.solve_tile, []

    def disturbed(plan, folder, task):
        tile = solve(plan, folder, task)
        values = tile.values[0] if plan.parts else tile.values
        values[..., 3::4, -1] += 0.01 * (task.col == 0)  # two pixels of one cell: its mean stays
        values[..., 3::4, -2] -= 0.01 * (task.col == 0)
        return tile

    for solver, sweeps in ((solve, 30), (disturbed, 30), (disturbed, 0)):
        monkeypatch.setattr(tasks, "solve_tile", solver)
        monkeypatch.setattr(run, "SWEEPS", sweeps)
        settings = Settings(model="none", adjust="shift", tolerance=1e-5, tile=96, sampling=kind)
        upsample_raster(coarse, fine, tmp_path / "out.tif", settings=settings, workers=1)
        found.append(read(tmp_path / "out.tif"))
    apart = [float(np.abs(image - found[0]).max()) for image in found[1:]]
    assert apart[0] < 0.1 * apart[1]


def test_the_learned_model_takes_points_in_tiles(tmp_path, scene, sampled):
    source, coarse, fine = sampled("point", (48, 64), "float32")
    settings = Settings(model="learned", tile=128, sampling="point")
    upsample_raster(coarse, fine, tmp_path / "out.tif", settings=settings, workers=1)
    memory = dada.upsample(source, scene.guide, model="learned", sampling="point").values
    assert np.abs(read(tmp_path / "out.tif") - memory).mean() < 3 * 2e-4 * np.ptp(source)


@pytest.mark.parametrize("kind", ["point", "bicubic"])
def test_whole_numbers_are_kept_to_what_rounding_allows(tmp_path, sampled, kind):
    """Read by rasterio alone; points are as they were stored."""
    source, coarse, fine = sampled(kind, (48, 64), "int16", scale=1000)
    settings = Settings(model="none", adjust="shift", tile=96, sampling=kind)
    report = upsample_raster(coarse, fine, tmp_path / "out.tif", settings=settings, workers=1)
    with rasterio.open(tmp_path / "out.tif") as file:
        out = file.read(1)
    if kind == "point":
        np.testing.assert_array_equal(out[2::4, 2::4], source)
        assert report.measured.consistency_max == 0
    else:
        assert report.measured.consistency_max <= 0.5 + RESIZED * np.ptp(source)
        assert not any("promised" in text for text in report.warnings)


def test_a_damaged_point_is_seen_in_the_file(tmp_path, sampled, monkeypatch):
    from dada.rasters import run

    def damaged(plan, folder, target):
        run.write_cog(plan, folder, target)
        with rasterio.open(target, "r+", IGNORE_COG_LAYOUT_BREAK="YES") as file:
            values = file.read(1)
            values[2 + 4 * 10, 2 + 4 * 20] += 3
            file.write(values, 1)

    monkeypatch.setattr(run, "_write", damaged)
    _, coarse, fine = sampled("point", (48, 64))
    settings = Settings(model="none", tile=96, sampling="point")
    report = upsample_raster(coarse, fine, tmp_path / "out.tif", settings=settings, workers=1)
    assert report.measured.consistency_max == pytest.approx(3)


def test_what_is_measured_of_a_resized_source_is_warned_of_where_it_is_too_much(tmp_path, sampled, monkeypatch):
    from dada.rasters import run

    monkeypatch.setattr(run, "MISFIT", 1e-9)
    _, coarse, fine = sampled("bicubic", (48, 64))
    settings = Settings(model="none", tile=96, sampling="bicubic")
    report = upsample_raster(coarse, fine, tmp_path / "out.tif", settings=settings, workers=1)
    assert any("more than" in text and "promised" in text for text in report.warnings)


def test_tiles_of_another_sampling_are_not_used(tmp_path, sampled, monkeypatch):
    from dada.rasters import run

    _, coarse, fine = sampled("point", (48, 64))
    monkeypatch.setattr(run.Run, "store", lambda self: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        upsample_raster(coarse, fine, tmp_path / "out.tif", settings=Settings(model="none", tile=96), workers=1)
    monkeypatch.undo()
    settings = Settings(model="none", tile=96, sampling="point")
    assert upsample_raster(coarse, fine, tmp_path / "out.tif", settings=settings, workers=1).resumed == 0


def test_a_cut_guide_keeps_points_in_their_places(tmp_path, scene, guide, sampled):
    """The guide begins inside a cell; a point is the pixel that contains it."""
    source, coarse, _ = sampled("point:0.3,0.8", (41, 53))
    part = write(tmp_path / "p.tif", guide[:, 9:150, 14:203], PLACE * Affine.translation(14, 9))
    settings = Settings(model="none", tile=80, sampling="point:0.3,0.8")
    upsample_raster(coarse, part, tmp_path / "out.tif", settings=settings, workers=1)
    with rasterio.open(coarse) as file, rasterio.open(tmp_path / "out.tif") as made:
        out, where = made.read(1), ~made.transform
        for row, col in ((10, 12), (20, 33), (25, 7)):
            x, y = where * (file.transform * (col + 0.8, row + 0.3))
            assert out[int(y), int(x)] == source[row, col]


@pytest.mark.parametrize(("cells", "size"), [((12, 15), (96, 120)), ((17, 23), (96, 120))])
@pytest.mark.parametrize("kind", ["point", "point:0.9,0.25", "bicubic"])
def test_a_window_of_a_whole_image_is_sampled_as_the_image_is(cells, size, kind):
    rows, cols = (Axis(k, n, k / n, 0.0) for k, n in zip(cells, size, strict=True))
    geometry, sampling = Geometry(rows, cols), Sampling.of(kind)
    image = torch.rand(size, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    whole = geometry.sampled(Window((0, size[0]), (0, size[1])), sampling)
    assert torch.allclose(whole.down(image, cells), sampling.down(image, cells), atol=1e-6)
    window = geometry.pixels_of((2, 11), (3, 14))
    inner = np.s_[2:-2, 2:-2]  # a resize looks at two cells more
    part = in_window(sampling, (rows, cols), (window.rows, window.cols), geometry.blocks(window))
    found = part.down(image[slice(*window.rows), slice(*window.cols)], (9, 11))
    assert torch.allclose(found[inner], sampling.down(image, cells)[2:11, 3:14][inner], atol=1e-6)


def test_pixels_without_a_value_leave_out_only_the_cells_that_look_at_them():
    axis = Axis(12, 48, 0.25, 0.0)
    image = torch.rand(48, 48, dtype=torch.float64)
    image[20, 20] = torch.nan
    found = Geometry(axis, axis).sampled(Window((0, 48), (0, 48)), Sampling("bicubic")).down(image, (12, 12))
    assert set(torch.isnan(found).nonzero().flatten().tolist()) == {3, 4, 5, 6}


@pytest.mark.parametrize(("text", "said"), [("auto", "not guessed"), ("nearest", "unknown"), ("point:2,0", "unknown")])
def test_samplings_that_cannot_be(text, said):
    with pytest.raises(InputError, match=said):
        Settings(sampling=text)


def test_a_source_that_looks_sampled_and_is_taken_for_means_is_warned_of(tmp_path, sampled):
    _, coarse, fine = sampled("point", (48, 64))
    report = upsample_raster(coarse, fine, tmp_path / "out.tif", settings=Settings(model="none"), workers=1)
    assert any("looks sampled" in text for text in report.warnings)


def test_dataarrays_and_the_command_take_a_sampling(tmp_path, sampled, capsys):
    rioxarray = pytest.importorskip("rioxarray")
    from dada.cli import main

    source, coarse, fine = sampled("point", (48, 64))
    result = dada.upsample_xarray(
        rioxarray.open_rasterio(coarse),
        rioxarray.open_rasterio(fine),
        settings=Settings(model="none"),
        sampling="point",
    )
    np.testing.assert_array_equal(result.values[2::4, 2::4], source)
    out = Path(tmp_path / "out.tif")
    words = ["raster", str(coarse), str(fine), "-o", str(out), "--sampling", "point", "--model", "none", "-j", "1"]
    assert main(words) == 0
    assert (
        "at the pixels that were sampled, it differs from the source by at most 0 stored units"
        in capsys.readouterr().out
    )
    np.testing.assert_array_equal(read(out)[2::4, 2::4], source)
