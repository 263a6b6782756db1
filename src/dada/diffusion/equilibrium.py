"""The image at which the paper's loop ends, computed directly, with exact gradients by the implicit function theorem.

Gradient. At the equilibrium (solver.py) let v = dloss/dy. The adjoint image a and a multiplier k_b for each block solve

    shift   L a + m k = v,            sum_b(m a)   = slack n^2 k
    ratio   (L - mu) a + m k = v,     sum_b(m y a) = slack n^2 down(y)^2 / S k

and then, whatever the number of iterations was,

    dloss/dc_pn = -(a_p - a_n)(y_p - y_n),    dloss/dS_b = n k  (times down(y) / S for a soft cell of `ratio`),
    dloss/dw_b = dloss/dS_b (S - down(y)) / w.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from . import engine
from .coefficients import Coefficients
from .loop import flatten, start
from .measurement import Adjust, Constraint, check
from .solution import ConvergenceWarning, Solution, summarise

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
    warn: bool = True,
) -> Solution:
    """Compute where the paper's loop ends (`iterate` with infinitely many steps), differentiably.

    Args:
        source: [B, K, h, w] measurements, float32 or float64; the K channels share the coefficients.
        coefficients: of the H x W target grid, H >= h and W >= w.
        initial: [B, K, H, W] start; nearest-neighbour upsampling of the source where not given. It changes the time,
            not the result (but for regions that no coefficient ties to any measurement, which keep its mean).
        adjust: "ratio" (Eq. 3, positive values only) or "shift" (any values).
        tolerance: of the error's energy norm, relative to the nearest-neighbour image's.
        max_iterations: of the conjugate gradients, for each image.
        mask: [B, K, h, w] bool, cells with a measurement.
        coverage: [B, K, H, W] bool, pixels over which the cells were measured.
        weight: [B, K, h, w] >= 0, how firmly each cell is held: minimises 1/2 y'Ly + 1/2 sum w (down(y) - S)^2
            (`shift`). Infinite (the default) is exact, 0 is no measurement.
        warn: whether to warn of an image that did not converge; the solution says so in any case.

    Returns:
        Solution, whose values carry gradients to source, coefficients and weight.

    Warns:
        ConvergenceWarning: an image did not reach the tolerance; the solution says how far it came.
    """
    if not tolerance > 0 or max_iterations < 1:
        raise ValueError(f"need tolerance > 0 and max_iterations >= 1, got {tolerance} and {max_iterations}")
    constraint = check(source, coefficients, adjust, mask, coverage, weight)
    flat = flatten(coefficients, source.shape[1])
    record = _Record(constraint, adjust, tolerance, max_iterations)
    with torch.no_grad():
        begin = start(initial, source, constraint).detach()
    values = _Equilibrium.apply(constraint.source, constraint.weight, *flat, begin, record)
    reason = [
        f"reached tolerance {tolerance:g}"
        if done
        else f"stopped after {int(count)} iterations with residual {float(left):.1e}, tolerance {tolerance:g}"
        for done, count, left in zip(record.converged, record.iterations, record.residual, strict=True)
    ]
    if warn and not bool(record.converged.all()):
        bad = [text for text, done in zip(reason, record.converged, strict=True) if not done]
        more = f" (and {len(bad) - 1} more images)" if len(bad) > 1 else ""
        warnings.warn(f"equilibrium not reached: {bad[0]}{more}", ConvergenceWarning, stacklevel=2)
    shape = (source.shape[0], source.shape[1])
    return summarise(values, constraint, shape, record.iterations, record.residual, record.converged, reason)


@dataclass
class _Record:
    """What goes into a solve beside its differentiable inputs, and what comes out beside its values."""

    constraint: Constraint
    adjust: Adjust
    tolerance: float
    max_iterations: int
    iterations: Tensor = field(default_factory=lambda: torch.empty(0))
    residual: Tensor = field(default_factory=lambda: torch.empty(0))
    converged: Tensor = field(default_factory=lambda: torch.empty(0))


class _Equilibrium(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        source: Tensor,
        weight: Tensor,
        vertical: Tensor,
        horizontal: Tensor,
        begin: Tensor,
        record: _Record,
    ) -> Tensor:
        c = Coefficients(vertical.detach(), horizontal.detach())
        values, iterations, residual, converged = engine.on(source.device).solve(
            c, record.constraint, record.adjust, begin, record.tolerance, record.max_iterations
        )
        record.iterations, record.residual, record.converged = iterations, residual, converged
        ctx.save_for_backward(source, weight, vertical, horizontal, values)
        ctx.record = record
        return values

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, v: Tensor) -> tuple[Tensor | None, ...]:
        source, weight, vertical, horizontal, y = (saved.detach() for saved in ctx.saved_tensors)
        record: _Record = ctx.record
        c = Coefficients(vertical, horizontal)
        flux, *edges = engine.on(y.device).adjoint(
            c,
            record.constraint,
            record.adjust,
            y,
            v.contiguous(),
            GRADIENT_LOOSER * record.tolerance,
            record.max_iterations,
        )
        need = ctx.needs_input_grad
        grad_weight = None
        if need[1]:
            soft = (weight > 0) & torch.isfinite(weight)
            misfit = source - record.constraint.down(y)
            grad_weight = torch.where(soft, flux * misfit / torch.where(soft, weight, 1.0), 0.0)
        return flux, grad_weight, *edges, None, None
