"""Kernels for what becomes of a solution: sums over blocks, the exact adjustment, and the Newton update."""

from __future__ import annotations

import numpy as np
from numba import prange

from .compiling import kernel
from .rows import expand, reduce


@kernel
def block_sums(a, b, product, measured, partly, active, blocks, out):
    """Sums of m a, or of m a b for a `product`, over each block, in float64."""
    rows, cols, bands = blocks
    N, _, W = a.shape
    tasks = bands.shape[0] - 1
    for task in prange(N * tasks):
        n, band = task // tasks, task % tasks
        if not active[n]:
            continue
        total, line = np.empty(W), np.empty(W)
        for block in range(bands[band], bands[band + 1]):
            total[:] = 0
            for i in range(rows[block], rows[block + 1]):
                for j in range(W):
                    line[j] = a[n, i, j]
                if product:
                    for j in range(W):
                        line[j] *= b[n, i, j]
                if partly:
                    for j in range(W):
                        line[j] *= measured[n, i, j]
                for j in range(W):
                    total[j] += line[j]
            reduce(total, cols, out[n, block])


@kernel
def change_blocks(y, change, ratio, measured, partly, active, blocks):
    """Eq. 3: y += m y change (`ratio`) or y += m change (`shift`), with the change of the cell that holds the pixel."""
    rows, cols, bands = blocks
    N, _, W = y.shape
    tasks = bands.shape[0] - 1
    for task in prange(N * tasks):
        n, band = task // tasks, task % tasks
        if not active[n]:
            continue
        cells, line = np.empty(W), np.empty(W)
        for block in range(bands[band], bands[band + 1]):
            expand(change[n, block], cols, cells)
            for i in range(rows[block], rows[block + 1]):
                for j in range(W):
                    line[j] = cells[j]
                if partly:
                    for j in range(W):
                        line[j] *= measured[n, i, j]
                if ratio:
                    for j in range(W):
                        y[n, i, j] += y[n, i, j] * line[j]
                else:
                    for j in range(W):
                        y[n, i, j] += line[j]


@kernel
def update(y, x, sd, relative, active, blocks, largest):
    """y *= 1 + u with u = x / sd, or u = x / (sd y) unless `relative` [N]; kept positive. largest [N, bands] receives max |u|.

    Below -1/2 the factor goes on as -1 / (4 u), with the same value and slope.
    """
    rows, _, bands = blocks
    N, _, W = y.shape
    tasks = bands.shape[0] - 1
    for task in prange(N * tasks):
        n, band = task // tasks, task % tasks
        if not active[n]:
            continue
        one, half, quarter, tiny = y.dtype.type(1), y.dtype.type(0.5), y.dtype.type(0.25), y.dtype.type(1e-30)
        most = np.zeros(W, y.dtype)
        for i in range(rows[bands[band]], rows[bands[band + 1]]):
            for j in range(W):
                u = x[n, i, j] / (sd[n, i, j] if relative[n] else sd[n, i, j] * y[n, i, j])
                most[j] = max(most[j], abs(u))
                y[n, i, j] = max(y[n, i, j] * (one + u if u > -half else quarter / max(-u, half)), tiny)
        largest[n, band] = most.max()
