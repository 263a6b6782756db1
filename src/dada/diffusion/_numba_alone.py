"""The passes joined into few calls: building the system, in bands too, and conjugate gradients in one thread.

Called one by one, a tenth to a fifth of the time of a 256 x 256 image would go into calling.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ._numba import normalise, residual_ratio, root, weigh
from ._numba_descent import cell_step, foresee, owe, sweep, update
from ._numba_grids import aggregate, cell_inverse, invert_cells
from ._numba_levels import below, prolong_and_move, update_and_restrict
from ._numba_rows import arrays_apart, compiled
from ._numba_values import add_scaled

NEAR = 32  # rows of an image at a time, which the second level of a cache holds
SURE = 1e-2  # the least r'z, as a share of what cancels in it, that is taken as foreseen


class Plain(NamedTuple):
    """The system of one image; names as in `_cpu_system.CpuSystem`."""

    r: np.ndarray
    g: np.ndarray
    wv: np.ndarray
    wh: np.ndarray
    sd: np.ndarray
    p: np.ndarray
    x: np.ndarray
    q: np.ndarray
    t: np.ndarray
    s1: np.ndarray
    gq: np.ndarray
    kappa: np.ndarray
    fold: np.ndarray
    multiplier: np.ndarray
    along: np.ndarray
    inverse: np.ndarray
    hard: np.ndarray
    loose: bool
    rows: np.ndarray
    cols: np.ndarray


class Levels(NamedTuple):
    """What the V-cycle of that image needs beside it; the last three as in `_levels.Hierarchy`."""

    prow: np.ndarray
    pcol: np.ndarray
    r: np.ndarray
    t: np.ndarray
    isd: np.ndarray
    s3: np.ndarray
    kappa3: np.ndarray
    extra: np.ndarray
    starts_with_cells: bool
    over: float
    table: np.ndarray
    starts: np.ndarray
    packed: tuple


@compiled
def assemble(
    cv, ch, ends, sides, y, scaled, measured, has_measured, share, tiny, count, slack, s0, inverse, wv, wh, sd, g, r,
    newton, rows, cols, lo, hi,
):  # fmt: skip
    """Weights, diagonal, g and cells' inverse of block rows lo..hi, with `newton` also the right-hand side of `ratio`.

    All passes over a few block rows are made while these are near. The last block row of a band is left to
    `assemble_beside`: the edges below a row need the diagonal of the next.
    """
    done, end = lo, hi if hi == count.shape[0] else hi - 1
    some = max(1, NEAR * count.shape[0] // sd.shape[0])
    for at in range(lo, hi, some):
        until = min(at + some, hi)
        weigh(cv, ch, ends, sides, y, scaled, wv, wh, sd, rows[at], rows[until])
        root(sd, count, share, tiny, rows, cols, at, until)
        if newton is not None:
            source, firmness, mu = newton
            residual_ratio(
                y, cv, ch, ends, sides, sd, source, firmness, count, measured, has_measured, r, mu, rows, cols, at,
                until,
            )  # fmt: skip
        ready = end if until == hi else until - 1
        if done < ready:
            normalise(wv, wh, sd, y, scaled, measured, has_measured, g, s0, rows, cols, done, ready)
            done = ready
    invert_cells(slack, s0, inverse, lo, end)


@compiled
def assemble_beside(y, scaled, measured, has_measured, slack, s0, inverse, wv, wh, sd, g, rows, cols, lo, hi):
    """What `assemble` left out."""
    if hi < s0.shape[0]:
        normalise(wv, wh, sd, y, scaled, measured, has_measured, g, s0, rows, cols, hi - 1, hi)
        invert_cells(slack, s0, inverse, hi - 1, hi)


@compiled
def build(wv, wh, sd, g, slack, tile, floor, prow, pcol, table, starts, c_wv, c_wh, c_sd, c_isd, c_g, c_inverse):
    """`_levels.Hierarchy.build` where all levels pair pixels within blocks."""
    arrays_apart()
    for level in range(table.shape[0]):
        H, W, h, w, pixel, at_v, at_h, cell, at_rows, at_cols, at_prow, at_pcol, _ = table[level]
        wv_l = c_wv[at_v : at_v + (H + 1) * W].reshape(H + 1, W)
        wh_l = c_wh[at_h : at_h + H * (W + 1)].reshape(H, W + 1)
        sd_l = c_sd[pixel : pixel + H * W].reshape(H, W)
        isd_l = c_isd[pixel : pixel + H * W].reshape(H, W)
        g_l = c_g[pixel : pixel + H * W].reshape(H, W)
        aggregate(wv, wh, sd, g, prow, pcol, tile, floor, wv_l, wh_l, sd_l, isd_l, g_l)
        rows, cols = starts[at_rows : at_rows + h + 1], starts[at_cols : at_cols + w + 1]
        cell_inverse(g_l, slack, rows, cols, c_inverse[cell : cell + h * w].reshape(h, w))
        wv, wh, sd, g = wv_l, wh_l, sd_l, g_l
        if level + 1 < table.shape[0]:
            prow = starts[at_prow : at_prow + table[level + 1, 0] + 1]
            pcol = starts[at_pcol : at_pcol + table[level + 1, 1] + 1]


@compiled
def precondition(system, levels, alpha, eps, omega):
    """r -= alpha q, and what is needed for z: what `CpuSystem.step` does in bands. Returns r'z.

    By Jacobi where `levels` is None; else by the V-cycle down and up again to its first grid. The rest of the way up
    is left to the pass that takes z.
    """
    rr, rz, left = _update(system, levels, alpha, omega)
    if rz < 1e-3 * rr:  # nearly all of r was a multiple of g: take it out and look again
        rr, rz, left = _update(system, levels, 0.0, omega)
    rz = max(rz, 0.0) + eps * rr  # a difference of sums near r'r is known no better than that
    if levels is not None:
        v = levels
        coarse = below(v.r, v.t, v.isd, v.extra, v.starts_with_cells, omega, v.over, v.table, v.starts, v.packed)
        rz = cycled(rz, left, coarse, omega, v.over)
    return rz


@compiled
def cycled(rz, left, coarse, omega, over):
    """r'z of the V-cycle before the way up, from that of Jacobi, the product of `restrict` and that of the first grid.

    With S the smoother, u = S r, A the system and c the coarse correction, z = u + c + S (r - A (u + c)); S being
    symmetric, r'z = u'r + u'(r - A u) + c'(r - A u). NaN where that is weaker than its smoother, which cannot be.
    """
    total = omega * rz + left + over * coarse
    return total if total >= 0.5 * rz else np.nan


@compiled
def _update(system, levels, alpha, omega):
    """r -= alpha q and what the cells make of it, with a V-cycle also its way down."""
    s = system
    h = s.s1.shape[0]
    if levels is None:
        rr = update(s.r, s.q, s.g, alpha, s.fold, s.s1, s.rows, s.cols, 0, h)
        return rr, rr + cell_step(s.s1, s.inverse, s.hard, s.kappa, s.fold, s.multiplier, 0, h), 0.0
    return update_and_restrict(
        s.r, s.q, s.g, alpha, s.fold, s.s1, s.inverse, s.hard, s.kappa, s.multiplier, s.wv, s.wh, s.sd, omega,
        s.rows, s.cols, levels.prow, levels.pcol, levels.r, levels.isd, 0, h,
    )  # fmt: skip


@compiled
def _next_direction(system, levels, fresh, alpha, beta, omega):
    """The way up of the V-cycle and the next direction. Returns p'q."""
    s, v = system, levels
    return prolong_and_move(
        s.r, s.g, s.kappa, v.extra, v.t, v.isd, s.wv, s.wh, s.sd, omega, v.over, s.inverse, s.t, v.s3, v.kappa3,
        s.multiplier, s.along, s.hard, s.loose, s.p, s.x, s.q, fresh, alpha, beta, s.rows, s.cols, v.prow, v.pcol,
        0, s.s1.shape[0],
    )  # fmt: skip


