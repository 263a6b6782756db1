"""Between a row of cells and the row of pixels that they cover. Compiled into the kernels that use them."""

from __future__ import annotations

from .compiling import inlined


@inlined
def expand(cells, starts, out):
    """Copy each cell to its pixels; `starts` are the first pixel of each cell, and the end."""
    for cell in range(cells.shape[0]):
        value = out.dtype.type(cells[cell])
        for j in range(starts[cell], starts[cell + 1]):
            out[j] = value


@inlined
def reduce(row, starts, cells):
    """Sum the pixels of each cell."""
    n = cells.shape[0]
    width = row.shape[0] // n
    if row.shape[0] == width * n and starts[1] == width:  # equal cells: long loops instead of many short ones
        for cell in range(n):
            cells[cell] = row[cell * width]
        for k in range(1, width):
            for cell in range(n):
                cells[cell] += row[cell * width + k]
    else:
        for cell in range(n):
            total = row.dtype.type(0)
            for j in range(starts[cell], starts[cell + 1]):
                total += row[j]
            cells[cell] = total
