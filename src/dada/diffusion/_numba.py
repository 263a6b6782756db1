"""The passes over memory that build the linear system and its right-hand sides, compiled and free of the GIL.

Every function works on one image, most of them on a band of its block rows [lo, hi), so that several threads can
share a large image: what a band writes, no other band reads in the same pass. `solver.py` explains the quantities;
in short, the linear system is scaled to a unit diagonal, and on each level
    wv [H + 1, W], wh [H, W + 1]  are the scaled edge weights with a zero border: wv[i] joins rows i - 1 and i,
    sd [H, W]                     is the square root of the unscaled diagonal,
    g [H, W]                      is the scaled constraint vector of the block that holds the pixel,
and K z = z - (sum of w z over the neighbours). Arrays are indexed [i, j] throughout: a view of a row costs a
reference count for each row, which is as much as the arithmetic on it.
"""

from __future__ import annotations

import numpy as np

from ._numba_rows import accumulate, arrays_apart, compiled, expand, reduce


@compiled
def weigh(cv, ch, ends, sides, y, scaled, wv, wh, sd, lo, hi):
    """Put the weights (c, or c y_p y_n where `scaled`) of pixel rows lo..hi into the bordered arrays, unscaled.

    sd receives the diagonal, with the edges over the border (`flow_row`). A row owns the edges below it.
    """
    arrays_apart()
    H, W = sd.shape
    if lo == 0:
        for j in range(W):
            wv[0, j] = 0
    for i in range(lo, hi):
        wh[i, 0] = 0
        wh[i, W] = 0
        last = i + 1 == H
        if scaled:
            for j in range(1, W):
                wh[i, j] = ch[i, j - 1] * y[i, j - 1] * y[i, j]
            if not last:
                for j in range(W):
                    wv[i + 1, j] = cv[i, j] * y[i, j] * y[i + 1, j]
        else:
            for j in range(1, W):
                wh[i, j] = ch[i, j - 1]
            if not last:
                for j in range(W):
                    wv[i + 1, j] = cv[i, j]
        if last:
            for j in range(W):
                wv[H, j] = 0
        for j in range(W):
            sd[i, j] = wh[i, j] + wh[i, j + 1] + wv[i + 1, j]
        if i > 0:
            if scaled:  # not from wv[i]: another band may be writing it
                for j in range(W):
                    sd[i, j] += cv[i - 1, j] * y[i - 1, j] * y[i, j]
            else:
                for j in range(W):
                    sd[i, j] += cv[i - 1, j]
        for side in range(2):
            j = side * (W - 1)
            sd[i, j] += sides[0, side, i] * (y[i, j] * sides[1, side, i] if scaled else 1)
            if i == side * (H - 1):
                for j in range(W):
                    sd[i, j] += ends[0, side, j] * (y[i, j] * ends[1, side, j] if scaled else 1)


@compiled
def root(sd, count, share, tiny, rows, cols, lo, hi):
    """Replace the diagonal of block rows lo..hi by its square root.

    In a measured block no entry stays below `share` of the largest: a pixel with hardly any edge would otherwise
    dominate the constraint by more digits than there are. Elsewhere only zero is kept away from.
    """
    arrays_apart()
    W = sd.shape[1]
    line = np.empty(W, sd.dtype)
    least = np.empty((1, count.shape[1]))
    for block in range(lo, hi):
        line[:] = 0
        for i in range(rows[block], rows[block + 1]):
            for j in range(W):
                line[j] = sd[i, j] if sd[i, j] > line[j] else line[j]
        for cell in range(count.shape[1]):
            largest = 0.0
            if count[block, cell] > 0:
                for j in range(cols[cell], cols[cell + 1]):
                    largest = max(largest, line[j])
            least[0, cell] = max(share * largest, tiny)
        expand(least, 0, cols, line)
        for i in range(rows[block], rows[block + 1]):
            for j in range(W):
                sd[i, j] = np.sqrt(sd[i, j] if sd[i, j] > line[j] else line[j])


@compiled
def _invert(sd, i, out):
    """Row i of 1 / sd; a function of its own, as rows that change places look as if they overlapped."""
    arrays_apart()
    one = sd.dtype.type(1)  # a plain 1 would turn the division to float64
    for j in range(out.shape[0]):
        out[j] = one / sd[i, j]


