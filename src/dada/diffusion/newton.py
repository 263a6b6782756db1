"""`ratio` by Newton's method in log y, and its adjoint by the transpose of the same iteration.

Each step is a saddle system with the weights c_pn y_p y_n and g = m y^2, followed by the exact adjustment (Eq. 3):
"`ratio`" in docs/explanation/mathematics.md says why.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from .conjugate_gradients import conjugate_gradients
from .system import Array, System, divide

STEPS = 60  # of Newton's method, at most
LIMIT = 200  # iterations within one step
REDUCTION, MARGIN = 0.05, 0.25  # a step reduces its residual by this share, or to this share of the target
CYCLE_REDUCTION, CYCLE_MARGIN = 0.12, 0.45  # the same with a V-cycle, where half a step more follows
STILL = 0.05  # a system is kept until some pixel has changed by this share since it was built
FAR = 1e-2  # a start is far away if r'z exceeds this share of the energy of up(S) ...
NARROW = 1.2  # ... unless the source varies by less than this factor: Newton then succeeds from anywhere near
WORSE = 100.0  # how far r'z may rise above its least
PATIENCE = 4  # steps without a new least r'z, after which every step must reach one
HALVINGS = 8  # of a step


@dataclass
class Linearisation:
    """The system of a Newton step at y, with its right-hand side."""

    rz: Array  # [N] r'z at its start
    mu: Array  # [N, h, w] the multiplier in (L y)_p = m_p mu_b y_p
    drift: Array  # [N] by which share some pixel has changed since the system was built


def solve_ratio(system: System, y: Array, target: Array, limit: int, far: Array) -> tuple[Array, Array]:
    """Solve `ratio` from y, which is changed in place.

    Args:
        system: of the images.
        y: field, positive, the start.
        target: [N] r'z at which an image is done.
        limit: most iterations for an image.
        far: [N] r'z of `shift` above which a start counts as far away.

    Returns:
        [N] r'z of the y that is left, the best one, and [N] the iterations.
    """
    xp = system.xp
    spent = _approach(system, y, target, limit, far)
    now = _linearise(system, y, _unknown(system), system.all_images)
    least, best, stale, allowed = now.rz, y + 0, 0 * spent, WORSE + 0.0 * target
    live = ~(now.rz <= target)
    for _ in range(STEPS):
        if not bool(live.any()):
            break
        left = xp.minimum(limit - spent, LIMIT + 0 * spent)
        goal = xp.where(live, _goal(system, now.rz, target), xp.inf)
        spent = spent + conjugate_gradients(system, now.rz, goal, left)[1]
        now = _next(system, y, now, live)
        for _ in range(HALVINGS):
            bad = live & ~(now.rz <= allowed * least)
            if not bool(bad.any()):
                break
            y[bad] = (y[bad] * best[bad]) ** 0.5
            system.adjust(y, system.hard, bad)
            now = _linearise(system, y, _moved(system, now, bad), bad)
        better = live & (now.rz < least)
        best[better] = y[better]
        least = xp.where(better, now.rz, least)
        stale = xp.where(better, 0, stale + 1)
        live = live & (least > target) & (spent < limit) & ~((stale > 0) & (allowed == 1))
        strict = live & (stale == PATIENCE)
        if bool(strict.any()):
            allowed, stale = xp.where(strict, 1.0, allowed), xp.where(strict, 0, stale)
            y[strict] = best[strict]
            now = _linearise(system, y, _moved(system, now, strict), strict)
    y[:] = best
    return least, spent


def solve_ratio_adjoint(system: System, y: Array, v: Array, tolerance: float, limit: int) -> tuple[Array, Array, Array]:
    """Solve (L - mu) a + m k = v, sum(m y a) = slack k, the adjoint of `ratio` at its equilibrium y.

    Args:
        system: of the images.
        y: field.
        v: field, dloss/dy.
        tolerance: of the energy norm of the error, relative to that of a = 0.
        limit: most iterations for an image.

    Returns:
        a, k [N, h, w], and [N] the share of r'z that is left.
    """
    at = _linearise(system, y, _unknown(system), system.all_images)
    a = 0 * y
    rz, k = _adjoint_residual(system, y, v, a, at.mu)
    first, least, spent = rz, rz, 0 * (rz > 0)
    for _ in range(STEPS):
        live = (rz > tolerance**2 * first) & (rz <= WORSE * least) & (spent < limit)
        if not bool(live.any()):
            break
        least = system.xp.fmin(least, rz)
        goal = system.xp.where(live, _goal(system, rz, tolerance**2 * first), system.xp.inf)
        spent = spent + conjugate_gradients(system, rz, goal, limit - spent)[1]
        a += y * system.solution() * live[:, None, None]
        rz, k = _adjoint_residual(system, y, v, a, at.mu)
    return a, k, divide(system.xp, rz, first)


def _goal(system: System, rz: Array, target: Array) -> Array:
    """The r'z at which a step that begins at `rz` may end."""
    reduction, margin = (CYCLE_REDUCTION, CYCLE_MARGIN) if system.grids else (REDUCTION, MARGIN)
    return system.xp.maximum(margin * target, reduction**2 * rz)


