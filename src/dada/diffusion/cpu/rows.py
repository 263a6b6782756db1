"""Between a row of cells and the row of pixels that they cover. Compiled into the kernels that use them."""

from __future__ import annotations

from dada.compiling import inlined


@inlined
def expand(cells, starts, out):
    """Copy each cell to its pixels; `starts` are the first pixel of each cell, and the end."""
    width = starts[1] - starts[0]
    if out.shape[0] != width * cells.shape[0]:
        for cell in range(cells.shape[0]):
            for j in range(starts[cell], starts[cell + 1]):
                out[j] = cells[cell]
    elif width == 4:  # cells of equal width, in loops of known length: short loops are slow otherwise
        _expand_equal(cells, 4, out)
    elif width == 8:
        _expand_equal(cells, 8, out)
    else:
        _expand_equal(cells, width, out)


@inlined
def reduce(row, starts, cells):
    """Sum the pixels of each cell."""
    width = starts[1] - starts[0]
    if row.shape[0] != width * cells.shape[0]:
        for cell in range(cells.shape[0]):
            total = row.dtype.type(0)
            for j in range(starts[cell], starts[cell + 1]):
                total += row[j]
            cells[cell] = total
    elif width == 4:
        _reduce_equal(row, 4, cells)
    elif width == 8:
        _reduce_equal(row, 8, cells)
    else:
        _reduce_equal(row, width, cells)


@inlined
def _expand_equal(cells, width, out):
    for cell in range(cells.shape[0]):
        value = out.dtype.type(cells[cell])
        for k in range(width):
            out[cell * width + k] = value


@inlined
def _reduce_equal(row, width, cells):
    for cell in range(cells.shape[0]):
        total = row.dtype.type(0)
        for k in range(width):
            total += row[cell * width + k]
        cells[cell] = total
