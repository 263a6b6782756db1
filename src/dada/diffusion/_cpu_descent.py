"""Conjugate gradients for one image on the CPU: memory, threads, and calls to the compiled passes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from . import _numba_alone, _numba_descent, _numba_levels, _numba_values, solver
from ._levels import OMEGA, Hierarchy, aligned, enlargement, worth_it
from ._numba_alone import SURE, Levels, Plain
from ._numba_rows import BORDER
from .blocks import Blocks


@dataclass
class Measurement:
    """What one image must agree with, as arrays."""

    blocks: Blocks
    source: np.ndarray  # [h, w] float64; anything finite where not measured
    slack: np.ndarray  # [h, w] 1 / weight: 0 hard, inf not measured
    count: np.ndarray  # [h, w] measured pixels, 0 where not measured
    measured: np.ndarray | None  # [H, W] of 0 and 1 in the image's dtype; None: every pixel

    @property
    def compiled(self) -> tuple:
        """The measured pixels as the compiled passes take them."""
        if self.measured is None:
            return np.zeros((1, 1), np.float32), False
        return self.measured, True


MANY_CELLS = 1 << 17  # from here on even a pass over the cells alone is worth several threads
_memory = threading.local()  # what the last images used: fresh memory costs as much as five iterations
KEPT_PIXELS = 1 << 18
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
    """The arrays of one image, and what solves the system they hold; `CpuSystem` fills them."""

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
        bands = min(threads, self.cells[0])
        self.pairs = list(pairwise(self.cells[0] * band // bands for band in range(bands + 1)))
        self.pool = pool if len(self.pairs) > 1 else None
        kind = cv.dtype
        self.beyond = np.zeros((2, 2, W), kind), np.zeros((2, 2, H), kind)  # `_numba.flow_row`; of a tile: not zero
        self.wv, self.wh, self.p, self.sd, self.g, self.x, self.r, self.q, self.t = _scratch(H, W, kind)
        self.s0, self.s1, self.gq, self.kappa, self.fold, self.multiplier, self.along = (
            np.empty(self.cells) for _ in range(7)
        )
        self.alpha, self.owed, self.ahead, self.eps = 0.0, 0.0, False, 2 * float(np.finfo(kind).eps)
        self.mu, self.inverse = np.empty(self.cells), np.empty(self.cells)
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
        if self.pool is None:
            return [run(lo, hi) for lo, hi in self.pairs]
        return list(self.pool.map(lambda pair: run(*pair), self.pairs))

    def _rows(self, run: Callable[[int, int], Any]) -> list:
        """Run on each band of pixel rows."""
        rows = self.parts[0]
        return self._bands(lambda lo, hi: run(rows[lo], rows[hi]))

    # ---- conjugate gradients

    def begin(self) -> float:
        self.fold[:] = 0
        self.along[:] = 0
        self.alpha, self.owed, self.ahead, self.fresh = 0.0, 0.0, False, True
        return self._precondition(0.0)

    @property
    def cycles(self) -> bool:
        return self.hierarchy is not None

    def descend(self, rz: float, target: float, limit: int) -> tuple[float, int]:
        """Conjugate gradients: in one compiled call, or pass by pass where threads share the image."""
        if self.pool is not None:
            return solver.conjugate_gradients(self, rz, target, limit)
        rz, count, self.alpha, self.owed = _numba_alone.descend(
            *self._arrays(), rz, float(target), limit, self.eps, OMEGA
        )
        self.fresh = count == 0
        return rz, count

    def direction(self, beta: float, rz: float) -> tuple[float, float]:
        """x += alpha p is left to this pass, as it reads p; so is r -= alpha q where its r'z was foreseen."""
        (alpha, self.alpha), (fresh, self.fresh) = (self.alpha, 0.0), (self.fresh, False)
        if self.hierarchy:
            return self._prolong_and_move(fresh, alpha, beta, self.hierarchy), rz
        of_p, of_r, self.owed = _numba_descent.owe(alpha, float(beta), self.owed, self.loose)
        sums = self._bands(
            lambda lo, hi: _numba_descent.sweep(
                self.r, self.q, self.g, self.fold, self.multiplier, self.along, self.hard, self.loose,
                self.wv, self.wh, self.p, self.x, fresh, alpha if self.ahead else 0.0, of_p, of_r, beta,
                self.s1, self.gq, *self.parts, lo, hi,
            )
        )  # fmt: skip
        beside = [  # too little for threads
            _numba_descent.sweep_beside(
                self.g, self.along, self.loose, self.wv, self.wh, self.p, self.q, self.gq, *self.parts, lo, hi
            )
            for lo, hi in self.pairs
        ]
        rr, pq, qq = (sum(column) for column in zip(*sums, strict=True))
        more_pq, more_qq = (sum(column) for column in zip(*beside, strict=True))
        self.sums = rr, pq + more_pq, qq + more_qq
        return self.sums[1], rr + self.more if self.ahead else rz

    def step(self, alpha: float) -> float:
        self.alpha = alpha
        if not self.hierarchy:
            more, self.more = self._foresee(alpha)
            rr, pq, qq = self.sums
            rz = rr - 2 * alpha * pq + alpha**2 * qq + more
            self.ahead = rz > SURE * (rr + alpha**2 * qq)
            if self.ahead:
                return rz
            self.fold[:] = 0  # too much cancels: look
            self._catch_up(0.0)
        return self._precondition(alpha)

    def _foresee(self, alpha: float) -> tuple[float, float]:
        def part(lo: int, hi: int) -> tuple[float, float]:
            return _numba_descent.foresee(
                self.s1, self.gq, alpha, self.inverse, self.hard, self.fold, self.multiplier, lo, hi
            )

        if self.s1.size < MANY_CELLS:
            return part(0, self.cells[0])
        total, loose = (sum(column) for column in zip(*self._bands(part), strict=True))
        return total, loose

    def half_step(self, rz: float, beta: float) -> None:
        if self.cycles and rz > 0:
            self.alpha = self.divide(rz, self.direction(beta, rz)[0])

    def _precondition(self, alpha: float) -> float:
        """`_numba_alone.precondition`."""
        if self.pool is None:
            return _numba_alone.precondition(*self._arrays(), alpha, self.eps, OMEGA)
        rr, rz, left = self._update(alpha)
        if rz < 1e-3 * rr:  # nearly all of r was a multiple of g: take it out and look again
            rr, rz, left = self._update(0.0)
        rz = max(rz, 0.0) + self.eps * rr
        if not self.hierarchy:
            return rz
        first = self.hierarchy.first
        self.extra[:] = self._correct(self.hierarchy, 0)
        return _numba_alone.cycled(rz, left, _numba_levels.dot(first.r, first.t), OMEGA, self.hierarchy.over)

    def _update(self, alpha: float) -> tuple[float, float, float]:
        """r -= alpha q; returns r'r, the r'z of Jacobi, and the product of `restrict`."""
        if self.hierarchy:
            return self._update_and_restrict(alpha, self.hierarchy)
        rr = sum(
            self._bands(
                lambda lo, hi: _numba_descent.update(
                    self.r, self.q, self.g, alpha, self.fold, self.s1, *self.parts, lo, hi
                )
            )
        )
        taken = _numba_descent.cell_step(
            self.s1, self.inverse, self.hard, self.kappa, self.fold, self.multiplier, 0, self.cells[0]
        )
        return rr, rr + taken, 0.0

    def _update_and_restrict(self, alpha: float, levels: Hierarchy) -> tuple[float, float, float]:
        """The same with the V-cycle's way down to its first grid."""
        grids = (*self.parts, *levels.parents, levels.first.r, levels.first.isd)
        sums = self._bands(
            lambda lo, hi: _numba_levels.update_and_restrict(
                self.r, self.q, self.g, alpha, self.fold, self.s1, self.inverse, self.hard, self.kappa,
                self.multiplier, self.wv, self.wh, self.sd, OMEGA, *grids, lo, hi,
            )
        )  # fmt: skip
        beside = self._bands(
            lambda lo, hi: _numba_levels.restrict_beside(
                self.r, self.g, self.kappa, self.wv, self.wh, self.sd, OMEGA, *grids, lo, hi
            )
        )
        rr, rz, left = (sum(column) for column in zip(*sums, strict=True))
        return rr, rz, left + sum(beside)

    def _prolong_and_move(self, fresh: bool, alpha: float, beta: float, levels: Hierarchy) -> float:
        first = levels.first
        inner = self._bands(
            lambda lo, hi: _numba_levels.prolong_and_move(
                self.r, self.g, self.kappa, self.extra, first.t, first.isd, self.wv, self.wh, self.sd, OMEGA,
                levels.over, self.inverse, self.t, self.s3, self.kappa3, self.multiplier,
                self.along, self.hard, self.loose, self.p, self.x, self.q, fresh, alpha, beta,
                *self.parts, *levels.parents, lo, hi,
            )
        )  # fmt: skip
        return sum(inner) + sum(
            _numba_levels.multiply_beside(
                self.g, self.along, self.loose, self.wv, self.wh, self.p, self.q, *self.parts, lo, hi
            )
            for lo, hi in self.pairs
        )

    def _arrays(self) -> tuple[Plain, Levels | None]:
        """What `_numba_alone` takes."""
        system = Plain(
            self.r, self.g, self.wv, self.wh, self.sd, self.p, self.x, self.q, self.t, self.s1, self.gq, self.kappa,
            self.fold, self.multiplier, self.along, self.inverse, self.hard, self.loose, *self.parts,
        )  # fmt: skip
        if self.hierarchy is None:
            return system, None
        first = self.hierarchy.first
        return system, Levels(
            *self.hierarchy.parents, first.r, first.t, first.isd, self.s3, self.kappa3, self.extra,
            self.hierarchy.starts_with_cells, self.hierarchy.over,
            self.hierarchy.table, self.hierarchy.starts, self.hierarchy.packed,
        )  # fmt: skip

    def _correct(self, levels: Hierarchy, depth: int) -> np.ndarray:
        """The cycle from a level on, in bands as long as levels are large. Returns the multiplier, as `levels.run`."""
        if depth + 1 == len(levels.levels) or not levels.in_bands(depth):
            return levels.run(depth)
        here, grid = levels.levels[depth], levels.grids[depth]
        below, next_grid = levels.levels[depth + 1], levels.grids[depth + 1]
        parts, parents = (grid.rows, grid.cols), (next_grid.prow, next_grid.pcol)
        self._bands(
            lambda lo, hi: _numba_levels.cell_kappa(here.r, here.g, here.s, here.inverse, here.kappa, *parts, lo, hi)
        )
        self._bands(
            lambda lo, hi: _numba_levels.restrict(
                here.r, here.g, here.kappa, here.wv, here.wh, here.sd, OMEGA,
                *parts, *parents, below.r, below.isd, lo, hi,
            )
        )  # fmt: skip
        extra, over, last = self._correct(levels, depth + 1), levels.over, np.empty(self.cells)

        def back(lo: int, hi: int) -> None:
            _numba_levels.prolong(
                here.r, here.g, here.kappa, extra, below.t, below.isd, here.wv, here.wh, here.sd, OMEGA, over,
                *parts, *parents, here.t, 0, here.s, lo, hi,
            )  # fmt: skip
            _numba_levels.post_cells(
                here.s, here.inverse, here.kappa, extra, OMEGA, over, last, here.multiplier, lo, hi
            )
            _numba_levels.take_out(here.t, here.g, last, *parts, lo, hi)

        self._bands(back)
        return here.multiplier

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
