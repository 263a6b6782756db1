"""Conjugate gradients on the saddle system (system.py), with a preconditioner that keeps the constraint.

The preconditioner is the diagonal of K, or a V-cycle (multigrid.py), under the same constraint. By the Sherman-Morrison
formula, with a unit diagonal,

    z = r - g kappa_b,    kappa_b = (sum g r) / (slack_b + sum g^2)

is a projection for hard cells (slack 0) and drops the constraint for cells without a measurement (slack infinite). The
multiplier of every direction follows from its recurrence, so that hard, soft and unmeasured cells run through the same
code without a large or a small number anywhere.

sqrt(r'z) estimates the energy norm of the error, sqrt(e'Ke): that is what decides when to stop.
"""

from __future__ import annotations

from .system import Array, System, divide

HOPELESS = 1e4  # once r'z has risen so far above its least, rounding has the last word, and it will not come back


def conjugate_gradients(system: System, rz: Array, target: Array, limit: Array | int) -> tuple[Array, Array]:
    """Reduce r'z of each image below its target.

    Args:
        system: as `start` left it; its x is the solution afterwards.
        rz: [N] as `start` returned it.
        target: [N]; an image whose r'z is not above it is left alone.
        limit: [N] or a number, most iterations.

    Returns:
        [N] the last r'z that was computed, and [N] the iterations.
    """
    xp = system.xp
    beta, least, count = 0.0 * rz, rz, 0 * (rz > target)
    moved = active = (rz > target) & (count < limit)
    while bool(active.any()):
        alpha = divide(xp, rz, system.direction(beta, active))
        new = xp.where(active, system.step(alpha, active), rz)
        beta, rz = divide(xp, new, rz), new
        least = xp.fmin(least, rz)
        count = count + active
        active = active & (rz > target) & (rz < HOPELESS * least) & (count < limit)
    if system.grids and bool(moved.any()):
        system.half_step(rz, beta, moved & (rz < HOPELESS * least))
    system.finish()
    return rz, count
