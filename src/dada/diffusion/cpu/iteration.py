"""Kernels of conjugate gradients on the finest grid: the step, the next direction, its product with the system."""

from __future__ import annotations

import numpy as np

from dada.compiling import kernel

from .rows import expand, reduce


@kernel
def step(layout, r, q, g, alpha, inverse, sums, squares):
    """r -= alpha q; in hard cells, take multiples of g out of r, which do not matter there.

    `inverse` [N, h, w] is 1 / sum(g^2) in hard cells, 0 elsewhere. `sums` receives the block sums of g r, before
    multiples of g are taken out, and squares [N, bands] r'r.
    """
    rows, cols, tasks = layout
    W = r.shape[2]
    for task in range(tasks.shape[0]):
        n, band, first, last = tasks[task]
        length = r.dtype.type(alpha[n])
        line = np.empty(W, r.dtype)
        cells = np.empty(cols.shape[0] - 1)
        total = 0.0
        for block in range(first, last):
            line[:] = 0
            for i in range(rows[block], rows[block + 1]):
                for j in range(W):
                    value = r[n, i, j] - length * q[n, i, j]
                    r[n, i, j] = value
                    line[j] += g[n, i, j] * value
            reduce(line, cols, sums[n, block])
            for cell in range(cells.shape[0]):
                cells[cell] = sums[n, block, cell] * inverse[n, block, cell]
            expand(cells, cols, line)
            for i in range(rows[block], rows[block + 1]):
                part = r.dtype.type(0)
                for j in range(W):
                    value = r[n, i, j] - g[n, i, j] * line[j]
                    r[n, i, j] = value
                    part += value * value
                total += part
        squares[n, band] = total


@kernel
def turn(layout, x, p, z, alpha, beta):
    """x += alpha p, for the step along the last direction, and p = z + beta p, the next one."""
    rows, _, tasks = layout
    W = p.shape[2]
    for task in range(tasks.shape[0]):
        n, _, first, last = tasks[task]
        length, share = p.dtype.type(alpha[n]), p.dtype.type(beta[n])
        for i in range(rows[first], rows[last]):
            for j in range(W):
                x[n, i, j] += length * p[n, i, j]
                p[n, i, j] = z[n, i, j] + share * p[n, i, j]


@kernel
def multiply(layout, p, wv, wh, q, products):
    """q = K p = p - sum of w p over the neighbours; products [N, bands] receives p'q."""
    rows, _, tasks = layout
    _, H, W = p.shape
    for task in range(tasks.shape[0]):
        n, band, first, last = tasks[task]
        total = 0.0
        line = np.zeros(W + 2, p.dtype)  # a row between two zeros
        for i in range(rows[first], rows[last]):
            above, here, below = p[n, max(i - 1, 0)], p[n, i], p[n, min(i + 1, H - 1)]
            up, down, side, out = wv[n, i], wv[n, i + 1], wh[n, i], q[n, i]
            for j in range(W):
                line[j + 1] = here[j]
            part = p.dtype.type(0)
            for j in range(W):  # `neighbours` in place, which spares a pass over the row
                flow = up[j] * above[j] + down[j] * below[j] + side[j] * line[j] + side[j + 1] * line[j + 2]
                out[j] = here[j] - flow
                part += here[j] * (here[j] - flow)
            total += part
        products[n, band] = total


@kernel
def add_constraint(layout, values, g, kappa):
    """values += g kappa, with kappa [N, h, w] of the cell that holds the pixel."""
    rows, cols, tasks = layout
    W = values.shape[2]
    for task in range(tasks.shape[0]):
        n, _, first, last = tasks[task]
        line = np.empty(W, values.dtype)
        for block in range(first, last):
            expand(kappa[n, block], cols, line)
            for i in range(rows[block], rows[block + 1]):
                for j in range(W):
                    values[n, i, j] += g[n, i, j] * line[j]
