"""The saddle system of `solver.py` in plain torch operations: a batch at once, on any device.

On a CPU `_cpu.py` does the same with compiled passes, much faster; there this module is its plain twin for the tests.
Everything is [N, H, W] (pixels) or [N, h, w] (cells); scalars are [N]. K z = z - sum of w z over the neighbours, after
scaling to a unit diagonal; sd is the square root of the unscaled diagonal.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import torch
from torch import Tensor

from . import solver
from ._levels import OMEGA, Grid, enlargement, grids, worth_it
from ._torch_levels import TINY, Level, coarser, edge_sum, reciprocal, scale
from .blocks import block_sum, spread
from .coefficients import Coefficients, laplacian
from .measurement import Constraint


class TorchSystem:
    """A batch of images; see `solver.System` for the meaning of the methods."""

    def __init__(self, c: Coefficients, constraint: Constraint, adjust: str):
        self.c, self.constraint, self.is_ratio = c, constraint, adjust == "ratio"
        self.blocks = constraint.blocks
        self.hard = constraint.hard
        measured = constraint.measured
        self.measured = c.vertical.new_ones(1, 1, 1) if measured is None else measured.to(c.vertical.dtype)
        self.slack = torch.where(constraint.weight > 0, 1 / constraint.weight, torch.inf).detach()
        loose = not bool(self.hard.all())
        soft = bool(((constraint.count > 0) & ~self.hard).any())
        self.over = enlargement(loose, soft)
        wanted = any(worth_it(self.blocks, hard.cpu().numpy()) for hard in self.hard)
        self.r = c.vertical.new_zeros(len(c.vertical), *self.blocks.target_size)
        self.grids: tuple[Grid, ...] = grids(self.blocks, loose) if wanted else ()

    # ---- the system

    def assemble(self, y: Tensor | None) -> None:
        """Weights c and g = m; at y, weights c y_p y_n and g = m y^2."""
        wv, wh = self.c
        g = self.measured.expand(wv.shape[0], *self.blocks.target_size).to(wv.dtype)
        n = self.constraint.count
        slack = torch.where(n > 0, self.slack, torch.inf)
        slack = torch.where(n > 0, slack * n**2, slack)
        if y is not None:
            wv, wh = wv * y[:, 1:] * y[:, :-1], wh * y[:, :, 1:] * y[:, :, :-1]
            g = g * y**2
            soft = (n > 0) & ~self.hard
            mean, square = self.constraint.down(y), self.constraint.down(y**2)
            slack = torch.where(soft, slack * square * mean / torch.where(soft, self.constraint.source, 1), slack)
        diagonal = edge_sum(wv, wh)
        least = spread(self._block_max(diagonal), self.blocks) * torch.finfo(wv.dtype).eps
        sd = torch.maximum(diagonal, least).clamp(min=TINY).sqrt()
        g = g / sd
        inverse = reciprocal(slack + block_sum(g**2, self.blocks))
        wv, wh = scale(wv, wh, 1 / sd)
        self.levels = [Level(self.blocks, wv, wh, sd, g, inverse)]
        for grid in self.grids:
            self.levels.append(coarser(self.levels[-1], grid, slack))

    def _block_max(self, diagonal: Tensor) -> Tensor:
        """Largest diagonal of each measured block, 0 elsewhere."""
        rows, cols = self.blocks.rows, self.blocks.cols
        top = torch.stack([diagonal[:, a:b].amax(1) for a, b in pairwise(rows)], 1)
        cell = torch.stack([top[:, :, a:b].amax(2) for a, b in pairwise(cols)], 2)
        return cell * (self.constraint.count > 0)

    def begin(self) -> Tensor:
        self.x, self.p, self.q = (torch.zeros_like(self.r) for _ in range(3))
        self._project()
        return self._precondition()

    def descend(self, rz: Tensor, target: Tensor, limit: int) -> tuple[Tensor, Tensor]:
        return solver.conjugate_gradients(self, rz, target, limit)

    @property
    def cycles(self) -> bool:
        return bool(self.grids)

    def half_step(self, rz: Tensor, beta: Tensor) -> None:
        if self.cycles:
            alpha = self.divide(rz, self.direction(beta))
            self.x = self.x + torch.where(rz > 0, alpha, 0.0)[:, None, None] * self.p

    def step(self, alpha: Tensor) -> Tensor:
        a = alpha[:, None, None]
        self.x = self.x + a * self.p
        self.r = self.r - a * self.q
        self._project()
        return self._precondition()

    def _project(self) -> None:
        """Take multiples of g out of r in hard cells, where they do not matter."""
        level = self.levels[0]
        self.r = self.r - level.times_g(level.kappa(self.r) * self.hard)

    def _precondition(self) -> Tensor:
        level = self.levels[0]
        kappa = level.kappa(self.r)
        plain = self.r - level.times_g(kappa)
        rz = (self.r * plain).sum((1, 2))
        rz = rz.clamp(min=0) + 2 * torch.finfo(rz.dtype).eps * self.r.square().sum((1, 2))
        self.z, multiplier = plain, kappa
        if len(self.levels) > 1:
            self.z, multiplier = self._cycle(0, self.r)
            cycled = (self.r * self.z).sum((1, 2))
            rz = torch.where(cycled >= 0.5 * rz, cycled, torch.nan)
        self.multiplier = torch.where(self.hard, 0.0, multiplier)
        return rz

    def _cycle(self, depth: int, r: Tensor) -> tuple[Tensor, Tensor]:
        """V-cycle: the correction on this grid, and the multiplier it brings."""
        level = self.levels[depth]
        kappa = OMEGA * level.kappa(r)
        z = OMEGA * r - level.times_g(kappa)
        if depth + 1 == len(self.levels):
            return z, kappa
        coarse = self.levels[depth + 1]
        assert level.groups is not None
        left = r - level.times_g(kappa) - level.apply(z)
        inverse_sd = reciprocal(coarse.sd)
        z_c, extra = self._cycle(depth + 1, block_sum(level.sd * left, level.groups) * inverse_sd)
        z_c, extra = self.over * z_c * inverse_sd, self.over * extra
        if coarse.gain is not None:
            extra = coarse.gain * z_c
        elif coarse.blocks is None:
            extra = torch.zeros_like(kappa)
        z = z + level.sd * spread(z_c, level.groups)
        left = r - level.times_g(kappa + extra) - level.apply(z)
        last = OMEGA * level.kappa(left)
        return z + OMEGA * left - level.times_g(last), kappa + extra + last

    def direction(self, beta: Tensor) -> Tensor:
        level, b = self.levels[0], beta[:, None, None]
        self.p = self.z + b * self.p
        self.q = level.apply(self.z) + level.times_g(self.multiplier) + b * self.q
        return (self.p * self.q).sum((1, 2))

    @staticmethod
    def divide(a: Tensor, b: Tensor) -> Tensor:
        return torch.where(b > 0, a / torch.where(b > 0, b, 1), 0.0)

    @staticmethod
    def any(condition: Tensor) -> bool:
        return bool(condition.any())

    least = staticmethod(torch.fmin)
    most = staticmethod(torch.maximum)

    @staticmethod
    def top(a: Tensor) -> float:
        return float(torch.as_tensor(a).max())

    # ---- right-hand sides and what becomes of the solution

    def shift_residual(self, y: Tensor) -> None:
        self.r = -laplacian(y, self.c) / self.levels[0].sd

    def right_hand_side(self, f: Tensor, a: Tensor) -> None:
        self.r = torch.where(self._isolated(), 0.0, (f - laplacian(a, self.c)) / self.levels[0].sd)

    def _isolated(self) -> Tensor:
        return edge_sum(*self.c) == 0

    def add_to(self, y: Tensor) -> None:
        y += self.x / self.levels[0].sd

    def hold(self, y: Tensor) -> None:
        self.y = y
        self.best = y.clone()

    def linearise(self, as_shift: bool = False) -> Tensor:
        self.relative = not as_shift
        if as_shift:
            self.assemble(None)
            self.shift_residual(self.y)
            return self.begin()
        self.assemble(self.y)
        flow = laplacian(self.y, self.c)
        self.mu = self._mu(flow)
        pull = spread(self.mu, self.blocks) * self.measured
        self.r = self.y * (pull * self.y - flow) / self.levels[0].sd
        return self.begin()

    def _mu(self, flow: Tensor) -> Tensor:
        n, source = self.constraint.count, self.constraint.source.detach()
        used = n > 0
        total = block_sum(self.y * self.measured, self.blocks)
        hard = block_sum(flow * self.measured, self.blocks) / torch.where(used, total, 1)
        misfit = source - total / n.clamp(min=1)
        soft = misfit / torch.where(used & ~self.hard, self.slack * total, 1)
        return torch.where(self.hard, hard, torch.where(used, soft, 0.0))

    def retract(self) -> None:
        u = self.x / self.levels[0].sd
        u = u if self.relative else u / self.y
        factor = torch.where(u > -0.5, 1 + u, 0.25 / (-u).clamp(min=0.5))
        self.y.copy_((self.y * factor).clamp(min=TINY))
        self.adjust(self.y)

    def halve(self, where: Tensor) -> None:
        middle = (self.y * self.best).sqrt()
        self.y.copy_(torch.where(where[:, None, None], middle, self.y))
        self.adjust(self.y)

    def keep(self, better: Tensor) -> None:
        self.best = torch.where(better[:, None, None], self.y, self.best)

    def recall(self) -> None:
        self.y.copy_(self.best)

    def adjoint_residual(self, a: Tensor, v: Tensor) -> Tensor:
        y, n, source = self.y, self.constraint.count, self.constraint.source.detach()
        left = y * (v - laplacian(a, self.c) + spread(self.mu, self.blocks) * self.measured * a)
        total = block_sum(y * self.measured, self.blocks)
        used = n > 0
        hard = block_sum(left * self.measured, self.blocks) / torch.where(used, total, 1)
        weight = self.slack * total**2 / torch.where(used, source, 1)
        soft = block_sum(self.measured * y * a, self.blocks) / torch.where(used & ~self.hard, weight, 1)
        self.k = torch.where(self.hard, hard, torch.where(used, soft, 0.0))
        left = left - y * self.measured * spread(self.k, self.blocks)
        self.r = torch.where(self._isolated(), 0.0, left / self.levels[0].sd)
        return self.begin()

    def add_adjoint(self, a: Tensor) -> None:
        a += self.y * self.x / self.levels[0].sd

    def adjust(self, y: Tensor, soft_too: bool = False) -> None:
        """Eq. 3 on hard cells, or on every measured one."""
        mean, source = self.constraint.down(y), self.constraint.source.detach()
        chosen = self.constraint.count > 0 if soft_too else self.hard
        if self.is_ratio:
            change = torch.where(chosen, source / torch.where(chosen, mean, 1), 1.0)
            y.copy_(torch.where(self.measured > 0, y * spread(change, self.blocks), y))
        else:
            y += spread(torch.where(chosen, source - mean, 0.0), self.blocks) * self.measured


def solve(
    c: Coefficients, constraint: Constraint, adjust: str, begin: Tensor, tolerance: float, limit: int
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Solve each image from `begin`. Returns values [N, H, W], and [N] iterations, residual, converged."""
    used = constraint.count > 0
    source = constraint.source.detach()
    mean = source.sum((1, 2)) / used.sum((1, 2))
    centre = torch.zeros_like(mean) if adjust == "ratio" else mean
    centred = replace(constraint, source=torch.where(used, source - centre[:, None, None], 0.0))
    system = TorchSystem(c, centred, adjust)
    y = begin - centre[:, None, None]
    if adjust == "ratio":
        least = torch.where(used, source, torch.inf).amin((1, 2))
        y = torch.maximum(y, 0.01 * least[:, None, None])
    system.adjust(y, soft_too=True)
    filled = torch.where(used, centred.source, (mean - centre)[:, None, None])
    reference = _energy(spread(filled, constraint.blocks), c)
    reference = torch.where(reference > 0, reference, _energy(y, c))
    eps = torch.finfo(y.dtype).eps
    edges = c.vertical.sum((1, 2)) + c.horizontal.sum((1, 2))
    noise = (2 * eps) ** 2 * 2 * edges * y.square().mean((1, 2))
    target = torch.maximum(tolerance**2 * reference, noise)
    run = solver.ratio if adjust == "ratio" else solver.shift
    lows, highs = (torch.where(used, source, -s * torch.inf).mul(s).amax((1, 2)) * s for s in (-1, 1))
    far = torch.stack([torch.as_tensor(solver.far(*v)) for v in zip(lows, highs, reference, strict=True)]).to(y)
    start = y.clone()
    rz, count = run(system, y, target, limit, far)
    failed = ~(rz <= target)
    if system.grids and bool((failed & (count < limit)).any()):
        system.grids = ()
        again = start.clone()
        rz_again, more = run(system, again, target, limit, far)
        y = torch.where(failed[:, None, None], again, y)
        rz, count = torch.where(failed, rz_again, rz), torch.where(failed, count + more, count)
    y = y + centre[:, None, None]
    TorchSystem(c, constraint, adjust).adjust(y)
    residual = torch.where(reference > 0, (rz.clamp(min=0) / torch.where(reference > 0, reference, 1)).sqrt(), 0.0)
    return y, count, residual, rz <= target


