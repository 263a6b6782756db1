"""The kernel that builds a coarser grid of the V-cycle: groups of pixels become one pixel each."""

from __future__ import annotations

import numpy as np

from dada.compiling import kernel

from .rows import reduce


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
