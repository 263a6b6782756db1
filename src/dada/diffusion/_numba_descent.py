"""The passes of conjugate gradients, compiled: see `solver.py` for the method, `_numba.py` for the arrays.

p has a border of zeros: its row i is p[i + 1], its column j is p[:, j + BORDER]. With Jacobi an iteration is one pass
(`sweep`): what beta and the cells need of the next residual is known before it is computed, from r'r, q'q and the block
sums of g q. Each pass is made in short loops over a few block rows, one after the other while these rows are near; one
loop that did it all would read from more places at once than the machine follows.
"""

from __future__ import annotations

import numpy as np

from ._numba_rows import BORDER, aligned, arrays_apart, compiled, expand, reduce

NEAR = 16  # rows of a large image at a time: the second level of a cache holds them
SMALL = 512  # rows of a band that is made at once
LARGE_BETA = 0.1  # p before = (p - z) / beta loses too many digits below this


@compiled
def few(rows, lo, hi):
    """How many block rows are made at a time: all of a small band."""
    height = rows[hi] - rows[lo]
    return hi - lo if height <= SMALL else max(1, NEAR * (hi - lo) // height)


@compiled
def update(r, q, g, alpha, fold, s1, rows, cols, lo, hi):
    """r -= alpha q + g fold; s1 = block sums of g r. Returns r'r of the band. For alpha 0, q may be anything.

    In a hard cell r matters only up to a multiple of g; taking the last one out (`fold`) keeps r small, and r'z free
    of cancellation.
    """
    arrays_apart()
    W = r.shape[1]
    a = r.dtype.type(alpha)
    total = aligned(W, r.dtype)
    take = aligned(W, r.dtype)
    squares = 0.0
    for block in range(lo, hi):
        total[:] = 0
        expand(fold, block, cols, take)
        for i in range(rows[block], rows[block + 1]):
            part = r.dtype.type(0)
            if alpha == 0:
                for j in range(W):
                    value = r[i, j] - g[i, j] * take[j]
                    r[i, j] = value
                    total[j] += g[i, j] * value
                    part += value * value
            else:
                for j in range(W):
                    value = r[i, j] - a * q[i, j] - g[i, j] * take[j]
                    r[i, j] = value
                    total[j] += g[i, j] * value
                    part += value * value
            squares += part
        reduce(total, cols, s1, block)
    return squares


@compiled
def cell_step(s1, inverse, hard, kappa, fold, multiplier, lo, hi):
    """kappa = s1 / (slack + s0) in each cell: to be folded out of r if hard, else the multiplier of z.

    Returns r'z - r'r of block rows lo..hi, minus the sum of kappa s1.
    """
    arrays_apart()
    total = 0.0
    for i in range(lo, hi):
        for j in range(s1.shape[1]):
            value = s1[i, j] * inverse[i, j]
            kappa[i, j] = value
            fold[i, j] = value if hard[i, j] else 0.0
            multiplier[i, j] = 0.0 if hard[i, j] else value
            total -= value * s1[i, j]
    return total


@compiled
def foresee(s1, gq, alpha, inverse, hard, fold, multiplier, lo, hi):
    """`cell_step` for r - alpha q before it is computed, after `sweep`, which left no multiple of g in hard cells.

    s1 becomes that of the new r where cells are not hard. Returns what r'r - 2 alpha p'q + alpha^2 q'q lacks of the new
    r'z, and what the new r'r will lack of it. (r'q is z'q and a sum over the cells, and z'q is p'q, as directions are
    conjugate.)
    """
    arrays_apart()
    total, loose = 0.0, 0.0
    for i in range(lo, hi):
        for j in range(s1.shape[1]):
            change = alpha * gq[i, j]
            if hard[i, j]:
                fold[i, j] = -change * inverse[i, j]
                total -= change * change * inverse[i, j]
            else:
                total -= 2 * change * multiplier[i, j]
                s1[i, j] -= change
                multiplier[i, j] = s1[i, j] * inverse[i, j]
                loose -= s1[i, j] * multiplier[i, j]
    return total + loose, loose


@compiled
def advance(along, beta, multiplier, hard, lo, hi):
    """The multiplier of p: along = multiplier + beta along, and 0 in hard cells (see `update`)."""
    arrays_apart()
    for i in range(lo, hi):
        for j in range(along.shape[1]):
            along[i, j] = 0.0 if hard[i, j] else multiplier[i, j] + beta * along[i, j]


@compiled
def move(z, base, g, kappa, p, x, fresh, alpha, beta, rows, cols, lo, hi):
    """x += alpha p (the step before); p = z - g kappa + beta p. Row i of the image is row i - base of z.

    If `fresh`, x and p begin here, at 0.
    """
    arrays_apart()
    W = x.shape[1]
    a = x.dtype.type(alpha)
    b = x.dtype.type(beta)
    take = aligned(W, x.dtype)
    for block in range(lo, hi):
        expand(kappa, block, cols, take)
        for i in range(rows[block], rows[block + 1]):
            if fresh:
                for j in range(W):
                    x[i, j] = 0
                    p[i + 1, j + BORDER] = z[i - base, j] - g[i, j] * take[j]
            else:
                for j in range(W):
                    old = p[i + 1, j + BORDER]
                    x[i, j] += a * old
                    p[i + 1, j + BORDER] = z[i - base, j] - g[i, j] * take[j] + b * old


@compiled
def owe(alpha, beta, owed, loose):
    """How x follows p, by every second pass: returns what it gains of p and of r, and what it is owed after this pass.

    p is the last direction and `alpha` the step along it; p = z + beta p is to follow. If that will do for x to catch
    up in the next pass, with p before = (p - z) / beta and z = r, it is left as it is for now. `owed` is alpha / beta
    of the pass before, if that left x behind.
    """
    if owed == 0 and beta > LARGE_BETA and not loose:
        return 0.0, 0.0, alpha / beta
    return alpha + owed, -owed, 0.0


@compiled
def update_and_move(r, q, g, fold, multiplier, loose, s1, p, x, fresh, step, of_p, of_r, beta, rows, cols, lo, hi):
    """x += of_p p + of_r r, r -= step q + g fold, p = r - g multiplier + beta p. Returns r'r of the block rows.

    If `fresh`, x and p begin here, at 0, and q may be anything. If some cells are not hard (`loose`), s1 = block sums
    of g r: what was foreseen of them would lose digits from one iteration to the next.
    """
    arrays_apart()
    W = x.shape[1]
    c = x.dtype.type(step)
    a = x.dtype.type(of_p)
    d = x.dtype.type(of_r)
    b = x.dtype.type(beta)
    take = aligned(W, x.dtype)
    total = aligned(W, x.dtype)
    squares = 0.0
    for block in range(lo, hi):
        expand(fold, block, cols, take)
        for i in range(rows[block], rows[block + 1]):
            part = x.dtype.type(0)
            if fresh:
                for j in range(W):
                    value = r[i, j] - g[i, j] * take[j]
                    r[i, j] = value
                    part += value * value
                    x[i, j] = 0
                    p[i + 1, j + BORDER] = value
            elif of_p == 0:
                for j in range(W):
                    value = r[i, j] - c * q[i, j] - g[i, j] * take[j]
                    r[i, j] = value
                    part += value * value
                    p[i + 1, j + BORDER] = value + b * p[i + 1, j + BORDER]
            else:
                for j in range(W):
                    old = p[i + 1, j + BORDER]
                    x[i, j] += a * old + d * r[i, j]
                    value = r[i, j] - c * q[i, j] - g[i, j] * take[j]
                    r[i, j] = value
                    part += value * value
                    p[i + 1, j + BORDER] = value + b * old
            squares += part
        if loose:
            expand(multiplier, block, cols, take)
            total[:] = 0
            for i in range(rows[block], rows[block + 1]):
                for j in range(W):
                    p[i + 1, j + BORDER] -= g[i, j] * take[j]
                    total[j] += g[i, j] * r[i, j]
            reduce(total, cols, s1, block)
    return squares


@compiled
def multiply(p, wv, wh, g, along, loose, q, total, block, cols, first, last):
    """q = K p + g along, for rows first..last of a block row. Returns p'q and q'q.

    Adds g q to `total`, pixel by pixel, unless that is None; then q'q is 0.
    """
    if not loose:
        return _multiply_rows(p, wv, wh, g, None, q, total, first, last)
    push = aligned(q.shape[1], q.dtype)
    expand(along, block, cols, push)
    return _multiply_rows(p, wv, wh, g, push, q, total, first, last)


@compiled
def _multiply_rows(p, wv, wh, g, push, q, total, first, last):
    """The same with `along` as a row of pixels; what is None is compiled away, or it would take a sixth of the time."""
    arrays_apart()
    product, squares = 0.0, 0.0
    for i in range(first, last):
        part, square = q.dtype.type(0), q.dtype.type(0)
        for j in range(q.shape[1]):
            value = p[i + 1, j + BORDER]
            flow = wh[i, j] * p[i + 1, j + BORDER - 1] + wh[i, j + 1] * p[i + 1, j + BORDER + 1]
            flow += wv[i, j] * p[i, j + BORDER] + wv[i + 1, j] * p[i + 2, j + BORDER]
            flow = value - flow
            if push is not None:
                flow += g[i, j] * push[j]
            q[i, j] = flow
            part += value * flow
            if total is not None:
                square += flow * flow
                total[j] += g[i, j] * flow
        product += part
        squares += square
    return product, squares


@compiled
def inner_rows(rows, lo, hi, h):
    """The rows of a band that border on no other band."""
    return rows[lo] + (1 if lo > 0 else 0), rows[hi] - (1 if hi < h else 0)


@compiled
def sweep(
    r, q, g, fold, multiplier, along, hard, loose, wv, wh, p, x, fresh, step, of_p, of_r, beta, s1, gq, rows, cols,
    lo, hi,
):  # fmt: skip
    """An iteration of Jacobi's: `update_and_move`, then q = K p + g along, and gq of it.

    Rows of q that border on another band are left to `sweep_beside`. Returns r'r, p'q and q'q of the rest.
    """
    h = fold.shape[0]
    total = aligned(r.shape[1], r.dtype)
    rr, pq, qq = 0.0, 0.0, 0.0
    done, end = inner_rows(rows, lo, hi, h)
    block, some = lo, few(rows, lo, hi)
    for at in range(lo, hi, some):
        until = min(at + some, hi)
        if loose:
            advance(along, beta, multiplier, hard, at, until)
        rr += update_and_move(
            r, q, g, fold, multiplier, loose, s1, p, x, fresh, step, of_p, of_r, beta, rows, cols, at, until
        )  # fmt: skip
        ready = min(rows[until] - (1 if until < hi else 0), end)
        while block < hi and done <= ready:
            last = min(ready, rows[block + 1])
            product, squares = multiply(p, wv, wh, g, along, loose, q, total, block, cols, done, last)
            pq += product
            qq += squares
            done = last
            if last < min(rows[block + 1], end):
                break
            reduce(total, cols, gq, block)
            total[:] = 0
            block += 1
    if block < hi:  # a band of one row, which borders on two others
        gq[block:hi] = 0
    return rr, pq, qq


@compiled
def sweep_beside(g, along, loose, wv, wh, p, q, gq, rows, cols, lo, hi):
    """The rows of q that `sweep` left out, and their part of gq. Returns p'q and q'q of them."""
    h, w = gq.shape
    sums = np.empty((1, w))
    pq, qq = 0.0, 0.0
    first, end = inner_rows(rows, lo, hi, h)
    for side in range(2):
        block = lo if side == 0 else hi - 1
        begin = rows[lo] if side == 0 else max(end, first)
        stop = first if side == 0 else rows[hi]
        if begin < stop:
            total = aligned(q.shape[1], q.dtype)
            product, squares = multiply(p, wv, wh, g, along, loose, q, total, block, cols, begin, stop)
            reduce(total, cols, sums, 0)
            for j in range(w):
                gq[block, j] += sums[0, j]
            pq += product
            qq += squares
    return pq, qq
