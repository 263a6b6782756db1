"""The tasks of a raster, as a worker runs them: solve a tile, make a seam fit. Each writes one file."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dada.diffusion import Solution
from dada.diffusion.blocks import block_mean, spread
from dada.diffusion.measurement import Adjust
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
from dada.sample.sampling import BACK_PROJECTIONS, LEAST, MISFIT
from dada.upsampling.solve import Rounds, solve_rounds
from dada.upsampling.solver import Solver

NEAREST = 48  # pixels around a window within which guide pixels without a value take that of the nearest one
ENOUGH = 0.5  # of the misfit of a resized source that is allowed, at which a seam is done
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
    problem = tile_problem(plan.geometry, window, cells, guide_window(plan, window), plan.whole, plan.sampling)
    rounds = solve_rounds(problem, _model(plan.model), Solver("equilibrium", plan.inner_tolerance), plan.adjust)
    inner = core.within(window)
    edges = _edges_of(rounds)
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
    return Found(np.ascontiguousarray(_parts_of(plan, rounds)[(..., *inner)]), stats, kept)


def _parts_of(plan: Plan, rounds: Rounds) -> np.ndarray:
    """The last solution as [*parts, H, W], in which seams are solved again."""
    values = rounds.values[0, 0]
    if not plan.parts:
        return values.numpy()
    smooth = rounds.solutions[-1].smooth
    assert smooth is not None
    first = smooth[0, 0].to(values.dtype)
    return torch.stack([first, values - first]).numpy()


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
    tiled = read_tiled(folder)
    window = seam_window(plan, tiled, task.kind.rstrip("0123456789"), task.row, task.col)
    wide = _wider(window, 1, plan.geometry.size)
    state, edges = read_values(folder, plan, wide, task.layers), read_edges(folder, plan, wide)
    cells = inner_cells(plan, window, read_cells(plan, folder, window))
    allowed = max(plan.inner_tolerance**2 * tiled.density, LEAST_ENERGY) * float(np.prod(window.size))
    seam = Seam(plan, window, window.within(wide), edges, cells)
    if plan.sampling.kind == "mean":
        solved = [seam.solved(state, seam.source(state.dtype), plan.adjust, MARGIN * allowed)]
    elif plan.sampling.kind == "bicubic":
        around = read_values(folder, plan, plan.geometry.resized(window), task.layers)
        solved = seam.solved_resized(state, around, MARGIN * allowed)
    else:
        solved = seam.solved_points(state, MARGIN * allowed)
    parts = [values for values, _, _ in solved]
    stats = {
        "change": sum(change for _, change, _ in solved),
        "allowed": allowed,
        "pixels": int(np.prod(window.size)),
        "iterations": sum(int(solution.iterations) for _, _, solution in solved),
        "converged": all(bool(solution.converged) for _, _, solution in solved),
    }
    return Found(np.stack(parts) if plan.parts else parts[0], stats)


@dataclass(frozen=True)
class Seam:
    """A window across a seam, and what stays fixed there.

    Attributes:
        plan: of the raster.
        window: its pixels.
        inner: where it lies in arrays that are one pixel wider where the image goes on, as all that follow are.
        edges: coefficients [2, H, W].
        cells: of the window.
    """

    plan: Plan
    window: Window
    inner: tuple[slice, slice]
    edges: np.ndarray
    cells: Cells

    def source(self, kind: np.dtype) -> np.ndarray:
        """[h, w] the measurements in numbers near 1."""
        offset, unit = self.plan.scaling()
        near: np.ndarray = (self.cells.values - kind.type(offset)) / kind.type(unit)
        return np.where(self.cells.valid, near, 0).astype(kind)

    def means(self, state: np.ndarray) -> np.ndarray:
        """[h, w] those of an image as it stands: where points and resized sources lead, its means stay as they are."""
        mean = block_mean(torch.from_numpy(state[self.inner]), self.plan.geometry.blocks(self.window)).numpy()
        return np.where(self.cells.valid, mean, 0)

    def solved(
        self, state: np.ndarray, source: np.ndarray, adjust: Adjust, energy: float, measured: np.ndarray | None = None
    ) -> tuple[np.ndarray, float, Solution]:
        """Solve again with an image as it stands around the window; see `solve_window`."""
        rows, cols = self.inner
        fixed = FixedWindow(
            values=np.ascontiguousarray(state[rows, cols]),
            vertical=self.edges[0][rows, cols][:-1],
            horizontal=self.edges[1][rows, cols][:, :-1],
            source=source,
            valid=self.cells.valid,
            blocks=self.plan.geometry.blocks(self.window),
            sides=_sides(state, self.edges, rows, cols),
            measured=measured,
        )
        return solve_window(fixed, adjust, energy)

    def solved_resized(
        self, state: np.ndarray, around: np.ndarray, energy: float
    ) -> list[tuple[np.ndarray, float, Solution]]:
        """Solve again for the means that bring the cells of the window to the source once they are resized.

        Args:
            state: the image as it stands.
            around: the same, with all that a resize to these cells looks at.
            energy: see `solve_window`.
        """
        plan, geometry, state, around = self.plan, self.plan.geometry, state.copy(), around.copy()
        wide = geometry.resized(self.window)
        sampling, source = geometry.sampled(wide, plan.sampling), self.source(state.dtype)
        inner, first = geometry.cells_of(self.window), geometry.cells_of(wide)
        cut = tuple(slice(a[0] - b[0], a[1] - b[0]) for a, b in zip(inner, first, strict=True))
        limit = ENOUGH * MISFIT * (plan.whole.high - plan.whole.low) / plan.scaling()[1]
        found: list[tuple[np.ndarray, float, Solution]] = []
        for _ in range(BACK_PROJECTIONS):
            resized = sampling.down(torch.from_numpy(around), (0, 0)).numpy()[cut]
            off = np.where(self.cells.valid, source - resized, 0)
            if found and np.abs(off).max() <= limit:
                break
            wanted = self.means(state) + off
            if plan.adjust == "ratio":
                wanted = np.maximum(wanted, LEAST * source)
            found.append(self.solved(state, wanted.astype(state.dtype), plan.adjust, energy))
            state[self.inner] = around[self.window.within(wide)] = found[-1][0]
        values, _, last = found[-1]
        return [(values, sum(change for _, change, _ in found), last)]

    def solved_points(self, state: np.ndarray, energy: float) -> list[tuple[np.ndarray, float, Solution]]:
        """Solve again for the means of the smooth part, and then for what it leaves at the points."""
        sampling = self.plan.geometry.sampled(self.window, self.plan.sampling)
        size = self.cells.values.shape[0], self.cells.values.shape[1]
        measured = sampling.coverage(size, self.window.size)
        assert measured is not None
        smooth = self.solved(state[0], self.means(state[0]), "shift", energy)
        left = self.source(state.dtype) - sampling.down(torch.from_numpy(smooth[0]), size).numpy()
        rest = self.solved(state[1], np.where(self.cells.valid, left, 0), "shift", energy, measured.numpy())
        return [smooth, rest]


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
