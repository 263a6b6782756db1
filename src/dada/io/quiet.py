"""Keep libraries from writing to the user's terminal, and read their messages."""

from __future__ import annotations

import io
import os
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import IO

_one_at_a_time = threading.RLock()


def one_line(message: object) -> str:
    """Return a library's message as one line of at most 300 characters, for use within an error message."""
    return " ".join(str(message).split())[:300]


@contextmanager
def captured_output() -> Iterator[list[str]]:
    """Catch file descriptor 2, where C libraries complain, and sys.stdout, where OpenEXR does, as a list.

    The list is filled on leaving the block. Both belong to the whole process: what other threads write
    meanwhile is caught too.
    """
    lines: list[str] = []
    printed = io.StringIO()
    with _one_at_a_time, redirect_stdout(printed), _scratch_file() as captured:
        if sys.stderr is not None:
            sys.stderr.flush()
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


def _scratch_file() -> IO[bytes]:
    """A file in memory where the system has such, so that a full disk does not matter."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("captured"), "w+b")
    return tempfile.TemporaryFile()
