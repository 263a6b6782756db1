"""The nearest image that is nowhere below a floor: exact means, nothing nearer, and nothing touched without need."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dada.diffusion import down, up
from dada.upsampling.projection import between, not_below

SIZES = st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(1, 5), st.integers(1, 5))


def drawn(size, seed: int, share_zero: float = 0.2) -> tuple[torch.Tensor, torch.Tensor]:
    """An image about means that are not negative, some of them 0; of any ratio."""
    rng = np.random.default_rng(seed)
    h, w, more, wider = size
    means = torch.from_numpy(rng.random((h, w)) * (rng.random((h, w)) > share_zero))
    image = torch.from_numpy(rng.normal(0, 1, (h * more + rng.integers(h), w * wider + rng.integers(w))))
    image = image - up(down(image, (h, w)) - means, tuple(image.shape))
    return image, means


@given(SIZES, st.integers(0, 1000), st.sampled_from([0.0, 0.5, -3.0]))
def test_nothing_is_below_the_floor_and_the_means_are_kept(size, seed, floor):
    image, means = drawn(size, seed)
    image, means = image + floor, means + floor
    result = not_below(image, means, floor)
    assert result.min() >= floor
    torch.testing.assert_close(down(result, tuple(means.shape)), means, rtol=1e-12, atol=1e-12)


@given(SIZES, st.integers(0, 1000))
def test_no_such_image_is_nearer(size, seed):
    """The conditions of a minimum: above zero a cell moved by one amount, at zero by no more."""
    image, means = drawn(size, seed)
    result = not_below(image, means)
    moved = image - result
    tau = torch.full_like(image, torch.inf)
    for i in range(means.shape[0]):
        for j in range(means.shape[1]):
            cell = torch.zeros_like(means)
            cell[i, j] = 1
            inside = up(cell, tuple(image.shape)) > 0
            held = inside & (result > 0)
            if held.any():
                tau[inside] = moved[held].max()
                assert moved[held].max() - moved[held].min() < 1e-12
    assert (moved <= tau + 1e-12).all()


def test_cells_without_a_value_below_the_floor_stay_bit_for_bit():
    image, means = drawn((4, 4, 4, 4), 3, share_zero=0.0)
    size = tuple(image.shape)
    image = torch.where(up(torch.eye(4), size).bool(), up(means, size), image)
    result = not_below(image, means)
    untouched = up(down((image < 0).double(), (4, 4)) == 0, size)
    assert untouched.any()
    assert not untouched.all()
    assert torch.equal(result[untouched], image[untouched])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_cells_without_a_mean_are_cut_off_and_types_kept(dtype):
    image = torch.tensor([[-1.0, 2.0, -3.0, 5.0]], dtype=dtype)
    result = not_below(image, torch.tensor([[0.5, torch.nan]], dtype=dtype))
    assert torch.equal(result, torch.tensor([[0.0, 1.0, 0.0, 5.0]], dtype=dtype))


@given(SIZES, st.integers(0, 1000))
def test_an_image_is_brought_between_two_values_with_its_means(size, seed):
    image, means = drawn(size, seed)
    result = between(image, means, -0.1, 1.1)
    assert result.min() >= -0.1
    assert result.max() <= 1.1
    torch.testing.assert_close(down(result, tuple(means.shape)), means, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(between(result, means, -0.1, 1.1), result, rtol=0, atol=1e-12)
    if image.min() >= -0.1 and image.max() <= 1.1:
        assert torch.equal(result, image)
