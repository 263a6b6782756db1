"""Time and memory that a call takes, measured as the system counts them."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

PROCESS = Path("/proc/self")


@dataclass
class Usage:
    """What a block of code took.

    Attributes:
        seconds: by the clock on the wall.
        memory: bytes by which the process grew at its peak; None where the system does not tell.
    """

    seconds: float = 0.0
    memory: int | None = None


@contextmanager
def watched() -> Iterator[Usage]:
    """Measure a block.

    Memory is the kernel's own high-water mark of resident memory (Linux), reset at the beginning, minus what was
    resident then. It counts everything, whichever library asked for it, and misses no short peak as sampling would.
    Memory that earlier work left in the allocator is returned to the system first. A first call also counts what it
    imports and compiles: take a median over calls.
    """
    usage = Usage()
    before = _reset()
    start = time.perf_counter()
    try:
        yield usage
    finally:
        usage.seconds = time.perf_counter() - start
        peak = _status("VmHWM")
        if before is not None and peak is not None:
            usage.memory = max(peak - before, 0)


def _reset() -> int | None:
    """Begin a new high-water mark; return the resident bytes."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)  # only glibc has it
    try:
        (PROCESS / "clear_refs").write_text("5")
    except OSError:
        return None
    return _status("VmRSS")


def _status(name: str) -> int | None:
    """Bytes of a line such as "VmRSS:   13580 kB"."""
    try:
        for line in (PROCESS / "status").read_text().splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return None
