"""How much memory a problem needs and how much there is, to refuse before the system does; and keeping what was had."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dada.errors import InputError

BYTES_PER_BAND = 16  # and target pixel, at the peak: the guide as float32, its features, their differences
NUMBERS_PER_PIXEL = 26  # of the source's precision: coefficients, the solver's images, the result

TRIM_THRESHOLD, MMAP_THRESHOLD, MMAP_MAX = -1, -3, -4  # of glibc's mallopt
KEPT = 1 << 30  # bytes at the end of the heap that are kept for later arrays
USUAL = 1 << 25  # bytes from which arrays are mapped one by one: the most that every glibc takes
MAPPED = 1 << 16  # arrays mapped one by one at a time, as glibc has it

_lock = threading.Lock()
_holders = 0


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


def keep_memory() -> None:
    """Have the C library keep the memory of freed arrays for later ones, until `release_memory` or the process ends.

    By default glibc hands large arrays back to the system at once, which clears each page of the next one: a network on
    a photograph spends up to half of its time on that. With other C libraries nothing happens.
    """
    global _holders
    with _lock:
        _holders += 1
        if _holders == 1:
            _adjust(mapped=0, trim=KEPT)


def release_memory() -> None:
    """Undo one `keep_memory`; the last one gives what is free back to the system."""
    global _holders
    with _lock:
        _holders -= 1
        if _holders == 0 and _adjust(mapped=MAPPED, trim=2 * USUAL):
            _library().malloc_trim(0)


@contextmanager
def kept_memory() -> Iterator[None]:
    """Keep memory within a block; see `keep_memory`."""
    keep_memory()
    try:
        yield
    finally:
        release_memory()


def _adjust(mapped: int, trim: int) -> bool:
    """Return whether there is glibc, and it took how many arrays to map one by one and from what size on to trim."""
    if not sys.platform.startswith("linux") or not hasattr(_library(), "gnu_get_libc_version"):
        return False
    settings = {MMAP_THRESHOLD: USUAL, MMAP_MAX: mapped, TRIM_THRESHOLD: trim}
    return all(_library().mallopt(name, value) for name, value in settings.items())


def _library() -> ctypes.CDLL:
    return ctypes.CDLL(None)


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
