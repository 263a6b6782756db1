"""The saddle system to which both adjustments come down, for a batch of images on any backend.

With positive edge weights K, a vector g in each block and a slack in each cell,

    K x + g k_b = f,    (sum over the block of g x) - slack_b k_b = 0

The slack is 0 for a hard cell, which must be met exactly, and infinite for one without a measurement. How the end of
the paper's loop (loop.py) comes down to this is derived in docs/explanation/mathematics.md.

Fields are [N, H, W], cells [N, h, w] and numbers [N], in the arrays of the backend: NumPy with compiled kernels
(cpu/backend.py), or torch on any device (torch_backend.py). The text is the same for both.
"""

from __future__ import annotations

from typing import Any

from .coefficients import Coefficients
from .measurement import Adjust, Measurement
from .multigrid import ENLARGEMENT, Grid, Level, cycle, grids, worth_it

Array = Any  # NumPy or torch


class System:
    """The saddle system of N images, what it is built of, and the state of conjugate gradients on it.

    Attributes:
        x, r, p, z: solution, residual, search direction and preconditioned residual, scaled to a unit diagonal.
        levels: the system on the finest grid and, where there is a V-cycle, on the coarser ones.
        source, count: [N, h, w] what was measured, and over how many pixels.
        used, hard, soft: [N, h, w] bool, cells with a measurement, and of which kind.
    """

    def __init__(self, c: Coefficients, measurement: Measurement, adjust: Adjust) -> None:
        """Take the coefficients [N, ...] and the measurement; `assemble` builds the system."""
        self.backend = backend = backend_of(c.vertical)(c, measurement)
        self.xp = xp = backend.xp
        self.is_ratio = adjust == "ratio"
        self.source, self.count, weight = (
            backend.cells(v) for v in (measurement.source, measurement.count, measurement.weight)
        )
        self.used = self.count > 0
        self.inverse_weight = xp.where(weight > 0, 1 / xp.where(weight > 0, weight, 1), xp.inf)
        self.hard = self.used & (self.inverse_weight == 0)
        self.soft = self.used & ~self.hard
        self.loose = not bool(self.hard.all())  # some cells are not hard
        self.blocks = measurement.blocks
        self.all_images = self.count[:, 0, 0] >= 0
        self.slack = self._slack_of_sums()
        self.x, self.r, self.p, self.q = (backend.new_field() for _ in range(4))
        self.along = xp.zeros_like(self.count)  # the multiplier of p
        self.lacking = 0.0 * self.along[:, 0, 0]  # how much of p is still to be added to x
        self.enlargement = ENLARGEMENT if self.loose and not bool(self.soft.any()) else 1.0
        wanted = worth_it(self.blocks, backend.tensor(self.hard).cpu().numpy())
        self.use_grids(grids(self.blocks, self.loose) if wanted else ())

    def use_grids(self, coarser: tuple[Grid, ...]) -> None:
        """Precondition by a V-cycle over these grids, or by the diagonal if there are none."""
        self.grids = coarser
        self.levels = [self.backend.level(self.blocks)]
        for grid in coarser:
            self.levels[-1].groups = self.backend.as_layout(grid.groups)
            self.levels.append(self.backend.level(grid.blocks, constrained=grid.kind == "within"))

    def mean_source(self) -> Array:
        """[N] mean of the measured cells."""
        return total(self.source * self.used) / total(self.used)

    def least_source(self, sign: int = 1) -> Array:
        """[N] least of the measured values, or of their negatives."""
        low = self.xp.where(self.used, sign * self.source, self.xp.inf)
        return self.xp.amin(low, (1, 2))

    def isolated(self) -> Array:
        """Pixels without any edge, of the system that is built."""
        wv, wh = self.levels[0].wv, self.levels[0].wh
        return wv[:, 1:] + wv[:, :-1] + wh[:, :, 1:] + wh[:, :, :-1] == 0

    # ---- the system at a state y

    def assemble(self, y: Array | None, which: Array) -> None:
        """Build the system of `ratio` at y (w = c y_p y_n, g = m y^2); None: that of `shift` (w = c, g = m).

        which is [N] bool; the system of other images stays.
        """
        slack = self._slack_of_sums()
        if y is not None and bool(self.soft.any()):
            slack = self.xp.where(self.soft, slack * self._slack_factor(y), slack)
        self.slack[which] = slack[which]
        self.backend.assemble(self.levels[0], self.xp.ones_like(self.x) if y is None else y, self.used, which)
        self._invert(self.levels[0])
        self.hard_inverse = self.xp.where(self.hard, self.levels[0].inverse, 0.0)
        for finer, level, grid in zip(self.levels, self.levels[1:], self.grids, strict=False):
            if grid.kind == "within":
                self.backend.coarsen(finer, level, which)
                self._invert(level)
            else:
                self.backend.across_cells(finer, level, grid, self.slack)

    def _invert(self, level: Level) -> None:
        total = self.slack + level.squares
        usable = (total > 0) & self.xp.isfinite(total)
        level.inverse = self.xp.where(usable, 1 / self.xp.where(usable, total, 1), 0.0)

    def _slack_of_sums(self) -> Array:
        """1 / weight, of sums over the block instead of means."""
        return self.xp.where(self.used, self.inverse_weight * self.xp.where(self.used, self.count, 1) ** 2, self.xp.inf)

    def _slack_factor(self, y: Array) -> Array:
        """What turns the slack of sum(y) into that of sum(y^2 x) in a soft cell."""
        n = self.xp.where(self.used, self.count, 1)
        mean, square = self.backend.block_sums(y) / n, self.backend.block_sums(y, y) / n
        return square * mean / self.xp.where(self.soft, self.source, 1)

    def adjust(self, y: Array, cells: Array, active: Array | None = None) -> None:
        """Eq. 3 on these cells, [N, h, w] bool: change y such that down(y) = S there."""
        xp, n = self.xp, self.xp.where(self.used, self.count, 1)
        mean = self.backend.block_sums(y, active=active) / n
        if self.is_ratio:
            change = xp.where(cells, self.source / xp.where(cells, mean, 1) - 1, 0.0)
        else:
            change = xp.where(cells, self.source - mean, 0.0)
        self.backend.add(y, y if self.is_ratio else None, change, active)

    def start_shift(self, y: Array, f: Array | None = None) -> Array:
        """Begin with the system of `shift` and the right-hand side f - L y; return r'z."""
        self.assemble(None, self.all_images)
        self.r[:] = self.backend.flow(y, f, self.all_images) / -self.levels[0].sd
        if f is not None:
            self.r[self.isolated()] = 0  # whose value depends on no coefficient
        return self.start(self.all_images)

    # ---- conjugate gradients: the operators of their text in conjugate_gradients.py

    def start(self, active: Array) -> Array:
        """Begin at x = 0 with the right-hand side in r; return r'z."""
        for state in (self.x, self.p, self.q, self.along):
            state[active] = 0
        return self.step(0.0 * active, active)

    def direction(self, beta: Array, active: Array) -> Array:
        """p = z + beta p, q = K p + g k_p; return p'q. What x lacks of the last direction is added on the way."""
        backend, finest = self.backend, self.levels[0]
        backend.turn(self.x, self.p, self.z, self.lacking, beta, active)
        product = backend.multiply(finest, self.p, self.q, active)
        if self.loose:  # k of the direction follows p; in hard cells it does not matter
            along = self.multiplier + beta[:, None, None] * self.along
            self.along = self.xp.where(active[:, None, None], along, self.along)
            backend.plus_constraint(finest, self.q, self.along, active)
            product = product + total(self.along * backend.block_sums(finest.g, self.p))
        return product

    def step(self, alpha: Array, active: Array) -> Array:
        """x += alpha p, r -= alpha q, z = M^-1 r; return r'z. Images that are not active keep the alpha they had.

        In a hard cell r matters only up to multiples of g. Taking them out keeps r'z free of cancellation.
        """
        xp, backend, finest = self.xp, self.backend, self.levels[0]
        self.lacking = alpha
        sums, squares = backend.step(self.r, self.q, finest, alpha, self.hard_inverse, active)
        rz = squares * (1 + 2 * backend.eps)  # what rounding leaves is not convergence
        self.z = self.r
        if self.loose:
            self.multiplier = xp.where(self.hard, 0.0, sums * finest.inverse)
            rz = xp.maximum(rz - total(self.multiplier * sums), 2 * backend.eps * squares)
            self.z = backend.plus_constraint(finest, self.r, -self.multiplier, active, out="rest")
        if self.grids:
            given = self.levels, self.r, self.z, self.multiplier if self.loose else 0.0
            self.z, multiplier, cycled = cycle(backend, *given, self.enlargement, active)
            self.multiplier = xp.where(self.hard, 0.0, multiplier)
            cycled = cycled.sum(1)
            return xp.where(cycled >= 0.5 * rz, cycled, xp.nan)  # else rounding has upset the cycle
        return rz

    def half_step(self, rz: Array, beta: Array, active: Array) -> None:
        """Move x along one more direction, without the residual: z is there already, and was most of the work."""
        alpha = divide(self.xp, rz, self.direction(beta, active))
        self.lacking = self.xp.where(active, alpha, self.lacking)

    def finish(self) -> None:
        """Add to x what it lacks."""
        self.backend.move(self.x, self.p, self.lacking)
        self.lacking = 0.0 * self.lacking

    def solution(self) -> Array:
        """x without the scaling."""
        return self.x / self.levels[0].sd


def total(values: Array) -> Array:
    """[N] sum over each image, in an order that does not depend on their number."""
    return values.reshape(len(values), -1).sum(1)


def divide(xp: Any, a: Array, b: Array) -> Array:
    """a / b, and 0 where b is not positive."""
    return xp.where(b > 0, a / b, 0.0)


def backend_of(tensor: Any) -> Any:
    if tensor.device.type == "cpu":
        from .cpu.backend import CpuBackend

        return CpuBackend
    from .torch_backend import TorchBackend

    return TorchBackend
