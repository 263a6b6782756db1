"""Cores, threads and memory of a process."""

from __future__ import annotations

import ctypes
import os
import sys

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
TRIM_THRESHOLD, MMAP_THRESHOLD, MMAP_MAX = -1, -3, -4  # of glibc's mallopt
WAITING = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")  # how threads of torch wait for each other
SHORT_WAIT = "10000"  # turns; 300,000 by default
KEPT = 1 << 30  # bytes at the end of the heap that are kept for later arrays
USUAL = 1 << 25  # bytes from which arrays are mapped one by one: the most that every glibc takes


def cores() -> int:
    """Number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def wait_shortly() -> None:
    """Have the threads of torch give their core away soon when they wait for each other.

    By default they spin first, on cores that the thread they wait for may need; docs/results/speed.md has what that
    costs beside other busy processes. It works with GNU's OpenMP, which torch has on Linux, before torch is loaded,
    and is left alone where the user has chosen.
    """
    if "torch" not in sys.modules and not any(name in os.environ for name in WAITING):
        os.environ["GOMP_SPINCOUNT"] = SHORT_WAIT


def keep_memory() -> None:
    """Have the C library keep the memory of freed arrays for later ones, until the process ends.

    By default glibc hands large arrays back to the system at once, which clears each page of the next one: a network on
    a photograph spends up to half of its time on that. With other C libraries nothing happens.
    """
    if not sys.platform.startswith("linux"):
        return
    library = ctypes.CDLL(None)
    if hasattr(library, "gnu_get_libc_version"):
        for name, value in ((MMAP_THRESHOLD, USUAL), (MMAP_MAX, 0), (TRIM_THRESHOLD, KEPT)):
            library.mallopt(name, value)
