"""What computes: compiled passes in threads on the CPU (one image each, or bands of a large one), torch elsewhere.

On the CPU no torch operation touches a whole image: its thread pool would wait for every core, however busy.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from importlib import import_module
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import torch

T = TypeVar("T")

LARGE = 1 << 19  # pixels from which threads pay even if they must be woken for every pass
SHARE = 1 << 14  # pixels for each further thread of a team: with fewer, they would wait more than work


@lru_cache(maxsize=4)
def _pool(workers: int, process: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(workers, thread_name_prefix="dada")


_locks: WeakKeyDictionary[ThreadPoolExecutor, threading.Lock] = WeakKeyDictionary()


def one_team(pool: ThreadPoolExecutor) -> threading.Lock:
    """Held by the one team that uses the threads of this executor."""
    return _locks.setdefault(pool, threading.Lock())


def pool() -> tuple[ThreadPoolExecutor | None, int]:
    """The threads to use, as many as torch does (`torch.set_num_threads`), and their number."""
    workers = torch.get_num_threads()
    # keyed by the process: threads do not survive a fork (data loaders)
    return (_pool(workers, os.getpid()), workers) if workers > 1 else (None, 1)


def on(device: torch.device) -> Any:
    """The module that computes on this device: compiled for the CPU, torch operations anywhere else."""
    return import_module("._cpu" if device.type == "cpu" else "._torch", __package__)


def each(run: Callable[[int], T], images: int) -> list[T]:
    """Run on each image, several at a time."""
    workers, _ = pool()
    if workers is None or images == 1:
        return [run(n) for n in range(images)]
    return list(workers.map(run, range(images)))


def extremes(values: torch.Tensor) -> tuple[float, float]:
    """Least and largest value; NaN if there is any."""
    if values.device.type == "cpu":
        array = values.detach().numpy()
        return float(array.min()), float(array.max())
    low, high = torch.aminmax(values.detach())
    return float(low), float(high)
