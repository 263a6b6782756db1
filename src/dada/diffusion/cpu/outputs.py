"""Kernels for what becomes of a solution: sums over blocks, and the Newton update."""

from __future__ import annotations

import numpy as np

from dada.compiling import kernel

from .rows import reduce


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