def adjoint(
    c: Coefficients, constraint: Constraint, adjust: str, y: Tensor, v: Tensor, tolerance: float, limit: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Solve the adjoint of each image for v = dloss/dy. Returns dloss/dS, dloss/dc vertical and horizontal."""
    system = TorchSystem(c, constraint, adjust)
    a = torch.zeros_like(y)
    used = constraint.count > 0
    if adjust == "shift":
        left, _ = solver.shift_adjoint(system, v, a, tolerance, limit)
        flux = block_sum((v - laplacian(a, c)) * system.measured, constraint.blocks) * used
    else:
        left, _ = solver.ratio_adjoint(system, y.clone(), v, a, tolerance, limit)
        share = constraint.down(y) / torch.where(used, constraint.source.detach(), 1)
        flux = constraint.count * system.k * torch.where(system.hard, 1.0, share)
    solver.warn_adjoint(float(left.max()), tolerance)
    return flux, -a.diff(dim=-2) * y.diff(dim=-2), -a.diff(dim=-1) * y.diff(dim=-1)


def misfit(values: Tensor, constraint: Constraint) -> tuple[Tensor, Tensor]:
    """Largest and mean |down(values) - source| over the measured cells of each image, [N]."""
    used = (constraint.count > 0).flatten(1)
    error = (constraint.down(values.detach()) - constraint.source.detach()).abs().flatten(1) * used
    return error.amax(dim=1), error.sum(dim=1) / used.sum(dim=1)


def _energy(y: Tensor, c: Coefficients) -> Tensor:
    """y' L y of each image."""
    return (c.vertical * y.diff(dim=1) ** 2).sum((1, 2)) + (c.horizontal * y.diff(dim=2) ** 2).sum((1, 2))
