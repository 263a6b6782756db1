"""`make` takes any Python from 3.11, and says so where there is none."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MAKE = shutil.which("make")
pytestmark = pytest.mark.skipif(MAKE is None, reason="make is not installed")


def python_in(folder: Path, name: str, version: str | None) -> None:
    """A program that behaves as this Python does, under another version; None: it is there but does not run."""
    program = f'exec {sys.executable} -c "import sys; sys.version_info = ({version}); $2"\n'
    lines = f'if [ "$1" = --version ]; then echo "Python {version}"; exit; fi\n{program}' if version else "exit 127\n"
    path = folder / name
    path.write_text(f"#!/bin/sh\n{lines}")
    path.chmod(0o755)


def make(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(MAKE), "-C", str(ROOT), "--no-print-directory", "python", *arguments]
    return subprocess.run(command, env={"PATH": str(folder)}, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("there", "chosen"),
    [
        ({"python3": "3, 12"}, "python3"),
        ({"python3": "3, 14", "python3.11": "3, 11"}, "python3.11"),
        ({"python3": "3, 9", "python3.13": "3, 13"}, "python3.13"),
        ({"python3.11": None, "python3": "3, 13"}, "python3"),
    ],
)
def test_the_first_python_that_is_new_enough_is_taken(tmp_path: Path, there, chosen):
    for name, version in there.items():
        python_in(tmp_path, name, version)
    ran = make(tmp_path)
    assert (ran.returncode, ran.stdout.strip()) == (0, chosen)


def test_where_there_is_none_make_says_what_to_do(tmp_path: Path):
    python_in(tmp_path, "python3", "3, 9")
    ran = make(tmp_path)
    assert ran.returncode != 0
    assert "No Python 3.11 or newer was found" in ran.stdout
    assert "make PYTHON=/path/to/python3.11" in ran.stdout


@pytest.mark.parametrize(("version", "reason"), [("3, 9", "Python 3, 9"), (None, "it does not run")])
def test_one_that_is_named_is_checked(tmp_path: Path, version, reason):
    python_in(tmp_path, "mine", version)
    python_in(tmp_path, "python3", "3, 12")
    ran = make(tmp_path, f"PYTHON={tmp_path / 'mine'}")
    assert ran.returncode != 0
    assert f"mine is no Python 3.11 or newer ({reason})" in ran.stdout
