"""Painted scenes are reproducible, of any size, and full of what makes guided upsampling hard."""

from pathlib import Path

import cv2
import numpy as np
import pytest

from dada.datasets.painted import Painted, has_jump
from dada.datasets.painted.outlines import Box, Outline
from dada.datasets.pair import Dataset, Pair
from dada.errors import InputError


@pytest.fixture(scope="module")
def scenes() -> list[Pair]:
    painted = Painted(seed=3, count=40)
    return [painted[i] for i in range(40)]


def steps(scene: Pair) -> np.ndarray:
    """[H, W - 1] relative difference of depth between neighbours in a row."""
    target = scene.target
    return np.abs(np.diff(target, axis=1)) / np.minimum(target[:, 1:], target[:, :-1])


def contrast(scene: Pair) -> np.ndarray:
    """[H, W - 1] difference of grey two pixels to either side of each pair of neighbours in a row."""
    grey = cv2.cvtColor(scene.guide, cv2.COLOR_RGB2GRAY).astype(np.float32)
    padded = np.pad(grey, ((0, 0), (1, 1)), "edge")
    return np.abs(padded[:, 3:] - padded[:, :-3])


def test_is_a_data_set_of_depths() -> None:
    painted = Painted(count=5)
    assert isinstance(painted, Dataset)
    assert len(painted) == 5
    assert painted.quantity == "depth mm"
    with pytest.raises(IndexError):
        painted[5]


def test_a_scene_depends_on_seed_and_index_alone() -> None:
    forward, backward = Painted(seed=1, size=(96, 96)), Painted(seed=1, size=(96, 96), count=20)
    first = [forward[i] for i in (0, 1, 2)]
    again = [backward[i] for i in (2, 1, 0)][::-1]
    for a, b in zip(first, again, strict=True):
        assert a.name == b.name
        np.testing.assert_array_equal(a.guide, b.guide)
        np.testing.assert_array_equal(a.target, b.target)


def test_other_seeds_and_indices_give_other_scenes() -> None:
    targets = [Painted(seed=seed, size=(64, 64))[i].target for seed in (0, 1) for i in (0, 1)]
    assert all(not np.array_equal(a, b) for k, a in enumerate(targets) for b in targets[:k])


@pytest.mark.parametrize("size", [(16, 16), (33, 77), (250, 131), (64, 400)])
def test_any_size(size: tuple[int, int]) -> None:
    scene = Painted(size=size)[0]
    assert scene.guide.shape == (*size, 3)
    assert scene.guide.dtype == np.uint8
    assert scene.target.shape == size
    assert scene.target.dtype == np.float32


def test_depth_is_complete_and_in_the_range_of_rooms(scenes: list[Pair]) -> None:
    depths = np.stack([scene.target for scene in scenes])
    assert np.isfinite(depths).all()
    assert depths.min() >= 350
    assert depths.max() <= 8000
    assert 1000 < np.median(depths) < 2500


def test_every_scene_has_depth_jumps(scenes: list[Pair]) -> None:
    assert all(has_jump(scene.target, step=0.01) for scene in scenes)


def test_jumps_are_sharp(scenes: list[Pair]) -> None:
    """No mixed pixels: beside a large step there is hardly ever another of the same sign and half its height."""
    mixed = large = 0
    for scene in scenes:
        step = np.diff(scene.target, axis=1)
        big = np.abs(step[:, 1:-1]) > 0.1 * scene.target[:, 2:-1]
        ratio = np.maximum(step[:, :-2] / step[:, 1:-1].clip(1e-6), step[:, 2:] / step[:, 1:-1].clip(1e-6))
        rising = big & (step[:, 1:-1] > 0)
        large += rising.sum()
        mixed += (rising & (ratio > 0.5)).sum()
    assert large > 1000
    assert mixed < 0.03 * large


def test_some_surfaces_are_slanted_and_some_face_the_camera(scenes: list[Pair]) -> None:
    typical = [float(np.median(steps(scene))) for scene in scenes]
    assert sum(slope > 2e-4 for slope in typical) >= 5
    assert sum(slope < 2e-4 for slope in typical) >= 5


def test_some_boundaries_have_low_contrast_and_most_are_visible(scenes: list[Pair]) -> None:
    across = np.concatenate([contrast(scene)[steps(scene) > 0.015] for scene in scenes])
    assert np.mean(across < 5) > 0.05
    assert np.mean(across > 15) > 0.5


def test_guides_have_strong_edges_without_depth(scenes: list[Pair]) -> None:
    """Prints, shadows and grain: most strong edges of the guides are no depth jumps."""
    strong = np.concatenate([(contrast(scene) > 40).ravel() for scene in scenes])
    jump = np.concatenate([(cv2.dilate(steps(scene), np.ones((5, 5))) > 0.015).ravel() for scene in scenes])
    assert np.mean(jump[strong]) < 0.8
    assert np.mean(jump[strong]) > 2 * np.mean(jump)  # yet an edge is a sign of a jump


