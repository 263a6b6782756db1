"""Where the paper's loop ends, computed directly. Both adjustments come down to one kind of linear system.

The loop (loop.py) stands still where the flow out of every pixel is given back by the adjustment. With L the graph
Laplacian of the coefficients, m_p = 1 for the measured pixels of block b and n_b their number:

    shift   (L y)_p = m_p mu_b          ratio   (L y)_p = m_p mu_b y_p          and in both   down(y)_b = S_b

A soft cell of weight w_b replaces the last equation by  n_b mu_b = w_b (S_b - down(y)_b)  for `shift` and
n_b mu_b down(y)_b = w_b (S_b - down(y)_b)  for `ratio`: the flux into the block pays for the misfit.

**The saddle system.** With positive edge weights K, a vector g in each block and a slack in each cell, solve

    K x + g k_b = f,    (sum over the block of g x) - slack_b k_b = 0

by conjugate gradients. The preconditioner is diag(K) under the same constraint (the case slack = 0 is a projection,
slack = infinity drops the constraint, and anything between is the Sherman-Morrison formula):

    z = M^-1 (r - g kappa_b),   kappa_b = (sum g M^-1 r) / (slack_b + sum g M^-1 g)

The multiplier of every search direction follows from its recurrence, so hard, soft and unmeasured cells run through
the same code without a large or a small number anywhere. The system is scaled to a unit diagonal at the start; an
iteration is then one pass over memory on the CPU (r, x, p, q = K p and their sums): the r'z that the next direction
needs is known before r is, from r'r, q'q and the block sums of g q, and corrected once r'r is computed.
For large blocks, and for regions without hard cells, the preconditioner is a V-cycle over aggregated pixels instead.

**shift** is one such system: K = L, g = m, slack = n^2 / w, f = -L y0 from any feasible y0.

**ratio** in u = log y: the flow divided by y, f_p = sum c_pn (1 - exp(u_n - u_p)), must be constant in each block. Its
derivative is Y^-2 K with K the *symmetric* Laplacian of the weights c_pn y_p y_n, whatever y is; so each Newton step is
a saddle system with g = m y^2, followed by the exact adjustment (Eq. 3). The exact Newton step would hold sum(y x) = 0
instead of sum(y^2 x) = 0; the adjustment makes up for it, and the system stays symmetric. Values stay positive by
construction. Freezing mu y instead, in y itself, diverges where S varies by more than a few times between
neighbouring cells. From a start far away the first step is that of `shift`, which is convex; r'z may rise for a
step, since the adjustment stirs up short waves that the next step smooths in a few iterations.

Three things save time. On the CPU a Newton system is kept while no pixel has changed by more than a few percent since
it was built: only its right-hand side is new. Conjugate gradients with a V-cycle end with a step whose residual nobody
needs, and which therefore takes less than half of the time of the others (`half_step`). And a large image is first
brought near by solving its tiles (`Approach`, `_cpu_tiles.py`).

**The stop.** sqrt(r'z) estimates the energy norm of the error, sqrt(e'Ke). A solve ends when it falls below
`tolerance` times the same norm of the nearest-neighbour image up(S): a measure that does not depend on the start.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Protocol

from .solution import ConvergenceWarning

INNER_REDUCTION = 0.05  # of the residual, within one Newton step of `ratio`
INNER_MARGIN = 0.25  # of the target, below which a Newton step aims: or one more would follow
CYCLE_REDUCTION, CYCLE_MARGIN = 0.12, 0.45  # the same where `half_step` follows, which takes it further
INNER_LIMIT = 200  # iterations within one Newton step
ROUNDS = 60
FAR = 1e-2  # a start is far away if r'z exceeds this share of the energy of up(S) ...
NARROW = 1.2  # ... unless the source varies by less than this factor: Newton then succeeds from anywhere near
WORSE = 100.0  # how far r'z may rise above its best: what the adjustment stirs up is soon smoothed again
NEAR = 1e5  # times the target: from an r'z below that, an image needs no other approach
PATIENCE = 4  # steps without a new best, after which every step must be one
HALVINGS = 8  # of a step

Scalar = Any  # a float for one image, a tensor [N] for a batch: the algorithms below are written for both
# Brings an image, in place, nearer to where r'z is some target, by ways of its own (`_cpu_tiles.py`). Returns the
# iterations that took, and whether all went well.
Approach = Callable[[Any, Scalar], tuple[int, bool]]


class Scalars(Protocol):
    """What is done with the numbers of one image, or of each of a batch."""

    def divide(self, a: Scalar, b: Scalar) -> Scalar:
        """Return a / b, and 0 where b is not positive."""
        ...

    def any(self, condition: Scalar) -> bool: ...

    def least(self, a: Scalar, b: Scalar) -> Scalar: ...

    def most(self, a: Scalar, b: Scalar) -> Scalar: ...

    def top(self, a: Scalar) -> float:
        """Largest over the images."""
        ...


class Descent(Scalars, Protocol):
    """The state of conjugate gradients on a saddle system."""

    def direction(self, beta: Scalar) -> Scalar:
        """Take the next search direction; return p'Kp."""
        ...

    def step(self, alpha: Scalar) -> Scalar:
        """Move along it; return the new r'z."""
        ...

    def half_step(self, rz: Scalar, beta: Scalar) -> None:
        """Move along one more direction where that costs little beside a V-cycle; the new r'z is not computed."""
        ...


