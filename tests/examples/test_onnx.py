"""The example that runs exported graphs without torch gives what `dada.upsample` gives."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dada
from dada.export import export
from dada.models.dada import DADA
from dada.models.default import learned
from dada.scene import render

from ..export.networks import network

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

EXAMPLE = Path(__file__).parents[2] / "examples" / "onnx" / "run.py"
TOLERANCE = 1e-5  # of both solvers


def load():
    spec = importlib.util.spec_from_file_location("run", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


run = load()


def pair(height: int, width: int, h: int, w: int) -> tuple[np.ndarray, np.ndarray]:
    """Depth with a hole, and guide of the embedded scene."""
    scene = render(height, width)
    source = run.Cells((h, w), (height, width)).down(scene.depth.astype(np.float64))
    source[h // 2, w // 3] = np.nan
    return source, scene.guide


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    place, made = tmp_path_factory.mktemp("graphs"), {}

    def folder(name: str) -> tuple[Path, DADA]:
        chosen = learned() if name == "learned" else network(name)
        if name not in made:
            made[name] = place / name.replace(" ", "-")
            export(chosen, made[name])
        return made[name], chosen

    return folder


@pytest.mark.filterwarnings("ignore::dada.upsampling.result.UpsampleWarning")
@pytest.mark.parametrize(
    ("name", "bands", "size"),
    [
        ("learned", 3, (96, 128, 12, 16)),
        ("learned", 1, (71, 123, 9, 15)),
        ("four bands", 1, (48, 64, 6, 8)),
        ("four bands", 3, (48, 64, 12, 16)),
        ("four bands", 4, (45, 61, 6, 7)),
    ],
)
def test_the_result_is_that_of_the_package(folders, name, bands, size):
    folder, model = folders(name)
    source, guide = pair(*size)
    guide = np.concatenate([guide, guide[:, ::-1, :1]], axis=2)[..., :bands]
    found = run.upsample(run.Graphs(folder, threads=1), source, guide, TOLERANCE)
    how = {"adjust": "shift", "tolerance": TOLERANCE, "fill": True, "precision": "float32"}
    expected = dada.upsample(source, guide, model=model, **how).values
    assert np.abs(found - expected).max() < 1e-4 * np.ptp(expected)
    assert np.nanmax(np.abs(run.Cells(source.shape, found.shape).down(found) - source)) < 1e-12 * np.nanmax(source)


def test_the_papers_loop_is_that_of_the_package(folders):
    folder, model = folders("compared")
    source, guide = pair(24, 32, 3, 4)
    graphs = run.Graphs(folder, threads=1)
    graphs.manifest["loop"]["steps"] = 400
    found = run.upsample(graphs, source, guide)
    given = {"model": model, "adjust": "ratio", "solver": "iterate", "steps": 400, "fill": True}
    assert np.abs(found - dada.upsample(source, guide, **given).values).max() < 1e-4 * np.ptp(found)


def test_it_runs_as_a_program_without_torch(folders, tmp_path):
    folder, _ = folders("learned")
    source, guide = pair(40, 56, 5, 7)
    np.save(tmp_path / "source.npy", source)
    np.save(tmp_path / "guide.npy", guide)
    absent = "import runpy, sys; sys.modules.update(torch=None, dada=None); "
    code = f"{absent}runpy.run_path({str(EXAMPLE)!r}, run_name='__main__')"
    files = [str(tmp_path / f"{name}.npy") for name in ("source", "guide", "result")]
    subprocess.run([sys.executable, "-c", code, str(folder), *files], check=True)
    assert np.load(files[2]).shape == guide.shape[:2]
