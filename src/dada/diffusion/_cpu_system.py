"""The saddle system of `solver.py` for one image on the CPU: memory, threads, and calls to the compiled passes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from . import _numba, _numba_alone, _numba_levels, _numba_loop, _numba_values, solver
from ._levels import OMEGA, Hierarchy, aligned, enlargement, reciprocal, worth_it
from ._numba_alone import Levels, Newton, Plain
from .blocks import Blocks

STILL = 0.05  # a Newton system is kept until some pixel has changed by this share since it was built
TINY = 1e-30  # stands for the diagonal of a pixel without any edge


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


_memory = threading.local()  # what the last images of a size used: fresh memory costs as much as five iterations
KEPT_PIXELS = 1 << 18
KEPT_ENTRIES = 4


def _kept(key: tuple, pixels: int, make: Callable[[], Any]) -> Any:
    """What `make` makes, kept in this thread for the next image of the same kind unless it is large."""
    if pixels > KEPT_PIXELS:
        return make()
    kept = _memory.__dict__.setdefault("kept", {})
    if key not in kept:
        while len(kept) >= KEPT_ENTRIES:
            del kept[next(iter(kept))]
        kept[key] = make()
    return kept[key]


def _scratch(H: int, W: int, kind: np.dtype) -> tuple[np.ndarray, ...]:
    """wv, wh, and seven images."""
    return aligned((H + 1, W), kind), aligned((H, W + 1), kind), *(aligned((H, W), kind) for _ in range(7))


class CpuSystem:
    """One image; see `solver.System` for the meaning of the methods."""

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
        self.order = {lo: band for band, (lo, _) in enumerate(self.pairs)}
        self.pool = pool if len(self.pairs) > 1 else None
        kind = cv.dtype
        scratch = _kept(("scratch", H, W, kind), H * W, lambda: _scratch(H, W, kind))
        self.wv, self.wh, self.sd, self.g, self.x, self.r, self.p, self.q, self.t = scratch
        self.s0, self.s1, self.kappa, self.fold, self.multiplier, self.along = (np.empty(self.cells) for _ in range(6))
        self.edge = np.zeros((len(self.pairs), 2, W), kind)
        self.alpha, self.eps = 0.0, 2 * float(np.finfo(kind).eps)
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
            self.hierarchy.over = enlargement(H * W, self.loose, bool(self.soft.any()))
            self.kappa3, self.s3, self.extra = (np.empty(self.cells) for _ in range(3))

    # ---- threads

    def _bands(self, run: Callable[[int, int], float | None]) -> list:
        """Run on each band of block rows, in threads where the image is large."""
        if self.pool is None:
            return [run(lo, hi) for lo, hi in self.pairs]
        return list(self.pool.map(lambda pair: run(*pair), self.pairs))

    def _rows(self, run: Callable[[int, int], float | None]) -> list:
        """Run on each band of pixel rows."""
        rows = self.parts[0]
        return self._bands(lambda lo, hi: run(rows[lo], rows[hi]))

    # ---- the system

    def assemble(self, y: np.ndarray | None, newton: bool = False) -> None:
        """Weights c and g = m; at y, weights c y_p y_n and g = m y^2, and for `newton` also the right-hand side."""
        measurement, scaled = self.measurement, y is not None
        value = self.sd if y is None else y
        taken, has = measurement.compiled
        share = float(np.finfo(self.sd.dtype).eps)
        count, slack = measurement.count, self.slack
        if y is not None and self.soft.any():
            slack = slack * self._slack_factor(y)
        if self.pool is None:
            system, _ = self._arrays()
            right = Newton(measurement.source, measurement.slack, self.mu) if newton else None
            _numba_alone.assemble(
                self.cv, self.ch, value, scaled, taken, has, share, TINY, count, slack, self.s0, system, right
            )  # fmt: skip
        else:
            self._rows(lambda lo, hi: _numba.weigh(self.cv, self.ch, value, scaled, self.wv, self.wh, self.sd, lo, hi))
            self._bands(lambda lo, hi: _numba.root(self.sd, count, share, TINY, *self.parts, lo, hi))
            self._bands(
                lambda lo, hi: _numba.normalise(
                    self.wv, self.wh, self.sd, value, scaled, taken, has, self.g, self.s0, *self.parts, lo, hi
                )
            )
            self.inverse[:] = reciprocal(slack + self.s0)
            if newton:
                self._newton_residual(value)
        if self.hierarchy:
            bands = None if self.pool is None else self._bands
            self.hierarchy.build(self.wv, self.wh, self.sd, self.g, slack, TINY, bands)

    def _newton_residual(self, y: np.ndarray) -> None:
        m = self.measurement
        self._bands(
            lambda lo, hi: _numba.residual_ratio(
                y, self.cv, self.ch, self.sd, m.source, m.slack, m.count, *m.compiled, self.r, self.mu,
                *self.parts, lo, hi,
            )
        )  # fmt: skip

    def _slack_factor(self, y: np.ndarray) -> np.ndarray:
        """What turns the slack of down(y) into that of sum(y^2 x), in soft cells."""
        m, soft = self.measurement, self.soft
        out = np.ones(self.cells)
        taken = y if m.measured is None else y * m.measured
        mean, square = (block_sum(v, m.blocks)[soft] / m.count[soft] for v in (taken, taken * y))
        out[soft] = solver.slack_factor(mean, square, m.source[soft])
        return out

    def begin(self) -> float:
        self._rows(lambda lo, hi: _numba_values.clear(self.x, self.p, self.q, lo, hi))
        self.fold[:] = 0
        self.along[:] = 0
        self.alpha = 0.0
        return self.step(0.0)

    def step(self, alpha: float) -> float:
        if self.pool is None:
            self.alpha = alpha or self.alpha
            return _numba_alone.precondition(*self._arrays(), alpha, self.eps, OMEGA)
        rr, rz = self._update(alpha)
        if rz < 1e-3 * rr:  # nearly all of r was a multiple of g: take it out and look again
            rr, rz = self._update(0.0)
        rz = max(rz, 0.0) + self.eps * rr  # a difference of sums near r'r is known no better than that
        if not self.hierarchy:
            return rz
        cycled = self._cycle()
        return cycled if cycled >= 0.5 * rz else float("nan")  # the cycle is never weaker than its smoother

    @property
    def cycles(self) -> bool:
        return self.hierarchy is not None

    def half_step(self, rz: float, beta: float) -> None:
        if self.cycles and rz > 0:
            self.alpha = self.divide(rz, self.direction(beta))

    def descend(self, rz: float, target: float, limit: int) -> tuple[float, int]:
        """Conjugate gradients: in one compiled call, or pass by pass where threads share the image."""
        if self.pool is not None:
            return solver.conjugate_gradients(self, rz, target, limit)
        rz, count, self.alpha = _numba_alone.descend(*self._arrays(), rz, float(target), limit, self.eps, OMEGA)
        return rz, count

    def _arrays(self) -> tuple[Plain, Levels | None]:
        """What `_numba_alone` takes."""
        system = Plain(
            self.r, self.g, self.wv, self.wh, self.sd, self.p, self.x, self.q, self.t, self.s1, self.kappa, self.fold,
            self.multiplier, self.along, self.inverse, self.hard, self.loose, self.edge, *self.parts,
        )  # fmt: skip
        if self.hierarchy is None:
            return system, None
        first = self.hierarchy.first
        return system, Levels(
            *self.hierarchy.parents, first.r, first.t, first.isd, self.s3, self.kappa3, self.extra,
            self.hierarchy.starts_with_cells, self.hierarchy.over, self.hierarchy.packed,
        )  # fmt: skip

    def _update(self, alpha: float) -> tuple[float, float]:
        """r -= alpha q; returns r'r and the r'z of Jacobi. x += alpha p is left to the next pass that reads p."""
        self.alpha = alpha or self.alpha
        if self.hierarchy:
            return self._update_and_restrict(alpha, self.hierarchy)
        rr = sum(
            self._bands(
                lambda lo, hi: _numba.update(self.r, self.q, self.g, alpha, self.fold, self.s1, *self.parts, lo, hi)
            )
        )
        return rr, rr + _numba.cell_step(
            self.s1, self.inverse, self.hard, self.kappa, self.fold, self.multiplier, 0, self.cells[0]
        )

    def _update_and_restrict(self, alpha: float, levels: Hierarchy) -> tuple[float, float]:
        """The same with the V-cycle's way down to its first grid."""
        grids = (*self.parts, *levels.parents, levels.first.r, levels.first.isd)
        sums = self._bands(
            lambda lo, hi: _numba_levels.update_and_restrict(
                self.r, self.q, self.g, alpha, self.fold, self.s1, self.inverse, self.hard, self.kappa,
                self.multiplier, self.wv, self.wh, self.sd, OMEGA, *grids, lo, hi,
            )
        )  # fmt: skip
        self._bands(
            lambda lo, hi: _numba_levels.restrict_beside(
                self.r, self.g, self.kappa, self.wv, self.wh, self.sd, OMEGA, *grids, lo, hi
            )
        )
        return sum(rr for rr, _ in sums), sum(rz for _, rz in sums)

    def _cycle(self) -> float:
        """V-cycle on r: leaves t and kappa3 with z = t - g kappa3, and the multiplier of z."""
        assert self.hierarchy is not None
        rz = self._cycle_in_bands(self.hierarchy)
        if self.loose:
            self.multiplier[self.hard] = 0  # r and q of a hard cell are kept without multiples of g: see `update`
        return rz

    def _cycle_in_bands(self, levels: Hierarchy) -> float:
        first, over = levels.first, levels.over
        extra = self._correct(levels, 0)
        rt = sum(
            self._bands(
                lambda lo, hi: _numba_levels.prolong(
                    self.r, self.g, self.kappa, extra, first.t, first.isd, self.wv, self.wh, self.sd, OMEGA, over,
                    *self.parts, *levels.parents, self.t, self.s3, lo, hi,
                )
            )
        )  # fmt: skip
        return _numba_levels.post_cells(
            self.s3, self.inverse, self.kappa, extra, self.s1, OMEGA, over, rt, self.kappa3, self.multiplier
        )

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
        extra, over = self._correct(levels, depth + 1), levels.over
        self._bands(
            lambda lo, hi: _numba_levels.prolong(
                here.r, here.g, here.kappa, extra, below.t, below.isd, here.wv, here.wh, here.sd, OMEGA, over,
                *parts, *parents, here.t, here.s, lo, hi,
            )
        )  # fmt: skip
        last = np.empty(self.cells)
        _numba_levels.post_cells(
            here.s, here.inverse, here.kappa, extra, here.s, OMEGA, over, 0.0, last, here.multiplier
        )
        self._bands(lambda lo, hi: _numba_levels.take_out(here.t, here.g, last, *parts, lo, hi))
        return here.multiplier

    def direction(self, beta: float) -> float:
        src, kappa = (self.t, self.kappa3) if self.hierarchy else (self.r, self.kappa)
        alpha, self.alpha = self.alpha, 0.0
        if self.loose:
            _numba.advance(self.along, beta, self.multiplier)
        if len(self.pairs) > 1:
            starts = self.parts[0][[lo for lo, _ in self.pairs[1:]]]
            self.edge[1:, 0] = self.p[starts - 1]
            self.edge[:-1, 1] = self.p[starts]
        return sum(
            self._bands(
                lambda lo, hi: _numba.direction(
                    src, self.g, kappa, self.along, self.loose, self.wv, self.wh, self.p, self.x, self.q, alpha, beta,
                    self.edge, self.order[lo], *self.parts, lo, hi,
                )
            )
        )  # fmt: skip

    def _settle(self) -> np.ndarray:
        """Finish x and return it."""
        if self.alpha:
            self._rows(lambda lo, hi: _numba_values.add_scaled(self.x, self.p, self.alpha, lo, hi))
            self.alpha = 0.0
        return self.x

    divide = staticmethod(lambda a, b: a / b if b > 0 else 0.0)
    any = staticmethod(bool)
    least = staticmethod(min)
    most = staticmethod(max)
    top = staticmethod(float)

    # ---- right-hand sides and what becomes of the solution

    def shift_residual(self, y: np.ndarray) -> None:
        """Take -L y as the right-hand side."""
        self._rows(lambda lo, hi: _numba.residual_shift(y, self.cv, self.ch, self.sd, self.r, lo, hi))

    def right_hand_side(self, f: np.ndarray) -> None:
        """Take f, zero where a pixel has no edge at all (its value does not depend on the coefficients)."""
        np.divide(f, self.sd, out=self.r)
        self.r[self._isolated()] = 0

    def _isolated(self) -> np.ndarray:
        return (self.wv[:-1] + self.wv[1:] + self.wh[:, :-1] + self.wh[:, 1:]) == 0

    def add_to(self, y: np.ndarray) -> None:
        """y += x."""
        x = self._settle()
        self._rows(lambda lo, hi: _numba_values.add_unscaled(y, x, self.sd, lo, hi))

    def hold(self, y: np.ndarray) -> None:
        """Take y (changed in place) as the present state of `ratio`."""
        self.y = y
        self.best = y.copy()
        self.drift = float("inf")

    def linearise(self, as_shift: bool = False) -> float:
        self.relative = not as_shift
        if as_shift:
            self.assemble(None)
            self.shift_residual(self.y)
            return self.begin()
        if self.drift < STILL:
            self._newton_residual(self.y)
        else:
            self.assemble(self.y, newton=True)
            self.drift = 0.0
        return self.begin()

    def retract(self) -> None:
        x = self._settle()
        steps = self._rows(lambda lo, hi: _numba_values.retract(self.y, x, self.sd, self.relative, lo, hi))
        self.drift = self.drift + max(steps) if self.relative else float("inf")
        self.adjust(self.y)

    def halve(self, where: bool) -> None:
        if where:
            self.drift = float("inf")
            np.sqrt(self.y * self.best, out=self.y)
            self.adjust(self.y)

    def keep(self, better: bool) -> None:
        if better:
            self.best[:] = self.y

    def recall(self) -> None:
        self.drift = float("inf")
        self.y[:] = self.best

    def adjoint_residual(self, a: np.ndarray, v: np.ndarray) -> float:
        """Right-hand side of the adjoint of `ratio` at a, for the gradient v; the multiplier is left in `k`."""
        m = self.measurement
        self.k = np.empty(self.cells)
        self._bands(
            lambda lo, hi: _numba.residual_adjoint(
                a, self.y, v, self.cv, self.ch, self.sd, self.mu, m.source, m.slack, m.count, *m.compiled,
                self.r, self.k, *self.parts, lo, hi,
            )
        )  # fmt: skip
        self.r[self._isolated()] = 0
        return self.begin()

    def add_adjoint(self, a: np.ndarray) -> None:
        """a += y x."""
        x = self._settle()
        self._rows(lambda lo, hi: _numba_values.add_unscaled_product(a, self.y, x, self.sd, lo, hi))

    def adjust(self, y: np.ndarray, soft_too: bool = False) -> None:
        """Eq. 3 on hard cells, or on every measured one."""
        m = self.measurement
        slack = np.zeros_like(m.slack) if soft_too else m.slack
        self._bands(
            lambda lo, hi: _numba_loop.adjust(y, self.ratio, m.source, slack, m.count, *m.compiled, *self.parts, lo, hi)
        )


def block_sum(values: np.ndarray, blocks: Blocks) -> np.ndarray:
    rows = np.add.reduceat(values.astype(np.float64), blocks.rows[:-1], axis=0)
    return np.add.reduceat(rows, blocks.cols[:-1], axis=1)
