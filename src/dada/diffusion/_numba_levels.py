"""The V-cycle over coarser grids, compiled: restriction, prolongation, and the cycle below the finest grid.

A level holds the same quantities as the finest one (`_numba.py`). Coarse pixels are groups of pixels that never cross
a block, so that each level has the same blocks and the same constraint; the smoother is one damped Jacobi step that
honours it. Levels below the finest are packed into flat arrays, so that one call runs them all.
"""

from __future__ import annotations

import numpy as np

from ._numba_descent import advance, cell_step, few, inner_rows, move, multiply, update
from ._numba_rows import BORDER, aligned, arrays_apart, block_products, bordered, compiled, expand, reduce
from ._numba_team import agree, meet, page, put

# Kinds of grid: pixels paired within their block; one pixel for each cell; cells paired across blocks.
WITHIN, CELLS, ACROSS = 0, 1, 2


@compiled
def restrict(r, g, kappa, wv, wh, sd, omega, rows, cols, prow, pcol, r_c, isd_c, lo, hi):
    """Smooth once from zero, and sum what is left of the residual over the groups of block rows lo..hi.

    Returns the product of what was smoothed and what is left.
    """
    arrays_apart()
    H, W = r.shape
    om = r.dtype.type(omega)
    above = bordered(W, r.dtype)
    here = bordered(W, r.dtype)
    below = bordered(W, r.dtype)
    take = aligned(W, r.dtype)
    line = aligned(W, r.dtype)
    rest = r.dtype.type(1) - om
    product = 0.0
    first = rows[lo]
    group = np.searchsorted(prow, first, side="right") - 1
    following = max(lo - 1, 0)
    expand(kappa, following, cols, take)
    for i in range(max(first - 1, 0) - 1, rows[hi]):  # smooth the row below, then look what is left in row i
        if i + 1 == H:
            below[:] = 0
        else:
            if i + 1 == rows[following + 1]:
                following += 1
                expand(kappa, following, cols, take)
            for j in range(W):
                below[j + BORDER] = om * (r[i + 1, j] - g[i + 1, j] * take[j])
        if i >= first:
            part = r.dtype.type(0)
            for j in range(W):  # r - omega g kappa - here is (1 - omega) r
                left = wv[i, j] * above[j + BORDER] + wv[i + 1, j] * below[j + BORDER]
                left += wh[i, j] * here[j + BORDER - 1] + wh[i, j + 1] * here[j + BORDER + 1] + rest * r[i, j]
                part += here[j + BORDER] * left
                line[j] += sd[i, j] * left
            product += part
            if i + 1 == prow[group + 1]:
                _reduce_scaled(line, pcol, isd_c, group, r_c)
                line[:] = 0
                group += 1
        above, here, below = here, below, above
    return product


@compiled
def update_and_restrict(
    r, q, g, alpha, fold, s1, inverse, hard, kappa, multiplier, wv, wh, sd, omega, rows, cols, prow, pcol, r_c, isd_c,
    lo, hi,
):  # fmt: skip
    """`update`, `cell_step` and `restrict` of block rows lo..hi, each while its rows are near.

    `restrict` needs the rows beside its own updated: a block row that borders on another band is left out, for
    `restrict_beside` when all bands are done. Returns r'r, r'z of Jacobi, and the product of `restrict`.
    """
    rr, taken, left = 0.0, 0.0, 0.0
    done = lo + 1 if lo > 0 else lo
    end = hi - 1 if hi < kappa.shape[0] else hi
    some = few(rows, lo, hi)
    for at in range(lo, hi, some):
        until = min(at + some, hi)
        rr += update(r, q, g, alpha, fold, s1, rows, cols, at, until)
        taken += cell_step(s1, inverse, hard, kappa, fold, multiplier, at, until)
        ready = end if until == hi else until - 1
        if done < ready:
            left += restrict(r, g, kappa, wv, wh, sd, omega, rows, cols, prow, pcol, r_c, isd_c, done, ready)
            done = ready
    return rr, rr + taken, left


@compiled
def restrict_beside(r, g, kappa, wv, wh, sd, omega, rows, cols, prow, pcol, r_c, isd_c, lo, hi):
    """`restrict` the block rows of a band that border on another one. Returns its product."""
    left = 0.0
    if lo > 0:
        left += restrict(r, g, kappa, wv, wh, sd, omega, rows, cols, prow, pcol, r_c, isd_c, lo, lo + 1)
    if hi < kappa.shape[0] and (hi - 1 > lo or lo == 0):
        left += restrict(r, g, kappa, wv, wh, sd, omega, rows, cols, prow, pcol, r_c, isd_c, hi - 1, hi)
    return left


@compiled
def _reduce_scaled(line, pcol, isd_c, group, r_c):
    """Row `group` of r_c: sums of a row of pixels over groups, times isd_c."""
    arrays_apart()
    n = r_c.shape[1]
    if line.shape[0] == 2 * n:  # pairs: in one go
        for J in range(n):
            r_c[group, J] = (line[2 * J] + line[2 * J + 1]) * isd_c[group, J]
        return
    reduce(line, pcol, r_c, group)
    for J in range(n):
        r_c[group, J] *= isd_c[group, J]


@compiled
def _coarse_row(z_c, isd_c, over, group, pcol, scratch, out):
    """Row `group` of the correction over z_c isd_c, copied to the pixels of each group."""
    arrays_apart()
    if out.shape[0] == 2 * z_c.shape[1]:  # pairs: in one go
        for J in range(z_c.shape[1]):
            value = over * z_c[group, J] * isd_c[group, J]
            out[2 * J] = value
            out[2 * J + 1] = value
        return
    for J in range(z_c.shape[1]):
        scratch[0, J] = over * z_c[group, J] * isd_c[group, J]
    expand(scratch, 0, pcol, out)


