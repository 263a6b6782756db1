"""The passes of one image and one thread joined into few calls: building the system, and conjugate gradients.

Called one by one, a tenth to a fifth of the time of a 256 x 256 image would go into calling.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ._numba import advance, cell_step, direction, normalise, residual_ratio, root, update, weigh
from ._numba_levels import aggregate, cell_inverse, update_and_restrict, whole_cycle
from ._numba_rows import arrays_apart, compiled

NEAR = 32  # rows of an image at a time, which the second level of a cache holds


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
    kappa: np.ndarray
    fold: np.ndarray
    multiplier: np.ndarray
    along: np.ndarray
    inverse: np.ndarray
    hard: np.ndarray
    loose: bool
    edge: np.ndarray
    rows: np.ndarray
    cols: np.ndarray


class Levels(NamedTuple):
    """What the V-cycle of that image needs beside it; `packed` as in `_levels.Hierarchy`."""

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
    packed: tuple


class Newton(NamedTuple):
    """What the right-hand side of `ratio` needs beside the system; `mu` receives the multipliers."""

    source: np.ndarray
    slack: np.ndarray
    mu: np.ndarray


@compiled
def assemble(cv, ch, y, scaled, measured, has_measured, share, tiny, count, slack, s0, system, newton):
    """Weights, diagonal, g and the cells' inverse: what `CpuSystem.assemble` does in bands.

    With `newton`, also the right-hand side of `ratio`. All passes over a few block rows are made while these are near.
    """
    arrays_apart()
    s = system
    h, w = count.shape
    few = max(1, NEAR * h // s.sd.shape[0])
    for lo in range(0, h, few):
        hi = min(lo + few, h)
        weigh(cv, ch, y, scaled, s.wv, s.wh, s.sd, s.rows[lo], s.rows[hi])
        root(s.sd, count, share, tiny, s.rows, s.cols, lo, hi)
        if newton is not None:
            n = newton
            residual_ratio(
                y, cv, ch, s.sd, n.source, n.slack, count, measured, has_measured, s.r, n.mu, s.rows, s.cols, lo, hi
            )  # fmt: skip
        if lo > 0:  # the edges below a row need the diagonal of the next
            normalise(s.wv, s.wh, s.sd, y, scaled, measured, has_measured, s.g, s0, s.rows, s.cols, lo - few, lo)
        if hi == h:
            normalise(s.wv, s.wh, s.sd, y, scaled, measured, has_measured, s.g, s0, s.rows, s.cols, lo, hi)
    for i in range(h):
        for j in range(w):
            total = slack[i, j] + s0[i, j]
            s.inverse[i, j] = 1.0 / total if total > 0 and np.isfinite(total) else 0.0


@compiled
def build(wv, wh, sd, g, slack, floor, prow, pcol, table, starts, c_wv, c_wh, c_sd, c_isd, c_g, c_inverse):
    """`_levels.Hierarchy.build` where all levels pair pixels within blocks."""
    arrays_apart()
    for level in range(table.shape[0]):
        H, W, h, w, pixel, at_v, at_h, cell, at_rows, at_cols, at_prow, at_pcol, _ = table[level]
        wv_l = c_wv[at_v : at_v + (H + 1) * W].reshape(H + 1, W)
        wh_l = c_wh[at_h : at_h + H * (W + 1)].reshape(H, W + 1)
        sd_l = c_sd[pixel : pixel + H * W].reshape(H, W)
        isd_l = c_isd[pixel : pixel + H * W].reshape(H, W)
        g_l = c_g[pixel : pixel + H * W].reshape(H, W)
        aggregate(wv, wh, sd, g, prow, pcol, floor, wv_l, wh_l, sd_l, isd_l, g_l)
        rows, cols = starts[at_rows : at_rows + h + 1], starts[at_cols : at_cols + w + 1]
        cell_inverse(g_l, slack, rows, cols, c_inverse[cell : cell + h * w].reshape(h, w))
        wv, wh, sd, g = wv_l, wh_l, sd_l, g_l
        if level + 1 < table.shape[0]:
            prow = starts[at_prow : at_prow + table[level + 1, 0] + 1]
            pcol = starts[at_pcol : at_pcol + table[level + 1, 1] + 1]


@compiled
def _first_pass(system, levels, alpha, omega):
    """r -= alpha q and what the cells make of it, with a V-cycle also its way down; returns r'r and r'z of Jacobi."""
    s = system
    h = s.s1.shape[0]
    if levels is None:
        rr = update(s.r, s.q, s.g, alpha, s.fold, s.s1, s.rows, s.cols, 0, h)
        return rr, rr + cell_step(s.s1, s.inverse, s.hard, s.kappa, s.fold, s.multiplier, 0, h)
    return update_and_restrict(
        s.r, s.q, s.g, alpha, s.fold, s.s1, s.inverse, s.hard, s.kappa, s.multiplier, s.wv, s.wh, s.sd, omega,
        s.rows, s.cols, levels.prow, levels.pcol, levels.r, levels.isd, 0, h,
    )  # fmt: skip


@compiled
def precondition(system, levels, alpha, eps, omega):
    """r -= alpha q, then z, by Jacobi where `levels` is None: what `CpuSystem.step` does in bands. Returns r'z."""
    s = system
    h, w = s.s1.shape
    rr, rz = _first_pass(system, levels, alpha, omega)
    if rz < 1e-3 * rr:  # nearly all of r was a multiple of g: take it out and look again
        rr, rz = _first_pass(system, levels, 0.0, omega)
    rz = max(rz, 0.0) + eps * rr
    if levels is not None:
        v = levels
        cycled = whole_cycle(
            s.r, s.g, s.kappa, s.wv, s.wh, s.sd, s.rows, s.cols, v.prow, v.pcol, v.r, v.t, v.isd, s.t, v.s3, s.inverse,
            s.s1, v.kappa3, s.multiplier, v.extra, v.starts_with_cells, omega, v.over, *v.packed,
        )  # fmt: skip
        if s.loose:
            for i in range(h):
                for j in range(w):
                    s.multiplier[i, j] = 0.0 if s.hard[i, j] else s.multiplier[i, j]
        rz = cycled if cycled >= 0.5 * rz else np.nan
    return rz


