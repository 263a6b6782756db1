"""The tasks of a raster, as a worker runs them: solve a tile, make a seam fit. Each writes one file."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dada.diffusion.blocks import spread
from dada.errors import InputError
from dada.models.model import Model
from dada.models.registry import load_model
from dada.rasters.cells import inner_cells, read_cells
from dada.rasters.files import opened_guide, read_guide
from dada.rasters.fixed import FixedWindow, Surroundings, solve_window
from dada.rasters.output import store_tile
from dada.rasters.plan import MANIFEST, Plan, read_plan
from dada.rasters.state import (
    STORE,
    TILES,
    Found,
    Task,
    kept_edges,
    read_edges,
    read_stats,
    read_tiled,
    read_values,
    seam_window,
    write_found,
)
from dada.rasters.tile import Cells, Window, ends_of, tile_problem
from dada.sample.guide import fill_nearest
from dada.upsampling.solve import Rounds, solve_rounds
from dada.upsampling.solver import Solver

NEAREST = 48  # pixels around a window within which guide pixels without a value take that of the nearest one
LEAST_ENERGY = 1e-12  # for each pixel, of numbers near 1: below, a change is rounding
MARGIN = 0.25  # of the energy that a seam may leave, at which its solution stops


def run_task(folder: str, task: Task) -> dict[str, Any]:
    """Run a task unless its file is there; return its numbers."""
    place = Path(folder)
    stats = read_stats(place, task)
    if stats is not None:
        return stats
    plan, threads = load_plan(folder), torch.get_num_threads()
    torch.set_num_threads(1)  # so that every machine gives the same bytes
    try:
        with torch.no_grad():
            solve = {TILES: solve_tile, STORE: store_tile}.get(task.kind, solve_seam)
            found = solve(plan, place, task)
    finally:
        torch.set_num_threads(threads)
    write_found(place, task, found)
    return found.stats


def load_plan(folder: str) -> Plan:
    """The plan of a folder."""
    return _plan(folder, (Path(folder) / MANIFEST).stat().st_mtime_ns)


@lru_cache(maxsize=2)
def _plan(folder: str, stamp: int) -> Plan:
    plan = read_plan(Path(folder))
    if plan is None:
        raise InputError(f"{folder}: its {MANIFEST} cannot be read. Run the command again with --no-resume.")
    return plan


@lru_cache(maxsize=2)
def _model(name: str) -> Model:
    found = load_model(name)
    assert isinstance(found, Model)
    return found


# ---- a tile


def solve_tile(plan: Plan, folder: Path, task: Task) -> Found:
    """Solve a tile with its halo, all rounds of the model; keep its core."""
    window, core = plan.window(task.row, task.col), plan.core(task.row, task.col)
    cells = read_cells(plan, folder, window)
    problem = tile_problem(plan.geometry, window, cells, guide_window(plan, window), plan.whole)
    rounds = solve_rounds(problem, _model(plan.model), Solver("equilibrium", plan.inner_tolerance), plan.adjust)
    inner = core.within(window)
    values, edges = rounds.values[0, 0].numpy(), _edges_of(rounds)
    open_ended = bool((ends_of(plan.geometry, window) & ~inner_cells(plan, window, cells).valid).any())
    kept = [(part, edges[(slice(None), *part.within(window))].copy())
            for part in kept_edges(plan, task.row, task.col, open_ended)]  # fmt: skip
    last = rounds.solutions[-1]
    stats = {
        "energy": _nearest_energy(plan, window, core, cells, edges),
        "pixels": int(np.prod(core.size)),
        "iterations": int(sum(int(one.iterations) for one in rounds.solutions)),
        "residual": float(last.residual),
        "converged": all(one.converged or one.residual <= plan.settings.tolerance for one in rounds.solutions),
        "open_ended": open_ended,
    }
    return Found(np.ascontiguousarray(values[inner]), stats, kept)


def guide_window(plan: Plan, window: Window) -> torch.Tensor:
    """The guide of a window, [C, H, W] float32 in 0..1, without holes."""
    row, col = plan.first_pixel
    with opened_guide(plan.guide, plan.warp) as dataset:
        wide = _wider(window, NEAREST, plan.geometry.size) if plan.guide.masked or plan.warp else window
        rows, cols = ((a + f, b + f) for (a, b), f in ((wide.rows, row), (wide.cols, col)))
        stored, empty = read_guide(dataset, plan.guide.bands, rows, cols, None)
        inner = window.within(wide)
        values = torch.from_numpy(stored.astype(np.float32))
        if empty[inner].any():
            values = _filled_guide(plan, dataset, wide, values, torch.from_numpy(empty))
    values = values[(slice(None), *inner)].contiguous()
    low, high = plan.guide_range
    return values.sub_(low).div_(high - low or 1.0).clamp_(0, 1)


def _filled_guide(plan: Plan, dataset: Any, wide: Window, values: torch.Tensor, empty: torch.Tensor) -> torch.Tensor:
    """Pixels without a value take that of the nearest pixel, or where none is near, of an overview of the guide."""
    import cv2

    far = cv2.distanceTransform(empty.numpy().astype(np.uint8), cv2.DIST_L2, 5) > NEAREST - 1
    if not bool(empty.all()):
        values = fill_nearest(torch.where(empty, 0, values), empty)
    if far.any() or bool(empty.all()):
        overview = _guide_overview(plan, dataset)
        rows, cols = (
            np.minimum(np.arange(*span) * n // size, n - 1)
            for span, n, size in zip((wide.rows, wide.cols), overview.shape[1:], plan.geometry.size, strict=True)
        )
        coarse = overview[:, rows[:, None], cols[None, :]]
        values = torch.where(torch.from_numpy(far) | bool(empty.all()), coarse, values)
    return values


def _guide_overview(plan: Plan, dataset: Any) -> torch.Tensor:
    """The guide with few pixels and without holes, the same for every tile."""
    (row, col), (H, W) = plan.first_pixel, plan.geometry.size
    shape = min(H, 512), min(W, 512)
    stored, empty = read_guide(dataset, plan.guide.bands, (row, row + H), (col, col + W), shape)
    bad = torch.from_numpy(empty)
    values = torch.where(bad, 0, torch.from_numpy(stored.astype(np.float32)))
    return fill_nearest(values, bad) if bool(bad.any()) and not bool(bad.all()) else values


def _wider(window: Window, more: int, size: tuple[int, int]) -> Window:
    (a, b), (c, d) = window.rows, window.cols
    return Window((max(0, a - more), min(size[0], b + more)), (max(0, c - more), min(size[1], d + more)))


def _edges_of(rounds: Rounds) -> np.ndarray:
    """The last coefficients as [2, H, W], of the edges of each pixel down and to the right."""
    vertical, horizontal = (part[0].to(rounds.values.dtype).numpy() for part in rounds.coefficients)
    edges = np.zeros((2, *rounds.values.shape[-2:]), vertical.dtype)
    edges[0, :-1], edges[1, :, :-1] = vertical, horizontal
    return edges


def _nearest_energy(plan: Plan, window: Window, core: Window, cells: Cells, edges: np.ndarray) -> float:
    """y'L y of the nearest-neighbour image over the edges of the core, to which tolerances are relative."""
    offset, unit = plan.scaling()
    coarse = torch.from_numpy((inner_cells(plan, window, cells).filled - offset) / unit)
    image = spread(coarse, plan.geometry.blocks(window)).numpy()
    rows, cols = core.within(window)
    total = 0.0
    for number, axis in ((0, 0), (1, 1)):
        jumps = np.zeros(image.shape)
        jumps[: image.shape[0] - (axis == 0), : image.shape[1] - (axis == 1)] = np.diff(image, axis=axis)
        total += float((edges[number][rows, cols] * jumps[rows, cols] ** 2).sum())
    return total


