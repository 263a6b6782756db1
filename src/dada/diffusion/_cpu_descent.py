"""Conjugate gradients for one image on the CPU: memory, threads, and calls to the compiled passes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from operator import is_not
from typing import Any, Self

import numpy as np

from . import _numba_joined, _numba_values, engine
from ._cpu_team import Team
from ._levels import OMEGA, Hierarchy, aligned, enlargement, worth_it
from ._numba_joined import PAUSED, SURE, Levels, State
from ._numba_rows import BORDER
from .blocks import Blocks

ALL_MEASURED = np.zeros((1, 1), np.float32)  # in place of an image


@dataclass
class Measurement:
    """What one image must agree with, as arrays."""

    blocks: Blocks
    source: np.ndarray  # [h, w] float64; anything finite where not measured
    slack: np.ndarray  # [h, w] 1 / weight: 0 hard, inf not measured
    count: np.ndarray  # [h, w] measured pixels, 0 where not measured
    measured: np.ndarray | None  # [H, W] of 0 and 1 in the image's dtype; None: every pixel

    @property
    def compiled(self) -> tuple[np.ndarray, bool]:
        """The measured pixels as the compiled passes take them."""
        if self.measured is None:
            return ALL_MEASURED, False
        return self.measured, True


_memory = threading.local()  # what the last images used: fresh memory costs as much as five iterations
KEPT_PIXELS = 1 << 18
PATIENCE = 2e-3  # seconds to wait for threads that share a large image: a task takes longer than that
KEPT_HIERARCHIES = 32


def _kept(key: tuple, pixels: int, make: Callable[[], Any]) -> Any:
    """What `make` makes, kept in this thread for the next image of the same kind unless it is large."""
    if pixels > KEPT_PIXELS:
        return make()
    kept = _memory.__dict__.setdefault("kept", {})
    if key not in kept:
        while len(kept) >= KEPT_HIERARCHIES:
            del kept[next(iter(kept))]
        kept[key] = make()
    return kept[key]


def _scratch(H: int, W: int, kind: np.dtype) -> list[np.ndarray]:
    """wv, wh, p with a border of zeros, and six images; in the memory of the last image, if that was large enough."""
    shapes = (H + 1, W), (H, W + 1), (H + 2, W + 2 * BORDER), *((H, W),) * 6
    sizes = [rows * cols for rows, cols in shapes]
    if H * W > KEPT_PIXELS:
        return [aligned(shape, kind) for shape in shapes]
    kept = _memory.__dict__.setdefault("scratch", {})
    flat, last = kept.get(kind, ((), None))
    if not flat or any(len(memory) < size for memory, size in zip(flat, sizes, strict=True)):
        flat, last = [aligned(size, kind) for size in sizes], (H, W)
    kept[kind] = flat, (H, W)
    arrays = [memory[:size].reshape(shape) for memory, size, shape in zip(flat, sizes, shapes, strict=True)]
    if last != (H, W):
        arrays[2][:] = 0
    return arrays


class CpuDescent:
    """The arrays of one image, and what solves the system they hold; `CpuSystem` fills them.

    Its threads stay with it: use it in a `with`, at the end of which they go.
    """

    team: Team | None = None

    def __init__(
        self,
        cv: np.ndarray,  # [H - 1, W]
        ch: np.ndarray,  # [H, W - 1]
        measurement: Measurement,
        adjust: str,
        pool: ThreadPoolExecutor | None = None,
        threads: int = 1,
    ):
        self.cv, self.ch, self.measurement, self.ratio = cv, ch, measurement, adjust == "ratio"
        blocks = measurement.blocks
        H, W = blocks.target_size
        self.cells = blocks.source_size
        self.parts = blocks.rows, blocks.cols
        self.large = H * W >= engine.LARGE
        bands = min(threads, self.cells[0])
        self.edges = self.cells[0] * np.arange(bands + 1) // bands
        self.pool = pool if bands > 1 else None
        kind = cv.dtype
        self.beyond = np.zeros((2, 2, W), kind), np.zeros((2, 2, H), kind)  # `_numba.flow_row`; of a tile: not zero
        self.wv, self.wh, self.p, self.sd, self.g, self.x, self.r, self.q, self.t = _scratch(H, W, kind)
        self.s0, self.s1, self.gq, self.kappa, self.fold, self.multiplier, self.along = (
            np.empty(self.cells) for _ in range(7)
        )
        self.alpha, self.owed, self.eps, self.sure = 0.0, 0.0, float(np.finfo(kind).eps), SURE
        self.saved = np.zeros(8)
        self.mu, self.inverse, self.slack_now = (np.empty(self.cells) for _ in range(3))
        self.y = self.sd  # the present state of `ratio`; anything as long as there is none
        self.team_given: tuple = ()
        self.hard = hard = (measurement.slack == 0) & (measurement.count > 0)
        self.loose = not bool(hard.all())
        used, count = measurement.count > 0, measurement.count
        self.soft = (measurement.slack > 0) & used
        self.slack = np.where(used, np.where(used, measurement.slack, 1) * count**2, np.inf)  # of sums, not of means
        self.hierarchy: Hierarchy | None = None
        if worth_it(blocks, hard):
            key = ("levels", blocks, self.loose, kind)
            self.hierarchy = _kept(key, H * W, lambda: Hierarchy(blocks, self.loose, kind))
            self.hierarchy.over = enlargement(self.loose, bool(self.soft.any()))
            self.kappa3, self.s3, self.extra = (np.empty(self.cells) for _ in range(3))

    # ---- threads

    def _bands(self, run: Callable[[int, int], Any]) -> list:
        """Run on each band of block rows, in threads where the image is large."""
        if self.pool is None or not self.large:
            return [run(0, self.cells[0])]
        self.disband()
        return list(self.pool.map(run, self.edges[:-1], self.edges[1:]))

    def _rows(self, run: Callable[[int, int], Any]) -> list:
        """Run on each band of pixel rows."""
        rows = self.parts[0]
        return self._bands(lambda lo, hi: run(rows[lo], rows[hi]))

    def call(self) -> Team:
        """Call the threads of the team, if it has not been: they come while other things are done, and stay."""
        given = self.measurement, self.hierarchy, self.beyond, self.y  # all other arrays stay the same
        if self.team is None or any(map(is_not, given, self.team_given)):
            self.disband()
            patience = PATIENCE if self.large else 0.0
            self.team, self.team_given = Team(self.pool, self.edges, self._state(), self._levels(), patience), given
        return self.team

    def _act(self, task: int, *numbers: float) -> tuple[float, float, float, float]:
        """Do one of the tasks of `_numba_joined`."""
        return self.call().act(task, *numbers)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.disband()

    def __del__(self) -> None:
        self.disband()

    def disband(self) -> None:
        """Let the other threads go."""
        if self.team is not None:
            self.team.disband()
            self.team = None

    # ---- conjugate gradients

    def begin(self) -> float:
        self.alpha, self.owed, self.fresh = 0.0, 0.0, True
        return self._act(_numba_joined.BEGIN)[0]

    @property
    def cycles(self) -> bool:
        return self.hierarchy is not None

    def descend(self, rz: float, target: float, limit: int) -> tuple[float, int]:
        resume, count = False, PAUSED
        while count == PAUSED:  # go on with the threads that have come meanwhile
            rz, count, self.alpha, self.owed = self._act(_numba_joined.DESCEND, rz, float(target), limit, resume)
            resume = True
        self.fresh = count == 0
        return rz, int(count)

    def _state(self) -> State:
        m = self.measurement
        return State(
            self.r, self.g, self.wv, self.wh, self.sd, self.p, self.x, self.q, self.t, self.s0, self.s1, self.gq,
            self.kappa, self.fold, self.multiplier, self.along, self.inverse, self.hard, self.loose, *self.parts,
            self.cv, self.ch, *self.beyond, self.y, m.source, m.slack, self.slack_now,
            m.count, *m.compiled, self.mu, self.ratio, OMEGA, self.saved, self.eps, self.sure,
        )  # fmt: skip

    def _levels(self) -> Levels | None:
        if self.hierarchy is None:
            return None
        first = self.hierarchy.first
        return Levels(
            *self.hierarchy.parents, first.r, first.t, first.isd, self.s3, self.kappa3, self.extra,
            self.hierarchy.over, self.hierarchy.table, self.hierarchy.starts, self.hierarchy.packed,
        )  # fmt: skip

    def _settle(self) -> np.ndarray:
        """Finish x and return it."""
        if self.fresh:  # no iteration was made
            self.x[:] = 0
        else:
            self._catch_up(self.alpha)
        self.alpha, self.fresh = 0.0, False
        return self.x

    def _catch_up(self, alpha: float) -> None:
        """Give x what it is owed, and `alpha` p."""
        owed, self.owed = self.owed, 0.0
        if alpha or owed:
            self._rows(lambda lo, hi: _numba_values.add_scaled(self.x, self.p, self.r, alpha, owed, lo, hi))

    divide = staticmethod(lambda a, b: a / b if b > 0 else 0.0)
    any = staticmethod(bool)
    least = staticmethod(min)
    most = staticmethod(max)
    top = staticmethod(float)
