"""Folders in the layouts of published data sets, made small; and real scenes where they are at hand."""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from dada.datasets.pair import Pair


@pytest.fixture(scope="session")
def data() -> Path:
    """Folder of gathered scenes; the tests that need it skip where it is absent."""
    folder = Path(os.environ.get("DADA_TEST_DATA", Path(__file__).parents[3] / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no scenes at {folder} (set DADA_TEST_DATA)")
    return folder


@pytest.fixture
def make_pair(rng: np.random.Generator) -> Callable[..., Pair]:
    """A pair whose guide shows its target: a ramp of grey, with holes where asked for."""

    def make(height: int = 96, width: int = 128, holes: float = 0.0, bands: int = 3) -> Pair:
        ramp = np.add.outer(np.arange(height), np.arange(width)).astype(np.float32)
        guide = np.repeat((ramp / ramp.max() * 255).astype(np.uint8)[..., None], bands, axis=2)
        target = 1000 + ramp
        target[rng.random((height, width)) < holes] = np.nan
        return Pair(guide, target, "ramp")

    return make
