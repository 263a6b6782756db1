"""The image at which the paper's loop ends, computed directly, with exact gradients by the implicit function theorem.

The equations of the adjoint, and of the gradient, are in docs/explanation/mathematics.md.
"""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dada.operators import operator, outside

from .blocks import Blocks
from .coefficients import Coefficients
from .conjugate_gradients import conjugate_gradients
from .loop import flat_initial, start
from .measurement import Adjust, Given, Measurement, measure, read_given
from .multigrid import alike, between_groups
from .newton import FAR, NARROW, solve_ratio, solve_ratio_adjoint
from .solution import ConvergenceWarning, Solution, misfit, why
from .system import Array, System, divide, total

TOLERANCE = 2e-4
MAX_ITERATIONS = 2000
GRADIENT_LOOSER = 5  # the gradient's tolerance, relative to its own size, in units of the solution's


def equilibrium(
    source: Tensor,
    coefficients: Coefficients,
    *,
    initial: Tensor | None = None,
    adjust: Adjust = "ratio",
    tolerance: float = TOLERANCE,
    max_iterations: int = MAX_ITERATIONS,
    mask: Tensor | None = None,
    coverage: Tensor | None = None,
    weight: Tensor | None = None,
    blocks: Blocks | None = None,
    warn: bool = True,
    coarse: bool = True,
) -> Solution:
    """Compute where the paper's loop ends (`iterate` with infinitely many steps), differentiably.

    Args:
        source: [B, K, h, w] measurements, float32 or float64; the K channels share the coefficients. Half precision is
            computed with in float32, also under torch.autocast.
        coefficients: of the H x W target grid, H >= h and W >= w.
        initial: [B, K, H, W] start; nearest-neighbour upsampling of the source where not given. It changes the time,
            not the result (but for regions that no coefficient ties to any measurement, which keep its mean).
        adjust: "ratio" (Eq. 3, positive values only) or "shift" (any values).
        tolerance: of the error's energy norm, relative to the nearest-neighbour image's.
        max_iterations: of the conjugate gradients, for each image.
        mask: [B, K, h, w] bool, cells with a measurement.
        coverage: [B, K, H, W] bool, pixels over which the cells were measured.
        weight: [B, K, h, w] >= 0, how firmly each cell is kept: minimises 1/2 y'Ly + 1/2 sum w (down(y) - S)^2
            (`shift`). Infinite (the default) is exact, 0 is no measurement.
        blocks: which pixels each cell covers, where that is not `partition` of the two sizes: the blocks of a tile.
        warn: whether to warn of an image that did not converge; the solution says so in any case.
        coarse: whether coarser grids may precondition. Points that lie close need none, and an iteration without them
            takes a fraction of the time.

    Returns:
        Solution, whose values carry gradients to source, coefficients and weight, and those of second order.

    Warns:
        ConvergenceWarning: an image did not reach the tolerance; the solution says how far it came.
    """
    if not tolerance > 0 or max_iterations < 1:
        raise ValueError(f"need tolerance > 0 and max_iterations >= 1, got {tolerance} and {max_iterations}")
    given = read_given(source, coefficients, mask, coverage, weight, blocks)
    begin = flat_initial(initial, source.shape[:2], given)
    how = adjust, float(tolerance), max_iterations, warn, coarse
    found = solution_operator(*given, None if begin is None else begin.detach(), *how)
    return Solution.of(source.shape[:2], *found, tolerance=tolerance)


# ---- operators of torch: the solution, its gradient, and the gradient of that


def _solve(*given: Any) -> tuple[Tensor, ...]:
    """Return values [N, H, W]; for each image iterations, residual, converged, and the misfit's maximum and mean."""
    *problem, initial, adjust, tolerance, limit, warn, coarse = given
    measurement, c = measure(Given(*problem), adjust), Coefficients(*problem[1:3])
    begin = start(initial, measurement)
    values, *account = _in_groups(solve, c, measurement, adjust, begin, tolerance, limit, coarse)
    count, residual, converged = account
    bad = [text for text, done in zip(why(count, residual, converged, tolerance), converged, strict=True) if not done]
    if warn and bad:
        more = f" (and {len(bad) - 1} more images)" if len(bad) > 1 else ""
        warnings.warn(f"equilibrium not reached: {bad[0]}{more}", ConvergenceWarning, stacklevel=outside())
    return values.contiguous(), count.long(), residual.double(), converged, *misfit(values, measurement)


def _like_solution(source: Tensor, vertical: Tensor, horizontal: Tensor, *_: Any) -> tuple[Tensor, ...]:
    kinds = torch.int64, torch.float64, torch.bool, torch.float64, torch.float64
    values = source.new_empty(len(source), horizontal.shape[-2], vertical.shape[-1])
    return values, *(source.new_empty(len(source), dtype=kind) for kind in kinds)