class System(Scalars, Protocol):
    """A saddle system, what it is built of, and what becomes of its solution: compiled (_cpu_system.py), or torch."""

    # -- conjugate gradients
    @property
    def cycles(self) -> bool:
        """Whether there is a V-cycle, and so half a step more at the end."""
        ...

    def begin(self) -> Scalar:
        """Set x = 0 and the search direction to none; return r'z."""
        ...

    def descend(self, rz: Scalar, target: Scalar, limit: int) -> tuple[Scalar, Scalar]:
        """What `conjugate_gradients` does, by it or in one compiled call."""
        ...

    # -- shift
    def assemble(self, y: Any) -> None:
        """Build the system: of `shift` where y is None, else of the Newton step of `ratio` at y."""
        ...

    def shift_residual(self, y: Any) -> None:
        """Take -L y as the right-hand side."""
        ...

    def right_hand_side(self, f: Any, a: Any) -> None:
        """Take f - L a as the right-hand side."""
        ...

    def add_to(self, y: Any) -> None:
        """y += x."""
        ...

    # -- ratio
    def hold(self, y: Any) -> None:
        """Take y, to be changed in place, as the present state."""
        ...

    def linearise(self, as_shift: bool = False) -> Scalar:
        """Build the Newton system at the present y (or that of `shift`), with its right-hand side; return r'z."""
        ...

    def retract(self) -> None:
        """y <- y (1 + x), kept positive, then Eq. 3 on hard cells."""
        ...

    def halve(self, where: Scalar) -> None:
        """Go back half the way to the best y."""
        ...

    def keep(self, better: Scalar) -> None:
        """Remember y as the best so far where `better`."""
        ...

    def recall(self) -> None:
        """Go back to the best y."""
        ...

    def adjoint_residual(self, a: Any, v: Any) -> Scalar:
        """Take what is left of the adjoint equation at a as the right-hand side; return r'z."""
        ...

    def add_adjoint(self, a: Any) -> None:
        """a += y x."""
        ...


def conjugate_gradients(system: Descent, rz: Scalar, target: Scalar, limit: int) -> tuple[Scalar, Scalar]:
    """Reduce r'z from `rz` (as `begin` returned it) below `target`.

    Returns:
        The last r'z that was computed and the number of iterations, at most `limit`.
    """
    beta = 0.0 * rz
    count = 0 * (rz > target)
    best = rz
    for _ in range(limit):
        active = rz > target
        if not system.any(active):
            break
        new = system.step(system.divide(rz, system.direction(beta)) * active)
        count = count + active
        beta = system.divide(new, rz) * active
        rz = new
        # Rounding has the last word: once r'z has risen far above its best, it will not come back.
        if not system.any(active & (rz < 1e4 * best)):
            return rz, count
        best = system.least(best, rz)
    if system.any(count > 0):
        system.half_step(rz, beta)
    return rz, count


def ratio(
    system: System, y: Any, target: Scalar, limit: int, far: Scalar, approach: Approach | None = None
) -> tuple[Scalar, Scalar]:
    """Solve `ratio` from y, which is changed in place, by Newton steps of at most `limit` iterations in all.

    Where r'z of `shift` at y is above `far`, the first step is that of `shift`, which is convex.
    A step that makes things much worse is halved; once steps stop to improve, only those that do are taken.
    A start that is not near is first brought nearer, if there is an `approach`.

    Returns:
        r'z of the best y, which is the one left, and the iterations spent.
    """
    system.hold(y)
    worst = float("inf") + 0 * target
    spent, stale, allowed = 0 * (target > target), 0, WORSE
    restart = False
    if system.any(far < float("inf")):
        rz = system.linearise(as_shift=True)
        restart = system.any(rz > far)
    if not restart:
        rz = system.linearise()
    if approach is not None and system.any(rz > NEAR * target):
        count, well = approach(y, target)
        spent = spent + count
        system.hold(y)
        restart = restart and not well
        rz = system.linearise(as_shift=restart)
    best = worst if restart else system.least(worst, rz)
    if not system.any((rz > target) | (rz != rz)):
        return rz, spent
    for _ in range(ROUNDS):
        inner = _inner_target(system, rz, target)
        left = max(1, limit - int(system.top(spent)))
        spent = spent + system.descend(rz, inner, min(INNER_LIMIT, left))[1]
        system.retract()
        rz = system.linearise()
        for _ in range(HALVINGS):
            bad = (rz != rz) | (rz > allowed * best)
            if not system.any(bad):
                break
            system.halve(bad)
            rz = system.linearise()
        better = rz < best
        system.keep(better)
        best = system.least(best, rz)
        stale = 0 if system.any(better) else stale + 1
        if not system.any((best > target) & (spent < limit)) or (stale and allowed == 1.0):
            break
        if stale == PATIENCE:
            allowed, stale = 1.0, 0
            system.recall()
            rz = system.linearise()
    system.recall()
    return best, spent


