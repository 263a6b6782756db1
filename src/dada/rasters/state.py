"""What tiles and seams have found so far: one file for each task, put together where a window is wanted."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from dada.io.atomic import write_bytes_atomically
from dada.rasters.plan import Plan
from dada.rasters.tile import Window

TILES, STORE = "tile", "store"
TILED = "tiled.npz"
SEAMS = ("vertical", "horizontal", "crossing", "again")  # one after the other; each reads what those before it wrote


@dataclass(frozen=True)
class Task:
    """Something to be computed and written to a file of its own.

    Attributes:
        kind: "tile", "store", or one of SEAMS with the number of its sweep, as in "vertical1".
        row, col: of the tile, or of the tile to the lower right of a seam.
        layers: kinds whose results it may read, oldest first.
    """

    kind: str
    row: int
    col: int
    layers: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Of its file, without suffix."""
        return f"{self.kind}-{self.row}-{self.col}"


@dataclass
class Found:
    """What a task found.

    Attributes:
        values: [*parts, H, W] of its window, in numbers near 1; None: nothing changed.
        stats: numbers for the report.
        edges: coefficients [2, H, W] of some windows: of the edges of each pixel down and to the right.
    """

    values: np.ndarray | None
    stats: dict[str, Any]
    edges: list[tuple[Window, np.ndarray]] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Tiled:
    """What is known once all tiles are solved.

    Attributes:
        density: energy of the nearest-neighbour image for each pixel, to which tolerances are relative.
        open_ended: [rows, columns] bool, tiles with a hole that goes on beyond their halo. All their coefficients are
            kept, and windows at their seams reach to their middle: what happens in a hole is noticed far away.
    """

    density: float
    open_ended: np.ndarray

    def write(self, folder: Path) -> None:
        """Write it for workers."""
        content = io.BytesIO()
        np.savez(content, density=self.density, open_ended=self.open_ended)
        write_bytes_atomically(folder / TILED, content.getbuffer())


@lru_cache(maxsize=2)
def _tiled(folder: Path, stamp: int) -> Tiled:
    with np.load(folder / TILED) as content:
        return Tiled(float(content["density"]), content["open_ended"])


def read_tiled(folder: Path) -> Tiled:
    """What was known once all tiles were solved."""
    return _tiled(folder, (folder / TILED).stat().st_mtime_ns)


def seam_window(plan: Plan, tiled: Tiled, kind: str, row: int, col: int) -> Window:
    """The pixels that are solved again at a seam, with all others held fixed.

    "vertical" is between the tiles (row, col - 1) and (row, col), "horizontal" between (row - 1, col) and (row, col),
    "crossing" is where four tiles touch, "again" is a tile as a whole.
    """
    rows, cols, wide_open = plan.row_cuts, plan.col_cuts, tiled.open_ended
    tall, wide = (rows[row], rows[row + 1]), (cols[col], cols[col + 1])
    if kind == "vertical":
        wide = _about(cols, col, plan.halo.seam, wide_open[row, col - 1], wide_open[row, col])
    elif kind == "horizontal":
        tall = _about(rows, row, plan.halo.seam, wide_open[row - 1, col], wide_open[row, col])
    elif kind == "crossing":
        four = bool(wide_open[row - 1 : row + 1, col - 1 : col + 1].all())
        tall = _about(rows, row, 2 * plan.halo.seam, four, four)
        wide = _about(cols, col, 2 * plan.halo.seam, four, four)
    return plan.geometry.pixels_of(tall, wide)


def _about(cuts: tuple[int, ...], at: int, reach: int, far_before: bool, far_after: bool) -> tuple[int, int]:
    """Cells on either side of a seam: some, or half a tile."""
    first = (cuts[at - 1] + cuts[at]) // 2 if far_before else cuts[at] - reach
    last = (cuts[at] + cuts[at + 1]) // 2 if far_after else cuts[at] + reach
    return first, last


def seam_places(plan: Plan, kind: str) -> list[tuple[int, int]]:
    """Rows and columns of all seams of a kind."""
    down, across = plan.tiles
    first_row = 1 if kind in ("horizontal", "crossing") else 0
    first_col = 1 if kind in ("vertical", "crossing") else 0
    return [(row, col) for row in range(first_row, down) for col in range(first_col, across)]


