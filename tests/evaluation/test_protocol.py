"""Facts about the protocols: what P1 and P2 make of an image, and that each says what it is."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from dada.datasets import Pair
from dada.errors import InputError
from dada.evaluation.protocol import P1, P2, load_protocol, problems
from tests.evaluation.problems import Few, pair

SMALL = P1.with_crop(32)


def test_p1_is_the_papers():
    assert (P1.crop, P1.border, P1.rule, P1.downsampling, P1.headline) == (256, 0, "pixels", "mean", ("mse", "mae"))
    assert P1.describe(100) == "protocol P1, 100 crops of 256 x 256"
    assert P1.describe(1) == "protocol P1, 1 crop of 256 x 256"


def test_p2_is_that_of_dkn():
    assert (P2.crop, P2.border, P2.rule, P2.downsampling, P2.headline) == (0, 6, "images", "bicubic", ("rmse",))
    assert P2.describe(3) == "protocol P2, 3 whole images, a border of 6 px left out"


def test_a_changed_size_is_confessed():
    assert "not the protocol's own" in P1.with_crop(0).describe(5)
    assert "not the protocol's own" not in P1.with_crop(256).describe(5)


def test_crops_come_from_the_top_left_and_the_remainder_is_dropped():
    names = [part.name for part in SMALL.cut(pair("a", (70, 100)))]
    assert names == ["a@0,0", "a@0,32", "a@0,64", "a@32,0", "a@32,32", "a@32,64"]


def test_crops_without_a_valid_pixel_are_left_out():
    found = pair("a", (32, 64))
    target = found.target.copy()
    target[:, 32:] = np.nan
    assert [part.name for part in SMALL.cut(replace(found, target=target))] == ["a@0,0"]


def test_a_source_of_p1_is_the_mean_of_valid_pixels():
    found = pair("a", (32, 64))
    sample = P1.with_crop(0).sample(found, 4, 1000.0)
    cell = found.target[4:8, 48:52]
    assert sample.unit == 1000
    assert float(sample.source[0, 0, 1, 12]) == pytest.approx(np.nanmean(cell) / 1000, rel=1e-6)


def test_whole_images_are_cropped_to_a_multiple_of_the_factor():
    assert P1.with_crop(0).sample(pair("a", (70, 101)), 8, 1.0).size == (64, 96)


def test_p2_resizes_bicubically_with_antialiasing():
    # a row of a step, down by 2: weights of the antialiased cubic with a = -1/2, summed over the step by hand
    target = np.tile(np.repeat([0.0, 1.0], 16).astype(np.float32), (32, 1))
    sample = P2.sample(Pair(np.zeros((32, 32, 3), np.uint8), target, "step"), 2, 1.0)
    offsets = (np.arange(8) - 3.5) / 2  # distances of eight pixels from the centre of a cell, in cells
    x = np.abs(offsets)
    weights = np.where(x < 1, 1.5 * x**3 - 2.5 * x**2 + 1, -0.5 * x**3 + 2.5 * x**2 - 4 * x + 2)
    weights /= weights.sum()
    last_dark = weights[5:].sum()  # the cell left of the step sees three bright pixels
    assert float(sample.source[0, 0, 5, 7]) == pytest.approx(last_dark, abs=1e-6)
    assert sample.size == (32, 32)
    assert bool(sample.source_mask.all())


def test_p2_measures_inside_the_border_and_knows_no_consistency():
    found = pair("a", (64, 96), holes=False)
    sample = P2.sample(found, 8, 1000.0)
    assert sample.target is not None
    result = sample.target.clone()
    result[..., :6, :] += 100.0
    result[..., 10, 10] += 1.0
    sums = P2.measure(result, sample)[0]
    assert sums.pixels == (64 - 12) * (96 - 12)
    assert sums.rmse == pytest.approx(1000 / np.sqrt(sums.pixels), rel=1e-5)
    assert sums.cells == 0


def test_p2_refuses_holes():
    with pytest.raises(InputError, match="40 pixels without a value"):
        P2.sample(pair("a"), 8, 1.0)


def test_a_limit_is_spread_over_the_images_and_over_each():
    dataset = Few(tuple(pair(name, (64, 64)) for name in "abc"))
    names = [part.name for parts in problems(dataset, SMALL, 3) for part in parts]
    assert names == ["a@32,0", "b@32,0", "c@32,0"]
    assert sum(len(parts) for parts in problems(dataset, SMALL, 7)) == 7
    assert sum(len(parts) for parts in problems(dataset, SMALL)) == 12
    assert [part.name[0] for parts in problems(dataset, SMALL, 1) for part in parts] == ["c"]


@pytest.mark.parametrize("mistake", [-1, 5])
def test_impossible_crops_are_refused(mistake):
    with pytest.raises(InputError, match="crop"):
        P2.with_crop(mistake)


def test_other_mistakes_are_explained():
    with pytest.raises(InputError, match="P1, P2"):
        load_protocol("P9")
    with pytest.raises(InputError, match="cannot be divided by 5"):
        P1.check_factor(5)
    with pytest.raises(InputError, match="factor 1"):
        P1.check_factor(1)
    with pytest.raises(InputError, match="too few for factor 128"):
        P1.with_crop(0).sample(pair("a"), 128, 1.0)
    with pytest.raises(InputError, match="no image gives a crop of 256"):
        list(problems(Few((pair("a"),)), P1))


def test_the_truth_is_not_touched():
    found = pair("a")
    before = found.target.copy()
    P1.with_crop(32).sample(found.cut(0, 0, 32, 32), 4, 1000.0)
    np.testing.assert_array_equal(found.target, before)
    assert torch.get_default_dtype() is torch.float32
