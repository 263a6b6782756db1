"""The V-cycle below the finest grid, compiled. Levels are packed into flat arrays, so that one call runs them all."""

from __future__ import annotations

import numpy as np

from ._numba_levels import post_cells, prolong, restrict
from ._numba_rows import aligned, arrays_apart, block_products, compiled, expand
from ._numba_team import agree, meet, page, put

# Kinds of grid: pixels paired within their block; one pixel for each cell; cells paired across blocks.
WITHIN, CELLS, ACROSS = 0, 1, 2


@compiled
def cycle(band, table, starts, packed, brought, omega, over):
    """One V-cycle on the packed levels: from r of the first of them to its correction, left in its t. Returns r't.

    table[l] = H, W, h, w, then offsets of: pixels, wv, wh, cells, rows, cols, groups of rows and of columns for the
    next level, and last the kind of grid. The multiplier that comes with the correction is left in `brought`.
    Grids within blocks are shared by all threads, each on the block rows of its band, whose parts need not be made one
    by one as nothing is summed over them; the small ones across blocks are the first thread's alone.
    """
    wv, wh, sd, isd, g, r, t, inverse, kappa, s, multiplier, gain = packed
    bottom = table.shape[0] - 1
    for level in range(table.shape[0]):
        H, W, h, w, pixel, at_v, at_h, cell, at_rows, at_cols, at_prow, at_pcol, kind = table[level]
        if kind != WITHIN:
            if level > 0 and table[level - 1, 12] == WITHIN:
                meet(band)
            if band.me != 0:
                break
        lo, hi = (band.edges[band.first], band.edges[band.last]) if kind == WITHIN else (0, h)
        r_l = r[pixel : pixel + H * W].reshape(H, W)
        g_l = g[pixel : pixel + H * W].reshape(H, W)
        s_l = s[cell : cell + h * w].reshape(h, w)
        k_l = kappa[cell : cell + h * w].reshape(h, w)
        i_l = inverse[cell : cell + h * w].reshape(h, w)
        rows, cols = starts[at_rows : at_rows + h + 1], starts[at_cols : at_cols + w + 1]
        cell_kappa(r_l, g_l, s_l, i_l, k_l, rows, cols, lo, hi)
        if level == bottom:
            t_l = t[pixel : pixel + H * W].reshape(H, W)
            m_l = multiplier[cell : cell + h * w].reshape(h, w)
            _single_smoothing(r_l, g_l, k_l, omega, rows, cols, t_l, m_l, lo, hi)
            break
        if kind == WITHIN:
            meet(band)
        Hc, Wc, pixel_c = table[level + 1, 0], table[level + 1, 1], table[level + 1, 4]
        restrict(
            r_l,
            g_l,
            k_l,
            wv[at_v : at_v + (H + 1) * W].reshape(H + 1, W),
            wh[at_h : at_h + H * (W + 1)].reshape(H, W + 1),
            sd[pixel : pixel + H * W].reshape(H, W),
            omega,
            rows,
            cols,
            starts[at_prow : at_prow + Hc + 1],
            starts[at_pcol : at_pcol + Wc + 1],
            r[pixel_c : pixel_c + Hc * Wc].reshape(Hc, Wc),
            isd[pixel_c : pixel_c + Hc * Wc].reshape(Hc, Wc),
            lo,
            hi,
        )
    for level in range(bottom - 1, -1, -1):
        H, W, h, w, pixel, at_v, at_h, cell, at_rows, at_cols, at_prow, at_pcol, kind = table[level]
        if kind == WITHIN:
            meet(band)
        elif band.me != 0:
            continue
        lo, hi = (band.edges[band.first], band.edges[band.last]) if kind == WITHIN else (0, h)
        Hc, Wc, pixel_c, cell_c = (
            table[level + 1, 0],
            table[level + 1, 1],
            table[level + 1, 4],
            table[level + 1, 7],
        )
        t_l = t[pixel : pixel + H * W].reshape(H, W)
        g_l = g[pixel : pixel + H * W].reshape(H, W)
        s_l = s[cell : cell + h * w].reshape(h, w)
        k_l = kappa[cell : cell + h * w].reshape(h, w)
        i_l = inverse[cell : cell + h * w].reshape(h, w)
        m_l = multiplier[cell : cell + h * w].reshape(h, w)
        rows, cols = starts[at_rows : at_rows + h + 1], starts[at_cols : at_cols + w + 1]
        extra = np.zeros((h, w))
        if table[level + 1, 12] == CELLS:  # one pixel for each cell of this level
            for i in range(lo, hi):
                for j in range(w):
                    at = i * w + j
                    extra[i, j] = gain[at] * t[pixel_c + at] * isd[pixel_c + at]
        elif table[level + 1, 12] == WITHIN:  # the same blocks
            extra[lo:hi] = multiplier[cell_c : cell_c + h * w].reshape(h, w)[lo:hi]
        prolong(
            r[pixel : pixel + H * W].reshape(H, W),
            g_l,
            k_l,
            extra,
            t[pixel_c : pixel_c + Hc * Wc].reshape(Hc, Wc),
            isd[pixel_c : pixel_c + Hc * Wc].reshape(Hc, Wc),
            wv[at_v : at_v + (H + 1) * W].reshape(H + 1, W),
            wh[at_h : at_h + H * (W + 1)].reshape(H, W + 1),
            sd[pixel : pixel + H * W].reshape(H, W),
            omega,
            over,
            rows,
            cols,
            starts[at_prow : at_prow + Hc + 1],
            starts[at_pcol : at_pcol + Wc + 1],
            t_l,
            0,
            s_l,
            lo,
            hi,
        )
        last_kappa = np.empty((h, w))
        post_cells(s_l, i_l, k_l, extra, omega, over, last_kappa, m_l, lo, hi)
        take_out(t_l, g_l, last_kappa, rows, cols, lo, hi)
    H, W, w, pixel, at_rows = table[0, 0], table[0, 1], brought.shape[1], table[0, 4], table[0, 8]
    r_l, t_l = r[pixel : pixel + H * W].reshape(H, W), t[pixel : pixel + H * W].reshape(H, W)
    if table[0, 12] == CELLS:
        meet(band)
    sums = page(band)
    for part in range(band.first, band.last):
        lo, hi = band.edges[part], band.edges[part + 1]
        for i in range(lo, hi):
            for j in range(w):
                at = i * w + j
                brought[i, j] = gain[at] * t[at] * isd[at] if table[0, 12] == CELLS else multiplier[at]
        put(sums, part, dot(r_l, t_l, starts[at_rows + lo], starts[at_rows + hi]), 0.0, 0.0)
    return agree(band, sums)[0]


