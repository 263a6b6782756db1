"""What the threads of a team do with one image, each on the block rows of its band: `work`.

A team may be one thread. The passes are joined into few calls: called one by one, a tenth to a fifth of the time of a
256 x 256 image would go into calling.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ._numba import normalise, residual_ratio, root, weigh
from ._numba_cycle import WITHIN, cycle
from ._numba_descent import cell_step, foresee, owe, sweep, sweep_beside, update
from ._numba_grids import diagonal, gather, invert_cells, scale
from ._numba_levels import multiply_beside, prolong_and_move, restrict_beside, update_and_restrict
from ._numba_rows import block_products, compiled
from ._numba_team import agree, find_core, meet, others_wait, page, put
from ._numba_values import add_scaled, retract_and_adjust

NEAR = 32  # rows of an image at a time, which the second level of a cache holds
SURE = 1e-2  # `State.sure`
TINY = 1e-30  # stands for the diagonal of a pixel without any edge

# What a leader may want done, the first of `Band.words`.
LEAVE, ASSEMBLE, RESIDUAL, BEGIN, DESCEND, RETRACT = range(6)
PAUSED = -1.0  # iterations of a `descend` that is not at its end


class State(NamedTuple):
    """The system of one image and what it is made of; names as in `_cpu_system.CpuSystem`."""

    r: np.ndarray
    g: np.ndarray
    wv: np.ndarray
    wh: np.ndarray
    sd: np.ndarray
    p: np.ndarray
    x: np.ndarray
    q: np.ndarray
    t: np.ndarray
    s0: np.ndarray
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
    cv: np.ndarray
    ch: np.ndarray
    ends: np.ndarray
    sides: np.ndarray
    y: np.ndarray  # anything where there is none
    source: np.ndarray
    firmness: np.ndarray  # the slack of means
    slack: np.ndarray  # that of sums
    pixels: np.ndarray  # measured, of each cell
    measured: np.ndarray
    has_measured: bool
    mu: np.ndarray
    ratio: bool
    omega: float
    saved: np.ndarray  # [8]: where conjugate gradients were when they paused
    eps: float  # of numbers of its kind
    sure: float  # the least r'z, as a share of what cancels in it, that is taken as foreseen


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
    over: float
    table: np.ndarray
    starts: np.ndarray
    packed: tuple


@compiled
def work(state, levels, band):
    """Do what the leader's words say, all threads together: the leader once, the others until that is to leave.

    Returns up to four numbers. (One function for all, as each function is compiled with all that it calls.)
    """
    s, words, lo, hi = state, band.words, band.edges[band.first], band.edges[band.last]
    if band.me != 0:
        find_core(band)
    meet(band)
    while words[0] != LEAVE:
        out = (0.0, 0.0, 0.0, 0.0)
        if words[0] == ASSEMBLE:
            _assemble(state, levels, band, words[1] != 0, words[2] != 0, words[3] != 0)
        elif words[0] == RESIDUAL:
            residual_ratio(
                s.y, s.cv, s.ch, s.ends, s.sides, s.sd, s.source, s.firmness, s.pixels, s.measured, s.has_measured,
                s.r, s.mu, s.rows, s.cols, lo, hi,
            )  # fmt: skip
        elif words[0] == RETRACT:
            out = (_retract(state, band, words[1], words[2], words[3] != 0), 0.0, 0.0, 0.0)
        else:
            out = descend(state, levels, band, words[0] == BEGIN, words[1], words[2], int(words[3]), words[4] != 0)
        meet(band)
        if band.me == 0:
            return out
        meet(band)
    return (0.0, 0.0, 0.0, 0.0)


@compiled
def _retract(state, band, alpha, owed, relative):
    """`retract_and_adjust`; returns the largest change in all parts."""
    s, changes = state, page(band)
    for part in range(band.first, band.last):
        change = retract_and_adjust(
            s.y, s.x, s.p, s.r, alpha, owed, s.sd, relative, s.ratio, s.source, s.firmness, s.pixels, s.measured,
            s.has_measured, s.rows, s.cols, band.edges[part], band.edges[part + 1],
        )  # fmt: skip
        put(changes, part, float(change), 0.0, 0.0)
    meet(band)
    return changes[:, 0].max()


@compiled
def _assemble(state, levels, band, scaled, newton, tile):
    """Weights, diagonal, g and cells' inverse, with `newton` also the right-hand side of `ratio`; then coarser grids.

    All passes over a few block rows are made while these are near. The last block row of a band must wait: the edges
    below a row need the diagonal of the next.
    """
    s, lo, hi = state, band.edges[band.first], band.edges[band.last]
    done, end = lo, hi if hi == s.pixels.shape[0] else hi - 1
    some = max(1, NEAR * s.pixels.shape[0] // s.sd.shape[0])
    for at in range(lo, hi, some):
        until = min(at + some, hi)
        weigh(s.cv, s.ch, s.ends, s.sides, s.y, scaled, s.wv, s.wh, s.sd, s.rows[at], s.rows[until])
        root(s.sd, s.pixels, s.eps, TINY, s.rows, s.cols, at, until)
        if newton:
            residual_ratio(
                s.y, s.cv, s.ch, s.ends, s.sides, s.sd, s.source, s.firmness, s.pixels, s.measured, s.has_measured, s.r,
                s.mu, s.rows, s.cols, at, until,
            )  # fmt: skip
        ready = end if until == hi else until - 1
        if done < ready:
            _normalise(s, scaled, done, ready)
            done = ready
    meet(band)
    if end < hi:
        _normalise(s, scaled, end, hi)
    invert_cells(s.slack, s.s0, s.inverse, lo, hi)
    if levels is not None:
        meet(band)
        _build(state, levels, band, tile)


@compiled
def _normalise(state, scaled, lo, hi):
    s = state
    normalise(s.wv, s.wh, s.sd, s.y, scaled, s.measured, s.has_measured, s.g, s.s0, s.rows, s.cols, lo, hi)


@compiled
def _build(state, levels, band, tile):
    """The grids within blocks, from finer to coarser; those across blocks are left to `_levels.Hierarchy`."""
    table, starts = levels.table, levels.starts
    c_wv, c_wh, c_sd, c_isd, c_g, _, _, c_inverse, _, _, _, _ = levels.packed
    wv, wh, sd, g, prow, pcol = state.wv, state.wh, state.sd, state.g, levels.prow, levels.pcol
    for level in range(table.shape[0]):
        H, W, h, w, pixel, at_v, at_h, cell, at_rows, at_cols, at_prow, at_pcol, kind = table[level]
        if kind != WITHIN:
            break
        wv_l = c_wv[at_v : at_v + (H + 1) * W].reshape(H + 1, W)
        wh_l = c_wh[at_h : at_h + H * (W + 1)].reshape(H, W + 1)
        sd_l = c_sd[pixel : pixel + H * W].reshape(H, W)
        isd_l = c_isd[pixel : pixel + H * W].reshape(H, W)
        g_l = c_g[pixel : pixel + H * W].reshape(H, W)
        i_l = c_inverse[cell : cell + h * w].reshape(h, w)
        rows, cols = starts[at_rows : at_rows + h + 1], starts[at_cols : at_cols + w + 1]
        lo, hi = band.edges[band.first], band.edges[band.last]
        first, end = rows[lo], rows[hi]
        gather(wv, wh, sd, g, prow, pcol, tile, wv_l, wh_l, g_l, first, end)
        meet(band)
        diagonal(wv_l, wh_l, TINY, sd_l, isd_l, g_l, first, end)
        meet(band)
        scale(wv_l, wh_l, isd_l, first, end)
        block_products(g_l, g_l, rows, cols, i_l, lo, hi)
        invert_cells(state.slack, i_l, i_l, lo, hi)
        wv, wh, sd, g = wv_l, wh_l, sd_l, g_l
        if level + 1 < table.shape[0]:
            prow = starts[at_prow : at_prow + table[level + 1, 0] + 1]
            pcol = starts[at_pcol : at_pcol + table[level + 1, 1] + 1]


@compiled
def precondition(state, levels, band, alpha):
    """r -= alpha q, and what is needed for z. Returns r'z.

    By Jacobi where `levels` is None; else by the V-cycle down and up again to its first grid. The rest of the way up
    is left to the pass that takes z.
    """
    s, v = state, levels
    for _ in range(2):
        sums = page(band)
        for part in range(band.first, band.last):
            lo, hi = band.edges[part], band.edges[part + 1]
            if levels is None:
                rr = update(s.r, s.q, s.g, alpha, s.fold, s.s1, s.rows, s.cols, lo, hi)
                rz = rr + cell_step(s.s1, s.inverse, s.hard, s.kappa, s.fold, s.multiplier, lo, hi)
                put(sums, part, rr, rz, 0.0)
            else:
                rr, rz, left = update_and_restrict(
                    s.r, s.q, s.g, alpha, s.fold, s.s1, s.inverse, s.hard, s.kappa, s.multiplier, s.wv, s.wh, s.sd,
                    s.omega, s.rows, s.cols, v.prow, v.pcol, v.r, v.isd, lo, hi,
                )  # fmt: skip
                put(sums, part, rr, rz, left)
        rr, rz, left = agree(band, sums)
        if rz >= 1e-3 * rr:
            break
        alpha = 0.0  # nearly all of r was a multiple of g: take it out and look again
    rz = max(rz, 0.0) + 2 * state.eps * rr  # a difference of sums near r'r is known no better than that
    if levels is not None:
        sums = page(band)
        for part in range(band.first, band.last):
            beside = restrict_beside(
                s.r, s.g, s.kappa, s.wv, s.wh, s.sd, s.omega, s.rows, s.cols, v.prow, v.pcol, v.r, v.isd,
                band.edges[part], band.edges[part + 1],
            )  # fmt: skip
            put(sums, part, beside, 0.0, 0.0)
        left += agree(band, sums)[0]
        coarse = cycle(band, v.table, v.starts, v.packed, v.extra, s.omega, v.over)
        rz = cycled(rz, left, coarse, s.omega, v.over)
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
def _next_direction(state, levels, band, fresh, alpha, beta):
    """The way up of the V-cycle and the next direction. Returns p'q."""
    s, v, sums = state, levels, page(band)
    for part in range(band.first, band.last):
        pq = prolong_and_move(
            s.r, s.g, s.kappa, v.extra, v.t, v.isd, s.wv, s.wh, s.sd, s.omega, v.over, s.inverse, s.t, v.s3, v.kappa3,
            s.multiplier, s.along, s.hard, s.loose, s.p, s.x, s.q, fresh, alpha, beta, s.rows, s.cols, v.prow, v.pcol,
            band.edges[part], band.edges[part + 1],
        )  # fmt: skip
        put(sums, part, pq, 0.0, 0.0)
    meet(band)
    for part in range(band.first, band.last):
        sums[part, 0] += multiply_beside(
            s.g, s.along, s.loose, s.wv, s.wh, s.p, s.q, s.rows, s.cols, band.edges[part], band.edges[part + 1]
        )
    return agree(band, sums)[0]


