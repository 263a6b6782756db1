"""Facts about noise, stated as a deviation, and what it makes of the cells."""

import numpy as np
import pytest

import dada
from dada.upsampling.confidence import noise_weight, read_trust

EVERYWHERE = np.ones((40, 40), bool)


def test_stated_noise_brings_the_result_nearer_to_the_truth(scene, source):
    noisy = (source + np.random.default_rng(1).normal(0, 0.1, source.shape)).astype(np.float32)
    held, free = (dada.upsample(noisy, scene.guide, noise=noise) for noise in (None, 0.1))
    assert np.abs(free.values - scene.depth).mean() < 0.9 * np.abs(held.values - scene.depth).mean()
    assert 0.02 < free.report.uncertain_mean < 0.15  # cells moved by about as much as their noise
    assert (held.report.uncertain_max, held.report.uncertain_cells) == (None, 0)


def test_without_noise_cells_are_exact(scene, source):
    held = dada.upsample(source, scene.guide)
    np.testing.assert_array_equal(dada.upsample(source, scene.guide, noise=0.0).values, held.values)
    one = np.zeros(source.shape)
    one[5, 5] = 0.1
    report = dada.upsample(source, scene.guide, noise=one).report
    assert report.uncertain_cells == 1
    assert report.consistency_max < 1e-5


def test_the_weight_is_the_variance_of_the_surface_over_that_of_the_noise():
    random = np.random.default_rng(0)
    rough = random.normal(0, 1, (40, 40)) / np.sqrt(2)  # differences of neighbours have the deviation 1
    for deviation in (0.1, 0.5):
        noisy = rough + random.normal(0, deviation, rough.shape)
        assert noise_weight(noisy, EVERYWHERE, np.full(rough.shape, deviation))[0, 0] == pytest.approx(
            1 / deviation**2, rel=0.2
        )
    flat = random.normal(0, 0.5, (40, 40))  # nothing but noise
    assert noise_weight(flat, EVERYWHERE, np.full(flat.shape, 0.5))[0, 0] < 0.3
    assert np.isinf(noise_weight(flat, EVERYWHERE, np.zeros(flat.shape))).all()


def test_variances_of_confidence_and_noise_add_up():
    random = np.random.default_rng(0)
    values, noise = random.normal(0, 1, (40, 40)), np.full((40, 40), 0.3)
    weight = noise_weight(values, EVERYWHERE, noise)[0, 0]
    trust = read_trust(np.full((40, 40), 0.8), noise, values, EVERYWHERE, print)
    assert trust / (1 - trust) == pytest.approx(1 / (1 / weight + 0.2 / 0.8))


@pytest.mark.parametrize("noise", [-1.0, float("nan"), float("inf")])
def test_noise_that_is_no_deviation_is_refused(source, scene, noise):
    with pytest.raises(dada.InputError, match="standard deviation of 0 or more"):
        dada.upsample(source, scene.guide, noise=noise)


def test_whole_numbers_that_are_neither_levels_nor_of_8_or_16_bits_are_refused(source, scene):
    with pytest.raises(dada.InputError, match="levels from 0 to 2, or 8 or 16 bits without sign"):
        dada.upsample(source, scene.guide, confidence=np.full(source.shape, 100))
