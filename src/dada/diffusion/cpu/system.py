"""Kernels that build the saddle system and its right-hand sides.

All kernels of this folder work on a batch. Fields are [N, H, W], cells [N, h, w]; `blocks` are the first rows and
columns of the blocks, and `bands` of block rows (see `backend.Layout`). A task is one band of one image, so that
threads share large images and batches alike; what a task writes, no other task reads in the same kernel. Images that
are not `active` are left as they are. Edge weights have a border of zeros: wv [N, H + 1, W], of which row i joins the
pixel rows i - 1 and i, and wh [N, H, W + 1]. A loop over a row of pixels takes at most one neighbour for granted:
that is what the compiler vectorises.
"""

from __future__ import annotations

import numpy as np
from numba import prange

from .compiling import kernel
from .rows import expand, reduce


@kernel
def weigh(cv, ch, y, at_y, measured, partly, active, blocks, wv, wh, g):
    """Unscaled weights and constraint: w = c and g = m; where `at_y` [N], w = c y_p y_n and g = m y^2.

    `measured` is m, or anything unless `partly`: m = 1 then.
    """
    rows, _, bands = blocks
    N, H, W = g.shape
    tasks = bands.shape[0] - 1
    for task in prange(N * tasks):
        n, band = task // tasks, task % tasks
        if not active[n]:
            continue
        for i in range(rows[bands[band]], rows[bands[band + 1]]):
            for j in range(W - 1):
                wh[n, i, j + 1] = ch[n, i, j] * (y[n, i, j] * y[n, i, j + 1] if at_y[n] else 1)
            if i + 1 < H:
                for j in range(W):
                    wv[n, i + 1, j] = cv[n, i, j] * (y[n, i, j] * y[n, i + 1, j] if at_y[n] else 1)
            for j in range(W):
                g[n, i, j] = y[n, i, j] * y[n, i, j] if at_y[n] else 1
            if partly:
                for j in range(W):
                    g[n, i, j] *= measured[n, i, j]


@kernel
def root(wv, wh, used, share, tiny, active, blocks, sd):
    """Square root of the diagonal, sd = sqrt(sum of the weights at a pixel), kept away from zero.

    In a block of a measured cell (`used`) no diagonal stays below `share` of the largest: a pixel with hardly any edge
    would otherwise dominate the constraint by more digits than there are. Elsewhere `tiny` is the least.
    """
    rows, cols, bands = blocks
    N, _, W = sd.shape
    tasks = bands.shape[0] - 1
    for task in prange(N * tasks):
        n, band = task // tasks, task % tasks
        if not active[n]:
            continue
        line = np.empty(W, sd.dtype)
        least = np.empty(cols.shape[0] - 1)
        for block in range(bands[band], bands[band + 1]):
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
def scale(wv, wh, g, sd, active, blocks, squares):
    """Scale the system to a unit diagonal: w / (sd_p sd_n), g / sd; squares [N, h, w] receives the sums of g^2."""
    rows, cols, bands = blocks
    N, H, W = sd.shape
    tasks = bands.shape[0] - 1
    for task in prange(N * tasks):
        n, band = task // tasks, task % tasks
        if not active[n]:
            continue
        total = np.empty(W, sd.dtype)
        for block in range(bands[band], bands[band + 1]):
            total[:] = 0
            for i in range(rows[block], rows[block + 1]):
                for j in range(1, W):
                    wh[n, i, j] /= sd[n, i, j - 1] * sd[n, i, j]
                if i + 1 < H:
                    for j in range(W):
                        wv[n, i + 1, j] /= sd[n, i, j] * sd[n, i + 1, j]
                for j in range(W):
                    value = g[n, i, j] / sd[n, i, j]
                    g[n, i, j] = value
                    total[j] += value * value
            reduce(total, cols, squares[n, block])


@kernel
def flow(y, f, given, cv, ch, active, blocks, out):
    """L y - f, the flow out of each pixel, sum of c (y_p - y_n); `f` may be anything unless it is `given`."""
    rows, _, bands = blocks
    N, H, W = y.shape
    tasks = bands.shape[0] - 1
    for task in prange(N * tasks):
        n, band = task // tasks, task % tasks
        if not active[n]:
            continue
        for i in range(rows[bands[band]], rows[bands[band + 1]]):
            above, here, below, line = y[n, max(i - 1, 0)], y[n, i], y[n, min(i + 1, H - 1)], out[n, i]
            up, down, side = (
                cv[n, max(i - 1, 0)],
                cv[n, min(i, H - 2)],
                ch[n, i],
            )  # where there is none, here - above is 0
            for j in range(1, W - 1):
                vertical = up[j] * (here[j] - above[j]) + down[j] * (here[j] - below[j])
                line[j] = vertical + side[j - 1] * (here[j] - here[j - 1]) + side[j] * (here[j] - here[j + 1])
            for j in range(0, W, max(W - 1, 1)):
                line[j] = up[j] * (here[j] - above[j]) + down[j] * (here[j] - below[j])
                if j > 0:
                    line[j] += side[j - 1] * (here[j] - here[j - 1])
                if j + 1 < W:
                    line[j] += side[j] * (here[j] - here[j + 1])
            if given:
                for j in range(W):
                    line[j] -= f[n, i, j]


@kernel
def right_hand_side(y, at_y, a, mu, k, flow, sd, measured, partly, active, blocks, r):
    """r = y (m (mu a - k) - flow) / sd, without the factor y unless `at_y` [N]."""
    rows, cols, bands = blocks
    N, _, W = r.shape
    tasks = bands.shape[0] - 1
    for task in prange(N * tasks):
        n, band = task // tasks, task % tasks
        if not active[n]:
            continue
        slope, offset = np.empty(W, r.dtype), np.empty(W, r.dtype)
        for block in range(bands[band], bands[band + 1]):
            expand(mu[n, block], cols, slope)
            expand(k[n, block], cols, offset)
            for i in range(rows[block], rows[block + 1]):
                for j in range(W):
                    r[n, i, j] = slope[j] * a[n, i, j] - offset[j]
                if partly:
                    for j in range(W):
                        r[n, i, j] *= measured[n, i, j]
                for j in range(W):
                    r[n, i, j] = (r[n, i, j] - flow[n, i, j]) / sd[n, i, j]
                if at_y[n]:
                    for j in range(W):
                        r[n, i, j] *= y[n, i, j]