@compiled
def prolong(r, g, kappa, extra, z_c, isd_c, wv, wh, sd, omega, over, rows, cols, prow, pcol, t, base, s3, lo, hi):
    """Add the coarse correction to the first smoothing step and smooth again; t lacks only - omega g kappa3.

    `extra` is the multiplier that the coarse correction brings, before both are enlarged by `over`. s3 = block sums of
    g times the residual before the last smoothing step. Row i of the image is row i - base of t.
    """
    arrays_apart()
    H, W = r.shape
    om, ov = r.dtype.type(omega), r.dtype.type(over)
    above = bordered(W, r.dtype)
    here = bordered(W, r.dtype)
    below = bordered(W, r.dtype)
    take = aligned(W, r.dtype)
    push = aligned(W, r.dtype)
    more = aligned(W, r.dtype)
    coarse = aligned(W, r.dtype)
    scratch = np.empty((1, z_c.shape[1]), r.dtype)
    total = aligned(W, r.dtype)
    first = rows[lo]
    begin = max(first - 1, 0)
    block, following = lo, max(lo - 1, 0)
    group = np.searchsorted(prow, begin, side="right") - 1
    expand(kappa, following, cols, take)
    _coarse_row(z_c, isd_c, ov, group, pcol, scratch, coarse)
    for i in range(begin - 1, rows[hi]):  # smooth and correct the row below, then smooth row i again
        if i + 1 == H:
            below[:] = 0
        else:
            if i + 1 == rows[following + 1]:
                following += 1
                expand(kappa, following, cols, take)
            if i + 1 == prow[group + 1]:
                group += 1
                _coarse_row(z_c, isd_c, ov, group, pcol, scratch, coarse)
            for j in range(W):
                below[j + BORDER] = om * (r[i + 1, j] - g[i + 1, j] * take[j]) + sd[i + 1, j] * coarse[j]
        if i >= first:
            if i == rows[block]:
                expand(kappa, block, cols, push)
                expand(extra, block, cols, more)
                for j in range(W):
                    push[j] = om * push[j] + ov * more[j]
                total[:] = 0
            for j in range(W):
                value = here[j + BORDER]
                left = wv[i, j] * above[j + BORDER] + wv[i + 1, j] * below[j + BORDER]
                left += wh[i, j] * here[j + BORDER - 1] + wh[i, j + 1] * here[j + BORDER + 1]
                left += r[i, j] - value - g[i, j] * push[j]
                total[j] += g[i, j] * left
                t[i - base, j] = value + om * left
            if i + 1 == rows[block + 1]:
                reduce(total, cols, s3, block)
                block += 1
        above, here, below = here, below, above


@compiled
def post_cells(s3, inverse, kappa, extra, omega, over, kappa3, multiplier, lo, hi):
    """Finish the smoothing in the cells of block rows lo..hi: kappa3, and the multiplier of z."""
    arrays_apart()
    for i in range(lo, hi):
        for j in range(s3.shape[1]):
            last = s3[i, j] * inverse[i, j]
            kappa3[i, j] = omega * last
            multiplier[i, j] = omega * (kappa[i, j] + last) + over * extra[i, j]


@compiled
def prolong_and_move(
    r, g, kappa, extra, z_c, isd_c, wv, wh, sd, omega, over, inverse, t, s3, kappa3, multiplier, along, hard, loose,
    p, x, q, fresh, alpha, beta, rows, cols, prow, pcol, lo, hi,
):  # fmt: skip
    """The V-cycle's way up to z, x += alpha p, p = z + beta p, and q = K p + g along, each while its rows are near.

    Only the first rows of the band in t are used, again and again. Rows of q that border on another band are left to
    `multiply_beside`. Returns p'q of the rest.
    """
    pq = 0.0
    done, end = inner_rows(rows, lo, hi, kappa.shape[0])
    block, some = lo, few(rows, lo, hi)
    for at in range(lo, hi, some):
        until = min(at + some, hi)
        base = rows[at] - rows[lo]
        prolong(
            r, g, kappa, extra, z_c, isd_c, wv, wh, sd, omega, over, rows, cols, prow, pcol, t, base, s3, at, until
        )  # fmt: skip
        post_cells(s3, inverse, kappa, extra, omega, over, kappa3, multiplier, at, until)
        if loose:
            advance(along, beta, multiplier, hard, at, until)
        move(t, base, g, kappa3, p, x, fresh, alpha, beta, rows, cols, at, until)
        ready = min(rows[until] - (1 if until < hi else 0), end)
        while done < ready:
            last = min(ready, rows[block + 1])
            if done < last:
                pq += multiply(p, wv, wh, g, along, loose, q, None, block, cols, done, last)[0]
                done = last
            if done == rows[block + 1]:
                block += 1
    return pq


@compiled
def multiply_beside(g, along, loose, wv, wh, p, q, rows, cols, lo, hi):
    """The rows of q that `prolong_and_move` left out. Returns p'q of them."""
    pq = 0.0
    first, end = inner_rows(rows, lo, hi, along.shape[0])
    if rows[lo] < first:
        pq += multiply(p, wv, wh, g, along, loose, q, None, lo, cols, rows[lo], first)[0]
    if max(first, end) < rows[hi]:
        pq += multiply(p, wv, wh, g, along, loose, q, None, hi - 1, cols, max(first, end), rows[hi])[0]
    return pq


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
