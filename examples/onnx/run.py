"""Upsample with the graphs of `dada export`: NumPy and ONNX Runtime, without torch and without dada.

    dada export -o graphs
    python run.py graphs source.npy guide.npy result.npy

The source is (h, w) of floats, NaN where there is no measurement; the guide (H, W) or (H, W, bands) of 8 or 16 bits, or
of floats in 0..1. What is written here is what `manifest.json` asks of a caller: a plain solver, to be read. That of
dada is preconditioned by coarser grids too, and needs fewer iterations.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

MOST_ITERATIONS = 20_000
Array = Any
Edges = tuple[Array, Array]  # (H - 1, W) between rows and (H, W - 1) between columns


class Graphs:
    """The graphs of a folder, each run with arrays by their names."""

    def __init__(self, folder: Path, threads: int = 0) -> None:
        self.manifest = json.loads((folder / "manifest.json").read_text())
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        self.sessions = {
            name: onnxruntime.InferenceSession(str(folder / name), options, providers=["CPUExecutionProvider"])
            for name in self.manifest["graphs"]
        }

    def __call__(self, name: str, given: dict[str, Array]) -> dict[str, Array]:
        """Run one with those of the arrays that it takes; return its outputs without "_out"."""
        session, told = self.sessions[name], self.manifest["graphs"][name]
        feed = {key: np.asarray(given[key], tensor["dtype"]) for key, tensor in told["inputs"].items()}
        return dict(zip((key.removesuffix("_out") for key in told["outputs"]), session.run(None, feed), strict=True))


class Cells:
    """Which cell of a source each pixel belongs to."""

    def __init__(self, cells: tuple[int, int], size: tuple[int, int]) -> None:
        rows, columns = ((2 * np.arange(n) + 1) * count // (2 * n) for count, n in zip(cells, size, strict=True))
        self.shape, self.owner = cells, rows[:, None] * cells[1] + columns
        self.area = self.total(np.ones(size))

    def total(self, image: Array) -> Array:
        """Sum over each cell."""
        return np.bincount(self.owner.ravel(), image.ravel(), self.owner.max() + 1).reshape(self.shape)

    def down(self, image: Array) -> Array:
        """Mean over each cell."""
        return self.total(image) / self.area

    def up(self, values: Array) -> Array:
        """A value for each cell to its pixels."""
        return values.ravel()[self.owner]


def laplacian(y: Array, c: Edges) -> Array:
    """(L y)_p = sum over the neighbours of c (y_p - y_n)."""
    found = np.zeros_like(y)
    down, right = c[0] * np.diff(y, axis=0), c[1] * np.diff(y, axis=1)
    found[1:] += down
    found[:-1] -= down
    found[:, 1:] += right
    found[:, :-1] -= right
    return found


def solve_shift(source: Array, c: Edges, start: Array, cells: Cells, tolerance: float) -> Array:
    """Find y with (L y)_p = mu in each measured cell, whose mean it keeps, and 0 in others: conjugate gradients."""
    measured, diagonal = np.isfinite(source), np.zeros_like(start)
    diagonal[1:] += c[0]
    diagonal[:-1] += c[0]
    diagonal[:, 1:] += c[1]
    diagonal[:, :-1] += c[1]
    inverse = 1 / np.maximum(diagonal, 1e-12)  # of that of L
    share = np.where(measured, 1 / cells.total(inverse), 0)

    def precondition(r: Array) -> Array:
        z = inverse * r  # and the means stay as they are
        return z - inverse * cells.up(share * cells.total(z))

    filled = np.where(measured, source, source[measured].mean())
    nearest = cells.up(filled)
    target = tolerance**2 * np.vdot(nearest, laplacian(nearest, c))
    y = start + cells.up(np.where(measured, source - cells.down(start), 0))
    r = -laplacian(y, c)
    z = precondition(r)
    p, rz = z, np.vdot(r, z)
    for _ in range(MOST_ITERATIONS):
        if rz <= target:
            break
        product = laplacian(p, c)
        step = rz / np.vdot(p, product)
        y, r = y + step * p, r - step * product
        z = precondition(r)
        rz, before = np.vdot(r, z), rz
        p = z + rz / before * p
    return y


def loop_ratio(source: Array, c: Edges, start: Array, cells: Cells, loop: dict[str, Any]) -> Array:
    """The paper's loop: diffuse (Eq. 1), then scale each measured cell to its value (Eq. 3)."""
    measured, y = np.isfinite(source), start
    for _ in range(loop["steps"]):
        y = y - loop["step_size"] * laplacian(y, c)
        y = y * cells.up(np.where(measured, source / cells.down(y), 1))
    return y