def kept_edges(plan: Plan, row: int, col: int, all_of_it: bool) -> list[Window]:
    """Where the coefficients of a tile are wanted later: near its seams, or everywhere."""
    core = plan.core(row, col)
    if all_of_it:
        return [core]
    geometry, (down, across) = plan.geometry, plan.tiles
    rows, cols = plan.row_cuts[row : row + 2], plan.col_cuts[col : col + 2]
    reach = 2 * plan.halo.seam + 1
    tall, wide = (rows[0], rows[1]), (cols[0], cols[1])
    bands = []
    if row:
        bands.append(geometry.pixels_of((rows[0], min(rows[0] + reach, rows[1])), wide))
    if row + 1 < down:
        bands.append(geometry.pixels_of((max(rows[1] - reach, rows[0]), rows[1]), wide))
    if col:
        bands.append(geometry.pixels_of(tall, (cols[0], min(cols[0] + reach, cols[1]))))
    if col + 1 < across:
        bands.append(geometry.pixels_of(tall, (max(cols[1] - reach, cols[0]), cols[1])))
    return bands


# ---- files


def path_of(folder: Path, name: str) -> Path:
    """The file of a task."""
    return folder / f"{name}.npz"


def write_found(folder: Path, task: Task, found: Found) -> None:
    """Write what a task found, whole or not at all."""
    arrays: dict[str, np.ndarray] = {"stats": np.frombuffer(json.dumps(found.stats).encode(), np.uint8)}
    if found.values is not None:
        arrays["values"] = found.values
    for number, (window, edges) in enumerate(found.edges):
        arrays[f"window{number}"] = np.array([*window.rows, *window.cols])
        arrays[f"edges{number}"] = edges
    content = io.BytesIO()
    np.savez(content, **arrays)  # type: ignore[arg-type]
    write_bytes_atomically(path_of(folder, task.name), content.getbuffer())


def read_stats(folder: Path, task: Task) -> dict[str, Any] | None:
    """The numbers of a finished task; None if it is not finished."""
    try:
        with np.load(path_of(folder, task.name)) as file:
            stats: dict[str, Any] = json.loads(file["stats"].tobytes())
            return stats
    except (OSError, ValueError, KeyError):
        return None


def read_values(folder: Path, plan: Plan, window: Window, layers: tuple[str, ...]) -> np.ndarray:
    """The values [*parts, H, W] of a window, in numbers near 1, as the given kinds of tasks left them."""
    image = np.empty((*plan.parts, *window.size), plan.working)
    for layer in layers:
        for row, col, place in _touching(folder, plan, layer, window):
            file = path_of(folder, f"{layer}-{row}-{col}")
            if layer != TILES and not file.exists():  # this seam was already good
                continue
            with np.load(file) as content:
                if "values" in content:
                    _paste(image, window, content["values"], place)
    return image


def read_edges(folder: Path, plan: Plan, window: Window) -> np.ndarray:
    """The coefficients of a window, [2, H, W]: of the edges of each pixel down and to the right."""
    edges = np.full((2, *window.size), np.nan, plan.working)
    for row, col, _ in _touching(folder, plan, TILES, window):
        with np.load(path_of(folder, f"{TILES}-{row}-{col}")) as content:
            number = 0
            while f"edges{number}" in content:
                a, b, c, d = (int(v) for v in content[f"window{number}"])
                place = Window((a, b), (c, d))
                if _overlap(place, window):
                    _paste(edges, window, content[f"edges{number}"], place)
                number += 1
    return edges


def _touching(folder: Path, plan: Plan, layer: str, window: Window) -> list[tuple[int, int, Window]]:
    """Tasks of a kind whose windows overlap a window."""
    kind = layer.rstrip("0123456789")
    if kind == TILES:
        places, more = None, 0
    else:
        places, more = set(seam_places(plan, kind)), 1
        tiled = read_tiled(folder)
    spans = []
    for cuts, axis, span in (
        (plan.row_cuts, plan.rows, window.rows),
        (plan.col_cuts, plan.cols, window.cols),
    ):
        starts = axis.starts[list(cuts)]
        first = int(np.searchsorted(starts, span[0], side="right")) - 1
        last = int(np.searchsorted(starts, span[1], side="left"))
        spans.append((first, last))
    found = []
    for row in range(spans[0][0] - more, spans[0][1] + more):
        for col in range(spans[1][0] - more, spans[1][1] + more):
            if places is not None and (row, col) not in places:
                continue
            place = plan.core(row, col) if places is None else seam_window(plan, tiled, kind, row, col)
            if _overlap(place, window):
                found.append((row, col, place))
    return found


def _overlap(a: Window, b: Window) -> bool:
    return a.rows[0] < b.rows[1] and b.rows[0] < a.rows[1] and a.cols[0] < b.cols[1] and b.cols[0] < a.cols[1]


def _paste(image: np.ndarray, window: Window, part: np.ndarray, place: Window) -> None:
    """Copy what a part [..., h, w] has of a window."""
    rows = max(window.rows[0], place.rows[0]), min(window.rows[1], place.rows[1])
    cols = max(window.cols[0], place.cols[0]), min(window.cols[1], place.cols[1])
    common = Window(rows, cols)
    image[(..., *common.within(window))] = part[(..., *common.within(place))]