@compiled
def descend(state, levels, band, begin, rz, target, limit, resume):
    """`solver.conjugate_gradients`. Returns r'z, iterations, and what x lacks: the last alpha, and what it is owed.

    Or `begin`: no iteration, but the r'z from which the first will follow. One thread alone pauses after an iteration
    in which the others have come, and returns r'z and PAUSED; all are to `resume` then.
    """
    if begin:
        state.fold[band.edges[band.first] : band.edges[band.last]] = 0
        state.along[band.edges[band.first] : band.edges[band.last]] = 0
        return precondition(state, levels, band, 0.0), 0.0, 0.0, 0.0
    if levels is None:
        return _descend_by_jacobi(state, band, rz, target, limit, resume)
    alpha, beta, best, count = 0.0, 0.0, rz, 0.0
    if resume:
        alpha, beta, best, count = state.saved[0], state.saved[1], state.saved[2], state.saved[3]
    while count < limit and rz > target:
        energy = _next_direction(state, levels, band, count == 0, alpha, beta)
        alpha = rz / energy if energy > 0 else 0.0
        new = precondition(state, levels, band, alpha)
        beta = new / rz if rz > 0 else 0.0
        rz = new
        count += 1
        if not rz < 1e4 * best:
            return rz, count, alpha, 0.0
        best = min(best, rz)
        if others_wait(band):
            state.saved[0], state.saved[1], state.saved[2], state.saved[3] = alpha, beta, best, count
            return rz, PAUSED, 0.0, 0.0
    if count > 0 and rz > 0:  # one step more, of which the costly part, the next cycle, is left out
        energy = _next_direction(state, levels, band, count == 0, alpha, beta)
        alpha = rz / energy if energy > 0 else 0.0
    return rz, count, alpha, 0.0


