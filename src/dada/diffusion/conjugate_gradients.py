"""Conjugate gradients on the saddle system (system.py), with a preconditioner that keeps the constraint.

The preconditioner is the diagonal of K, or a V-cycle (multigrid.py), under the same constraint. By the Sherman-Morrison
formula, with a unit diagonal,

    z = r - g kappa_b,    kappa_b = (sum g r) / (slack_b + sum g^2)

is right for hard, soft and unmeasured cells alike. sqrt(r'z) estimates the energy norm of the error, sqrt(e'Ke): that
is what decides when to stop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .system import Array, System, divide

HOPELESS = 1e4  # once r'z has risen so far above its least, rounding has the last word, and it will not come back


def conjugate_gradients(system: System, rz: Array, target: Array, limit: Array | int) -> tuple[Array, Array]:
    """Reduce r'z of each image below its target; return [N] the last r'z that was computed, and the iterations.

    Args:
        system: as `start` left it; its x is the solution afterwards.
        rz: [N] as `start` returned it.
        target: [N]; an image whose r'z is not above it is left alone.
        limit: [N] or a number, most iterations.
    """
    xp = system.xp
    alpha, beta, ceiling, count = 0.0 * rz, 0.0 * rz, HOPELESS * rz, 0 * (rz > target)
    moved = active = (rz > target) & (count < limit)
    number, among = _among(xp, active)
    done = 0
    while number:
        alpha = among(divide(xp, rz, system.direction(beta, active)), alpha)
        new = among(system.step(alpha, active), rz)
        beta, rz = among(new / rz, beta), new
        ceiling = xp.fmin(ceiling, HOPELESS * rz)
        done += 1
        left = active & (rz > target) & (rz < ceiling) & (limit > done)
        if xp.count_nonzero(left) < number:
            count, active = xp.where(active, done, count), left
            number, among = _among(xp, active)
    if system.grids and xp.count_nonzero(moved):
        system.half_step(rz, beta, moved & (rz < ceiling))
    system.finish()
    return rz, count


def _among(xp: Any, active: Array) -> tuple[int, Callable[[Array, Array], Array]]:
    """The number of active images, and a choice: the new numbers of these, the old ones of the others."""
    number = int(xp.count_nonzero(active))
    if number == len(active):
        return number, lambda new, old: new
    return number, lambda new, old: xp.where(active, new, old)
