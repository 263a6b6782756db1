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
    not vectorised at all. A function that is given an array and views of it, or in which threads meet
    (`_numba_joined`), must not promise.
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
    if out.shape[0] != width * n or (width not in (2, 4, 8) and width % 16 != 0):
        for cell in range(n):
            value = cells[row_of_cells, cell]
            for j in range(starts[cell], starts[cell + 1]):
                out[j] = value
    # equal blocks: in loops of known length, or short loops would cost most
    elif width == 2:
        for cell in range(n):
            for k in range(2):
                out[2 * cell + k] = cells[row_of_cells, cell]
    elif width == 4:
        for cell in range(n):
            value = out.dtype.type(cells[row_of_cells, cell])
            for k in range(4):
                out[4 * cell + k] = value
    elif width == 8:
        for cell in range(n):
            value = out.dtype.type(cells[row_of_cells, cell])
            for k in range(8):
                out[8 * cell + k] = value
    else:
        for cell in range(n):
            value = out.dtype.type(cells[row_of_cells, cell])
            for part in range(width // 16):
                for k in range(16):
                    out[cell * width + 16 * part + k] = value


@compiled
def reduce(row, starts, cells, row_of_cells):
    """Sum a row of pixels over each cell."""
    arrays_apart()
    n = cells.shape[1]
    width = row.shape[0] // n
    zero, none = cells.dtype.type(0), row.dtype.type(0)
    if row.shape[0] != width * n or (width not in (2, 4, 8) and width % 16 != 0):
        for cell in range(n):
            total = zero
            for j in range(starts[cell], starts[cell + 1]):
                total += row[j]
            cells[row_of_cells, cell] = total
    elif width == 2:
        for cell in range(n):
            cells[row_of_cells, cell] = row[2 * cell] + row[2 * cell + 1]
    elif width == 4:
        for cell in range(n):
            j = 4 * cell
            cells[row_of_cells, cell] = (row[j] + row[j + 1]) + (row[j + 2] + row[j + 3])
    elif width == 8:
        for cell in range(n):
            some = none
            for k in range(8):
                some += row[8 * cell + k]
            cells[row_of_cells, cell] = some
    else:
        for cell in range(n):
            total = zero
            for part in range(width // 16):
                some = none
                for k in range(16):
                    some += row[cell * width + 16 * part + k]
                total += some
            cells[row_of_cells, cell] = total


@compiled
def block_products(a, b, rows, cols, cells, lo, hi):
    """Sums of a b over the cells of block rows lo..hi; a and b may be one array."""
    arrays_apart()
    total = aligned(a.shape[1], a.dtype)
    for block in range(lo, hi):
        total[:] = 0
        for i in range(rows[block], rows[block + 1]):
            for j in range(a.shape[1]):
                total[j] += a[i, j] * b[i, j]
        reduce(total, cols, cells, block)


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