@compiled
def _descend_by_jacobi(state, band, rz, target, limit, resume):
    """The same with one pass for each iteration."""
    s = state
    step, alpha, owed, beta, best, count, loose = 0.0, 0.0, 0.0, 0.0, rz, 0.0, 0.0
    if resume:
        alpha, beta, best, count = s.saved[0], s.saved[1], s.saved[2], s.saved[3]
        step, owed, loose = s.saved[4], s.saved[5], s.saved[6]
    while count < limit and rz > target:
        of_p, of_r, owed = owe(alpha, beta, owed, s.loose)
        sums = page(band)
        for part in range(band.first, band.last):
            rr, energy, qq = sweep(
                s.r, s.q, s.g, s.fold, s.multiplier, s.along, s.hard, s.loose, s.wv, s.wh, s.p, s.x, count == 0,
                step, of_p, of_r, beta, s.s1, s.gq, s.rows, s.cols, band.edges[part], band.edges[part + 1],
            )  # fmt: skip
            put(sums, part, rr, energy, qq)
        meet(band)
        for part in range(band.first, band.last):
            more, squares = sweep_beside(
                s.g, s.along, s.loose, s.wv, s.wh, s.p, s.q, s.gq, s.rows, s.cols,
                band.edges[part], band.edges[part + 1],
            )  # fmt: skip
            sums[part, 1] += more
            sums[part, 2] += squares
        rr, energy, qq = agree(band, sums)
        if step > 0:
            rz = rr + loose
        step = alpha = rz / energy if energy > 0 else 0.0
        sums = page(band)
        for part in range(band.first, band.last):
            more, loose = foresee(
                s.s1, s.gq, alpha, s.inverse, s.hard, s.fold, s.multiplier, band.edges[part], band.edges[part + 1]
            )
            put(sums, part, more, loose, 0.0)
        more, loose, _ = agree(band, sums)
        new = rr - 2 * alpha * energy + alpha * alpha * qq + more
        if not new > s.sure * (rr + alpha * alpha * qq):  # too much cancels: look
            lo, hi = band.edges[band.first], band.edges[band.last]
            s.fold[lo:hi] = 0
            add_scaled(s.x, s.p, s.r, 0.0, owed, s.rows[lo], s.rows[hi])
            owed = 0.0
            new = precondition(state, None, band, alpha)
            step = 0.0
        beta = new / rz if rz > 0 else 0.0
        rz = new
        count += 1
        if not rz < 1e4 * best:
            break
        best = min(best, rz)
        if others_wait(band):
            s.saved[0], s.saved[1], s.saved[2], s.saved[3] = alpha, beta, best, count
            s.saved[4], s.saved[5], s.saved[6] = step, owed, loose
            return rz, PAUSED, 0.0, 0.0
    return rz, count, alpha, owed