def _solution_backward(given: list[Any], y: Tensor, v: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    *problem, _, adjust, tolerance, limit, _, _ = given
    return gradient_operator(v[0], y, *problem, adjust, GRADIENT_LOOSER * tolerance, limit)


def _gradient(*given: Any) -> tuple[Tensor, ...]:
    """Return the derivatives of a loss by source, vertical, horizontal and weight, from v = dloss/dy at y."""
    v, y, *problem, adjust, tolerance, limit = given
    measurement, c = measure(Given(*problem), adjust), Coefficients(*problem[1:3])
    flux, *edges = _in_groups(adjoint, c, measurement, adjust, y, v.contiguous(), tolerance, limit)
    soft = (measurement.weight > 0) & torch.isfinite(measurement.weight)
    moved = (measurement.source - measurement.down(y)) / torch.where(soft, measurement.weight, 1.0)
    return torch.where(measurement.count > 0, flux, 0.0), *edges, torch.where(soft, flux * moved, 0.0)


def _gradient_backward(given: list[Any], _: Tensor, cotangents: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return second_operator(*cotangents, *given[:10])


def _second(*given: Any) -> tuple[Tensor, ...]:
    from .second_order import gradient_of_gradient

    *cotangents, v, y, source, vertical, horizontal, weight, coverage, rows, cols, adjust = given
    problem = Given(source, vertical, horizontal, weight, coverage, rows, cols)
    return gradient_of_gradient(cotangents, v, y, problem, measure(problem, adjust), adjust)


_PROBLEM = (
    "Tensor source, Tensor vertical, Tensor horizontal, Tensor? weight, Tensor? coverage, int[]? rows, int[]? cols"
)
solution_operator = operator(
    f"equilibrium({_PROBLEM}, Tensor? initial, str adjust, float tolerance, int limit, bool warn, bool coarse)"
    " -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
    _solve, _like_solution, _solution_backward, differentiable=1,
)  # fmt: skip
gradient_operator = operator(
    f"equilibrium_gradient(Tensor v, Tensor y, {_PROBLEM}, str adjust, float tolerance, int limit)"
    " -> (Tensor, Tensor, Tensor, Tensor)",
    _gradient, (2, 3, 4, 2), _gradient_backward,
)  # fmt: skip
second_operator = operator(
    "equilibrium_second_gradient("
    f"Tensor hs, Tensor hv, Tensor hh, Tensor hw, Tensor v, Tensor y, {_PROBLEM}, str adjust)"
    " -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
    _second, (4, 5, 6, 7, 8, 6),
)  # fmt: skip


# ---- N images, in the arrays of a backend


def _in_groups(run: Any, c: Coefficients, measurement: Measurement, adjust: Adjust, *given: Any) -> tuple[Tensor, ...]:
    """Run on images that are preconditioned alike, group by group."""
    groups = [images.to(c.vertical.device) for images in alike(measurement)]
    if len(groups) == 1:
        return run(c, measurement, adjust, *given)  # type: ignore[no-any-return]
    parts = []
    for images in groups:
        edges = Coefficients(*(e[images] for e in c))
        fields = (v[images] if isinstance(v, Tensor) else v for v in given)
        parts.append(run(edges, measurement.of(images), adjust, *fields))
    order = torch.cat(groups).argsort()
    return tuple(torch.cat(part)[order] for part in zip(*parts, strict=True))


def solve(
    c: Coefficients, measurement: Measurement, adjust: Adjust, begin: Tensor, tolerance: float, limit: int, coarse: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Solve N images from `begin` [N, H, W]; return values, and [N] iterations, residual, converged.

    A solve ends when the estimated energy norm of its error falls below `tolerance` times that of the nearest-neighbour
    image: a measure that does not depend on the start.
    """
    with np.errstate(all="ignore"):
        system = System(c, measurement, adjust)
        if not coarse:
            system.use_grids(())
        xp, backend, source = system.xp, system.backend, system.source
        # L ignores a constant; without it, more digits are left for what varies
        centre = system.mean_source() if adjust == "shift" else 0 * system.mean_source()
        system.source = xp.where(system.used, source - centre[:, None, None], 0.0)
        y = backend.field(begin)
        y -= backend.per_image(centre)
        if adjust == "ratio":
            y = xp.maximum(y, backend.per_image(0.01 * system.least_source()))
        system.adjust(y, system.used)  # the correction of `shift` starts without misfit
        energy = _reference_energy(system, c, measurement, y)
        target = xp.maximum(tolerance**2 * energy, _rounding(system, y))
        rz, count = _solve_from(system, y, target, limit, energy)
        y += backend.per_image(centre)
        system.source = source
        system.adjust(y, system.hard)
        within = (xp.amin(y, (1, 2)) > (0 if system.is_ratio else -xp.inf)) & (xp.amax(y, (1, 2)) < xp.inf)
        residual = xp.where(within, divide(xp, xp.maximum(rz, 0 * rz), energy) ** 0.5, xp.inf)
        return tuple(backend.tensor(v) for v in (y, count, residual, (rz <= target) & within))


def _solve_from(system: System, y: Array, target: Array, limit: int, energy: Array) -> tuple[Array, Array]:
    """Bring r'z of y, changed in place, below the target; return r'z and iterations."""
    xp = system.xp
    least, most = system.least_source(), -system.least_source(-1)
    far = xp.where(most > NARROW * least, FAR * energy, xp.inf)
    run = partial(solve_ratio, far=far) if system.is_ratio else _solve_shift
    start = y + 0 if system.grids else y
    rz, count = run(system, y, target, limit)
    failed = ~(rz <= target) & (count < limit)
    if system.grids and bool(failed.any()):
        system.use_grids(())  # more iterations, but not as easily upset by extreme coefficients
        y[failed] = start[failed]
        again, more = run(system, y, xp.where(failed, target, xp.inf), limit - count)
        rz, count = xp.where(failed, again, rz), xp.where(failed, count + more, count)
    return rz, count


def _solve_shift(system: System, y: Array, target: Array, limit: Array | int) -> tuple[Array, Array]:
    """Solve `shift`, which is one saddle system, K = L and g = m, for the correction of y."""
    rz, count = conjugate_gradients(system, system.start_shift(y), target, limit)
    y += system.solution()
    return rz, count


def adjoint(
    c: Coefficients, measurement: Measurement, adjust: Adjust, y: Tensor, v: Tensor, tolerance: float, limit: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Solve the adjoint for v = dloss/dy [N, H, W] at the equilibrium y.

    Returns:
        dloss/dS [N, h, w], dloss/dc of the vertical and of the horizontal edges.
    """
    with np.errstate(all="ignore"):
        system = System(c, measurement, adjust)
        backend, xp = system.backend, system.xp
        fields = backend.field(y), backend.field(v)
        if adjust == "shift":
            a, flux, left = _shift_adjoint(system, fields[1], tolerance, limit)
        else:
            a, k, left = solve_ratio_adjoint(system, *fields, tolerance, limit)
            mean = backend.block_sums(fields[0]) / xp.where(system.used, system.count, 1)
            share = xp.where(system.soft, mean / xp.where(system.soft, system.source, 1), 1.0)
            flux = system.count * k * share
        _warn_of_adjoint(float(left.max()), tolerance)
        a, flux = backend.tensor(a), backend.tensor(flux).to(y.dtype)
        return flux, -a.diff(dim=-2) * y.diff(dim=-2), -a.diff(dim=-1) * y.diff(dim=-1)


def _shift_adjoint(system: System, v: Array, tolerance: float, limit: int) -> tuple[Array, Array, Array]:
    """Solve L a + m k = v; return a, dloss/dS and the share of r'z that is left."""
    a = 0 * v
    first = system.start_shift(a, v)
    rz, _ = conjugate_gradients(system, first, tolerance**2 * first, limit)
    a += system.solution()
    flux = system.backend.block_sums(system.backend.flow(a, v, system.all_images))
    return a, -flux * system.used, divide(system.xp, rz, first)


def _reference_energy(system: System, c: Coefficients, measurement: Measurement, y: Array) -> Array:
    """y'L y of the nearest-neighbour image, for which only edges between blocks count; where it is 0, of the start."""
    cells, edges = measurement.filled().double(), between_groups(c.vertical, c.horizontal, measurement.blocks)
    parts = zip(edges, (cells.diff(dim=1), cells.diff(dim=2)), strict=True)
    energy = sum(total(system.backend.cells(c.double() * change.square())) for c, change in parts)
    if bool((energy > 0).all()):
        return energy
    return system.xp.where(energy > 0, energy, total(y * system.backend.flow(y, None, system.all_images)))


def _rounding(system: System, y: Array) -> Array:
    """The r'z that the rounding of y alone leaves."""
    edges = total(system.backend.cv) + total(system.backend.ch)
    return (2 * system.backend.eps) ** 2 * 2 * edges * total(y * y) / (y.shape[1] * y.shape[2])


def _warn_of_adjoint(left: float, tolerance: float) -> None:
    """Say so where the gradient is less exact than the tolerance; `left` is the share of r'z that remains."""
    if left > tolerance**2:
        warnings.warn(
            f"gradient of the equilibrium not reached: relative residual {left**0.5:.1e}, tolerance {tolerance:g}",
            ConvergenceWarning,
            stacklevel=outside(),
        )
