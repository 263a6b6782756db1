"""Batches on the CPU: an image for each thread, or bands of a large one; the stop, the start, and what is reported."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from . import _cpu_tiles, _numba_values, engine, solver
from ._cpu_descent import ALL_MEASURED, Measurement
from ._cpu_system import CpuSystem, block_sum
from .coefficients import Coefficients
from .measurement import Constraint


def solve(
    c: Coefficients, constraint: Constraint, adjust: str, begin: Tensor, tolerance: float, limit: int
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Solve each image from `begin`. Returns values [N, H, W], and [N] iterations, residual, converged."""
    values = torch.from_numpy(np.array(begin.numpy(), order="C"))
    each, system = _systems(c, constraint, adjust)

    def one(n: int) -> tuple[int, float, bool]:
        with system(n) as image:
            return _solve_image(image, values[n].numpy(), tolerance, limit)

    count, residual, done = zip(*each(one), strict=True)
    return values, torch.tensor(count), torch.tensor(residual, dtype=values.dtype), torch.tensor(done)


def adjoint(
    c: Coefficients, constraint: Constraint, adjust: str, y: Tensor, v: Tensor, tolerance: float, limit: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Solve the adjoint of each image for v = dloss/dy. Returns dloss/dS, dloss/dc vertical and horizontal."""
    flux = torch.empty_like(constraint.source)
    vertical, horizontal = (torch.empty_like(edges) for edges in c)
    each, system = _systems(c, constraint, adjust)

    def one(n: int) -> float:
        a = np.zeros_like(y[n].numpy())
        run = _ratio_adjoint if adjust == "ratio" else _shift_adjoint
        with system(n) as image:
            left, out = run(image, y[n].numpy(), v[n].numpy(), a, tolerance, limit)
        flux[n].numpy()[:] = out
        _numba_values.edge_gradient(a, y[n].numpy(), vertical[n].numpy(), horizontal[n].numpy())
        return left

    solver.warn_adjoint(max(each(one)), tolerance)
    return flux, vertical, horizontal


def misfit(values: Tensor, constraint: Constraint) -> tuple[Tensor, Tensor]:
    """Largest and mean |down(values) - source| over the measured cells of each image, in float64, [N]."""
    out = np.empty(constraint.source.shape)
    count = constraint.count.double().contiguous().numpy()
    for n, image in enumerate(values.detach().numpy()):
        taken = ALL_MEASURED if constraint.measured is None else constraint.measured[n].to(values.dtype).numpy()
        has = constraint.measured is not None
        _numba_values.cell_means(image, count[n], taken, has, constraint.blocks.rows, constraint.blocks.cols, out[n])
    used = count > 0
    error = np.abs(out - constraint.source.detach().numpy()) * used
    largest, mean = error.max(axis=(1, 2)), error.sum(axis=(1, 2)) / used.sum(axis=(1, 2))
    return torch.from_numpy(largest), torch.from_numpy(mean)


def _shift_adjoint(
    system: CpuSystem, y: np.ndarray, v: np.ndarray, a: np.ndarray, tolerance: float, limit: int
) -> tuple[float, np.ndarray]:
    """Returns the share of r'z left, and dloss/dS."""
    m = system.measurement
    in_tiles = _cpu_tiles.approach_adjoint(system, y, v, limit)
    left, _ = solver.shift_adjoint(system, v, a, tolerance, limit, in_tiles)
    out = np.empty(system.cells)
    _numba_values.flux(a, v, system.cv, system.ch, m.count, *m.compiled, *system.parts, out)
    return left, out


def _ratio_adjoint(
    system: CpuSystem, y: np.ndarray, v: np.ndarray, a: np.ndarray, tolerance: float, limit: int
) -> tuple[float, np.ndarray]:
    """Returns the share of r'z left, and dloss/dS = n k down(y) / S."""
    m = system.measurement
    in_tiles = _cpu_tiles.approach_adjoint(system, y, v, limit)
    left, _ = solver.ratio_adjoint(system, y, v, a, tolerance, limit, in_tiles)
    taken = y if m.measured is None else y * m.measured
    soft = (m.count > 0) & (m.slack > 0)
    share = np.ones(system.cells)
    if soft.any():
        share[soft] = block_sum(taken, m.blocks)[soft] / (m.count * m.source)[soft]
    return left, m.count * system.k * share


def _systems(
    c: Coefficients, constraint: Constraint, adjust: str
) -> tuple[Callable[[Callable[[int], Any]], list], Callable[[int], CpuSystem]]:
    """How to run on each image, and how to make its system: an image for each thread, or bands of a large one."""
    cv, ch = (v.contiguous().numpy() for v in c)
    source, count, weight = (
        v.detach().double().contiguous().numpy() for v in (constraint.source, constraint.count, constraint.weight)
    )
    measured = None if constraint.measured is None else constraint.measured.to(c.vertical.dtype).numpy()
    images, pixels = len(source), ch.shape[1] * cv.shape[2]
    pool, workers = engine.pool()
    threads = workers if pixels >= engine.LARGE else min(workers, 1 + pixels // engine.SHARE)
    shared = pool is not None and images < workers and threads > 1

    def system(n: int) -> CpuSystem:
        slack = np.divide(1.0, weight[n], out=np.full_like(weight[n], np.inf), where=weight[n] > 0)
        m = Measurement(constraint.blocks, source[n], slack, count[n], None if measured is None else measured[n])
        return CpuSystem(cv[n], ch[n], m, adjust, *((pool, threads) if shared else (None, 1)))

    def each(run: Callable[[int], Any]) -> list:
        return [run(n) for n in range(images)] if shared else engine.each(run, images)

    return each, system


def _solve_image(system: CpuSystem, y: np.ndarray, tolerance: float, limit: int) -> tuple[int, float, bool]:
    """Solve one image in place. Returns iterations, residual, converged."""
    given = system.measurement
    used = given.count > 0
    centre = 0.0
    if system.ratio:
        system.y = y
        system.call()
        np.maximum(y, y.dtype.type(0.01 * given.source[used].min()), out=y)  # a float64 would turn y to it and back
    else:  # L ignores a constant; without it, more digits are left for what varies
        centre = float(given.source[used].mean())
        system.measurement = replace(given, source=np.where(used, given.source - centre, 0))
        system.call()
        y -= y.dtype.type(centre)
    system.adjust(y, soft_too=True)  # the correction of `shift` starts without misfit
    reference = system.nearest_energy() or _energy(system, y)
    # what the rounding of y alone leaves
    edges = _numba_values.total(system.cv, 1) + _numba_values.total(system.ch, 1)
    noise = (2 * np.finfo(y.dtype).eps) ** 2 * 2 * edges * _numba_values.total(y, 2) / y.size
    target = max(tolerance**2 * reference, float(noise))
    run = solver.ratio if system.ratio else solver.shift
    far = solver.far(given.source[used].min(), given.source[used].max(), reference)
    start = y.copy() if system.hierarchy else y
    rz, count = run(system, y, target, limit, far, _cpu_tiles.approach(system, limit))
    if not rz <= target and system.hierarchy and count < limit:
        system.hierarchy = None  # more iterations, but not as easily upset by extreme coefficients
        y[:] = start
        rz, more = run(system, y, target, limit - count, far)
        count += more
    y += y.dtype.type(centre)
    system.measurement = given
    system.adjust(y)
    residual = float(np.sqrt(max(rz, 0.0) / reference)) if reference > 0 else 0.0
    return int(count), residual, bool(rz <= target)


def _energy(system: CpuSystem, y: np.ndarray) -> float:
    """y' L y."""
    return float((system.cv * np.diff(y, axis=0) ** 2).sum() + (system.ch * np.diff(y, axis=1) ** 2).sum())
