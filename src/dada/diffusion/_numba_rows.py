"""What every compiled pass needs: how to compile it, and sums over the cells of a row of pixels and back."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from dada.jit import jit

# Sums may be reordered (vectorised) and products fused; NaN and infinity keep their meaning.
compiled: Any = jit(fastmath={"reassoc", "contract", "nsz", "arcp"})


def _promise(typing_context: Any) -> Any:
    """Called first in a function, promise the compiler that what it writes overlaps with none of its other arrays.

    Without it, each row begins with a comparison of where its arrays lie, and a loop over more than a few of them is
    not vectorised at all. A function that is given an array and views of it (`_numba_alone.descend`) must not promise.
    """

    def mark(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        for argument in builder.function.args:
            if isinstance(argument.type, ir.PointerType):
                argument.add_attribute("noalias")
        return context.get_dummy_value()

    return types.void(), mark


arrays_apart: Any = intrinsic(_promise)

LINE = 64  # bytes that a cache holds together: numbers that begin there are read and written fastest
BORDER = 16  # numbers before and after a row, a line or two: the nearest stand for neighbours beyond the image


@compiled
def aligned(width, kind):
    """A row of zeros that begins at a line of the cache."""
    row = np.zeros(width + LINE // 4, kind)
    skip = (-row.ctypes.data) % LINE // row.itemsize
    return row[skip : skip + width]


@compiled
def bordered(width, kind):
    """The same with a border on either side."""
    return aligned(width + 2 * BORDER, kind)


@compiled
def expand(cells, row_of_cells, starts, out):
    """Copy each cell of one row of cells to the pixels it covers."""
    arrays_apart()
    n = cells.shape[1]
    width = out.shape[0] // n
    if out.shape[0] != width * n or width not in (2, 4, 8):
        for cell in range(n):
            value = cells[row_of_cells, cell]
            for j in range(starts[cell], starts[cell + 1]):
                out[j] = value
        return
    # small equal blocks: written out, or short loops would cost most
    if width == 2:
        for cell in range(n):
            out[2 * cell] = cells[row_of_cells, cell]
            out[2 * cell + 1] = cells[row_of_cells, cell]
    else:
        for cell in range(n):
            value = cells[row_of_cells, cell]
            j = width * cell
            out[j] = value
            out[j + 1] = value
            out[j + 2] = value
            out[j + 3] = value
            if width == 8:
                out[j + 4] = value
                out[j + 5] = value
                out[j + 6] = value
                out[j + 7] = value


@compiled
def reduce(row, starts, cells, row_of_cells):
    """Sum a row of pixels over each cell."""
    arrays_apart()
    n = cells.shape[1]
    width = row.shape[0] // n
    zero = cells.dtype.type(0)
    if width == 2 and row.shape[0] == 2 * n:
        for cell in range(n):
            cells[row_of_cells, cell] = row[2 * cell] + row[2 * cell + 1]
    elif width == 4 and row.shape[0] == 4 * n:
        for cell in range(n):
            j = 4 * cell
            cells[row_of_cells, cell] = (row[j] + row[j + 1]) + (row[j + 2] + row[j + 3])
    elif width % 4 == 0 and row.shape[0] == width * n:
        for cell in range(n):
            total = zero
            for j in range(cell * width, (cell + 1) * width, 4):
                total += (row[j] + row[j + 1]) + (row[j + 2] + row[j + 3])
            cells[row_of_cells, cell] = total
    else:
        for cell in range(n):
            total = zero
            for j in range(starts[cell], starts[cell + 1]):
                total += row[j]
            cells[row_of_cells, cell] = total


@compiled
def accumulate(values, i, measured, has_measured, total):
    """Add the measured pixels of row i to `total`."""
    arrays_apart()
    if has_measured:
        for j in range(total.shape[0]):
            total[j] += values[i, j] * measured[i, j]
    else:
        for j in range(total.shape[0]):
            total[j] += values[i, j]


@compiled
def apply(values, i, ratio, change, measured, has_measured):
    """Eq. 3 on row i: values *= 1 + change (ratio) or values += change, where measured."""
    arrays_apart()
    if has_measured:
        if ratio:
            for j in range(change.shape[0]):
                values[i, j] += values[i, j] * change[j] * measured[i, j]
        else:
            for j in range(change.shape[0]):
                values[i, j] += change[j] * measured[i, j]
    elif ratio:
        for j in range(change.shape[0]):
            values[i, j] += values[i, j] * change[j]
    else:
        for j in range(change.shape[0]):
            values[i, j] += change[j]