def _inner_target(system: System, rz: Scalar, target: Scalar) -> Scalar:
    """The r'z at which a Newton step that begins at `rz` may end."""
    reduction, margin = (CYCLE_REDUCTION, CYCLE_MARGIN) if system.cycles else (INNER_REDUCTION, INNER_MARGIN)
    return system.most(margin * target, reduction**2 * rz)


def far(low: float, high: float, energy: float) -> float:
    """Where `ratio` should begin with the step of `shift`: the r'z above which a start counts as far away."""
    return FAR * energy if high > NARROW * low else float("inf")


def shift(
    system: System, y: Any, target: Scalar, limit: int, far: Scalar, approach: Approach | None = None
) -> tuple[Scalar, Scalar]:
    """Solve `shift` from y, which is changed in place. Returns the last r'z and the iterations."""
    del far  # one convex problem: any start will do
    system.assemble(None)
    system.shift_residual(y)
    rz, spent = system.begin(), 0
    if approach is not None and system.any(rz > NEAR * target):
        spent, _ = approach(y, target)
        system.shift_residual(y)
        rz = system.begin()
    rz, count = system.descend(rz, target, max(1, limit - spent))
    system.add_to(y)
    return rz, spent + count


def shift_adjoint(
    system: System, v: Any, a: Any, tolerance: float, limit: int, approach: Approach | None = None
) -> tuple[Scalar, Scalar]:
    """Solve L a + k = v under the constraint; a comes in as zeros. Returns r'z relative to its start, iterations."""
    system.assemble(None)
    system.right_hand_side(v, a)
    first = rz = system.begin()
    target = tolerance**2 * first
    if approach is not None:
        approach(a, target)
        system.right_hand_side(v, a)
        rz = system.begin()
    rz, count = system.descend(rz, target, limit)
    system.add_to(a)
    return system.divide(rz, first), count


def ratio_adjoint(
    system: System, y: Any, v: Any, a: Any, tolerance: float, limit: int, approach: Approach | None = None
) -> tuple[Scalar, Scalar]:
    """Solve (L - mu) a + k = v with sum(y a) = 0, by the transpose of the Newton iteration at the equilibrium y."""
    system.hold(y)
    system.linearise()
    first = rz = system.adjoint_residual(a, v)
    target = tolerance**2 * first
    if approach is not None:
        approach(a, target)
        rz = system.adjoint_residual(a, v)
    rz, spent = ratio_adjoint_to(system, a, v, rz, target, limit)
    return system.divide(rz, first), spent


def ratio_adjoint_to(system: System, a: Any, v: Any, rz: Scalar, target: Scalar, limit: int) -> tuple[Scalar, Scalar]:
    """The same from a, where r'z is `rz`, to `target`. Returns the last r'z and the iterations."""
    best, spent = rz, 0 * (rz > target)
    for _ in range(ROUNDS):
        if not system.any((rz > target) & (rz <= 100 * best) & (spent < limit)):
            break
        best = system.least(best, rz)
        _, count = system.descend(rz, _inner_target(system, rz, target), limit)
        spent = spent + count
        system.add_adjoint(a)
        rz = system.adjoint_residual(a, v)
    return rz, spent


def slack_factor(mean: Any, square: Any, source: Any) -> Any:
    """What turns the slack of down(y) = `mean` into that of sum(y^2 x) in a soft cell; `square` is down(y^2)."""
    return square * mean / source


def warn_adjoint(left: float, tolerance: float) -> None:
    """Say so where the gradient is less exact than the tolerance; `left` is the share of r'z that remains."""
    if left > tolerance**2:
        warnings.warn(
            f"gradient of the equilibrium not reached: relative residual {left**0.5:.1e}, tolerance {tolerance:g}",
            ConvergenceWarning,
            stacklevel=2,
        )
