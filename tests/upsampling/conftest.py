"""A scene and its source, for the tests of `dada.upsample`."""

import numpy as np
import pytest

from dada.scene import Scene, render

from .averaging import averaged


@pytest.fixture(scope="package")
def scene() -> Scene:
    return render(192, 256)


@pytest.fixture(scope="package")
def source(scene: Scene) -> np.ndarray:
    return averaged(scene.depth, 24, 32)