# ---- a seam


def solve_seam(plan: Plan, folder: Path, task: Task) -> Found:
    """Solve a window across a seam again, with everything around it held fixed as it stands."""
    geometry = plan.geometry
    tiled = read_tiled(folder)
    window = seam_window(plan, tiled, task.kind.rstrip("0123456789"), task.row, task.col)
    wide = _wider(window, 1, geometry.size)
    state, edges = read_values(folder, plan, wide, task.layers), read_edges(folder, plan, wide)
    rows, cols = window.within(wide)
    offset, unit = plan.scaling()
    cells = inner_cells(plan, window, read_cells(plan, folder, window))
    kind = state.dtype
    source = np.where(cells.valid, (cells.values - kind.type(offset)) / kind.type(unit), 0).astype(kind)
    fixed = FixedWindow(
        values=np.ascontiguousarray(state[rows, cols]),
        vertical=edges[0][rows, cols][:-1],
        horizontal=edges[1][rows, cols][:, :-1],
        source=source,
        valid=cells.valid,
        blocks=geometry.blocks(window),
        sides=_sides(state, edges, rows, cols),
    )
    allowed = max(plan.inner_tolerance**2 * tiled.density, LEAST_ENERGY) * float(np.prod(window.size))
    values, change, solution = solve_window(fixed, plan.adjust, MARGIN * allowed)
    stats = {
        "change": change,
        "allowed": allowed,
        "pixels": int(np.prod(window.size)),
        "iterations": int(solution.iterations),
        "converged": bool(solution.converged),
    }
    return Found(values, stats)


def _sides(state: np.ndarray, edges: np.ndarray, rows: slice, cols: slice) -> dict[str, Surroundings]:
    """What lies around a window in a state that is one pixel wider where the image goes on."""
    sides = {}
    if rows.start:
        sides["top"] = Surroundings(state[0, cols], edges[0, 0, cols])
    if rows.stop < state.shape[0]:
        sides["bottom"] = Surroundings(state[-1, cols], edges[0, rows.stop - 1, cols])
    if cols.start:
        sides["left"] = Surroundings(state[rows, 0], edges[1, rows, 0])
    if cols.stop < state.shape[1]:
        sides["right"] = Surroundings(state[rows, -1], edges[1, rows, cols.stop - 1])
    return sides