def without_holes(source: Array) -> Array:
    """The same with smooth values in cells without a measurement."""
    measured, (h, w) = np.isfinite(source), source.shape
    if measured.all():
        return source
    ones = np.ones((h - 1, w)), np.ones((h, w - 1))
    start = np.where(measured, source, source[measured].mean())
    return solve_shift(source, ones, start, Cells((h, w), (h, w)), 1e-3)


def guide_bands(guide: Array, manifest: dict[str, Any]) -> Array:
    """[1, bands, H, W] in 0..1, with the bands of the network."""
    scale = {"uint8": 255, "uint16": 65535}.get(str(guide.dtype), 1)
    bands = np.atleast_3d(guide).astype(np.float32).transpose(2, 0, 1) / np.float32(scale)
    told = manifest["guide"]
    if len(bands) not in told["takes"]:
        sys.exit(f"the guide has {len(bands)} bands, the network takes {told['takes']}")
    if len(bands) == 1:
        bands = np.repeat(bands, min(told["bands"], 3), axis=0)
    if len(bands) < told["bands"]:
        bands = np.concatenate([bands, np.full_like(bands[:1], told["missing_fourth_band"])])
    return bands[None]


def solver(graphs: Graphs, source: Array, tolerance: float | None) -> tuple[Callable[..., Array], float]:
    """How a round is solved, and what is taken off the values before."""
    low, high, adjust = np.nanmin(source), np.nanmax(source), graphs.manifest["adjust"]
    if adjust == "ratio" or (adjust == "auto" and low > 0 and high <= 100 * low):
        return (lambda *given: loop_ratio(*given, graphs.manifest["loop"])), 0.0
    enough = tolerance or graphs.manifest["tolerance"]
    return (lambda *given: solve_shift(*given, enough)), float(np.nanmean(source))


def upsample(graphs: Graphs, source: Array, guide: Array, tolerance: float | None = None) -> Array:
    """Make a source (h, w), NaN where it is not measured, as fine as a guide."""
    if "start.onnx" not in graphs.sessions:
        sys.exit("these weights need a source in the unit of their training data; see `caller` in manifest.json")
    source = np.asarray(source, np.float64)
    solve, offset = solver(graphs, source, tolerance)
    source = source - offset
    bands, measured = guide_bands(guide, graphs.manifest), np.isfinite(source)
    cells = Cells(source.shape, bands.shape[2:])
    given = {"guide": bands, "mask": measured[None, None], "source": without_holes(source)[None, None]}
    given["initial"] = graphs("start.onnx", given)["initial"]
    given["source"] = np.where(measured, source, 0)[None, None]
    given |= graphs("first.onnx", given)
    y = given["initial"][0, 0].astype(np.float64)
    for number in range(graphs.manifest["rounds"]):
        if number:
            given |= {"round": number - 1, "result": y[None, None]}
            given |= graphs("later.onnx", given)
        c = given["vertical"][0].astype(np.float64), given["horizontal"][0].astype(np.float64)
        y = solve(source, c, y, cells)
    return y + offset


def main() -> None:
    """Read, upsample, write."""
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    folder, source, guide, output = map(Path, sys.argv[1:])
    np.save(output, upsample(Graphs(folder), np.load(source), np.load(guide)))


if __name__ == "__main__":
    main()
