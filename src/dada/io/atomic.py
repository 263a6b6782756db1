"""Write a whole file or none."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dada.errors import InputError

TEMPORARY_PREFIX = ".dada-"
"""How the names of unfinished files begin; they end in .tmp. Only a killed process leaves one."""

_REMEDIES = {
    errno.ENOSPC: "Free some space there or choose another disk",
    errno.EDQUOT: "Free some space there or choose another disk",
    errno.EFBIG: "Choose a disk or a limit that allows larger files",
    errno.EACCES: "Choose a folder you may write to",
    errno.EPERM: "Choose a folder you may write to",
    errno.EROFS: "Choose a folder you may write to",
    errno.ENOENT: "Make the folder first",
    errno.ENOTDIR: "Name a folder, not a file, before the last slash",
    errno.EISDIR: "Name a file, not a folder",
    errno.ENAMETOOLONG: "Choose a shorter name",
}


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Give an empty temporary file beside `path` to fill, which then takes its place, or leave nothing.

    Raises:
        InputError: the folder cannot be written to, or writing failed with an OSError inside the block.
    """
    with _explained(path):
        temporary = _create(path)
        try:
            yield temporary
            _flush_to_disk(temporary, os.O_RDWR)  # Windows flushes only what is open for writing
            os.replace(temporary, path)
        except BaseException:
            with suppress(OSError):
                temporary.unlink()
            raise
        with suppress(OSError):  # not every system can flush a folder; the file itself is complete
            _flush_to_disk(path.parent, os.O_RDONLY)


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Give an empty temporary folder beside `path` to fill, which then takes its place, or leave nothing.

    Raises:
        InputError: there already is something at `path`, or nothing can be written beside it.
    """
    if path.exists() and not (path.is_dir() and not any(path.iterdir())):
        raise InputError(f"{path}: there already is such a file or folder. Name another, or remove it.")
    temporary = path.parent / f"{TEMPORARY_PREFIX}{secrets.token_hex(8)}.tmp"
    with _explained(path):
        temporary.mkdir()
        try:
            yield temporary
            if path.exists():
                path.rmdir()
            os.replace(temporary, path)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise


def check_writable(path: Path) -> None:
    """Raise InputError if no file can be written to `path`: create one beside it and remove it again."""
    with _explained(path):
        _create(path).unlink()


def write_bytes_atomically(path: Path, *parts: bytes | memoryview) -> None:
    """Write the parts one after another to `path`, all or nothing."""
    with atomic_path(path) as temporary, temporary.open("wb") as file:
        for part in parts:
            file.write(part)


def _create(path: Path) -> Path:
    """Create the temporary file that is to become `path`."""
    temporary = path.parent / f"{TEMPORARY_PREFIX}{secrets.token_hex(8)}.tmp"
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    # opened with 0o666, so that the user's umask decides who may read the result
    os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    return temporary


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn errors of the system into an InputError with a remedy."""
    try:
        yield
    except InputError:
        raise
    except (OSError, ValueError) as error:
        number = error.errno if isinstance(error, OSError) else None
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        remedy = _REMEDIES.get(number or 0, "Check the path, its permissions and the free space")
        raise InputError(f"{path}: the file cannot be written ({reason}). {remedy}.") from None


def _flush_to_disk(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
