"""Pairs of rasters that cannot be used: each is refused with a message that names the problem and the remedy."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasterio
from rasterio.transform import Affine

from dada.cli import main
from tests.rasters.conftest import FACTOR, PLACE, write

COARSE = PLACE * Affine.scale(FACTOR)


@pytest.fixture
def files(tmp_path, guide, cells) -> dict[str, Any]:
    small, fine = cells[:12, :16], guide[:, :48, :64]
    return {
        "folder": tmp_path,
        "cells": small,
        "fine": fine,
        "source": write(tmp_path / "source.tif", small, COARSE),
        "guide": write(tmp_path / "guide.tif", fine),
    }


def source(files, values=None, place=COARSE, **more):
    return write(files["folder"] / "bad.tif", files["cells"] if values is None else values, place, **more), files[
        "guide"
    ]


def guide(files, values=None, place=PLACE, **more):
    return files["source"], write(
        files["folder"] / "bad.tif", files["fine"] if values is None else values, place, **more
    )


def text(files, content: bytes):
    (files["folder"] / "bad.tif").write_bytes(content)
    return files["folder"] / "bad.tif", files["guide"]


def truncated(files, name):
    whole = files[name].read_bytes()
    (files["folder"] / "bad.tif").write_bytes(whole[: len(whole) // 3])
    bad = files["folder"] / "bad.tif"
    return (bad, files["guide"]) if name == "source" else (files["source"], bad)


def palette(files, role):
    values = np.zeros((12, 16) if role == "source" else (48, 64), np.uint8)
    made = source(files, values) if role == "source" else guide(files, values)
    with rasterio.open(files["folder"] / "bad.tif", "r+") as file:
        file.write_colormap(1, {0: (1, 2, 3, 255), 1: (4, 5, 6, 255)})
    return made


def control_points(files):
    points = [
        rasterio.control.GroundControlPoint(r, c, 100 + c, 200 - r) for r, c in ((0, 0), (0, 16), (12, 0), (12, 16))
    ]
    made = source(files, None, None, crs=None)
    with rasterio.open(files["folder"] / "bad.tif", "r+") as file:
        file.gcps = points, rasterio.CRS.from_epsg(32633)
    return made


LOCAL = 'ENGCRS["here",EDATUM["here"],CS[Cartesian,2],AXIS["x",east],AXIS["y",north],LENGTHUNIT["metre",1]]'
PAIRS: dict[str, tuple[Any, list[str], str]] = {
    # name: (how it is made, more options, what the message says)
    "missing source": (lambda f: (f["folder"] / "no.tif", f["guide"]), [], "there is no such file"),
    "missing guide": (lambda f: (f["source"], f["folder"] / "no.tif"), [], "there is no such file"),
    "a folder": (lambda f: (f["folder"], f["guide"]), [], "this is a folder"),
    "an empty file": (lambda f: text(f, b""), [], "the file is empty"),
    "a text": (lambda f: text(f, b"height,width\n1,2\n"), [], "cannot open it as a raster"),
    "a truncated source": (lambda f: truncated(f, "source"), [], "truncated or damaged|cannot open"),
    "a truncated guide": (lambda f: truncated(f, "guide"), [], "truncated or damaged|cannot open"),
    "source without place": (lambda f: source(f, None, None, crs=None), [], "no georeference.*dada upsample"),
    "guide without place": (lambda f: guide(f, None, None, crs=None), [], "no georeference"),
    "ground control points": (control_points, [], "ground control points.*gdalwarp"),
    "source without projection": (lambda f: source(f, crs=None), [], "names no projection.*-a_srs"),
    "guide without projection": (lambda f: guide(f, crs=None), [], "names no projection.*-a_srs"),
    "a local projection": (lambda f: guide(f, crs=LOCAL), [], "cannot be converted|do not overlap|outside"),
    "no overlap": (lambda f: guide(f, None, PLACE * Affine.translation(5000, 0)), [], "do not overlap.*columns 1250"),
    "another continent": (lambda f: guide(f, crs="EPSG:32755"), [], "do not overlap|outside of the area"),
    "no whole cell": (
        lambda f: guide(f, f["fine"][:, :3, :3], PLACE * Affine.translation(1, 1)), [], "no source cell .* as a whole",
    ),
    "swapped": (lambda f: (f["guide"], f["source"]), ["--band", "1"], "finer than its guide.*Swap"),
    "swapped, three bands": (lambda f: (f["guide"], f["source"]), [], "has 3 bands.*swap"),
    "a source finer than its guide": (lambda f: source(f, None, PLACE * Affine.scale(0.3)), [], "finer than its guide"),
    "as fine as its guide": (lambda f: source(f, f["fine"][0], PLACE), [], "as fine as its guide"),
    "finer in one direction": (
        lambda f: guide(f, None, PLACE * Affine.scale(0.5, 10)), [], "in one direction only",
    ),
    "several bands": (lambda f: source(f, np.stack([f["cells"]] * 2)), [], "has 2 bands.*--band"),
    "no such band": (lambda f: (f["source"], f["guide"]), ["--band", "4"], "no band 4.*1 to 1"),
    "complex values": (lambda f: source(f, f["cells"].astype(np.complex64)), [], "not real numbers"),
    "complex guide": (lambda f: guide(f, f["fine"].astype(np.complex64)), [], "not real numbers"),
    "a palette source": (lambda f: palette(f, "source"), [], "colour-mapped"),
    "a palette guide": (lambda f: palette(f, "guide"), [], "-expand rgb"),
    "a lossy source": (
        lambda f: source(f, np.full((16, 16), 9, np.uint8), compress="jpeg"), [], "compressed with loss",
    ),
    "nothing but nodata": (lambda f: source(f, np.full((12, 16), -1, np.float32), nodata=-1), [], "all are nodata"),
    "nothing but NaN": (lambda f: source(f, np.full((12, 16), np.nan, np.float32)), [], "nodata or not finite"),
    "a guide of nodata": (lambda f: guide(f, 0 * f["fine"], nodata=0), [], "guide has no value"),
    "holes without a marker": (
        lambda f: source(f, np.where(np.eye(12, 16) > 0, np.nan, f["cells"])), ["--dtype", "uint16"],
        "no nodata value is set",
    ),
    "a marker that does not fit": (
        lambda f: source(f), ["--nodata", "-1", "--dtype", "uint8"], "nodata value -1 is no uint8",
    ),
    "values that do not fit": (lambda f: source(f, 1000 * f["cells"]), ["--dtype", "uint8"], "does not fit uint8"),
    "a scale of zero": (lambda f: source(f), ["--scale", "0"], "not 0"),
    "ratio of zeros": (lambda f: source(f, f["cells"] - 4), ["--adjust", "ratio"], "needs positive values"),
    "an unknown model": (lambda f: source(f), ["--model", "best"], "model 'best' is unknown"),
    "a filter": (lambda f: source(f), ["--model", "gf"], "solves for nothing"),
    "no workers": (lambda f: source(f), ["--workers", "0"], "not a number of processes"),
    "no size": (lambda f: source(f), ["--memory", "much"], "no size.*8GB"),
    "little memory": (lambda f: source(f), ["--memory", "500MB"], "Give more with --memory"),
    "no tile": (lambda f: source(f), ["--tile", "0"], "too small"),
    "a negative tolerance": (lambda f: source(f), ["--tolerance", "-1"], "between 0 and 1"),
    "no scheduler": (lambda f: source(f), ["--scheduler", "nowhere"], "does not answer"),
}  # fmt: skip


@pytest.mark.parametrize("name", PAIRS)
def test_a_bad_pair_is_refused_with_its_message(files, name, capfd, monkeypatch):
    make, options, expected = PAIRS[name]
    first, second = make(files)
    output = files["folder"] / "out.tif"
    monkeypatch.setattr("dada.rasters.engine.PATIENCE", "0.2s")
    usual = [] if "--workers" in options else ["--workers", "1"]
    code = main(["raster", str(first), str(second), "-o", str(output), *usual, *options])
    said = " ".join(capfd.readouterr().err.split())
    assert code == 2
    assert re.search(expected, said), said
    assert "Traceback" not in said
    assert not output.exists()
    assert not list(files["folder"].glob("*.tiles"))


def test_there_are_many_kinds_of_bad_pairs():
    assert len(PAIRS) >= 25


def test_a_folder_of_other_things_is_left_alone(files, capfd):
    """The folder for tiles is emptied and removed, so it must be ours."""
    mine = files["folder"] / "mine"
    mine.mkdir()
    (mine / "thesis.txt").write_text("years of work")
    pair, output = (str(files["source"]), str(files["guide"])), str(files["folder"] / "out.tif")
    for work in (mine, mine / "thesis.txt"):
        assert main(["raster", *pair, "-o", output, "--work", str(work), "--workers", "1"]) == 2
        assert "other things than tiles" in " ".join(capfd.readouterr().err.split())
    assert (mine / "thesis.txt").read_text() == "years of work"


@pytest.mark.parametrize(
    ("output", "expected"),
    [("out.png", "ends in .tif"), ("no/out.tif", "Make the folder"), ("source.tif", "overwrite an input")],
)
def test_results_that_cannot_be_written_are_refused_before_the_work(files, output, expected, capfd):
    path = files["folder"] / output
    assert main(["raster", str(files["source"]), str(files["guide"]), "-o", str(path), "--workers", "1"]) == 2
    assert expected in " ".join(capfd.readouterr().err.split())
    assert Path(files["source"]).exists()
