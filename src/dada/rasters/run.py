"""The whole way from two raster files to a third: plan, tiles, seams, output, and what was measured on it."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dada.errors import InputError
from dada.machine import cores
from dada.models.memory import available_memory
from dada.rasters.check import Measured, measure
from dada.rasters.engine import Engine, engine
from dada.rasters.files import read_info
from dada.rasters.output import check_output, write_cog
from dada.rasters.plan import MANIFEST, Plan, Settings, key_of, read_plan
from dada.rasters.planning import make_plan
from dada.rasters.state import SEAMS, STORE, TILES, Task, Tiled, read_stats, seam_places, seam_window
from dada.rasters.tasks import LEAST_ENERGY
from dada.rasters.tile import Window
from dada.sample.sampling import MISFIT

SWEEPS = 30  # over the seams, at most
ENOUGH = 0.25  # of the tolerance: once a sweep changes less, those that follow change little more
FREE = 0.8  # of the free memory that is taken where the user does not say

Progress = Callable[[str, int, int], None]
"""Told of what is done, and how many pixels of it are done, of how many."""


@dataclass(frozen=True)
class RasterReport:
    """How a raster was reached. Sizes are (height, width).

    Attributes:
        target_size: of the result.
        source_size: cells that it covers.
        factors: pixels in a cell, down and across.
        model: that was used.
        adjust: "ratio" or "shift".
        sampling: how the source was made.
        promise: what was measured of the written file.
        tiles: down and across.
        sweeps: over the seams.
        residual: energy norm of what the last sweep still changed, relative to that of the nearest-neighbour image: the
            measure of the tolerance.
        converged: whether every tile and every seam reached the tolerance.
        measured: of the written file.
        invalid_pixels: without a value.
        bounded_pixels: that would have gone far from all measurements, and were kept back.
        moved_pixels: moved by one unit off the nodata value.
        resumed: tasks that were complete from before.
        seconds: in all.
        warnings: what a user should know.
    """

    target_size: tuple[int, int]
    source_size: tuple[int, int]
    factors: tuple[float, float]
    model: str
    adjust: str
    sampling: str
    promise: str
    tiles: tuple[int, int]
    sweeps: int
    residual: float
    converged: bool
    measured: Measured
    invalid_pixels: int
    bounded_pixels: int
    moved_pixels: int
    resumed: int
    seconds: float
    warnings: list[str]


def upsample_raster(
    source: str | os.PathLike[str],
    guide: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    settings: Settings | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
    memory: float | None = None,
    resume: bool = True,
    work: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> RasterReport:
    """Make a raster of any size as fine as its guide; write a cloud-optimised GeoTIFF.

    Args:
        source: a GeoTIFF of measurements, or another raster that GDAL reads.
        guide: a finer raster of the same area; extent, origin, pixel size and projection may differ.
        output: a file that ends in .tif, or in .zarr.
        settings: the model, how the result is stored, and so on.
        workers: processes on this machine; all cores by default. With 1, the work is done in this process.
        scheduler: address of a dask scheduler that the user runs; its workers must see the same files.
        memory: bytes that all processes on this machine may take; by default most of what is free.
        resume: keep the tiles that a run before has finished.
        work: folder for the tiles; beside the output by default. It is removed at the end.
        progress: called with the phase, and the pixels of it that are done and to be done.

    Raises:
        InputError: the rasters cannot be used, or a tile failed twice; the message says why and what to do.
    """
    begin = time.perf_counter()
    target = Path(output)
    check_output(target, (os.fspath(source), os.fspath(guide)))
    settings = settings or Settings()
    count = check_numbers(workers, memory, settings.tile)
    free = memory if memory is not None else FREE * (available_memory() or 4e9)
    folder = Path(work) if work is not None else target.with_name(f"{target.name}.tiles")
    with claimed(folder):
        with engine(count, free, scheduler) as machine:
            each = machine.memory if scheduler is not None else None
            plan = _plan(source, guide, settings, each or free / machine.workers, folder, resume)
            run = Run(plan, folder, machine, progress or _quiet)
            run.tiles()
            run.seams()
            run.store()
        _write(plan, folder, target)
        report = run.report(measure(plan, folder, target), time.perf_counter() - begin)
    shutil.rmtree(folder, ignore_errors=True)
    return report


def check_numbers(workers: int | None, memory: float | None, tile: int | None) -> int:
    """The number of processes; refuse what is no number of processes, bytes or pixels."""
    if tile is not None and tile < 16:
        raise InputError(f"a tile of {tile} pixels a side is too small. Use 16 or more, or leave it to the memory.")
    if workers is not None and workers < 1:
        raise InputError(f"workers {workers} is not a number of processes. Use 1 or more.")
    if memory is not None and not memory > 0:
        raise InputError(f"memory {memory:g} is not a number of bytes. Give something like 8GB.")
    if workers is not None:
        return workers
    try:
        import distributed  # noqa: F401
    except ImportError:
        return 1
    return cores()


def _quiet(phase: str, done: int, total: int) -> None:
    pass


def _plan(
    source: str | os.PathLike[str],
    guide: str | os.PathLike[str],
    settings: Settings,
    memory: float,
    folder: Path,
    resume: bool,
) -> Plan:
    """The plan of a run before, if it is of the same job, or a new one in an empty folder."""
    coarse, fine = read_info(source, "source", settings.band), read_info(guide, "guide")
    before = read_plan(folder) if resume else None
    if before is not None and before.key == key_of(settings, coarse, fine):
        return before
    for old in folder.iterdir():
        if old.name != LOCK:
            old.unlink() if old.is_file() else shutil.rmtree(old)
    plan = make_plan(coarse.path, fine.path, settings, memory, folder)
    down, across = plan.tiles
    plan.write(folder, [f"store-{row}-{col}.tif" for row in range(down) for col in range(across)])
    return plan


class Run:
    """The phases of a run, one after another."""

    def __init__(self, plan: Plan, folder: Path, machine: Engine, progress: Progress) -> None:
        self.plan, self.folder, self.machine, self.progress = plan, folder, machine, progress
        self.layers: tuple[str, ...] = (TILES,)
        self.sweeps, self.left = 0, 0.0
        self.unsolved, self.resumed = 0, 0
        self.fitting = True  # whether all seams reached the tolerance
        self.counts = {"invalid": 0, "bounded": 0, "moved": 0}

    def tiles(self) -> None:
        """Every tile with its halo."""
        down, across = self.plan.tiles
        tasks = [Task(TILES, row, col) for row in range(down) for col in range(across)]
        found = self._run("tiles", tasks)
        self.energy = sum(found[task]["energy"] for task in tasks)
        self.pixels = sum(found[task]["pixels"] for task in tasks)
        self.unsolved = sum(not stats["converged"] for stats in found.values())
        open_ended = np.zeros((down, across), bool)
        for task, stats in found.items():
            open_ended[task.row, task.col] = stats["open_ended"]
        self.tiled = Tiled(self.energy / self.pixels, open_ended)
        self.tiled.write(self.folder)

    def seams(self) -> None:
        """Solve seams again, with all else held fixed, until nothing changes that matters."""
        active: list[Window] | None = None  # None: all of them
        for sweep in range(1, SWEEPS + 1):
            changed: list[Window] = []
            self.left = 0.0
            for kind in SEAMS:
                places = [p for p in seam_places(self.plan, kind) if kind != "again" or self.tiled.open_ended[p]]
                windows = {place: seam_window(self.plan, self.tiled, kind, *place) for place in places}
                chosen = [p for p in places if active is None or any(touch(windows[p], w) for w in active)]
                tasks = [Task(f"{kind}{sweep}", *place, self.layers) for place in chosen]
                for task, stats in self._run("seams", tasks).items():
                    self.left += stats["change"]
                    if stats["change"] > stats["allowed"]:
                        changed.append(windows[task.row, task.col])
                if tasks:
                    self.layers, self.sweeps = (*self.layers, f"{kind}{sweep}"), sweep
            active = changed
            if not changed or self.residual <= ENOUGH * self.plan.settings.tolerance:
                return
        self.fitting = False

    @property
    def residual(self) -> float:
        """Energy norm of what the last sweep changed, relative to that of the nearest-neighbour image."""
        return float((self.left / max(self.energy, LEAST_ENERGY * self.pixels)) ** 0.5)

    def store(self) -> None:
        """Every tile in the type of the result."""
        down, across = self.plan.tiles
        tasks = [Task(STORE, row, col, self.layers) for row in range(down) for col in range(across)]
        for stats in self._run("storing", tasks).values():
            for name in self.counts:
                self.counts[name] += stats[name]

    def _run(self, phase: str, tasks: list[Task]) -> dict[Task, dict[str, Any]]:
        found = {task: stats for task in tasks if (stats := read_stats(self.folder, task)) is not None}
        self.resumed += len(found)
        total, ready = sum(self._size(task) for task in tasks), sum(self._size(task) for task in found)
        self.progress(phase, ready, total)

        def done(task: Task, stats: dict[str, Any]) -> None:
            nonlocal ready
            found[task] = stats
            ready += self._size(task)
            self.progress(phase, ready, total)

        self.machine.run(str(self.folder), [task for task in tasks if task not in found], done)
        return {task: found[task] for task in tasks}

    def _size(self, task: Task) -> int:
        kind = task.kind.rstrip("0123456789")
        place = task.row, task.col
        window = seam_window(self.plan, self.tiled, kind, *place) if kind in SEAMS else self.plan.core(*place)
        return int(np.prod(window.size))

    def report(self, measured: Measured, seconds: float) -> RasterReport:
        """What came of it."""
        plan = self.plan
        notes = list(plan.notes)
        if self.unsolved:
            notes.append(f"equilibrium not reached in {self.unsolved} of {plan.tiles[0] * plan.tiles[1]} tiles")
        if not self.fitting:
            notes.append(
                f"equilibrium not reached at all seams: after {self.sweeps} sweeps over them the last still "
                f"changed {self.residual:.1e}, tolerance {plan.settings.tolerance:g}"
            )
        notes += _about_resizing(plan, measured, self.counts["bounded"])
        return RasterReport(
            target_size=plan.geometry.size, source_size=plan.geometry.cells, factors=plan.whole.factors,
            model=plan.model, adjust=plan.adjust, sampling=str(plan.sampling),
            promise=plan.sampling.promise, tiles=plan.tiles, sweeps=self.sweeps, residual=self.residual,
            converged=self.fitting and not self.unsolved, measured=measured, invalid_pixels=self.counts["invalid"],
            bounded_pixels=self.counts["bounded"], moved_pixels=self.counts["moved"], resumed=self.resumed,
            seconds=seconds, warnings=notes,
        )  # fmt: skip


def _about_resizing(plan: Plan, measured: Measured, bounded: int) -> list[str]:
    """That a resized source is not met to its tolerance, if so."""
    rounding = 0.5 if np.dtype(plan.stored.dtype).kind in "ui" else 0.0
    allowed = MISFIT * (plan.whole.high - plan.whole.low) * abs(plan.stored.gain) + rounding
    if plan.sampling.kind != "bicubic" or measured.consistency_max <= allowed:
        return []
    kept_back = ". With --adjust shift no pixel is kept back, and the promise holds"
    return [
        f"resized back down, the result differs from the source by up to {measured.consistency_max:.2g} stored units, "
        f"more than the {allowed:.2g} that are promised" + (kept_back if bounded else "")
    ]


def touch(a: Window, b: Window) -> bool:
    """Whether two windows overlap, or share a border."""
    return a.rows[0] <= b.rows[1] and b.rows[0] <= a.rows[1] and a.cols[0] <= b.cols[1] and b.cols[0] <= a.cols[1]


def _write(plan: Plan, folder: Path, target: Path) -> None:
    if target.suffix.lower() != ".zarr":
        write_cog(plan, folder, target)
        return
    from dada.rasters.arrays import write_zarr

    write_zarr(plan, folder, target)


LOCK = ".lock"


@contextmanager
def claimed(folder: Path) -> Iterator[None]:
    """Make the folder for tiles, and keep other runs out of it. A folder of anything else is left alone."""
    ours = not folder.exists() or (folder.is_dir() and {MANIFEST, LOCK} & {file.name for file in folder.iterdir()})
    if not ours and not (folder.is_dir() and not any(folder.iterdir())):
        raise InputError(
            f"{folder}: it holds other things than tiles of a run before. Name an empty folder for --work."
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / LOCK).open("w")
    except OSError as error:
        raise InputError(
            f"{folder}: the folder for tiles cannot be made or written to ({error.strerror}). Choose another with "
            "--work."
        ) from None
    with lock:
        with suppress(ImportError):  # not on Windows
            import fcntl

            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise InputError(
                    f"{folder}: another run is at work on this result. Wait for it, or choose another output."
                ) from None
        try:
            yield
        finally:
            if not (folder / MANIFEST).exists():  # there is nothing to go on from
                shutil.rmtree(folder, ignore_errors=True)
