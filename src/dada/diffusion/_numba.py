"""The passes over memory of the loop and of the solver, compiled for the CPU and free of the GIL.

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

from typing import Any

import numba
import numpy as np

# Sums may be reordered (vectorised) and products fused; NaN and infinity keep their meaning.
compiled: Any = numba.njit(nogil=True, cache=True, fastmath={"reassoc", "contract", "nsz", "arcp"}, error_model="numpy")

SPARE = 8  # numbers before an image of the loop, so that its rows begin where vectors of numbers are read fastest


@compiled
def expand(cells, row_of_cells, starts, out):
    """Copy each cell of one row of cells to the pixels it covers."""
    n = cells.shape[1]
    width = out.shape[0] // n
    if out.shape[0] != width * n or width not in (2, 4, 8):
        for cell in range(n):
            value = cells[row_of_cells, cell]
            for j in range(starts[cell], starts[cell + 1]):
                out[j] = value
        return
    # small equal blocks: written out, or short loops would cost most
    if width == 2:
        for cell in range(n):
            out[2 * cell] = cells[row_of_cells, cell]
            out[2 * cell + 1] = cells[row_of_cells, cell]
    else:
        for cell in range(n):
            value = cells[row_of_cells, cell]
            j = width * cell
            out[j] = value
            out[j + 1] = value
            out[j + 2] = value
            out[j + 3] = value
            if width == 8:
                out[j + 4] = value
                out[j + 5] = value
                out[j + 6] = value
                out[j + 7] = value


@compiled
def reduce(row, starts, cells, row_of_cells):
    """Sum a row of pixels over each cell."""
    n = cells.shape[1]
    width = row.shape[0] // n
    zero = cells.dtype.type(0)
    if width == 2 and row.shape[0] == 2 * n:
        for cell in range(n):
            cells[row_of_cells, cell] = row[2 * cell] + row[2 * cell + 1]
    elif width == 4 and row.shape[0] == 4 * n:
        for cell in range(n):
            j = 4 * cell
            cells[row_of_cells, cell] = (row[j] + row[j + 1]) + (row[j + 2] + row[j + 3])
    elif width % 4 == 0 and row.shape[0] == width * n:
        for cell in range(n):
            total = zero
            for j in range(cell * width, (cell + 1) * width, 4):
                total += (row[j] + row[j + 1]) + (row[j + 2] + row[j + 3])
            cells[row_of_cells, cell] = total
    else:
        for cell in range(n):
            total = zero
            for j in range(starts[cell], starts[cell + 1]):
                total += row[j]
            cells[row_of_cells, cell] = total


@compiled
def _accumulate(values, i, measured, has_measured, total):
    """Add the measured pixels of row i to `total`."""
    if has_measured:
        for j in range(total.shape[0]):
            total[j] += values[i, j] * measured[i, j]
    else:
        for j in range(total.shape[0]):
            total[j] += values[i, j]


@compiled
def _apply(values, i, ratio, change, measured, has_measured):
    """Eq. 3 on row i: values *= 1 + change (ratio) or values += change, where measured."""
    if has_measured:
        if ratio:
            for j in range(change.shape[0]):
                values[i, j] += values[i, j] * change[j] * measured[i, j]
        else:
            for j in range(change.shape[0]):
                values[i, j] += change[j] * measured[i, j]
    elif ratio:
        for j in range(change.shape[0]):
            values[i, j] += values[i, j] * change[j]
    else:
        for j in range(change.shape[0]):
            values[i, j] += change[j]


# ---- the paper's loop -------------------------------------------------------------------------------------------


@compiled
def _diffuse_row(y, i, H, W, wv, wh, lam, total, out):
    """Eq. 1 for row i, added to `total`; edges that leave the image have zero weight.

    All images are flat here, y and out with SPARE numbers before and after: the neighbour of the first pixel of a row
    may then be anything finite. The last edge of a row of wh is the first of the next: both are zero. Unsigned places
    need no test for negative ones, and no pixel is left over for a slow second loop.
    """
    here = np.uint64(SPARE + i * W)
    above, below = np.uint64(SPARE + max(i - 1, 0) * W), np.uint64(SPARE + min(i + 1, H - 1) * W)
    v = np.uint64(i * W)
    width, one = np.uint64(W), np.uint64(1)
    for j in range(width):
        value = y[here + j]
        flow = wv[v + j] * (y[above + j] - value) + wv[v + width + j] * (y[below + j] - value)
        flow += wh[v + j] * (y[here + j - one] - value) + wh[v + j + one] * (y[here + j + one] - value)
        value += lam * flow
        out[here + j] = value
        total[j] += value


@compiled
def _changes(means, source, pull, share, block, ratio, epsilon):
    """Turn the sums over the cells of a block row, means[0], into what `_apply` changes them by."""
    one, zero = means.dtype.type(1), means.dtype.type(0)
    less = means.dtype.type(epsilon)
    # without branches, to vectorise: where a cell is not used, pull and share are 0 and the divisor is 1
    if ratio:
        for cell in range(source.shape[1]):
            mean = means[0, cell] * share[block, cell]
            used = one if share[block, cell] > 0 else zero
            change = pull[block, cell] * (source[block, cell] - mean) - used * less
            means[0, cell] = change / (mean + less + one - used)
    else:
        for cell in range(source.shape[1]):
            means[0, cell] = pull[block, cell] * (source[block, cell] - means[0, cell] * share[block, cell])


@compiled
def loop(y, wv, wh, step, ratio, epsilon, source, pull, share, measured, has_measured, rows, cols, steps):
    """Run Eq. 1 and Eq. 3 `steps` times from y; return the result.

    Weights wv, wh are unscaled coefficients here. `pull` is 0 for a cell without measurement, 1 for a hard one,
    between them for a soft one (iterate.py); `share` is one over the number of measured pixels, or 0.
    """
    H, W = y.shape
    flat, target = np.zeros(H * W + 2 * SPARE, y.dtype), np.zeros(H * W + 2 * SPARE, y.dtype)
    now, then = flat[SPARE:-SPARE].reshape((H, W)), target[SPARE:-SPARE].reshape((H, W))
    now[:] = y
    fv, fh = wv.reshape(-1), np.zeros(H * W + 1, y.dtype)
    fh[:-1].reshape((H, W))[:] = wh[:, :-1]
    total = np.empty(W, y.dtype)
    unused = np.zeros(W, y.dtype)
    change = np.empty(W, y.dtype)
    cells = np.empty((1, source.shape[1]), y.dtype)
    lam = y.dtype.type(step)
    for _ in range(steps):
        for block in range(source.shape[0]):
            total[:] = 0
            for i in range(rows[block], rows[block + 1]):
                if has_measured:
                    _diffuse_row(flat, i, H, W, fv, fh, lam, unused, target)
                    _accumulate(then, i, measured, has_measured, total)
                else:
                    _diffuse_row(flat, i, H, W, fv, fh, lam, total, target)
            reduce(total, cols, cells, 0)
            _changes(cells, source, pull, share, block, ratio, epsilon)
            expand(cells, 0, cols, change)
            for i in range(rows[block], rows[block + 1]):
                _apply(then, i, ratio, change, measured, has_measured)
        flat, target, now, then = target, flat, then, now
    return now


@compiled
def adjust(y, ratio, source, slack, count, measured, has_measured, rows, cols, lo, hi):
    """Eq. 3 on the hard cells of block rows lo..hi, so that down(y) = S."""
    W = y.shape[1]
    total = np.empty(W)
    change = np.empty(W)
    means = np.empty((1, source.shape[1]))
    for block in range(lo, hi):
        total[:] = 0
        for i in range(rows[block], rows[block + 1]):
            _accumulate(y, i, measured, has_measured, total)
        reduce(total, cols, means, 0)
        for cell in range(source.shape[1]):
            if count[block, cell] > 0 and slack[block, cell] == 0:
                mean = means[0, cell] / count[block, cell]
                means[0, cell] = source[block, cell] / mean - 1.0 if ratio else source[block, cell] - mean
            else:
                means[0, cell] = 0.0
        expand(means, 0, cols, change)
        for i in range(rows[block], rows[block + 1]):
            _apply(y, i, ratio, change, measured, has_measured)


# ---- the linear system: weights, diagonal, right-hand side ------------------------------------------------------


@compiled
def weigh(cv, ch, y, scaled, wv, wh, sd, lo, hi):
    """Put the weights (c, or c y_p y_n where `scaled`) of pixel rows lo..hi into the bordered arrays, unscaled.

    sd receives the diagonal. A row owns the edges below it.
    """
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


@compiled
def root(sd, count, share, tiny, rows, cols, lo, hi):
    """Replace the diagonal of block rows lo..hi by its square root.

    In a measured block no entry stays below `share` of the largest: a pixel with hardly any edge would otherwise
    dominate the constraint by more digits than there are. Elsewhere only zero is kept away from.
    """
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
def normalise(wv, wh, sd, y, scaled, measured, has_measured, g, s0, rows, cols, lo, hi):
    """Scale the weights of block rows lo..hi to a unit diagonal; fill g (m / sd, or m y^2 / sd), its square sums s0."""
    H, W = sd.shape
    total = np.empty(W, sd.dtype)
    for block in range(lo, hi):
        total[:] = 0
        for i in range(rows[block], rows[block + 1]):
            if i + 1 < H:
                for j in range(W):
                    wv[i + 1, j] /= sd[i, j] * sd[i + 1, j]
            for j in range(1, W):
                wh[i, j] /= sd[i, j - 1] * sd[i, j]
            for j in range(W):
                g[i, j] = 1 / sd[i, j]
            if scaled:
                for j in range(W):
                    g[i, j] *= y[i, j] * y[i, j]
            if has_measured:
                for j in range(W):
                    g[i, j] *= measured[i, j]
            for j in range(W):
                total[j] += g[i, j] * g[i, j]
        reduce(total, cols, s0, block)


@compiled
def _laplacian_row(y, cv, ch, i, out):
    """Row i of L y."""
    H, W = y.shape
    for j in range(W):
        out[j] = 0
    if i > 0:
        for j in range(W):
            out[j] += cv[i - 1, j] * (y[i, j] - y[i - 1, j])
    if i + 1 < H:
        for j in range(W):
            out[j] += cv[i, j] * (y[i, j] - y[i + 1, j])
    for j in range(W - 1):
        out[j] += ch[i, j] * (y[i, j] - y[i, j + 1])
    for j in range(1, W):
        out[j] += ch[i, j - 1] * (y[i, j] - y[i, j - 1])


@compiled
def residual_shift(y, cv, ch, sd, r, lo, hi):
    """Scaled right-hand side of `shift`, -L y, for pixel rows lo..hi."""
    W = y.shape[1]
    row = np.empty(W, y.dtype)
    for i in range(lo, hi):
        _laplacian_row(y, cv, ch, i, row)
        for j in range(W):
            r[i, j] = -row[j] / sd[i, j]


@compiled
def residual_ratio(y, cv, ch, sd, source, slack, count, measured, has_measured, r, mu, rows, cols, lo, hi):
    """Scaled right-hand side of `ratio` in log y, y (mu y - L y), for block rows lo..hi; mu is left in the cells."""
    W = y.shape[1]
    row = np.empty(W, y.dtype)
    flow = np.empty(W, y.dtype)
    total = np.empty(W, y.dtype)
    totals = np.empty((1, source.shape[1]))
    for block in range(lo, hi):
        flow[:] = 0
        total[:] = 0
        for i in range(rows[block], rows[block + 1]):
            _laplacian_row(y, cv, ch, i, row)
            for j in range(W):
                r[i, j] = row[j]
            _accumulate(r, i, measured, has_measured, flow)
            _accumulate(y, i, measured, has_measured, total)
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
def residual_adjoint(a, y, v, cv, ch, sd, mu, source, slack, count, measured, has_measured, r, k, rows, cols, lo, hi):
    """Scaled right-hand side of the adjoint of `ratio`, y (v - L a + mu a - k), for block rows lo..hi; k in cells."""
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
            _laplacian_row(a, cv, ch, i, row)
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
            _accumulate(r, i, measured, has_measured, flow)
            _accumulate(y, i, measured, has_measured, total)
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


# ---- one conjugate-gradient iteration ---------------------------------------------------------------------------


@compiled
def update(r, q, g, alpha, fold, s1, rows, cols, lo, hi):
    """r -= alpha q + g fold; s1 = block sums of g r. Returns r'r of the band.

    In a hard cell r matters only up to a multiple of g; taking the last one out (`fold`) keeps r small, and r'z free
    of cancellation.
    """
    W = r.shape[1]
    a = r.dtype.type(alpha)
    total = np.empty(W, r.dtype)
    take = np.empty(W, r.dtype)
    squares = 0.0
    for block in range(lo, hi):
        total[:] = 0
        expand(fold, block, cols, take)
        for i in range(rows[block], rows[block + 1]):
            part = r.dtype.type(0)
            for j in range(W):
                value = r[i, j] - a * q[i, j] - g[i, j] * take[j]
                r[i, j] = value
                total[j] += g[i, j] * value
                part += value * value
            squares += part
        reduce(total, cols, s1, block)
    return squares


@compiled
def _direction_row(src, g, i, kappa, b, old, out):
    """Row i of src - g kappa + b p, with `old` for row i of p, into a row with a border of one."""
    for j in range(src.shape[1]):
        out[j + 1] = src[i, j] - g[i, j] * kappa[j] + b * old[j]


@compiled
def _next_row(src, g, i, kappa, a, b, p, x, out):
    """The same with row i of p itself, which is used for x += a p and then replaced."""
    for j in range(src.shape[1]):
        x[i, j] += a * p[i, j]
    for j in range(src.shape[1]):
        value = src[i, j] - g[i, j] * kappa[j] + b * p[i, j]
        out[j + 1] = value
        p[i, j] = value


@compiled
def direction(src, g, kappa, along, has_along, wv, wh, p, x, q, alpha, beta, edge, band, rows, cols, lo, hi):
    """x += alpha p (the step before); z = src - g kappa; p = z + beta p; q = K p + g along. Returns p'q of the band.

    `along` is the multiplier of p, zero in hard cells. edge[band] holds the rows of the old p just above and just
    below the band, which other bands may have replaced by now.
    """
    H, W = src.shape
    a = src.dtype.type(alpha)
    b = src.dtype.type(beta)
    above = np.zeros(W + 2, src.dtype)
    here = np.zeros(W + 2, src.dtype)
    below = np.zeros(W + 2, src.dtype)
    take = np.empty(W, src.dtype)
    push = np.empty(W, src.dtype)
    product = 0.0
    first, last = rows[lo], rows[hi] - 1
    if first > 0:
        expand(kappa, lo - 1, cols, take)
        _direction_row(src, g, first - 1, take, b, edge[band, 0], above)
    expand(kappa, lo, cols, take)
    _next_row(src, g, first, take, a, b, p, x, here)
    for block in range(lo, hi):
        if has_along:
            expand(along, block, cols, push)
        for i in range(rows[block], rows[block + 1]):
            if i + 1 == H:
                below[:] = 0
            else:
                if i + 1 == rows[block + 1]:
                    expand(kappa, block + 1, cols, take)
                if i == last:
                    _direction_row(src, g, i + 1, take, b, edge[band, 1], below)
                else:
                    _next_row(src, g, i + 1, take, a, b, p, x, below)
            # two short loops: with more arrays in one, the compiler gives up on telling them apart
            for j in range(W):
                q[i, j] = here[j + 1] - wh[i, j] * here[j] - wh[i, j + 1] * here[j + 2]
            if has_along:
                for j in range(W):
                    q[i, j] += g[i, j] * push[j]
            part = src.dtype.type(0)
            for j in range(W):
                flow = q[i, j] - wv[i, j] * above[j + 1] - wv[i + 1, j] * below[j + 1]
                q[i, j] = flow
                part += here[j + 1] * flow
            product += part
            above, here, below = here, below, above
    return product


@compiled
def cell_step(s1, inverse, hard, rr, kappa, fold, multiplier):
    """kappa = s1 / (slack + s0) in each cell: to be folded out of r if hard, else the multiplier of z.

    Returns r'z = r'r - sum of kappa s1.
    """
    total = rr
    for i in range(s1.shape[0]):
        for j in range(s1.shape[1]):
            value = s1[i, j] * inverse[i, j]
            kappa[i, j] = value
            fold[i, j] = value if hard[i, j] else 0.0
            multiplier[i, j] = 0.0 if hard[i, j] else value
            total -= value * s1[i, j]
    return total


@compiled
def advance(along, beta, multiplier):
    """The multiplier of p: along = multiplier + beta along."""
    for i in range(along.shape[0]):
        for j in range(along.shape[1]):
            along[i, j] = multiplier[i, j] + beta * along[i, j]


# ---- leaving the linear system ----------------------------------------------------------------------------------


@compiled
def retract(y, x, sd, relative, lo, hi):
    """y *= 1 + u on pixel rows lo..hi, u = x / sd, a change relative to y (or, if not `relative`, to be divided by it).

    Below -1/2 the factor goes on as -1 / (4 u), so y stays positive.
    """
    one = y.dtype.type(1)
    quarter = y.dtype.type(0.25)
    half = y.dtype.type(0.5)
    tiny = y.dtype.type(1e-30)
    for i in range(lo, hi):
        for j in range(y.shape[1]):
            u = x[i, j] / (sd[i, j] if relative else sd[i, j] * y[i, j])
            value = y[i, j] * (one + u if u > -half else quarter / max(-u, half))
            y[i, j] = value if value > tiny else tiny


@compiled
def add_scaled(x, p, alpha, lo, hi):
    """x += alpha p on pixel rows lo..hi."""
    a = x.dtype.type(alpha)
    for i in range(lo, hi):
        for j in range(x.shape[1]):
            x[i, j] += a * p[i, j]


@compiled
def clear(x, p, q, lo, hi):
    """Set pixel rows lo..hi of all three to 0."""
    x[lo:hi] = 0
    p[lo:hi] = 0
    q[lo:hi] = 0


@compiled
def total(values, power):
    """Sum of the values, or of their squares for power 2, row by row."""
    out = 0.0
    for i in range(values.shape[0]):
        part = values.dtype.type(0)
        if power == 2:
            for j in range(values.shape[1]):
                part += values[i, j] * values[i, j]
        else:
            for j in range(values.shape[1]):
                part += values[i, j]
        out += part
    return out


@compiled
def add_unscaled(y, x, sd, lo, hi):
    """y += x / sd on pixel rows lo..hi."""
    for i in range(lo, hi):
        for j in range(y.shape[1]):
            y[i, j] += x[i, j] / sd[i, j]


@compiled
def add_unscaled_product(a, y, x, sd, lo, hi):
    """a += y x / sd on pixel rows lo..hi."""
    for i in range(lo, hi):
        for j in range(y.shape[1]):
            a[i, j] += y[i, j] * x[i, j] / sd[i, j]


@compiled
def cell_means(y, count, measured, has_measured, rows, cols, out):
    """down(y): the mean of the measured pixels of each cell, 0 where there are none."""
    total = np.empty(y.shape[1])
    for block in range(out.shape[0]):
        total[:] = 0
        for i in range(rows[block], rows[block + 1]):
            _accumulate(y, i, measured, has_measured, total)
        reduce(total, cols, out, block)
        for cell in range(out.shape[1]):
            out[block, cell] = out[block, cell] / count[block, cell] if count[block, cell] > 0 else 0.0


@compiled
def flux(a, v, cv, ch, count, measured, has_measured, rows, cols, out):
    """dloss/dS of `shift`: the sum of v - L a over the measured pixels of each cell."""
    W = a.shape[1]
    line = np.empty((1, W), a.dtype)
    row = np.empty(W, a.dtype)
    total = np.empty(W)
    for block in range(out.shape[0]):
        total[:] = 0
        for i in range(rows[block], rows[block + 1]):
            _laplacian_row(a, cv, ch, i, row)
            for j in range(W):
                line[0, j] = v[i, j] - row[j]
            if has_measured:
                for j in range(W):
                    total[j] += line[0, j] * measured[i, j]
            else:
                for j in range(W):
                    total[j] += line[0, j]
        reduce(total, cols, out, block)
        for cell in range(out.shape[1]):
            if count[block, cell] == 0:
                out[block, cell] = 0.0


@compiled
def edge_gradient(a, y, vertical, horizontal):
    """dloss/dc = -(a_p - a_n)(y_p - y_n) for each edge."""
    H, W = a.shape
    for i in range(H):
        if i + 1 < H:
            for j in range(W):
                vertical[i, j] = (a[i, j] - a[i + 1, j]) * (y[i + 1, j] - y[i, j])
        for j in range(W - 1):
            horizontal[i, j] = (a[i, j] - a[i, j + 1]) * (y[i, j + 1] - y[i, j])
