"""Compile with numba, and keep what was compiled for the next process, whoever else compiles at the same time.

Numba numbers the files it keeps for the signatures of a function. Two processes that compile the same function for
different types at once choose the same number; one then finds the other's code under its own signature, now and in
every later process. Here files are named after what they are for, and written before they are listed. (numba's cache
is not part of its public interface: where another version of it looks different, its own ways are left as they are.)
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress
from glob import escape
from pathlib import Path
from typing import Any

import numba
from numba.core import caching


class NamedFiles(caching.IndexDataCacheFile):
    """The files of one function, each named after its signature and machine."""

    def _load_index(self) -> Any:
        """What is kept; nothing where the list cannot be read, as it names types that only another version has."""
        try:
            return super()._load_index()
        except Exception:  # whatever unpickling another version's names may raise
            return {}

    def save(self, key: Any, data: Any) -> None:
        base, kept = self._index_name.removesuffix("nbi"), self._load_index()
        if not kept:  # what lies here is of another version
            for old in Path(self._cache_path).glob(f"{escape(base)}*.nbc"):
                with suppress(OSError):
                    old.unlink()
        name = base + hashlib.sha256(repr(key).encode()).hexdigest()[:16] + ".nbc"
        self._save_data(name, data)
        self._save_index(self._load_index() | {key: name})


def jit(**options: Any) -> Callable[[Callable], Any]:
    """A decorator like `numba.njit` without the GIL, numpy's division by zero, and a cache that can be shared."""

    def compile_when_called(function: Callable) -> Any:
        plain = numba.njit(nogil=True, error_model="numpy", **options)(function)
        try:
            plain.enable_caching()
            cache = plain._cache
            cache._cache_file = NamedFiles(cache._cache_path, cache._impl.filename_base, _stamp(function))
        except (AttributeError, RuntimeError):  # not compiled, another numba, or no folder to write to: not kept
            pass
        return plain

    return compile_when_called


def _stamp(function: Callable) -> tuple:
    """Changes with each file from which the function may take code: its own, and the compiled ones beside it."""
    own = Path(function.__code__.co_filename)
    files = sorted({own, *own.parent.glob("*numba*.py")})
    return tuple((file.name, file.stat().st_mtime_ns, file.stat().st_size) for file in files)
