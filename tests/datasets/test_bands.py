"""Guides with other bands than a photograph's."""

import numpy as np
import pytest

from dada.datasets.bands import with_bands
from dada.datasets.painted import Painted
from dada.datasets.pair import Pair


@pytest.fixture(scope="module")
def pair() -> Pair:
    return Painted(seed=1, size=(64, 64))[0]


@pytest.mark.parametrize("count", [1, 3, 4])
def test_a_guide_gets_the_number_of_bands_that_is_asked_for(pair, count, rng):
    made = with_bands(pair, count, rng).guide
    assert made.shape == (64, 64, count)
    if count != 3:
        assert made.dtype == np.float32
        assert made.min() >= 0
        assert made.max() <= 1


def test_the_near_infrared_has_contrasts_of_its_own(pair):
    bands = [with_bands(pair, 4, np.random.default_rng(seed)).guide for seed in range(20)]
    assert all(np.array_equal(made[..., :3], bands[0][..., :3]) for made in bands)
    alike = [abs(np.corrcoef(made[..., 3].ravel(), made[..., :3].mean(axis=2).ravel())[0, 1]) for made in bands]
    assert min(alike) < 0.6
    assert np.median(alike) > 0.5


def test_other_guides_stay_as_they_are(pair, rng):
    four = Pair(np.zeros((8, 8, 4), np.float32), np.zeros((8, 8), np.float32), "four")
    assert with_bands(four, 1, rng) is four
