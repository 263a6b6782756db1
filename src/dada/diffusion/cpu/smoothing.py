"""Kernels of the V-cycle: the smoother before and after the coarse correction, and the way down and up.

The smoother is one damped Jacobi step under the constraint, z + OMEGA (r - K z - g kappa).
"""

from __future__ import annotations

import numpy as np
from numba import prange

from dada.compiling import kernel

from ..multigrid import OMEGA
from .rows import expand, reduce


@kernel
def smooth_from_zero(r, g, inverse, layout, z, kappa):
    """z = OMEGA (r - g kappa), with kappa = (block sums of g r) inverse; kappa receives OMEGA times that."""
    rows, cols, tasks = layout
    W = r.shape[2]
    for task in prange(tasks.shape[0]):
        n, _, first, last = tasks[task]
        line = np.empty(W, r.dtype)
        damping = r.dtype.type(OMEGA)
        for block in range(first, last):
            line[:] = 0
            for i in range(rows[block], rows[block + 1]):
                for j in range(W):
                    line[j] += g[n, i, j] * r[n, i, j]
            cells = kappa[n, block]
            reduce(line, cols, cells)
            for cell in range(cells.shape[0]):
                cells[cell] *= OMEGA * inverse[n, block, cell]
            expand(cells, cols, line)
            for i in range(rows[block], rows[block + 1]):
                for j in range(W):
                    z[n, i, j] = damping * r[n, i, j] - g[n, i, j] * line[j]


@kernel
def restrict(r, z, wv, wh, sd, sd_c, layout, r_c):
    """What `smooth_from_zero` leaves of the residual, summed over groups of pixels for the coarser grid.

    r - g kappa - K z is (1 - OMEGA) r + (sum of w z over the neighbours). The layout is that of the groups.
    """
    prow, pcol, tasks = layout
    _, H, W = r.shape
    for task in prange(tasks.shape[0]):
        n, _, first, last = tasks[task]
        rest = r.dtype.type(1 - OMEGA)
        line = np.empty(W, r.dtype)
        for group in range(first, last):
            line[:] = 0
            for i in range(prow[group], prow[group + 1]):
                above, here, below = z[n, max(i - 1, 0)], z[n, i], z[n, min(i + 1, H - 1)]
                up, down, side = wv[n, i], wv[n, i + 1], wh[n, i]
                for j in range(1, W - 1):
                    flow = up[j] * above[j] + down[j] * below[j] + side[j] * here[j - 1] + side[j + 1] * here[j + 1]
                    line[j] += sd[n, i, j] * (rest * r[n, i, j] + flow)
                for j in range(0, W, max(W - 1, 1)):
                    flow = up[j] * above[j] + down[j] * below[j]
                    flow += side[j] * here[max(j - 1, 0)] + side[j + 1] * here[min(j + 1, W - 1)]
                    line[j] += sd[n, i, j] * (rest * r[n, i, j] + flow)
            coarse = r_c[n, group]
            reduce(line, pcol, coarse)
            for J in range(coarse.shape[0]):
                coarse[J] = coarse[J] / sd_c[n, group, J] if sd_c[n, group, J] > 0 else 0


@kernel
def prolong(z, sd, z_c, sd_c, enlargement, layout):
    """z += sd (enlargement z_c / sd_c), copied from each coarse pixel to its group."""
    prow, pcol, tasks = layout
    W = z.shape[2]
    for task in prange(tasks.shape[0]):
        n, _, first, last = tasks[task]
        line = np.empty(W, z.dtype)
        coarse = np.empty(pcol.shape[0] - 1, z.dtype)
        for group in range(first, last):
            for J in range(coarse.shape[0]):
                known = sd_c[n, group, J] > 0
                coarse[J] = enlargement * z_c[n, group, J] / sd_c[n, group, J] if known else 0
            expand(coarse, pcol, line)
            for i in range(prow[group], prow[group + 1]):
                for j in range(W):
                    z[n, i, j] += sd[n, i, j] * line[j]


@kernel
def smooth(r, z, g, kappa, inverse, wv, wh, layout, out, added, products):
    """out = z + OMEGA (r - g kappa - K z - g kappa'), a smoothing step from z.

    `added` receives OMEGA kappa', the multiplier that it adds, and products [N, bands] r'out.
    """
    rows, cols, tasks = layout
    _, H, W = r.shape
    for task in prange(tasks.shape[0]):
        n, band, first, last = tasks[task]
        damping = r.dtype.type(OMEGA)
        push, total = np.empty(W, r.dtype), np.empty(W, r.dtype)
        product = 0.0
        for block in range(first, last):
            expand(kappa[n, block], cols, push)
            total[:] = 0
            for i in range(rows[block], rows[block + 1]):
                above, here, below = z[n, max(i - 1, 0)], z[n, i], z[n, min(i + 1, H - 1)]
                up, down, side, line = wv[n, i], wv[n, i + 1], wh[n, i], out[n, i]
                for j in range(1, W - 1):
                    flow = up[j] * above[j] + down[j] * below[j] + side[j] * here[j - 1] + side[j + 1] * here[j + 1]
                    left = r[n, i, j] - g[n, i, j] * push[j] - here[j] + flow
                    total[j] += g[n, i, j] * left
                    line[j] = here[j] + damping * left
                for j in range(0, W, max(W - 1, 1)):
                    flow = up[j] * above[j] + down[j] * below[j]
                    flow += side[j] * here[max(j - 1, 0)] + side[j + 1] * here[min(j + 1, W - 1)]
                    left = r[n, i, j] - g[n, i, j] * push[j] - here[j] + flow
                    total[j] += g[n, i, j] * left
                    line[j] = here[j] + damping * left
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