@compiled
def _scale_edges(wv, wh, i, here, below):
    """Scale the edges of row i to its right by `here`, those below it by `here` and `below`."""
    arrays_apart()
    for j in range(here.shape[0]):
        wv[i + 1, j] *= here[j] * below[j]
    for j in range(1, here.shape[0]):
        wh[i, j] *= here[j - 1] * here[j]


@compiled
def _fill_g(g, i, here, y, scaled, measured, has_measured, total):
    """Row i of g, and its squares added to `total`."""
    arrays_apart()
    if scaled:
        for j in range(here.shape[0]):
            g[i, j] = here[j] * y[i, j] * y[i, j]
    else:
        for j in range(here.shape[0]):
            g[i, j] = here[j]
    if has_measured:
        for j in range(here.shape[0]):
            g[i, j] *= measured[i, j]
    for j in range(here.shape[0]):
        total[j] += g[i, j] * g[i, j]


@compiled
def normalise(wv, wh, sd, y, scaled, measured, has_measured, g, s0, rows, cols, lo, hi):
    """Scale the weights of block rows lo..hi to a unit diagonal; fill g (m / sd, or m y^2 / sd), its square sums s0."""
    arrays_apart()
    H, W = sd.shape
    total = np.empty(W, sd.dtype)
    here = np.empty(W, sd.dtype)
    below = np.zeros(W, sd.dtype)
    _invert(sd, rows[lo], here)
    for block in range(lo, hi):
        total[:] = 0
        for i in range(rows[block], rows[block + 1]):
            if i + 1 < H:
                _invert(sd, i + 1, below)
            _scale_edges(wv, wh, i, here, below)  # below the last row are none
            _fill_g(g, i, here, y, scaled, measured, has_measured, total)
            here, below = below, here
        reduce(total, cols, s0, block)


@compiled
def laplacian_row(y, cv, ch, i, out):
    """Row i of L y."""
    arrays_apart()
    H, W = y.shape
    if i == 0 or i + 1 == H:
        for j in range(W):
            out[j] = 0
        if i > 0:
            for j in range(W):
                out[j] += cv[i - 1, j] * (y[i, j] - y[i - 1, j])
        if i + 1 < H:
            for j in range(W):
                out[j] += cv[i, j] * (y[i, j] - y[i + 1, j])
    else:
        for j in range(W):
            out[j] = cv[i - 1, j] * (y[i, j] - y[i - 1, j]) + cv[i, j] * (y[i, j] - y[i + 1, j])
    if W > 1:
        out[0] += ch[i, 0] * (y[i, 0] - y[i, 1])
        for j in range(1, W - 1):
            out[j] += ch[i, j] * (y[i, j] - y[i, j + 1]) + ch[i, j - 1] * (y[i, j] - y[i, j - 1])
        out[W - 1] += ch[i, W - 2] * (y[i, W - 1] - y[i, W - 2])


@compiled
def flow_row(y, cv, ch, ends, sides, i, out):
    """Row i of L y, with what flows over the border of a part of an image (`_cpu_tiles.py`).

    Beyond it lie ends [2, 2, W] above and below and sides [2, 2, H] left and right: the coefficients, and the values.
    """
    arrays_apart()
    laplacian_row(y, cv, ch, i, out)
    H, W = y.shape
    out[0] += sides[0, 0, i] * (y[i, 0] - sides[1, 0, i])
    out[W - 1] += sides[0, 1, i] * (y[i, W - 1] - sides[1, 1, i])
    if i == 0:
        for j in range(W):
            out[j] += ends[0, 0, j] * (y[i, j] - ends[1, 0, j])
    if i + 1 == H:
        for j in range(W):
            out[j] += ends[0, 1, j] * (y[i, j] - ends[1, 1, j])


@compiled
def residual_shift(y, f, cv, ch, ends, sides, sd, r, lo, hi):
    """Scaled right-hand side of `shift`, -L y (or f - L y where f is not None), for pixel rows lo..hi."""
    arrays_apart()
    W = y.shape[1]
    row = np.empty(W, y.dtype)
    for i in range(lo, hi):
        flow_row(y, cv, ch, ends, sides, i, row)
        for j in range(W):
            r[i, j] = (-row[j] if f is None else f[i, j] - row[j]) / sd[i, j]


