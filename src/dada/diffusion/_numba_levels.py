"""The V-cycle on the finest grid, compiled: restriction and prolongation, joined with the passes around them.

A level holds the same quantities as the finest one (`_numba.py`). Coarse pixels are groups of pixels that never cross
a block, so that each level has the same blocks and the same constraint; the smoother is one damped Jacobi step that
honours it. `_numba_cycle.py` has the grids below.
"""

from __future__ import annotations

import numpy as np

from ._numba_descent import advance, cell_step, few, inner_rows, move, multiply, update
from ._numba_rows import BORDER, aligned, arrays_apart, bordered, compiled, expand, reduce


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
