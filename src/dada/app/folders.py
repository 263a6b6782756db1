"""The folder for temporary files of one server, gone when it ends; and what a killed server left is deleted."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

PREFIX = "dada-app-"


def make_folder() -> Path:
    """A new folder that only this user can read."""
    remove_orphans()
    return Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-"))


def remove_folder(folder: Path) -> None:
    """Delete a server's folder with all that is in it."""
    shutil.rmtree(folder, ignore_errors=True)


def remove_orphans() -> None:
    """Delete the folders of servers of this user that are not running any more."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*-*"):
        process = folder.name.removeprefix(PREFIX).partition("-")[0]
        if process.isdigit() and not _runs(int(process)) and _is_ours(folder):
            shutil.rmtree(folder, ignore_errors=True)


def _is_ours(folder: Path) -> bool:
    return not folder.is_symlink() and (not hasattr(os, "getuid") or folder.stat().st_uid == os.getuid())


def _runs(process: int) -> bool:
    if os.name != "posix":  # asking might end the process
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