@compiled
def _next_direction(system, src, kappa, alpha, beta):
    """`direction` of the whole image."""
    s = system
    if s.loose:
        advance(s.along, beta, s.multiplier)
    return direction(
        src, s.g, kappa, s.along, s.loose, s.wv, s.wh, s.p, s.x, s.q, alpha, beta, s.edge, 0, s.rows, s.cols,
        0, kappa.shape[0],
    )  # fmt: skip


@compiled
def descend(system, levels, rz, target, limit, eps, omega):
    """`solver.conjugate_gradients`. Returns r'z, iterations, and the last alpha, by which x has yet to follow p."""
    alpha, beta, best, count = 0.0, 0.0, rz, 0
    while count < limit and rz > target:
        if levels is None:
            energy = _next_direction(system, system.r, system.kappa, alpha, beta)
        else:
            energy = _next_direction(system, system.t, levels.kappa3, alpha, beta)
        alpha = rz / energy if energy > 0 else 0.0
        new = precondition(system, levels, alpha, eps, omega)
        beta = new / rz if rz > 0 else 0.0
        rz = new
        count += 1
        if not rz < 1e4 * best:
            return rz, count, alpha
        best = min(best, rz)
    if levels is not None and count > 0 and rz > 0:  # one step more, of which the costly part, the cycle, is left out
        energy = _next_direction(system, system.t, levels.kappa3, alpha, beta)
        alpha = rz / energy if energy > 0 else 0.0
    return rz, count, alpha