@compiled
def residual_ratio(y, cv, ch, ends, sides, sd, source, slack, count, measured, has_measured, r, mu, rows, cols, lo, hi):
    """Scaled right-hand side of `ratio` in log y, y (mu y - L y), for block rows lo..hi; mu is left in the cells."""
    arrays_apart()
    W = y.shape[1]
    row = np.empty(W, y.dtype)
    flow = np.empty(W, y.dtype)
    total = np.empty(W, y.dtype)
    totals = np.empty((1, source.shape[1]))
    for block in range(lo, hi):
        flow[:] = 0
        total[:] = 0
        for i in range(rows[block], rows[block + 1]):
            flow_row(y, cv, ch, ends, sides, i, row)
            for j in range(W):
                r[i, j] = row[j]
            accumulate(r, i, measured, has_measured, flow)
            accumulate(y, i, measured, has_measured, total)
        reduce(flow, cols, mu, block)
        reduce(total, cols, totals, 0)
        for cell in range(source.shape[1]):
            if count[block, cell] == 0:
                mu[block, cell] = 0.0
            elif slack[block, cell] > 0:  # soft: the pull of the measurement, (S - d) / (slack n d)
                mean = totals[0, cell] / count[block, cell]
                mu[block, cell] = (source[block, cell] - mean) / (slack[block, cell] * totals[0, cell])
            else:  # hard: what balances the flow out of the block
                mu[block, cell] /= totals[0, cell]
        expand(mu, block, cols, row)
        for i in range(rows[block], rows[block + 1]):
            if has_measured:
                for j in range(W):
                    r[i, j] = y[i, j] * (row[j] * measured[i, j] * y[i, j] - r[i, j]) / sd[i, j]
            else:
                for j in range(W):
                    r[i, j] = y[i, j] * (row[j] * y[i, j] - r[i, j]) / sd[i, j]


@compiled
def residual_adjoint(
    a, y, v, cv, ch, ends, sides, sd, mu, source, slack, count, measured, has_measured, r, k, rows, cols, lo, hi
):  # fmt: skip
    """Scaled right-hand side of the adjoint of `ratio`, y (v - L a + mu a - k), for block rows lo..hi; k in cells."""
    arrays_apart()
    W = y.shape[1]
    row = np.empty(W, y.dtype)
    push = np.empty(W, y.dtype)
    flow = np.empty(W, y.dtype)
    total = np.empty(W, y.dtype)
    moment = np.empty(W, y.dtype)
    totals = np.empty((2, source.shape[1]))
    for block in range(lo, hi):
        flow[:] = 0
        total[:] = 0
        moment[:] = 0
        expand(mu, block, cols, push)
        for i in range(rows[block], rows[block + 1]):
            flow_row(a, cv, ch, ends, sides, i, row)
            if has_measured:
                for j in range(W):
                    r[i, j] = y[i, j] * (v[i, j] - row[j] + push[j] * measured[i, j] * a[i, j])
                for j in range(W):
                    moment[j] += measured[i, j] * y[i, j] * a[i, j]
            else:
                for j in range(W):
                    r[i, j] = y[i, j] * (v[i, j] - row[j] + push[j] * a[i, j])
                for j in range(W):
                    moment[j] += y[i, j] * a[i, j]
            accumulate(r, i, measured, has_measured, flow)
            accumulate(y, i, measured, has_measured, total)
        reduce(flow, cols, k, block)
        reduce(total, cols, totals, 0)
        reduce(moment, cols, totals, 1)
        for cell in range(source.shape[1]):
            if count[block, cell] == 0:
                k[block, cell] = 0.0
            elif slack[block, cell] > 0:
                weight = slack[block, cell] * totals[0, cell] * totals[0, cell] / source[block, cell]
                k[block, cell] = totals[1, cell] / weight
            else:
                k[block, cell] /= totals[0, cell]
        expand(k, block, cols, push)
        for i in range(rows[block], rows[block + 1]):
            if has_measured:
                for j in range(W):
                    r[i, j] = (r[i, j] - y[i, j] * push[j] * measured[i, j]) / sd[i, j]
            else:
                for j in range(W):
                    r[i, j] = (r[i, j] - y[i, j] * push[j]) / sd[i, j]
