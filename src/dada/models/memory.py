"""How much memory there is."""

from __future__ import annotations

import os
from pathlib import Path


def available_memory() -> int | None:
    """Return the bytes this process may still take, or None where the system does not tell."""
    limits = [limit for limit in (_free_in_system(), _free_in_container()) if limit is not None]
    return min(limits) if limits else None


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
