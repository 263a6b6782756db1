"""Kernels of the V-cycle: the smoother before and after the coarse correction, and the way down and up.

The smoother is one damped Jacobi step under the constraint, z + OMEGA (r - K z - g kappa).
"""

from __future__ import annotations

import numpy as np

from dada.compiling import kernel

from ..multigrid import OMEGA
from .rows import expand, neighbours, reduce


@kernel
def project(layout, r, g, inverse, rest, kappa):
    """rest = r - g kappa, with kappa = (block sums of g r) inverse."""
    rows, cols, tasks = layout
    W = r.shape[2]
    for task in range(tasks.shape[0]):
        n, _, first, last = tasks[task]
        line = np.empty(W, r.dtype)
        for block in range(first, last):
            line[:] = 0
            for i in range(rows[block], rows[block + 1]):
                for j in range(W):
                    line[j] += g[n, i, j] * r[n, i, j]
            cells = kappa[n, block]
            reduce(line, cols, cells)
            for cell in range(cells.shape[0]):
                cells[cell] *= inverse[n, block, cell]
            expand(cells, cols, line)
            for i in range(rows[block], rows[block + 1]):
                for j in range(W):
                    rest[n, i, j] = r[n, i, j] - g[n, i, j] * line[j]


@kernel
def restrict(layout, r, rest, wv, wh, sd, sd_c, r_c):
    """What z = OMEGA rest leaves of the residual, summed over groups of pixels for the coarser grid.

    r - OMEGA g kappa - K z is (1 - OMEGA) r + (sum of w z over the neighbours). The layout is that of the groups.
    """
    prow, pcol, tasks = layout
    W = r.shape[2]
    for task in range(tasks.shape[0]):
        n, _, first, last = tasks[task]
        share, damping = r.dtype.type(1 - OMEGA), r.dtype.type(OMEGA)
        line, flow = np.empty(W, r.dtype), np.empty(W, r.dtype)
        for group in range(first, last):
            line[:] = 0
            for i in range(prow[group], prow[group + 1]):
                neighbours(rest[n], wv[n], wh[n], i, flow)
                for j in range(W):
                    line[j] += sd[n, i, j] * (share * r[n, i, j] + damping * flow[j])
            coarse = r_c[n, group]
            reduce(line, pcol, coarse)
            for J in range(coarse.shape[0]):
                coarse[J] = coarse[J] / sd_c[n, group, J] if sd_c[n, group, J] > 0 else 0


@kernel
def prolong(layout, rest, sd, z_c, sd_c, enlargement, z):
    """z = OMEGA rest + sd (enlargement z_c / sd_c), the latter copied from each coarse pixel to its group."""
    prow, pcol, tasks = layout
    W = z.shape[2]
    for task in range(tasks.shape[0]):
        n, _, first, last = tasks[task]
        line = np.empty(W, z.dtype)
        coarse = np.empty(pcol.shape[0] - 1)
        damping = z.dtype.type(OMEGA)
        for group in range(first, last):
            for J in range(coarse.shape[0]):
                known = sd_c[n, group, J] > 0
                coarse[J] = enlargement * z_c[n, group, J] / sd_c[n, group, J] if known else 0
            expand(coarse, pcol, line)
            for i in range(prow[group], prow[group + 1]):
                for j in range(W):
                    z[n, i, j] = damping * rest[n, i, j] + sd[n, i, j] * line[j]


@kernel
def smooth(layout, r, z, g, kappa, inverse, wv, wh, out, added, products):
    """out = z + OMEGA (r - g kappa - K z - g kappa'), a smoothing step from z.

    `added` receives OMEGA kappa', the multiplier that it adds, and products [N, bands] r'out.
    """
    rows, cols, tasks = layout
    W = r.shape[2]
    for task in range(tasks.shape[0]):
        n, band, first, last = tasks[task]
        damping = r.dtype.type(OMEGA)
        push, total, left = np.empty(W, r.dtype), np.empty(W, r.dtype), np.empty(W, r.dtype)
        product = 0.0
        for block in range(first, last):
            expand(kappa[n, block], cols, push)
            total[:] = 0
            for i in range(rows[block], rows[block + 1]):
                neighbours(z[n], wv[n], wh[n], i, left)
                for j in range(W):
                    value = left[j] + r[n, i, j] - g[n, i, j] * push[j] - z[n, i, j]
                    total[j] += g[n, i, j] * value
                    out[n, i, j] = z[n, i, j] + damping * value
            cells = added[n, block]
            reduce(total, cols, cells)
            for cell in range(cells.shape[0]):
                cells[cell] *= OMEGA * inverse[n, block, cell]
            expand(cells, cols, push)
            for i in range(rows[block], rows[block + 1]):
                part = r.dtype.type(0)
                for j in range(W):
                    value = out[n, i, j] - g[n, i, j] * push[j]
                    out[n, i, j] = value
                    part += r[n, i, j] * value
                product += part
        products[n, band] = product
