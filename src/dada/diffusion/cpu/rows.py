"""What kernels do with a row of pixels; compiled into those that use it.

Kernels go row by row through loops that each read and write few arrays: the compiler vectorises those alone. `starts`
are the first pixel of each cell, and the end.
"""

from __future__ import annotations

import numpy as np

from dada.compiling import inlined


@inlined
def expand(cells, starts, out):
    """Copy each cell to its pixels."""
    for cell in range(cells.shape[0]):
        out[starts[cell] : starts[cell + 1]] = cells[cell]


@inlined
def reduce(row, starts, cells):
    """Sum the pixels of each cell; those of equal width in long loops with a stride, as short loops are slower."""
    count, width = cells.shape[0], starts[1] - starts[0]
    cells[:] = 0
    if width % 4 or row.shape[0] != width * count:
        for cell in range(count):
            for j in range(starts[cell], starts[cell + 1]):
                cells[cell] += row[j]
        return
    fours = np.empty(row.shape[0] // 4, row.dtype)
    for q in range(fours.shape[0]):
        fours[q] = (row[4 * q] + row[4 * q + 1]) + (row[4 * q + 2] + row[4 * q + 3])
    for k in range(width // 4):
        part = fours[k :: width // 4]
        for cell in range(count):
            cells[cell] += part[cell]


@inlined
def neighbours(z, wv, wh, i, out):
    """Sum of w z over the four neighbours of each pixel of row i; z [H, W], weights with a border of zeros."""
    H, W = z.shape
    above, here, below = z[max(i - 1, 0)], z[i], z[min(i + 1, H - 1)]
    up, down, side = wv[i], wv[i + 1], wh[i]
    for j in range(1, W - 1):
        out[j] = up[j] * above[j] + down[j] * below[j] + side[j] * here[j - 1] + side[j + 1] * here[j + 1]
    for j in range(0, W, max(W - 1, 1)):
        out[j] = up[j] * above[j] + down[j] * below[j]
        out[j] += side[j] * here[max(j - 1, 0)] + side[j + 1] * here[min(j + 1, W - 1)]
