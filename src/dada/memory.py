"""How much memory a problem needs and how much there is, to refuse before the system does."""

from __future__ import annotations

import os
from pathlib import Path

from dada.errors import InputError

BYTES_PER_BAND = 16  # and target pixel, at the peak: the guide as float32, its features, their differences
NUMBERS_PER_PIXEL = 26  # of the source's precision: coefficients, the solver's images, the result


def needed_memory(size: tuple[int, int], bands: int, itemsize: int) -> int:
    """Return the bytes that a target of this size (H, W) needs beside the inputs, by a generous estimate."""
    return size[0] * size[1] * (BYTES_PER_BAND * (bands + 1) + NUMBERS_PER_PIXEL * itemsize)


def available_memory() -> int | None:
    """Return the bytes this process may still take, or None where the system does not tell."""
    limits = [limit for limit in (_free_in_system(), _free_in_container()) if limit is not None]
    return min(limits) if limits else None


def check_memory(size: tuple[int, int], bands: int, itemsize: int) -> None:
    """Raise InputError if a target of this size would not fit memory."""
    need, available = needed_memory(size, bands, itemsize), available_memory()
    if available is not None and need > available:
        raise InputError(
            f"a target of {size[1]} x {size[0]} pixels with a guide of {bands} band(s) needs about "
            f"{_gigabytes(need)} of memory, and {_gigabytes(available)} are available. Cut source and guide "
            "into tiles along the borders of source cells, or use a smaller guide."
        )


def _gigabytes(count: int) -> str:
    return f"{count / 1e9:,.1f} GB"


def _free_in_system() -> int | None:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def _free_in_container() -> int | None:
    try:
        limit, used = (int(Path("/sys/fs/cgroup", name).read_text()) for name in ("memory.max", "memory.current"))
    except (OSError, ValueError):  # no container, or no limit ("max")
        return None
    return limit - used
