"""The paper's loop, compiled (Eq. 1 and Eq. 3), and its adjustment alone, which the solver ends with too."""

from __future__ import annotations

import numpy as np

from ._numba_rows import accumulate, apply, arrays_apart, compiled, expand, reduce

SPARE = 8  # numbers before an image of the loop, so that its rows begin where vectors of numbers are read fastest


@compiled
def _diffuse_row(y, i, H, W, wv, wh, lam, total, out):
    """Eq. 1 for row i, added to `total`; edges that leave the image have zero weight.

    All images are flat here, y and out with SPARE numbers before and after: the neighbour of the first pixel of a row
    may then be anything finite. The last edge of a row of wh is the first of the next: both are zero. Unsigned places
    need no test for negative ones, and no pixel is left over for a slow second loop.
    """
    arrays_apart()
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
    between them for a soft one (loop.py); `share` is one over the number of measured pixels, or 0.
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
                    accumulate(then, i, measured, has_measured, total)
                else:
                    _diffuse_row(flat, i, H, W, fv, fh, lam, total, target)
            reduce(total, cols, cells, 0)
            _changes(cells, source, pull, share, block, ratio, epsilon)
            expand(cells, 0, cols, change)
            for i in range(rows[block], rows[block + 1]):
                apply(then, i, ratio, change, measured, has_measured)
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
            accumulate(y, i, measured, has_measured, total)
        reduce(total, cols, means, 0)
        for cell in range(source.shape[1]):
            if count[block, cell] > 0 and slack[block, cell] == 0:
                mean = means[0, cell] / count[block, cell]
                means[0, cell] = source[block, cell] / mean - 1.0 if ratio else source[block, cell] - mean
            else:
                means[0, cell] = 0.0
        expand(means, 0, cols, change)
        for i in range(rows[block], rows[block + 1]):
            apply(y, i, ratio, change, measured, has_measured)
