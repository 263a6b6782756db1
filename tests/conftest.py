"""Settings shared by all tests."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import Phase, settings

# without the phase that explains failures, which traces every line, those of numba's compiler too
PHASES = [phase for phase in Phase if phase is not Phase.explain]
settings.register_profile("dada", deadline=None, max_examples=40, phases=PHASES)
settings.load_profile("dada")


@pytest.fixture(scope="session")
def oracle() -> Path:
    """Folder of vectors computed with the authors' own code; the tests that need it skip where it is absent."""
    data = Path(os.environ.get("DADA_TEST_DATA", Path(__file__).parents[2] / "shared" / "data"))
    folder = data.parent / "oracle"
    if not folder.is_dir():
        pytest.skip(f"no reference vectors at {folder} (set DADA_TEST_DATA to the data folder beside them)")
    return folder


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)
