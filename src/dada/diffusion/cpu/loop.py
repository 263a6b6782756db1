"""The paper's loop, compiled: Eq. 1 and Eq. 3, step after step."""

from __future__ import annotations

import numpy as np

from dada.compiling import inlined, kernel

from .rows import expand, reduce


@inlined
def _diffuse_row(y, wv, wh, i, out):
    """Eq. 1 for row i of an image, with weights that hold the step size and are 0 beyond the border."""
    H, W = y.shape
    above, here, below = y[max(i - 1, 0)], y[i], y[min(i + 1, H - 1)]
    up, down, side = wv[i], wv[i + 1], wh[i]
    for j in range(1, W - 1):
        vertical = up[j] * (above[j] - here[j]) + down[j] * (below[j] - here[j])
        out[j] = here[j] + vertical + side[j] * (here[j - 1] - here[j]) + side[j + 1] * (here[j + 1] - here[j])
    for j in range(0, W, max(W - 1, 1)):
        vertical = up[j] * (above[j] - here[j]) + down[j] * (below[j] - here[j])
        left, right = here[max(j - 1, 0)] - here[j], here[min(j + 1, W - 1)] - here[j]
        out[j] = here[j] + vertical + side[j] * left + side[j + 1] * right


@inlined
def _change(totals, source, pull, share, ratio, epsilon, change):
    """From the sums over the cells of a block row to what Eq. 3 changes their pixels by."""
    for cell in range(totals.shape[0]):
        mean = totals[cell] * share[cell]
        if not ratio:
            change[cell] = pull[cell] * (source[cell] - mean)
        elif share[cell] > 0:
            change[cell] = (pull[cell] * (source[cell] - mean) - epsilon) / (mean + epsilon)
        else:
            change[cell] = 0


@kernel
def loop(layout, y, other, wv, wh, source, pull, share, measured, ratio, epsilon, steps):
    """Run Eq. 1 and Eq. 3 on each image; the result is in y for an even number of steps, else in `other`.

    wv, wh are coefficients times the step size, with a border of zeros. pull [N, h, w] is the share of the misfit that
    a step removes: 1 for a hard cell, 0 for none, else soft. share [N, h, w] is 1 / (measured pixels), or 0.
    """
    rows, cols, tasks = layout
    W = y.shape[2]
    partly = measured.shape == y.shape
    for task in range(tasks.shape[0]):
        n = tasks[task, 0]
        now, then = y[n], other[n]
        total, line = np.empty(W, y.dtype), np.empty(W, y.dtype)
        cells = np.empty(cols.shape[0] - 1, y.dtype)
        for _ in range(steps):
            for block in range(rows.shape[0] - 1):
                total[:] = 0
                for i in range(rows[block], rows[block + 1]):
                    _diffuse_row(now, wv[n], wh[n], i, then[i])
                    for j in range(W):
                        total[j] += then[i, j] * (measured[n, i, j] if partly else 1)
                reduce(total, cols, cells)
                _change(cells, source[n, block], pull[n, block], share[n, block], ratio, epsilon, cells)
                expand(cells, cols, line)
                for i in range(rows[block], rows[block + 1]):
                    for j in range(W):
                        change = line[j] * (measured[n, i, j] if partly else 1)
                        then[i, j] += then[i, j] * change if ratio else change
            now, then = then, now