def _unknown(system: System) -> Linearisation:
    """Nothing built yet."""
    zero = 0.0 * system.count
    number = zero[:, 0, 0]
    return Linearisation(number, zero, number + system.xp.inf)


def _approach(system: System, y: Array, target: Array, limit: Array | int, far: Array) -> Array:
    """Bring images that are far away nearer, by a step of `shift`; return the iterations."""
    xp = system.xp
    rz = system.start_shift(y) if bool((far < xp.inf).any()) else 0.0 * target
    away = rz > far
    if not bool(away.any()):
        return 0 * away
    goal = xp.where(away, _goal(system, rz, target), xp.inf)
    _, spent = conjugate_gradients(system, rz, goal, xp.minimum(limit + 0 * away, LIMIT + 0 * away))
    system.backend.update(y, system.x, system.levels[0].sd * y, away)
    system.adjust(y, system.hard, away)
    return spent


def _moved(system: System, now: Linearisation, which: Array) -> Linearisation:
    """The same, but for images whose system must be built anew."""
    return replace(now, drift=system.xp.where(which, system.xp.inf, now.drift))


def _next(system: System, y: Array, now: Linearisation, live: Array) -> Linearisation:
    """Take the step that the solution of the system gives, and linearise there."""
    xp = system.xp
    change = system.backend.update(y, system.x, system.levels[0].sd, live)
    system.adjust(y, system.hard, live)
    return _linearise(system, y, replace(now, drift=xp.where(live, now.drift + change, xp.inf)), live)


def _linearise(system: System, y: Array, last: Linearisation, which: Array) -> Linearisation:
    """Linearise these images at y; while little has changed, only the right-hand side y (m mu y - L y) / sd is new."""
    xp, backend = system.xp, system.backend
    stale = which & ~(last.drift < STILL)
    if bool(stale.any()):
        system.assemble(y, stale)
    flow = backend.flow(y, None, which)
    mu = xp.where(which[:, None, None], _multiplier(system, y, flow), last.mu)
    flow *= -1
    backend.add(flow, y, mu, which)
    system.r[which] = (y * flow / system.levels[0].sd)[which]
    rz = xp.where(which, system.start(which), last.rz)
    return Linearisation(rz, mu, xp.where(stale, 0.0, last.drift))


def _multiplier(system: System, y: Array, flow: Array) -> Array:
    """mu of (L y)_p = m_p mu_b y_p: in hard cells what balances the flow, in soft ones the pull of the measurement."""
    xp, used, soft = system.xp, system.used, system.soft
    total = system.backend.block_sums(y)
    hard = system.backend.block_sums(flow) / xp.where(used, total, 1)
    misfit = system.source - total / xp.where(used, system.count, 1)
    pull = misfit / xp.where(soft, system.inverse_weight * total, 1)
    return xp.where(system.hard, hard, xp.where(soft, pull, 0.0))


def _adjoint_residual(system: System, y: Array, v: Array, a: Array, mu: Array) -> tuple[Array, Array]:
    """Take what is left of the adjoint equation at a, y (m (mu a - k) + v - L a) / sd; return r'z and k."""
    xp, backend, soft = system.xp, system.backend, system.soft
    flow = backend.flow(a, v, system.all_images)
    total, moment = backend.block_sums(y), backend.block_sums(y, a)
    hard = (mu * moment - backend.block_sums(y, flow)) / xp.where(system.used, total, 1)
    weight = system.inverse_weight * total**2 / xp.where(soft, system.source, 1)
    k = xp.where(system.hard, hard, xp.where(soft, moment / xp.where(soft, weight, 1), 0.0))
    flow *= -1
    backend.add(flow, a, mu, None)
    backend.add(flow, None, -k, None)
    system.r[:] = y * flow / system.levels[0].sd
    system.r[system.isolated()] = 0
    return system.start(system.all_images), k
