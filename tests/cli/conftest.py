"""A small rendered scene and its averaged depth, and the command run in this process."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from dada.cli import main
from dada.io import write_image
from dada.scene import Scene, render


class Ran(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture(scope="session")
def scene() -> Scene:
    return render(96, 128)


@pytest.fixture(scope="session")
def metres(scene: Scene) -> np.ndarray:
    """(12, 16) float64 depth averaged x8."""
    return scene.depth.astype(np.float64).reshape(12, 8, 16, 8).mean(axis=(1, 3))


@pytest.fixture(scope="session")
def millimetres(metres: np.ndarray) -> np.ndarray:
    return np.rint(metres * 1000).astype(np.uint16)


@pytest.fixture
def pair(tmp_path: Path, scene: Scene, millimetres: np.ndarray) -> tuple[Path, Path]:
    """depth.png in millimetres and rgb.png."""
    write_image(tmp_path / "depth.png", millimetres)
    write_image(tmp_path / "rgb.png", scene.guide)
    return tmp_path / "depth.png", tmp_path / "rgb.png"


@pytest.fixture
def dada(capfd):
    """Run the command as a shell would, but in this process."""

    def run(*arguments: object) -> Ran:
        capfd.readouterr()
        code = main([str(argument) for argument in arguments])
        return Ran(code, *capfd.readouterr())

    return run
