"""From two files and a user's settings to a plan: what is checked, read and decided before the first tile."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from dada.errors import InputError
from dada.io.rounding import holds
from dada.io.units import valid_pixels
from dada.models.dada import DADA
from dada.models.default import NETWORK_BYTES
from dada.models.learning_free import Dynamic
from dada.models.model import Model
from dada.rasters.files import Info, read_info, read_source
from dada.rasters.grids import Match, match
from dada.rasters.normalise import (
    chosen_by_overview,
    chosen_model,
    chosen_sampling,
    filled_cells,
    overview_of,
    used_bands,
    whole_of,
)
from dada.rasters.plan import FILLED, VALID, VALUES, Halo, Plan, Settings, Stored, key_of
from dada.rasters.reach import reach_of
from dada.rasters.tile import Geometry
from dada.sample import MEAN, Sampling, Whole
from dada.upsampling.bounds import bounds
from dada.upsampling.memory import needed_memory
from dada.upsampling.source import Cells
from dada.upsampling.source import read_source as read_cells

BASE_MEMORY = 600e6  # bytes of a process before its first tile: Python, torch, compiled code
SHARE = 0.7  # of the rest that a tile may take by our estimate
LARGEST_TILE, LEAST_TILE = 2048, 128  # pixels a side, without halo
QUICK_TILE = 512  # pixels a side of which the arrays stay near the processor
HALOS = 16  # sides of tiles are so many halos at least, where memory allows: the halo is computed again and again
HALO_CELLS, HALO_PIXELS = 4, 24  # at least so many cells, and so many pixels
SAMPLED_CELLS = 8  # of points and of resized sources, for which solutions follow each other
SEAM_PIXELS, SEAM_CELLS = 12, 2  # on either side of a seam, at least
CELL_BYTES = 160  # of memory for each source cell, which are read at once


def make_plan(source: str, guide: str, settings: Settings, memory: float, folder: Path) -> Plan:
    """Decide everything that tiles share; write the source and what fills it to the folder.

    Args:
        source: file.
        guide: file.
        settings: what the user asks for.
        memory: bytes that one process may take.
        folder: for the files that tiles read.

    Raises:
        InputError: the two cannot be used together; the message says why and what to do.
    """
    notes: list[str] = []
    coarse, fine = read_info(source, "source", settings.band), read_info(guide, "guide")
    fine = used_bands(settings, fine, notes.append)
    found = match(coarse, fine)
    notes += found.notes
    cells = _read_cells(coarse, found, settings, memory, notes)
    sampling = chosen_sampling(settings, cells, notes.append)
    problem, guide_range = overview_of(found, fine, cells, sampling, notes.append)
    model, halo, side = _fitted(settings, memory, len(fine.bands), cells, found.geometry, notes.append)
    filled = filled_cells(cells)
    whole = whole_of(cells, filled, found.geometry, sampling)
    row_cuts, col_cuts = (
        _cuts(axis.cells, axis.factor, side, halo) for axis in (found.geometry.rows, found.geometry.cols)
    )
    stored = _stored(coarse, settings, cells, whole, found.geometry)
    adjust = chosen_by_overview(problem, model, settings, whole)
    for name, array in ((VALUES, cells.values), (VALID, cells.valid), (FILLED, filled)):
        np.save(folder / name, array)
    name = settings.model if settings.model != "default" else model.name
    return Plan(
        key=key_of(settings, coarse, fine), settings=settings, source=coarse, guide=fine,
        rows=found.geometry.rows, cols=found.geometry.cols, first_cell=found.first_cell,
        first_pixel=found.first_pixel, transform=found.transform, crs=found.crs, warp=found.warp,
        guide_range=guide_range, whole=whole, model=name, adjust=adjust, halo=halo, stored=stored,
        row_cuts=row_cuts, col_cuts=col_cuts, notes=tuple(notes),
    )  # fmt: skip


def _read_cells(info: Info, found: Match, settings: Settings, memory: float, notes: list[str]) -> Cells:
    """The source within the target, checked."""
    h, w = found.geometry.cells
    if h * w * CELL_BYTES > memory - BASE_MEMORY:
        raise InputError(
            f"{info.path}: its {w} x {h} cells need about {h * w * CELL_BYTES / 1e9:.1f} GB of memory, for they are "
            f"read at once, and {max(0, memory - BASE_MEMORY) / 1e9:.1f} GB are given. Give more with --memory, or cut "
            "the source into parts."
        )
    values, valid = read_source(info, found.first_cell, (h, w))
    try:
        return read_cells(values, settings.invalid, valid, notes.append)
    except InputError as error:
        if not (valid & valid_pixels(values, settings.invalid)).any():
            raise InputError(
                f"{info.path}: no cell within the area of the guide has a value: all are nodata or not finite. Check "
                "the nodata value of the file, and its place."
            ) from None
        raise InputError(f"{info.path}: {error}") from None


# ---- sizes


def _bytes_per_pixel(bands: int, cells: Cells, model: Model | None) -> float:
    network = NETWORK_BYTES if isinstance(model, DADA) else 0
    return needed_memory((1, 1), bands, cells.values.itemsize) + network


def _fitted(
    settings: Settings, memory: float, bands: int, cells: Cells, geometry: Geometry, warn: Callable[[str], None]
) -> tuple[Model, Halo, int]:
    """The model, its halo, and the side of tiles that fit the memory; of the default, what fits."""
    model = chosen_model(settings, bands, warn)
    while True:
        halo = _halo(geometry, *reach_of(model, bands), Sampling.of(settings.sampling))
        try:
            return model, halo, _tile_side(settings, memory, bands, cells, model, halo, geometry)
        except InputError as error:
            if settings.model != "default" or not isinstance(model, DADA):
                raise
            model = Dynamic()
            warn(f"model {model.name} was used, which learned nothing: {error}")


def _tile_side(
    settings: Settings, memory: float, bands: int, cells: Cells, model: Model, halo: Halo, geometry: Geometry
) -> int:
    """Pixels a side of a tile without halo."""
    wide = halo.reach + int(np.ceil(halo.cells * max(geometry.rows.factor, geometry.cols.factor))) + halo.step
    need = _bytes_per_pixel(bands, cells, model)
    fits = int(max(0.0, SHARE * (memory - BASE_MEMORY) / need) ** 0.5) - 2 * wide
    if settings.tile is not None:
        return settings.tile
    least = min(LEAST_TILE, *geometry.size)
    if fits < least:
        wanted = BASE_MEMORY + (least + 2 * wide) ** 2 * need / SHARE
        raise InputError(
            f"{memory / 1e9:.1f} GB of memory for each process are too little for a tile of {least} x {least} pixels "
            f"with its halo of {wide}, which needs {wanted / 1e9:.1f} GB. Give more with --memory, or use fewer "
            "--workers" + (" or --model dynamic." if isinstance(model, DADA) else ".")
        )
    return min(fits, LARGEST_TILE, max(QUICK_TILE, HALOS * wide))


def _halo(geometry: Geometry, reach: int, step: int, sampling: Sampling = MEAN) -> Halo:
    factor = min(geometry.rows.factor, geometry.cols.factor)
    least = HALO_CELLS if sampling.kind == "mean" else SAMPLED_CELLS
    cells = max(least, int(np.ceil(HALO_PIXELS / factor)))
    return Halo(reach, step, cells, max(SEAM_CELLS, int(np.ceil(SEAM_PIXELS / factor))))


def _cuts(cells: int, factor: float, side: int, halo: Halo) -> tuple[int, ...]:
    """Cells at which tiles begin, and the end; no tile is smaller than two crossings of seams."""
    least = 4 * halo.seam + 2
    count = max(1, min(round(cells * factor / side), cells // least))
    return tuple(cells * n // count for n in range(count + 1))


# ---- how the result is stored


def _stored(info: Info, settings: Settings, cells: Cells, whole: Whole, geometry: Geometry) -> Stored:
    """Type, marker and scale of the result: those of the source, unless the user asks for others.

    Raises:
        InputError: the result would not fit.
    """
    dtype = np.dtype(settings.dtype or info.dtype)
    if dtype.kind == "f" and dtype.itemsize < 4:
        dtype = np.dtype(np.float32)
    scale, offset = settings.scale, settings.offset
    scale, offset = info.scale if scale is None else scale, info.offset if offset is None else offset
    if not np.isfinite(scale) or scale == 0 or not np.isfinite(offset):
        raise InputError(f"scale {scale:g} and offset {offset:g} cannot be undone. Give a scale that is not 0.")
    gain, bias = info.scale / scale, (info.offset - offset) / scale
    nodata = settings.nodata if settings.nodata is not None else _usual_nodata(info, settings, dtype)
    holes = not (settings.fill or cells.valid.all())
    if nodata is not None and not holds(dtype, nodata):
        raise InputError(
            f"the nodata value {nodata:g} is no {dtype}. Choose one that {dtype} holds with --nodata, or another "
            "--dtype."
        )
    if nodata is None and holes:
        raise InputError(
            f"{info.path}: some cells have no value, and no nodata value is set for a result of {dtype}. State one "
            "with --nodata, use --fill, or write --dtype float32."
        )
    if dtype.kind in "ui":
        ends = bounds(whole.low, whole.high, geometry.rows.factor * geometry.cols.factor)
        low, high = sorted(gain * end + bias for end in (max(ends[0], whole.low), min(ends[1], whole.high)))
        limits = np.iinfo(dtype)
        if low < limits.min or high > limits.max:
            raise InputError(
                f"the source ranges from {low:g} to {high:g} in the unit of the result, which does not fit {dtype} "
                f"({limits.min} to {limits.max}). Use another --dtype, such as float32, or a --scale."
            )
    return Stored(dtype.name, nodata, float(scale), float(offset), float(gain), float(bias))


def _usual_nodata(info: Info, settings: Settings, dtype: np.dtype) -> float | None:
    """The source's marker where the type can hold it; NaN for floats."""
    marker = info.nodata if info.nodata is not None else settings.invalid
    if marker is not None and holds(dtype, marker):
        return float(marker)
    return float("nan") if dtype.kind == "f" else None
