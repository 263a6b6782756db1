"""Keep libraries from writing to the user's terminal, and read their messages."""

from __future__ import annotations

import io
import os
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import IO, Any

_one_at_a_time = threading.RLock()


def one_line(message: object) -> str:
    """Return a library's message as one line of at most 300 characters, for use within an error message."""
    return " ".join(str(message).split())[:300]


@contextmanager
def captured_output() -> Iterator[list[str]]:
    """Catch what libraries complain of, as a list of lines.

    C libraries write to file descriptor 2, OpenEXR to sys.stdout. Exceptions in callbacks, as rasterio's that decodes
    messages of GDAL, go to sys.unraisablehook. The list is filled on leaving the block. All of these belong to the
    whole process: what other threads write meanwhile is caught too.
    """
    lines: list[str] = []
    printed = io.StringIO()
    if sys.stderr is not None:
        sys.stderr.flush()
    with (
        _one_at_a_time,
        redirect_stdout(printed),
        redirect_stderr(printed),
        _unraisable_to(printed),
        _scratch_file() as captured,
    ):
        try:
            saved = os.dup(2)
        except OSError:  # no standard error at all, as under pythonw or a daemon: nothing to keep quiet
            yield lines
            return
        os.dup2(captured.fileno(), 2)
        try:
            yield lines
        finally:
            os.dup2(saved, 2)
            os.close(saved)
            captured.seek(0)
            lines += captured.read().decode(errors="replace").splitlines() + printed.getvalue().splitlines()


@contextmanager
def _unraisable_to(printed: io.StringIO) -> Iterator[None]:
    """Write exceptions that nobody can catch to `printed`."""

    def note(raised: Any) -> None:
        printed.write(f"{type(raised.exc_value).__name__}: {raised.exc_value}\n")

    before, sys.unraisablehook = sys.unraisablehook, note
    try:
        yield
    finally:
        sys.unraisablehook = before


def _scratch_file() -> IO[bytes]:
    """A file in memory where the system has such, so that a full disk does not matter."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("captured"), "w+b")
    return tempfile.TemporaryFile()
