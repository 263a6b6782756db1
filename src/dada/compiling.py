"""Kernels: plain loops that numba compiles when they are first used, and keeps for later processes.

A kernel is compiled apart for each type of numbers. Each type has a folder of its own, so that a file of the cache only
ever holds one thing: two processes that compile at the same time write the same files, whole, and neither harms the
other. The folder is named after all that the code depends on (source, numba, Python, processor), so that what another
version or machine left is never read.

Threads share a kernel by calling it with parts of the work. numba's own threads (`parallel=True`) would do the same,
but each kernel would take two to three times as long to compile.
"""

from __future__ import annotations

import hashlib
import logging
import os
import platform
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba.core import event

log = logging.getLogger("dada")
settings: Any = numba.config

# Sums may be reordered (vectorised) and products fused; NaN and infinity keep their meaning.
OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": {"reassoc", "contract", "nsz", "arcp"}}
LARGE = 1 << 19  # pixels of a batch from which several threads pay
KEPT = 8  # caches of other versions that are left in place

Kind = type[np.floating[Any]]

inlined: Any = numba.njit(**OPTIONS)
"""Decorator of a function that kernels call; it is compiled into each of them."""


class Kernel:
    """Decorator of a loop over arrays, compiled when it is first called for a type of numbers: `kernel[float32](...)`.

    Called without a type, it takes that of its first argument.
    """

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        """Take a function, and options of numba other than the usual ones."""
        self.function, self.options = function, OPTIONS | options
        self._compiled: dict[Kind, Callable[..., Any]] = {}

    def __call__(self, *arguments: Any) -> Any:
        return self[arguments[0].dtype.type](*arguments)

    def __getitem__(self, kind: Kind) -> Callable[..., Any]:
        return self._compiled.get(kind) or (lambda *arguments: self._first_call(kind, arguments))

    def _first_call(self, kind: Kind, arguments: tuple[Any, ...]) -> Any:
        """Load or compile, and call. A cache that cannot be read is removed."""
        folder = cache_folder(Path(self.function.__code__.co_filename).parent)
        part = folder and folder / np.dtype(kind).name
        with _compiling, event.install_listener("numba:compile", _Announce(part is not None)):
            if kind not in self._compiled:
                call = self._compile(part)
                try:
                    result = call(*arguments)
                except Exception:  # unpickling what is damaged may raise anything
                    if part is None:
                        raise
                    shutil.rmtree(part, ignore_errors=True)
                    call = self._compile(part)
                    result = call(*arguments)
                self._compiled[kind] = call
                return result
        return self._compiled[kind](*arguments)  # another thread has compiled it

    def _compile(self, folder: Path | None) -> Callable[..., Any]:
        """The function as numba compiles it at its first call, unless the folder has it."""
        before, settings.CACHE_DIR = settings.CACHE_DIR, str(folder or "")
        try:
            compiled: Callable[..., Any] = numba.njit(cache=folder is not None, **self.options)(self.function)
        finally:
            settings.CACHE_DIR = before
        return compiled


kernel = Kernel
_compiling = threading.RLock()


class _Announce(event.Listener):
    """Say once in a process that kernels are being compiled."""

    done = False

    def __init__(self, kept: bool) -> None:
        self.how_often = "once for each kind of problem" if kept else "in every process: no cache folder can be written"

    def on_start(self, event: event.Event) -> None:
        if not _Announce.done:
            log.info("compiling for this machine, which may take a minute and happens %s", self.how_often)
        _Announce.done = True

    def on_end(self, event: event.Event) -> None: ...


# ---- threads


def threads_for(pixels: int) -> int:
    """How many threads share a batch of so many pixels: as many as torch uses, or one for few pixels."""
    import torch  # not before it is needed: it takes longer to import than all the rest

    return torch.get_num_threads() if pixels >= LARGE else 1


def in_threads(call: Callable[..., Any], parts: Sequence[Any], *arguments: Any) -> None:
    """Make `call(part, *arguments)` for all parts at the same time. Kernels let other threads run."""
    if len(parts) == 1:
        call(parts[0], *arguments)
        return
    others = [_pool(len(parts) - 1).submit(call, part, *arguments) for part in parts[1:]]
    call(parts[0], *arguments)
    for other in others:
        other.result()


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, "dada")


def _after_fork() -> None:
    """Threads do not survive a fork, and nobody would release their locks."""
    global _compiling
    _compiling = threading.RLock()
    _pool.cache_clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


# ---- the cache


@cache
def cache_folder(source: Path) -> Path | None:
    """Where compiled code is kept of kernels whose source is in this folder; None: nowhere can be written."""
    for root in _cache_roots():
        folder = root / f"{source.name}-{_fingerprint(source)}"
        with suppress(OSError):
            root.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.mkdir(mode=0o700, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()
            for old in sorted(root.iterdir(), key=lambda folder: -folder.stat().st_mtime)[KEPT:]:
                shutil.rmtree(old, ignore_errors=True)
            if _is_ours(folder):  # what is kept here is code that will be run
                return folder
    return None


def _cache_roots() -> Iterator[Path]:
    """Folders to try: what numba was told, the user's cache, and a folder for temporary files."""
    if settings.CACHE_DIR:
        yield Path(settings.CACHE_DIR) / "dada"
        return
    usual = {"win32": "~/AppData/Local", "darwin": "~/Library/Caches"}.get(sys.platform, "~/.cache")
    yield Path(os.environ.get("XDG_CACHE_HOME") or usual).expanduser() / "dada"
    yield Path(tempfile.gettempdir()) / f"dada-{os.getuid() if hasattr(os, 'getuid') else 'cache'}"


def _is_ours(folder: Path) -> bool:
    """Whether nobody else can write here."""
    found = folder.stat()
    return not hasattr(os, "getuid") or (found.st_uid == os.getuid() and not found.st_mode & 0o022)


def _fingerprint(source: Path) -> str:
    """A digest of the files in this folder and the one above, numba, Python and the processor."""
    digest = hashlib.sha256()
    for file in sorted([*source.glob("*.py"), *source.parent.glob("*.py")]):
        digest.update(file.name.encode() + file.read_bytes())
    processor = platform.processor()
    with suppress(OSError, StopIteration):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        processor = next(line for line in lines if line.startswith(("flags", "Features")))
    digest.update(" ".join((numba.__version__, sys.version, platform.machine(), processor)).encode())
    return digest.hexdigest()[:16]
