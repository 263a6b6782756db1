"""Kernels that build the saddle system, on the finest grid and on coarser ones, and change values by its solution.

All kernels of this folder work on a batch: fields are [N, H, W], cells [N, h, w]. Their `layout` is the first row and
column of each block, and the tasks that threads share: image, number of the band, and its first and last block row. A
band is a part of an image; what one task writes, no other reads in the same kernel. Weights have a border of zeros:
wv [N, H + 1, W], of which row i joins the pixel rows i - 1 and i, and wh [N, H, W + 1].
"""

from __future__ import annotations

import numpy as np

from dada.compiling import kernel

from .rows import expand, reduce


@kernel
def weigh(layout, cv, ch, y, wv, wh, g):
    """Unscaled weights and constraint: w = c y_p y_n and g = y^2."""
    rows, _, tasks = layout
    W = g.shape[2]
    for task in range(tasks.shape[0]):
        n, _, first, last = tasks[task]
        for i in range(rows[first], rows[last]):
            here = y[n, i]
            for j in range(1, W):
                wh[n, i, j] = ch[n, i, j - 1] * here[j - 1] * here[j]
            for j in range(W if i > 0 else 0):
                wv[n, i, j] = cv[n, i - 1, j] * y[n, i - 1, j] * here[j]
            for j in range(W):
                g[n, i, j] = here[j] * here[j]


@kernel
def root(layout, wv, wh, used, share, tiny, sd):
    """Square root of the diagonal, sd = sqrt(sum of the weights at a pixel), kept away from zero.

    In a block of a measured cell (`used`) no diagonal stays below `share` of the largest: a pixel with hardly any edge
    would otherwise dominate the constraint by more digits than there are. Elsewhere `tiny` is the least.
    """
    rows, cols, tasks = layout
    W = sd.shape[2]
    for task in range(tasks.shape[0]):
        n, _, first, last = tasks[task]
        line = np.empty(W, sd.dtype)
        least = np.empty(cols.shape[0] - 1)
        for block in range(first, last):
            line[:] = 0
            for i in range(rows[block], rows[block + 1]):
                for j in range(W):
                    total = wv[n, i, j] + wv[n, i + 1, j] + wh[n, i, j] + wh[n, i, j + 1]
                    sd[n, i, j] = total
                    line[j] = max(line[j], total)
            for cell in range(least.shape[0]):
                largest = 0.0
                for j in range(cols[cell], cols[cell + 1]):
                    largest = max(largest, line[j])
                least[cell] = max(share * largest * used[n, block, cell], tiny)
            expand(least, cols, line)
            for i in range(rows[block], rows[block + 1]):
                for j in range(W):
                    sd[n, i, j] = np.sqrt(max(sd[n, i, j], line[j]))


@kernel
def scale(layout, wv, wh, g, sd, squares):
    """Scale the system to a unit diagonal: w / (sd_p sd_n), g / sd; squares [N, h, w] receives the sums of g^2."""
    rows, cols, tasks = layout
    W = sd.shape[2]
    for task in range(tasks.shape[0]):
        n, _, first, last = tasks[task]
        total = np.empty(W, sd.dtype)
        for block in range(first, last):
            total[:] = 0
            for i in range(rows[block], rows[block + 1]):
                here, above = sd[n, i], sd[n, max(i - 1, 0)]
                for j in range(1, W):
                    wh[n, i, j] /= here[j - 1] * here[j]
                for j in range(W):
                    wv[n, i, j] /= above[j] * here[j]
                for j in range(W):
                    value = g[n, i, j] / here[j]
                    g[n, i, j] = value
                    total[j] += value * value
            reduce(total, cols, squares[n, block])


@kernel
def flow(layout, y, cv, ch, out):
    """L y, the flow out of each pixel, sum of c (y_p - y_n)."""
    rows, _, tasks = layout
    _, H, W = y.shape
    for task in range(tasks.shape[0]):
        n, _, first, last = tasks[task]
        for i in range(rows[first], rows[last]):
            here, side, line = y[n, i], ch[n, i], out[n, i]
            line[:] = 0
            above, below = max(i - 1, 0), min(i + 1, H - 1)  # at the border the row itself, from which nothing flows
            for j in range(W if H > 1 else 0):
                line[j] = cv[n, above, j] * (here[j] - y[n, above, j])
                line[j] += cv[n, min(i, H - 2), j] * (here[j] - y[n, below, j])
            for j in range(1, W):
                line[j] += side[j - 1] * (here[j] - here[j - 1])
            for j in range(W - 1):
                line[j] += side[j] * (here[j] - here[j + 1])


@kernel
def gather(layout, wv, wh, g, sd, wv_c, wh_c, g_c):
    """Sum unscaled weights and g over groups of pixels; edges inside a group vanish."""
    prow, pcol, tasks = layout
    W = sd.shape[2]
    for task in range(tasks.shape[0]):
        n, _, first, last = tasks[task]
        line, side = np.empty(W, sd.dtype), np.empty(W, sd.dtype)
        for group in range(first, last):
            top = prow[group]
            if top > 0:
                for j in range(W):
                    line[j] = wv[n, top, j] * sd[n, top - 1, j] * sd[n, top, j]
                reduce(line, pcol, wv_c[n, group])
            line[:] = 0
            side[:] = 0
            for i in range(top, prow[group + 1]):
                for j in range(W):
                    line[j] += g[n, i, j] * sd[n, i, j]
                for j in range(1, W):
                    side[j] += wh[n, i, j] * sd[n, i, j - 1] * sd[n, i, j]
            reduce(line, pcol, g_c[n, group])
            for J in range(1, pcol.shape[0] - 1):
                wh_c[n, group, J] = side[pcol[J]]


@kernel
def block_sums(layout, a, b, product, out):
    """Sums of a, or of a b for a `product`, over each block, in float64."""
    rows, cols, tasks = layout
    W = a.shape[2]
    for task in range(tasks.shape[0]):
        n, _, first, last = tasks[task]
        total = np.empty(W)
        for block in range(first, last):
            total[:] = 0
            for i in range(rows[block], rows[block + 1]):
                if product:
                    for j in range(W):
                        total[j] += np.float64(a[n, i, j]) * b[n, i, j]
                else:
                    for j in range(W):
                        total[j] += a[n, i, j]
            reduce(total, cols, out[n, block])


@kernel
def update(layout, y, x, sd, largest):
    """y *= 1 + u with u = x / sd; largest [N, bands] receives max |u|.

    Below -1/2 the factor goes on as -1 / (4 u), with the same value and slope, so that y stays positive.
    """
    rows, _, tasks = layout
    W = y.shape[2]
    for task in range(tasks.shape[0]):
        n, band, first, last = tasks[task]
        one, half, quarter, tiny = y.dtype.type(1), y.dtype.type(0.5), y.dtype.type(0.25), y.dtype.type(1e-30)
        most = np.zeros(W, y.dtype)  # of each column, as a single maximum is not vectorised
        for i in range(rows[first], rows[last]):
            for j in range(W):
                u = x[n, i, j] / sd[n, i, j]
                most[j] = max(most[j], abs(u))
                y[n, i, j] = max(y[n, i, j] * (one + u if u > -half else quarter / max(-u, half)), tiny)
        largest[n, band] = most.max()
