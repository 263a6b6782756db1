"""The saddle systems of `solver.py` for one image on the CPU: their weights, right-hand sides, and use."""

from __future__ import annotations

import numpy as np

from . import _numba, _numba_joined, _numba_loop, _numba_values, solver
from ._cpu_descent import CpuDescent
from .blocks import Blocks

STILL = 0.05  # a Newton system is kept until some pixel has changed by this share since it was built


class CpuSystem(CpuDescent):
    """One image; see `solver.System` for the meaning of the methods."""

    # ---- the system

    def assemble(self, y: np.ndarray | None, newton: bool = False) -> None:
        """Weights c and g = m; at y, weights c y_p y_n and g = m y^2, and for `newton` also the right-hand side."""
        self.y = self.y if y is None else y
        self.slack_now[:] = self.slack
        if y is not None and self.soft.any():
            self.slack_now *= self._slack_factor(y)
        tile = any(side[0].any() for side in self.beyond)
        self._act(_numba_joined.ASSEMBLE, y is not None, newton, tile)
        if self.hierarchy:
            self.hierarchy.build_across(self.wv, self.wh, self.sd, self.g, self.slack_now, tile)

    def _slack_factor(self, y: np.ndarray) -> np.ndarray:
        """What turns the slack of down(y) into that of sum(y^2 x), in soft cells."""
        m, soft = self.measurement, self.soft
        out = np.ones(self.cells)
        taken = y if m.measured is None else y * m.measured
        mean, square = (block_sum(v, m.blocks)[soft] / m.count[soft] for v in (taken, taken * y))
        out[soft] = solver.slack_factor(mean, square, m.source[soft])
        return out

    # ---- right-hand sides and what becomes of the solution

    def shift_residual(self, y: np.ndarray) -> None:
        """Take -L y as the right-hand side."""
        self._residual(y, None)

    def right_hand_side(self, f: np.ndarray, a: np.ndarray) -> None:
        """Take f - L a, zero where a pixel has no edge at all (its value does not depend on the coefficients)."""
        self._residual(a, f)
        self.r[self._isolated()] = 0

    def _residual(self, y: np.ndarray, f: np.ndarray | None) -> None:
        self._rows(lambda lo, hi: _numba.residual_shift(y, f, self.cv, self.ch, *self.beyond, self.sd, self.r, lo, hi))

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
            self._act(_numba_joined.RESIDUAL)
        else:
            self.assemble(self.y, newton=True)
            self.drift = 0.0
        return self.begin()

    def retract(self) -> None:
        if self.fresh:
            self._settle()
        (alpha, owed), (self.alpha, self.owed) = (self.alpha, self.owed), (0.0, 0.0)
        if not alpha + owed:  # p may be anything then
            self.p[:] = 0
        largest = self._act(_numba_joined.RETRACT, alpha, owed, self.relative)[0]
        self.drift = self.drift + largest if self.relative else float("inf")

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
                a, self.y, v, self.cv, self.ch, *self.beyond, self.sd, self.mu, m.source, m.slack, m.count, *m.compiled,
                self.r, self.k, *self.parts, lo, hi,
            )
        )  # fmt: skip
        self.r[self._isolated()] = 0
        return self.begin()

    def add_adjoint(self, a: np.ndarray) -> None:
        """a += y x."""
        x = self._settle()
        self._rows(lambda lo, hi: _numba_values.add_unscaled_product(a, self.y, x, self.sd, lo, hi))

    def nearest_energy(self) -> float:
        """up(S)' L up(S), with the mean in cells without a measurement: only edges between blocks count."""
        m = self.measurement
        used = m.count > 0
        filled = np.where(used, m.source, m.source[used].mean())
        return _numba_values.nearest_energy(filled, self.cv, self.ch, m.blocks.rows, m.blocks.cols)

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