def test_guide_and_depth_are_aligned(scenes: list[Pair]) -> None:
    """Contrast across jumps is largest with the guide where it is."""

    def agreement(shift: int) -> float:
        return float(np.mean([np.roll(contrast(s), shift, 1)[steps(s) > 0.05].mean() for s in jumpy]))

    jumpy = [scene for scene in scenes if (steps(scene) > 0.05).any()]
    assert agreement(0) > 1.1 * max(agreement(-3), agreement(3))


def test_a_staircase_on_request() -> None:
    stepped, smooth = (Painted(size=(64, 64), staircase=share)[4].target for share in (1.0, 0.0))
    assert len(np.unique(stepped)) < len(np.unique(smooth)) / 2
    np.testing.assert_allclose(stepped, smooth, rtol=0.01)


@pytest.fixture(scope="module")
def open_scenes() -> list[Pair]:
    painted = Painted(seed=2, size=(96, 96), far=1.0)
    return [painted[i] for i in range(30)]


class TestFar:
    def test_some_scenes_reach_many_times_as_far_as_their_things_are(self, open_scenes: list[Pair]) -> None:
        reach = [np.nanmax(scene.target) / np.nanmin(scene.target) for scene in open_scenes]
        assert np.median(reach) > 10
        assert max(reach) < 1000

    def test_skies_have_no_depth_and_all_else_has(self, open_scenes: list[Pair]) -> None:
        known = np.array([scene.valid.mean() for scene in open_scenes])
        assert (known == 1).any()
        assert (known < 0.95).any()
        assert all(np.nanmin(scene.target) > 300 for scene in open_scenes)

    def test_every_scene_has_jumps_between_known_depths(self, open_scenes: list[Pair]) -> None:
        assert all(has_jump(scene.target, step=0.01) for scene in open_scenes)

    def test_near_things_stand_before_the_distance(self, open_scenes: list[Pair]) -> None:
        """Between neighbours whose depths differ ten times there is a jump, not a slope."""
        sharp = [(np.nan_to_num(steps(scene)) > 9).any() for scene in open_scenes]
        assert np.mean(sharp) > 0.3

    def test_a_scene_depends_on_seed_and_index_alone(self, open_scenes: list[Pair]) -> None:
        again = Painted(seed=2, size=(96, 96), far=1.0, count=12)[7]
        np.testing.assert_array_equal(again.guide, open_scenes[7].guide)
        np.testing.assert_array_equal(again.target, open_scenes[7].target)

    def test_steps_of_disparities_leave_the_distance_finite(self) -> None:
        painted = Painted(seed=2, size=(64, 64), far=1.0, staircase=1.0)
        plain = Painted(seed=2, size=(64, 64), far=1.0, staircase=0.0)
        for i in range(8):
            np.testing.assert_array_equal(painted[i].valid, plain[i].valid)

    def test_a_share_of_the_scenes_opens(self) -> None:
        painted = Painted(seed=2, size=(64, 64), far=0.5)
        far = [not scene.valid.all() or np.nanmax(scene.target) > 8000 for scene in (painted[i] for i in range(24))]
        assert 4 < sum(far) < 20


def test_textures_from_photographs(tmp_path: Path) -> None:
    green = np.zeros((40, 60, 3), np.uint8)
    green[..., 1] = 255
    cv2.imwrite(str(tmp_path / "meadow.png"), green)
    cv2.imwrite(str(tmp_path / "depth.png"), np.zeros((40, 60), np.uint16))
    guides = [Painted(size=(64, 64), textures=tmp_path, photograph_share=1.0)[i].guide for i in range(3)]
    red, greenness, blue = np.concatenate(guides).reshape(-1, 3).mean(0)
    assert greenness > 2 * max(red, blue)


def test_mistakes_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="too small"):
        Painted(size=(8, 64))
    with pytest.raises(InputError, match="seed -1"):
        Painted(seed=-1)
    with pytest.raises(InputError, match="camouflage is a share"):
        Painted(camouflage=1.5)
    with pytest.raises(InputError, match="far is a share"):
        Painted(far=-0.1)
    with pytest.raises(InputError, match="not a folder"):
        Painted(textures=tmp_path / "absent")
    with pytest.raises(InputError, match="no readable photograph"):
        Painted(textures=tmp_path)[0]


def test_threads_of_opencv_are_left_alone() -> None:
    before = cv2.getNumThreads()
    Painted(size=(32, 32))[0]
    assert cv2.getNumThreads() == before


class TestOutline:
    def test_coverage_is_the_area(self) -> None:
        square = Outline([np.array([[1.5, 1.5], [21.25, 1.5], [21.25, 14.0], [1.5, 14.0]])])
        assert square.coverage(square.box(30, 40)).sum() == pytest.approx(19.75 * 12.5, rel=0.05)

    def test_a_polygon_within_is_a_hole(self) -> None:
        square = np.array([[0.0, 0], [20, 0], [20, 20], [0, 20]])
        coverage = Outline([square, square / 2 + 5]).coverage(Box(0, 0, 21, 21))
        assert coverage[10, 10] == 0
        assert coverage[2, 2] == 1

    def test_outside_of_the_image_the_box_is_empty(self) -> None:
        box = Outline([np.array([[-9.0, -9], [-5, -9], [-5, -5]])]).box(10, 10)
        assert box.width * box.height == 0
