"""Compiled passes over the values: what becomes of a solved system, means over cells, and gradients."""

from __future__ import annotations

import numpy as np

from ._numba import laplacian_row
from ._numba_descent import few
from ._numba_loop import adjust
from ._numba_rows import BORDER, accumulate, arrays_apart, compiled, reduce


@compiled
def retract(y, x, p, r, alpha, owed, sd, relative, lo, hi):
    """y *= 1 + u on pixel rows lo..hi, u = x / sd, a change relative to y (or else to be divided by it).

    x is what `add_scaled` would make of it. Below -1/2 the factor goes on as -1 / (4 u), so y stays positive. Returns
    the largest |u|.
    """
    arrays_apart()
    W = y.shape[1]
    largest = np.zeros(W, y.dtype)
    a = y.dtype.type(alpha + owed)
    b = y.dtype.type(owed)
    one = y.dtype.type(1)
    quarter = y.dtype.type(0.25)
    half = y.dtype.type(0.5)
    tiny = y.dtype.type(1e-30)
    for i in range(lo, hi):
        for j in range(W):
            u = x[i, j] + a * p[i + 1, j + BORDER]
            if owed != 0:
                u -= b * r[i, j]
            u /= sd[i, j] if relative else sd[i, j] * y[i, j]
            value = y[i, j] * (one + u if u > -half else quarter / max(-u, half))
            y[i, j] = value if value > tiny else tiny
            largest[j] = largest[j] if abs(u) < largest[j] else abs(u)
    return largest.max()


@compiled
def retract_and_adjust(
    y, x, p, r, alpha, owed, sd, relative, ratio, source, slack, count, measured, has_measured, rows, cols, lo, hi
):  # fmt: skip
    """`retract` and Eq. 3 on the hard cells of block rows lo..hi, while these are near. Returns the largest |u|."""
    largest = y.dtype.type(0)
    some = few(rows, lo, hi)
    for at in range(lo, hi, some):
        until = min(at + some, hi)
        largest = max(largest, retract(y, x, p, r, alpha, owed, sd, relative, rows[at], rows[until]))
        adjust(y, ratio, source, slack, count, measured, has_measured, rows, cols, at, until)
    return largest


@compiled
def add_scaled(x, p, r, alpha, owed, lo, hi):
    """x += alpha p + owed (p - r) on pixel rows lo..hi (`_numba_descent.owe`). Unless owed, r may be anything."""
    arrays_apart()
    a = x.dtype.type(alpha + owed)
    b = x.dtype.type(owed)
    for i in range(lo, hi):
        if owed != 0:
            for j in range(x.shape[1]):
                x[i, j] += a * p[i + 1, j + BORDER] - b * r[i, j]
        else:
            for j in range(x.shape[1]):
                x[i, j] += a * p[i + 1, j + BORDER]


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
def nearest_energy(cells, cv, ch, rows, cols):
    """up(cells)' L up(cells): the edges between blocks, times the squared differences of their cells."""
    out = 0.0
    h, w = cells.shape
    for block in range(h):
        for cell in range(w):
            if block + 1 < h:
                total = 0.0
                for j in range(cols[cell], cols[cell + 1]):
                    total += cv[rows[block + 1] - 1, j]
                out += total * (cells[block + 1, cell] - cells[block, cell]) ** 2
            if cell + 1 < w:
                total = 0.0
                for i in range(rows[block], rows[block + 1]):
                    total += ch[i, cols[cell + 1] - 1]
                out += total * (cells[block, cell + 1] - cells[block, cell]) ** 2
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
            accumulate(y, i, measured, has_measured, total)
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
            laplacian_row(a, cv, ch, i, row)
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