@compiled
def descend(system, levels, rz, target, limit, eps, omega):
    """`solver.conjugate_gradients`. Returns r'z, iterations, and what x lacks: the last alpha, and what it is owed."""
    if levels is None:
        return _descend_by_jacobi(system, rz, target, limit, eps, omega)
    alpha, beta, best, count = 0.0, 0.0, rz, 0
    while count < limit and rz > target:
        energy = _next_direction(system, levels, count == 0, alpha, beta, omega)
        alpha = rz / energy if energy > 0 else 0.0
        new = precondition(system, levels, alpha, eps, omega)
        beta = new / rz if rz > 0 else 0.0
        rz = new
        count += 1
        if not rz < 1e4 * best:
            return rz, count, alpha, 0.0
        best = min(best, rz)
    if count > 0 and rz > 0:  # one step more, of which the costly part, the next cycle, is left out
        energy = _next_direction(system, levels, False, alpha, beta, omega)
        alpha = rz / energy if energy > 0 else 0.0
    return rz, count, alpha, 0.0


@compiled
def _descend_by_jacobi(system, rz, target, limit, eps, omega):
    """The same with one pass for each iteration, as `CpuSystem.direction` and `CpuSystem.step` do in bands."""
    s = system
    h = s.s1.shape[0]
    step, alpha, owed, beta, best, count, loose = 0.0, 0.0, 0.0, 0.0, rz, 0, 0.0
    while count < limit and rz > target:
        of_p, of_r, owed = owe(alpha, beta, owed, s.loose)
        rr, energy, qq = sweep(
            s.r, s.q, s.g, s.fold, s.multiplier, s.along, s.hard, s.loose, s.wv, s.wh, s.p, s.x, count == 0,
            step, of_p, of_r, beta, s.s1, s.gq, s.rows, s.cols, 0, h,
        )  # fmt: skip
        if step > 0:
            rz = rr + loose
        step = alpha = rz / energy if energy > 0 else 0.0
        more, loose = foresee(s.s1, s.gq, alpha, s.inverse, s.hard, s.fold, s.multiplier, 0, h)
        new = rr - 2 * alpha * energy + alpha * alpha * qq + more
        if not new > SURE * (rr + alpha * alpha * qq):  # too much cancels: look
            s.fold[:] = 0
            add_scaled(s.x, s.p, s.r, 0.0, owed, 0, s.x.shape[0])
            owed = 0.0
            new = precondition(system, None, alpha, eps, omega)
            step = 0.0
        beta = new / rz if rz > 0 else 0.0
        rz = new
        count += 1
        if not rz < 1e4 * best:
            break
        best = min(best, rz)
    return rz, count, alpha, owed
