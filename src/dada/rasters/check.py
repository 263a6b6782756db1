"""What the written file holds, measured by reading it again: does it average to the source, and do seams show?"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dada.rasters.axis import Axis
from dada.rasters.cells import inner_cells, read_cells
from dada.rasters.files import gdal
from dada.rasters.plan import Plan
from dada.rasters.tile import Window


@dataclass(frozen=True)
class Measured:
    """Of a written result.

    Attributes:
        consistency_max: largest |mean of a cell - source| over all cells with a measurement, in stored units; of points
            |pixel - source|, of a resized source |the result resized - source|.
        consistency_mean: the mean of the same.
        cells: how many there are.
        seam_jump: mean |difference| of pixels on either side of a seam, in stored units; None without seams.
        beside_jump: the same at the borders of cells one cell beside.
    """

    consistency_max: float
    consistency_mean: float
    cells: int
    seam_jump: float | None
    beside_jump: float | None

    @property
    def seam_ratio(self) -> float | None:
        """How much larger jumps are across seams than beside them."""
        if self.seam_jump is None or not self.beside_jump:
            return None
        return self.seam_jump / self.beside_jump


def measure(plan: Plan, folder: Path, output: Path) -> Measured:
    """Read a written result again, tile by tile."""
    largest, total, count = 0.0, 0.0, 0
    with gdal(str(output)), _opened(output, plan) as file:
        down, across = plan.tiles
        for row in range(down):
            for col in range(across):
                core = plan.core(row, col)
                misfit = _misfit(plan, folder, core, file)
                if misfit.size:
                    largest = max(largest, float(misfit.max()))
                    total, count = total + float(misfit.sum()), count + misfit.size
        seam, beside = _jumps(plan, file)
    return Measured(largest, total / max(count, 1), count, seam, beside)


def _opened(output: Path, plan: Plan) -> Any:
    if output.suffix.lower() == ".zarr":
        from dada.rasters.arrays import WrittenZarr

        return nullcontext(WrittenZarr(output, plan.stored.nodata))
    import rasterio

    return rasterio.open(output)


def _read(file: Any, window: Window) -> np.ndarray:
    """A window as float64, NaN where it has no value."""
    from rasterio.windows import Window as FileWindow

    place = FileWindow(window.cols[0], window.rows[0], window.size[1], window.size[0])
    values: np.ndarray = file.read(1, window=place).astype(np.float64)
    if file.nodata is not None and not np.isnan(file.nodata):
        values[values == file.nodata] = np.nan
    return values


def _misfit(plan: Plan, folder: Path, core: Window, file: Any) -> np.ndarray:
    """|what the result makes of a cell - source| of the cells of a tile that have a measurement, in stored units.

    It is infinite where a value lacks. Resized cells that depend on pixels without a value are left out.
    """
    cells, sampling = inner_cells(plan, core, read_cells(plan, folder, core)), plan.sampling
    wide = plan.geometry.resized(core) if sampling.kind == "bicubic" else core
    values, first = _read(file, wide), plan.geometry.cells_of(wide)
    blocks, inner = plan.geometry.blocks(wide), plan.geometry.cells_of(core)
    if sampling.kind == "mean":
        sums = np.add.reduceat(np.add.reduceat(values, blocks.rows[:-1], axis=0), blocks.cols[:-1], axis=1)
        found = sums / blocks.area
    else:
        found = plan.geometry.sampled(wide, sampling).down(torch.from_numpy(values), blocks.source_size).numpy()
    found = found[tuple(slice(a[0] - b[0], a[1] - b[0]) for a, b in zip(inner, first, strict=True))]
    wanted = cells.values.astype(np.float64) * plan.stored.gain + plan.stored.bias
    misfit: np.ndarray = np.abs(found - wanted)[cells.valid]
    if sampling.kind == "bicubic":
        seen: np.ndarray = misfit[np.isfinite(misfit)]
        return seen
    return np.where(np.isnan(misfit), np.inf, misfit)


def _jumps(plan: Plan, file: Any) -> tuple[float | None, float | None]:
    """Mean jump across seams, and across the borders of cells one cell beside them."""
    seam, beside = [0.0, 0], [0.0, 0]
    for cuts, axis, other, flip in (
        (plan.col_cuts, plan.cols, plan.rows, False),
        (plan.row_cuts, plan.rows, plan.cols, True),
    ):
        for cut in cuts[1:-1]:
            for place, to in ((cut - 1, beside), (cut, seam), (cut + 1, beside)):
                for jumps in _across(file, axis, other, place, flip):
                    to[0] += float(jumps.sum())
                    to[1] += len(jumps)
    if not seam[1] or not beside[1]:
        return None, None
    return seam[0] / seam[1], beside[0] / beside[1]


def _across(file: Any, axis: Axis, other: Axis, cell: int, flip: bool, length: int = 4096) -> list[np.ndarray]:
    """|difference| of the pixels on either side of the beginning of a cell, in parts."""
    at = int(axis.starts[cell])
    found = []
    for begin in range(0, other.pixels, length):
        long = begin, min(begin + length, other.pixels)
        pair = _read(file, Window((at - 1, at + 1), long) if flip else Window(long, (at - 1, at + 1)))
        jumps = np.abs(np.diff(pair, axis=0 if flip else 1)).ravel()
        found.append(jumps[np.isfinite(jumps)])
    return found
