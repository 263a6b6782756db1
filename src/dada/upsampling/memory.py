"""How much memory a problem needs, to refuse before the system does."""

from __future__ import annotations

from dada.errors import InputError
from dada.models.memory import available_memory

BYTES_PER_BAND = 16  # and target pixel, at the peak: the guide as float32, its features, their differences
NUMBERS_PER_PIXEL = 26  # of the source's precision: coefficients, the solver's images, the result


def needed_memory(size: tuple[int, int], bands: int, itemsize: int) -> int:
    """Return the bytes that a target of this size (H, W) needs beside the inputs, by a generous estimate."""
    return size[0] * size[1] * (BYTES_PER_BAND * (bands + 1) + NUMBERS_PER_PIXEL * itemsize)


def check_memory(size: tuple[int, int], bands: int, itemsize: int) -> None:
    """Raise InputError if a target of this size would not fit memory."""
    need, available = needed_memory(size, bands, itemsize), available_memory()
    if available is not None and need > available:
        raise InputError(
            f"a target of {size[1]} x {size[0]} pixels with a guide of {bands} band(s) needs about "
            f"{_gigabytes(need)} of memory, and {_gigabytes(available)} are available. Use dada raster "
            "for georeferenced files of any size; cut others into tiles along the borders of source cells."
        )


def _gigabytes(count: int) -> str:
    return f"{count / 1e9:,.1f} GB"