@compiled
def dot(a, b, lo, hi):
    """Sum of the products of rows lo..hi of two images, row by row."""
    arrays_apart()
    out = 0.0
    for i in range(lo, hi):
        part = a.dtype.type(0)
        for j in range(a.shape[1]):
            part += a[i, j] * b[i, j]
        out += part
    return out


@compiled
def cell_kappa(r, g, s, inverse, kappa, rows, cols, lo, hi):
    """s = block sums of g r and kappa = s / (slack + s0), for block rows lo..hi."""
    arrays_apart()
    block_products(g, r, rows, cols, s, lo, hi)
    for block in range(lo, hi):
        for cell in range(s.shape[1]):
            kappa[block, cell] = s[block, cell] * inverse[block, cell]


@compiled
def take_out(t, g, kappa, rows, cols, lo, hi):
    """t -= g kappa, for block rows lo..hi."""
    arrays_apart()
    take = aligned(t.shape[1], t.dtype)
    for block in range(lo, hi):
        expand(kappa, block, cols, take)
        for i in range(rows[block], rows[block + 1]):
            for j in range(t.shape[1]):
                t[i, j] -= g[i, j] * take[j]


@compiled
def _single_smoothing(r, g, kappa, omega, rows, cols, t, multiplier, lo, hi):
    """The coarsest level: one smoothing step from zero, of block rows lo..hi."""
    arrays_apart()
    W = r.shape[1]
    om = r.dtype.type(omega)
    take = aligned(W, r.dtype)
    for block in range(lo, hi):
        expand(kappa, block, cols, take)
        for cell in range(kappa.shape[1]):
            multiplier[block, cell] = omega * kappa[block, cell]
        for i in range(rows[block], rows[block + 1]):
            for j in range(W):
                t[i, j] = om * (r[i, j] - g[i, j] * take[j])
