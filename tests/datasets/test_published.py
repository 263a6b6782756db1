"""Training crops of the released code: what it rotates, what it fills, when it draws again."""

import math

import numpy as np
import pytest
import torch
from torch.nn.functional import grid_sample

from dada.datasets.pair import Pair
from dada.datasets.published import (
    ROTATION,
    PublishedCrops,
    _bilinear,
    _places,
    expanded_size,
    interior_size,
    largest_rotation,
)
from dada.errors import InputError

BORDER, INTERIOR = PublishedCrops(), PublishedCrops(interior=True)


@pytest.fixture
def pair(rng):
    """Random colours and depths around 2 m, no holes."""
    return Pair(rng.integers(0, 256, (90, 120, 3), dtype=np.uint8), rng.uniform(1e3, 3e3, (90, 120)), "random")


def rotated_whole(image: np.ndarray, degrees: float, size: tuple[int, int]) -> np.ndarray:
    """An image (H, W) rotated about its centre by torch: zeros beyond it, then times the covered share."""
    height, width = image.shape
    cos, sin = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    y, x = torch.meshgrid(*(torch.arange(n) + 0.5 - n / 2 for n in size), indexing="ij")
    grid = torch.stack([(cos * x - sin * y) / (width / 2), (sin * x + cos * y) / (height / 2)], dim=-1).double()
    layers = torch.stack([torch.from_numpy(image).double(), torch.ones(height, width).double()])
    values, share = grid_sample(layers[None], grid[None], padding_mode="zeros", align_corners=False)[0]
    return (values * share).numpy()


@pytest.mark.parametrize("degrees", [-15.0, -3.3, 0.4, 11.7])
@pytest.mark.parametrize("interior", [False, True])
def test_a_crop_is_that_of_the_whole_image_rotated_bilinearly(pair, degrees, interior):
    size = expanded_size(pair.size, degrees) if interior else pair.size
    whole = rotated_whole(pair.target, degrees, size)
    mine = _bilinear(pair.target[..., None], *_places(pair.size, size, degrees, (20, 30), 32))[..., 0]
    np.testing.assert_allclose(mine, whole[20:52, 30:62], rtol=1e-4)
    corner = _bilinear(pair.target[..., None], *_places(pair.size, size, degrees, (0, 0), 32))[..., 0]
    np.testing.assert_allclose(corner, whole[:32, :32], rtol=1e-4, atol=0.5)


def test_depth_is_interpolated_and_a_hole_spreads_to_all_that_touches_it(pair, rng):
    flat = Pair(pair.guide, np.full(pair.size, 1000, np.float32), "flat")
    flat.target[:, 60:] = 3000
    flat.target[45, 30] = np.nan
    holes = []
    for _ in range(20):
        crop = BORDER.crop(flat, rng, 64)
        inside = crop.target[crop.valid]
        holes.append(int((~crop.valid & (crop.guide.max(axis=2) > 0)).sum()))
        assert np.any((inside > 1100) & (inside < 2900))  # "rigid" never makes a depth between two surfaces
    assert max(holes) >= 4  # one hole touches the pixels around it


def test_beyond_the_border_the_guide_is_black_and_depth_unknown(rng):
    white = Pair(np.full((80, 80, 3), 255, np.uint8), np.full((80, 80), 2000, np.float32), "white")
    seen = 0
    for _ in range(20):
        crop = BORDER.crop(white, rng, 72)
        black = crop.guide.max(axis=2) == 0
        assert not crop.valid[black].any()
        seen += int(black.sum())
    assert seen


def test_crops_of_the_interior_show_no_border_and_are_never_drawn_again(rng):
    white = Pair(np.full((90, 120, 3), 255, np.uint8), np.full((90, 120), 2000, np.float32), "white")
    for _ in range(50):
        crop = INTERIOR.crop(white, rng, 48)
        assert crop.guide.min() > 0.999
        np.testing.assert_allclose(crop.target, 2000, rtol=1e-5)
    empty = Pair(white.guide, np.full((90, 120), np.nan, np.float32), "empty")
    assert not INTERIOR.crop(empty, rng, 48).valid.any()


def test_zeros_of_the_interior_take_part_in_the_interpolation(rng):
    """Depths beside a hole become smaller than any surface, as in the released code."""
    holed = Pair(np.zeros((90, 120, 3), np.uint8), np.full((90, 120), 2000, np.float32), "holed")
    holed.target[40:50] = np.nan
    crop = INTERIOR.crop(holed, rng, 64)
    assert not crop.valid.all()
    assert np.nanmin(crop.target) < 1900


def test_a_crop_with_holes_is_drawn_again_and_the_32nd_ends_it(rng):
    half = Pair(np.zeros((64, 400, 3), np.uint8), np.full((64, 400), 2000, np.float32), "half")
    half.target[:, :200] = np.nan
    for _ in range(5):
        assert BORDER.crop(half, rng, 32).valid.mean() >= 0.8
    half.target[:] = np.nan
    with pytest.raises(InputError, match="half: none of 32 random crops"):
        BORDER.crop(half, rng, 32)


def test_flips_and_angles_are_those_of_the_paper(rng):
    """A line of the target tells both: it points right or left, and rises or falls by at most 15 degrees."""
    line = Pair(np.zeros((101, 101, 3), np.uint8), np.ones((101, 101), np.float32), "line")
    line.target[50, 50:] = 2
    right, angles = 0, []
    for _ in range(80):
        crop = BORDER.crop(line, rng, 101, 1)
        rows, cols = np.nonzero(np.nan_to_num(crop.target) > 1.4)
        right += cols.mean() > 50
        angles.append(math.degrees(math.atan2(50 - rows[np.abs(cols - 50) > 20].mean(), 35)))
    assert 25 < right < 55
    assert 8 < max(map(abs, angles)) < ROTATION + 1


def test_small_images_are_rotated_less_so_that_a_crop_fits(rng):
    assert largest_rotation((480, 640), 256) == 15
    assert largest_rotation((756, 1344), 256) == 15
    small = largest_rotation((300, 400), 256)
    assert 0 < small < 15
    for degrees in np.linspace(-small, small, 9):
        assert min(interior_size((300, 400), float(degrees))) >= 256


def test_an_image_smaller_than_the_crop_is_told(pair, rng):
    with pytest.raises(InputError, match="90 x 120 pixels, too few for crops of 128"):
        BORDER.crop(pair, rng, 128)
