"""One thread in a forked process: the pool of threads that torch shares its work among does not survive a fork.

A child that uses it would wait for ever. Python's `multiprocessing` forks by default on Linux before Python 3.14.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

FORKED_WITHOUT_EXEC = 0x40  # PF_FORKNOEXEC of Linux, in the ninth field of /proc/self/stat


def use_one_thread() -> None:
    """Let torch compute on one thread, if it is there; called in each forked child."""
    set_threads = getattr(sys.modules.get("torch"), "set_num_threads", None)
    if set_threads is not None:
        set_threads(1)


def _forked_by_multiprocessing() -> bool:
    """Whether `multiprocessing` made this process by a fork; dada may be imported only now."""
    process = sys.modules.get("multiprocessing.process")
    if process is None or process.parent_process() is None:
        return False
    with suppress(OSError, ValueError, IndexError):
        after_name = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        return bool(int(after_name[6]) & FORKED_WITHOUT_EXEC)
    return False


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=use_one_thread)
    if _forked_by_multiprocessing():
        use_one_thread()
