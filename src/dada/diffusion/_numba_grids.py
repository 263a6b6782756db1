"""The coarser grids of the V-cycle, compiled: groups of pixels become one pixel each."""

from __future__ import annotations

import numpy as np

from ._numba_rows import arrays_apart, compiled, reduce

SURE = 1e-4  # of a diagonal: less is taken for rounding


@compiled
def beyond(wv, wh, sd, i, j):
    """The part of a pixel's diagonal that belongs to none of its edges: a tile's edges to what lies beyond it."""
    H, W = sd.shape
    total = sd[i, j] * sd[i, j]
    left = total
    if i > 0:
        left -= wv[i, j] * sd[i - 1, j] * sd[i, j]
    if i < H - 1:
        left -= wv[i + 1, j] * sd[i + 1, j] * sd[i, j]
    if j > 0:
        left -= wh[i, j] * sd[i, j - 1] * sd[i, j]
    if j < W - 1:
        left -= wh[i, j + 1] * sd[i, j + 1] * sd[i, j]
    return left if left > SURE * total else 0 * total


@compiled
def gather(wv, wh, sd, g, prow, pcol, tile, wv_c, wh_c, g_c, lo, hi):
    """Sum weights and g, unscaled, over groups [prow[I], prow[I+1]) x [pcol[J], pcol[J+1]), for I from lo to hi.

    The edges of a `tile` to what lies beyond it become those at the border of the coarse grid: they lead nowhere, but
    belong to its diagonal too.
    """
    arrays_apart()
    Hc, Wc = g_c.shape
    H, W = sd.shape
    line = np.empty(W, sd.dtype)
    side = np.empty(W, sd.dtype)
    for I in range(lo, hi):
        top = prow[I]
        if I == 0:
            for j in range(W):
                line[j] = beyond(wv, wh, sd, 0, j) if tile else 0
            reduce(line, pcol, wv_c, 0)
        else:
            for j in range(W):
                line[j] = wv[top, j] * sd[top - 1, j] * sd[top, j]
            reduce(line, pcol, wv_c, I)
        line[:] = 0
        side[:] = 0
        last = sd.dtype.type(0)
        for i in range(top, prow[I + 1]):
            if tile and 0 < i < H - 1 and W > 1:
                side[0] += beyond(wv, wh, sd, i, 0)
                last += beyond(wv, wh, sd, i, W - 1)
            for j in range(W):
                line[j] += g[i, j] * sd[i, j]
            for j in range(1, W):
                side[j] += wh[i, j] * sd[i, j - 1] * sd[i, j]
        reduce(line, pcol, g_c, I)
        for J in range(Wc):
            wh_c[I, J] = side[pcol[J]]
        wh_c[I, Wc] = last
        if Hc == I + 1:
            for j in range(W):
                line[j] = beyond(wv, wh, sd, H - 1, j) if tile and H > 1 else 0
            reduce(line, pcol, wv_c, Hc)


@compiled
def diagonal(wv_c, wh_c, floor, sd_c, isd_c, g_c, lo, hi):
    """The square root of the gathered diagonal and its inverse; g scaled by it."""
    arrays_apart()
    least = sd_c.dtype.type(floor)
    for I in range(lo, hi):
        for J in range(sd_c.shape[1]):
            total = wv_c[I, J] + wv_c[I + 1, J] + wh_c[I, J] + wh_c[I, J + 1]
            sd_c[I, J] = np.sqrt(max(total, least))
            isd_c[I, J] = 1 / sd_c[I, J]
            g_c[I, J] *= isd_c[I, J]


@compiled
def scale(wv_c, wh_c, isd_c, lo, hi):
    """Scale the gathered weights to a unit diagonal."""
    arrays_apart()
    for I in range(lo, hi):
        for J in range(isd_c.shape[1]):
            wv_c[I, J] *= isd_c[max(I - 1, 0), J] * isd_c[I, J]
            wh_c[I, J] *= isd_c[I, max(J - 1, 0)] * isd_c[I, J]


@compiled
def aggregate(wv, wh, sd, g, prow, pcol, tile, floor, wv_c, wh_c, sd_c, isd_c, g_c):
    """Build the next coarser level: groups of pixels become one pixel each."""
    Hc = sd_c.shape[0]
    gather(wv, wh, sd, g, prow, pcol, tile, wv_c, wh_c, g_c, 0, Hc)
    diagonal(wv_c, wh_c, floor, sd_c, isd_c, g_c, 0, Hc)
    scale(wv_c, wh_c, isd_c, 0, Hc)


@compiled
def invert_cells(slack, s0, inverse, lo, hi):
    """inverse = 1 / (slack + s0), and 0 where that is 0 or infinite; s0 may be the same array."""
    for i in range(lo, hi):
        for j in range(s0.shape[1]):
            total = slack[i, j] + s0[i, j]
            inverse[i, j] = 1.0 / total if total > 0 and np.isfinite(total) else 0.0
