"""Augmentation moves guide and target alike, invents no depth, and depends on its generator alone."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dada.datasets import Pair
from dada.datasets.augment import STRONG, Augmentation, raised
from dada.datasets.crops import validity
from dada.errors import InputError

STILL = Augmentation(flip=0, rotation=0)


def disc(height=120, width=160):
    """A bright disc near the right edge before a dark ground: guide and target have one outline."""
    y, x = np.mgrid[:height, :width]
    near = (y - 50) ** 2 + (x - 100) ** 2 < 30**2
    guide = np.repeat(np.where(near, 255, 0).astype(np.uint8)[..., None], 3, axis=2)
    return Pair(guide, np.where(near, 1000, 3000).astype(np.float32), "disc")


class TestMotion:
    def test_nothing_asked_for_changes_nothing(self, make_pair, rng):
        pair = make_pair()
        same = STILL(pair, rng)
        np.testing.assert_array_equal(same.guide, pair.guide)
        np.testing.assert_array_equal(same.target, pair.target)

    def test_a_flip_mirrors_both(self, make_pair, rng):
        pair = make_pair(holes=0.1)
        mirrored = replace(STILL, flip=1)(pair, rng)
        np.testing.assert_array_equal(mirrored.guide, pair.guide[:, ::-1])
        np.testing.assert_array_equal(mirrored.target, pair.target[:, ::-1])

    def test_half_of_the_pairs_are_flipped(self, make_pair, rng):
        pair = make_pair(8, 8)
        flipped = [Augmentation(rotation=0)(pair, rng).target[0, 0] != pair.target[0, 0] for _ in range(400)]
        assert 160 < sum(flipped) < 240

    @pytest.mark.parametrize("zoom", [(1, 1), (0.6, 0.6), (1.7, 1.7)])
    @pytest.mark.parametrize("smooth", [False, True])
    @pytest.mark.parametrize("seed", range(4))
    def test_outlines_of_guide_and_target_stay_together(self, seed, zoom, smooth):
        moved = Augmentation(zoom=zoom, smooth=smooth)(disc(), np.random.default_rng(seed))
        inside = moved.guide[..., 0] > 127
        differs = (inside != (moved.target == 1000)) & moved.valid
        assert differs.sum() < 0.02 * inside.sum()

    @pytest.mark.parametrize("seed", range(4))
    def test_no_depth_is_invented(self, seed):
        rng = np.random.default_rng(seed)
        for augmentation in (STRONG, replace(STRONG, smooth=True)):
            for moved in (augmentation(disc(), rng), augmentation.crop(disc(), rng, 64)):
                assert set(np.unique(moved.target[moved.valid])) <= {1000, 3000}

    @pytest.mark.parametrize("rotation", [0.0, 15.0])
    def test_smooth_outlines_lie_nearer_to_those_of_the_guide(self, rotation):
        missed = []
        for smooth in (False, True):
            augmentation = Augmentation(rotation=rotation, zoom=(3, 3), smooth=smooth)
            moved = augmentation(disc(), np.random.default_rng(1))
            missed.append((((moved.guide[..., 0] > 127) != (moved.target == 1000)) & moved.valid).sum())
        assert missed[1] < 0.6 * missed[0]

    def test_beyond_the_border_nothing_is_known_and_the_guide_reflected(self, make_pair):
        turned = Augmentation(flip=0)(make_pair(200, 200), np.random.default_rng(0))
        assert not turned.valid[[0, 0, -1, -1], [0, -1, 0, -1]].any()
        assert turned.valid.mean() > 0.85
        assert turned.valid[60:140, 60:140].all()

    def test_a_rotation_is_at_most_fifteen_degrees(self):
        line = Pair(np.zeros((201, 201, 3), np.uint8), np.full((201, 201), 1.0, np.float32), "line")
        line.target[100, 100:] = 2
        rng, angles = np.random.default_rng(3), []
        for _ in range(60):
            turned = Augmentation(flip=0)(line, rng)
            y, x = (p.astype(float) - 100 for p in np.nonzero(turned.target == 2))
            angles.append(np.degrees(np.arctan2(y.sum(), x.sum())))
        assert 12 < max(angles) < 15.5
        assert -15.5 < min(angles) < -12


class TestCrop:
    def test_a_still_crop_is_a_window_of_the_pair(self, make_pair, rng):
        pair = make_pair(holes=0.05)
        crop = STILL.crop(pair, rng, 32)
        row, col = map(int, crop.name.split("@")[1].split(","))
        np.testing.assert_array_equal(crop.target, pair.target[row : row + 32, col : col + 32])
        np.testing.assert_array_equal(crop.guide, pair.guide[row : row + 32, col : col + 32])

    @pytest.mark.parametrize("scale", [0.5, 0.8, 1.0, 1.25, 2.0])
    @pytest.mark.parametrize("rotation", [0.0, 15.0])
    def test_outlines_stay_together_at_every_scale(self, scale, rotation, rng):
        augmentation = Augmentation(rotation=rotation, zoom=(scale, scale))
        for _ in range(5):
            crop = augmentation.crop(disc(), rng, 56)
            assert crop.size == (56, 56)
            differs = ((crop.guide[..., 0] > 127) != (crop.target == 1000)) & crop.valid
            assert differs.mean() < 0.02

    def test_a_crop_is_what_the_whole_turned_pair_shows_there(self, make_pair):
        """A centred crop of a square image must equal the centre of the whole image turned by the same angle."""
        pair = make_pair(65, 65)
        centred = replace(pair, target=pair.target, name="centre")
        whole = Augmentation(flip=0)(centred, np.random.default_rng(5))
        motion = Augmentation(flip=0)._draw_motion(np.random.default_rng(5))
        np.testing.assert_array_equal(motion.crop(pair.target, 16, 16, 33), whole.target[16:49, 16:49])
        apart = motion.crop(pair.guide, 16, 16, 33).astype(int) - whole.guide[16:49, 16:49]
        assert np.abs(apart).max() <= 1

    def test_small_pairs_are_enlarged_as_far_as_needed(self, make_pair, rng):
        crop = Augmentation().crop(make_pair(50, 40), rng, 64)
        assert crop.size == (64, 64)
        assert crop.valid.mean() >= 0.8

    @given(st.integers(9, 90), st.integers(9, 90), st.floats(0.3, 3), st.sampled_from([0.0, 15.0]), st.integers(0, 9))
    def test_any_size_and_scale_gives_a_crop(self, height, width, scale, rotation, seed):
        pair = Pair(np.zeros((height, width, 3), np.uint8), np.ones((height, width), np.float32), "flat")
        augmentation = Augmentation(rotation=rotation, zoom=(scale, scale))
        crop = augmentation.crop(pair, np.random.default_rng(seed), 40)
        assert crop.size == (40, 40)
        assert crop.valid.mean() > (0.75 if rotation else 0.9999)

    def test_crops_with_too_many_holes_are_drawn_again(self, make_pair, rng):
        pair = make_pair(128, 400)
        pair.target[:, :200] = np.nan
        assert all(validity(Augmentation().crop(pair, rng, 64).valid, 8) >= 1 for _ in range(20))

    @pytest.mark.parametrize("bands", [1, 3, 4, 6])
    def test_any_number_of_bands(self, make_pair, rng, bands):
        crop = STRONG.crop(make_pair(bands=bands), rng, 64)
        assert crop.guide.shape == (64, 64, bands)
        assert STRONG(make_pair(bands=bands), rng).guide.shape[2] == bands

    def test_memory_mapped_pairs_can_be_used(self, make_pair, rng, tmp_path):
        pair = make_pair()
        np.save(tmp_path / "t.npy", pair.target)
        np.save(tmp_path / "g.npy", pair.guide)
        mapped = Pair(*(np.load(tmp_path / f"{n}.npy", mmap_mode="r") for n in "gt"), "mapped")
        assert STRONG.crop(mapped, rng, 64).size == (64, 64)
        np.testing.assert_array_equal(mapped.target, pair.target)


class TestPhotometric:
    @pytest.mark.parametrize("field", ["brightness", "contrast", "saturation", "hue", "gamma", "noise", "blur"])
    def test_each_changes_the_guide_alone_and_within_its_range(self, rng, field):
        guide = rng.random((40, 50, 3), np.float32)
        pair = Pair(guide, np.ones((40, 50), np.float32), "noise")
        changed = replace(STILL, **{field: 20.0 if field == "hue" else 1.0 if field == "blur" else 0.4})(pair, rng)
        assert changed.guide.dtype == np.float32
        assert 0 <= changed.guide.min() <= changed.guide.max() <= 1
        assert np.abs(changed.guide - guide).mean() > 1e-3
        np.testing.assert_array_equal(changed.target, pair.target)

    def test_noise_is_normal_and_not_stronger_than_asked_for(self):
        grey = Pair(np.full((64, 64, 3), 0.5, np.float32), np.ones((64, 64), np.float32), "grey")
        spreads = []
        for seed in range(50):
            noise = replace(STILL, noise=0.1)(grey, np.random.default_rng(seed)).guide - 0.5
            spreads.append(noise.std())
            assert abs(noise.mean()) < 0.005
            assert np.mean(np.abs(noise) < noise.std()) == pytest.approx(0.683, abs=0.03)
        assert 0.08 < max(spreads) < 0.102
        assert min(spreads) < 0.02

    @pytest.mark.parametrize("field", ["saturation", "hue"])
    def test_greys_have_no_colour_to_change(self, make_pair, rng, field):
        pair = make_pair()
        changed = replace(STILL, **{field: 0.5 if field == "saturation" else 30.0})(pair, rng)
        np.testing.assert_allclose(changed.guide, pair.guide / 255, atol=1e-5)

    def test_a_hue_of_a_third_of_the_circle_swaps_the_bands(self):
        from dada.datasets.augment import _hue_rotation

        np.testing.assert_allclose(_hue_rotation(120) @ [1, 0, 0], [0, 1, 0], atol=1e-12)

    def test_the_papers_settings_leave_the_guide_in_8_bits(self, make_pair, rng):
        assert Augmentation().crop(make_pair(), rng, 64).guide.dtype == np.uint8


@pytest.mark.parametrize("wrong", [{"zoom": (0, 1)}, {"zoom": (2, 1)}, {"flip": 2}, {"blur": -1}, {"contrast": 2}])
def test_strengths_without_meaning_are_refused(wrong):
    with pytest.raises(InputError, match=next(iter(wrong))):
        Augmentation(**wrong)


def test_the_same_generator_gives_the_same_pair(make_pair):
    pair = make_pair()
    one, two, other = (STRONG(pair, np.random.default_rng(s)) for s in (1, 1, 2))
    np.testing.assert_array_equal(one.guide, two.guide)
    np.testing.assert_array_equal(one.target, two.target)
    assert one.guide.shape != other.guide.shape or not np.array_equal(one.guide, other.guide)


@given(st.floats(-2, 4))
def test_a_power_is_taken_over_the_median_and_holes_stay(power):
    depth = np.array([[500, 1000, np.nan], [2000, 4000, 1000]], np.float32)
    pair = Pair(np.zeros((2, 3, 3), np.uint8), depth, "steps")
    other = raised(pair, power)
    known = pair.valid
    np.testing.assert_allclose(other.target[known] / 1000, (depth[known] / 1000) ** power, rtol=1e-5)
    np.testing.assert_array_equal(other.valid, pair.valid)
    assert other.guide is pair.guide


@pytest.mark.parametrize("depth", [[[0.0, 1.0]], [[-1.0, 2.0]], [[np.nan, np.nan]], [[1e-6, 1e6]]])
@pytest.mark.parametrize("power", [8, -8])
def test_values_that_have_no_power_are_left_alone(depth, power):
    pair = Pair(np.zeros((1, 2, 3), np.uint8), np.array(depth, np.float32), "flat")
    assert raised(pair, power) is pair
