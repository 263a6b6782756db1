"""`dada.Upsampler`: frames of one camera give what separate calls give, and cost less where nothing changes."""

from functools import lru_cache

import cv2
import numpy as np
import pytest
import torch

import dada
from dada.errors import InputError
from dada.scene import render
from dada.streams.motion import change
from dada.upsampling.problem import Problem

FACTOR = 8
pytestmark = pytest.mark.filterwarnings("ignore::dada.upsampling.result.UpsampleWarning")


@lru_cache
def scene():
    return render(96, 128)


def cells(depth: np.ndarray) -> np.ndarray:
    h, w = (n // FACTOR for n in depth.shape)
    return depth.reshape(h, FACTOR, w, FACTOR).mean((1, 3), dtype=np.float64).astype(np.float32)


def frame(number: int, guide_noise: float = 0.0, depth_noise: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """A frame of a camera that stands still, with the noise of its sensors."""
    rng, (guide, depth) = np.random.default_rng(number), scene()
    noisy = guide + guide_noise * rng.normal(size=guide.shape)
    source = cells(depth)
    return source * (1 + depth_noise * rng.normal(size=source.shape)).astype(np.float32), np.uint8(noisy.clip(0, 255))


def with_ball(number: int) -> tuple[np.ndarray, np.ndarray]:
    """The same with something that moves from frame to frame."""
    guide, depth = (array.copy() for array in scene())
    place = slice(30, 50), slice(10 + 8 * number, 30 + 8 * number)
    guide[place], depth[place] = (200, 60, 40), 1.0
    return cells(depth), guide


@pytest.mark.parametrize("model", ["default", "dynamic", "none"])
@pytest.mark.parametrize("make", [frame, with_ball])
def test_frames_give_what_separate_calls_give(model, make):
    upsampler = dada.Upsampler(model=model)
    for number in range(3):
        source, guide = make(number)
        separate = dada.upsample(source, guide, model=model)
        assert np.array_equal(upsampler(source, guide).values, separate.values)


def test_noise_is_not_taken_for_motion_and_the_kept_result_is_as_near_as_separate_ones_are_to_each_other():
    upsampler, together, apart, before = dada.Upsampler(), [], [], None
    for number in range(4):
        source, guide = frame(number, guide_noise=1.5, depth_noise=0.002)
        result, separate = upsampler(source, guide), dada.upsample(source, guide)
        assert upsampler.frame.kept == (number > 0)
        assert result.report.consistency_max < 1e-5
        if before is not None:
            together.append(np.abs(result.values - separate.values).mean())
            apart.append(np.abs(separate.values - before).mean())
        before = separate.values
    assert np.mean(together) < np.mean(apart)


def test_with_keep_off_noise_changes_nothing_either():
    upsampler = dada.Upsampler(model="none", keep=False)
    for number in range(2):
        source, guide = frame(number, guide_noise=1.5, depth_noise=0.002)
        result = upsampler(source, guide)
        assert np.array_equal(result.values, dada.upsample(source, guide, model="none").values)
        assert not upsampler.frame.kept


def test_kept_frames_run_no_network_and_start_from_the_last_result():
    upsampler = dada.Upsampler()
    first = upsampler(*frame(0)).report
    source, guide = frame(0)
    second = upsampler(source * np.float32(1.0002), guide).report
    assert (first.rounds, second.rounds) == (3, 1)
    assert second.iterations < first.iterations / 3


def test_what_moved_is_found_and_coefficients_are_made_anew():
    upsampler = dada.Upsampler(model="none")
    upsampler(*with_ball(0))
    upsampler(*with_ball(1))
    moved = upsampler.frame.moved
    assert not upsampler.frame.kept
    assert moved[32:48, 12:36].mean() > 0.9
    assert moved[70:, 70:].mean() == 0


def test_depth_that_changes_behind_the_same_guide_is_motion_too():
    upsampler = dada.Upsampler(model="none")
    source, guide = frame(0)
    upsampler(source, guide)
    nearer = source.copy()
    nearer[3:6, 4:7] -= 0.5
    upsampler(nearer, guide)
    assert not upsampler.frame.kept
    assert upsampler.frame.moved[24:48, 32:56].all()


def test_a_cell_that_lost_its_measurement_has_moved():
    source, guide = frame(0)
    upsampler = dada.Upsampler(model="none")
    upsampler(source, guide)
    source[2, 3] = np.nan
    result = upsampler(source, guide)
    assert not upsampler.frame.kept
    assert np.isnan(result.values[16:24, 24:32]).all()


@pytest.mark.parametrize("uncertain", [False, True])
def test_uncertain_cells_are_solved_for_as_by_separate_calls(uncertain):
    confidence = np.ones((12, 16))
    confidence[4:8, 5:9] = 0.5 if uncertain else 1
    upsampler = dada.Upsampler(model="dynamic", tolerance=1e-5)
    source, guide = frame(0)
    upsampler(source, guide, confidence=confidence)
    warmer = source * np.float32(1.0002)
    result = upsampler(warmer, guide, confidence=confidence)
    assert upsampler.frame.kept
    separate = dada.upsample(warmer, guide, confidence=confidence, model="dynamic", tolerance=1e-5)
    assert np.abs(result.values - separate.values).mean() < 5e-4 * source.std()


def test_the_temporal_weight_is_exact_and_lessens_flicker():
    def flicker(weight):
        upsampler, found = dada.Upsampler(model="dynamic", keep=False, temporal_weight=weight), []
        for number in range(5):
            source, guide = frame(number, guide_noise=3.0)
            result = upsampler(source, guide)
            assert result.report.consistency_max < 1e-5
            if number and upsampler.frame.flicker is not None:
                found.append((upsampler.frame.flicker_before, upsampler.frame.flicker))
        return np.mean(found, axis=0)

    before, after = flicker(0.8)
    assert after < 0.6 * before
    assert flicker(0.0)[0] == flicker(0.0)[1]


def test_the_temporal_weight_leaves_what_moved_alone():
    plain, pulled = dada.Upsampler(model="none"), dada.Upsampler(model="none", temporal_weight=0.9)
    for number in range(2):
        one, other = plain(*with_ball(number)), pulled(*with_ball(number))
    moved = pulled.frame.moved
    scale = np.abs(one.values).std()
    assert np.abs(one.values - other.values)[moved].mean() < 0.02 * scale


def test_another_size_begins_anew():
    upsampler = dada.Upsampler(model="none")
    source, guide = frame(0)
    upsampler(source, guide)
    part = upsampler(source[:, :8], guide[:, :64])
    assert part.values.shape == (96, 64)
    assert not upsampler.frame.kept


def test_reset_forgets():
    upsampler = dada.Upsampler(model="none")
    upsampler(*frame(0))
    upsampler.reset()
    assert upsampler.frame is None
    upsampler(*frame(0))
    assert not upsampler.frame.kept


def test_a_frame_that_cannot_be_used_does_not_end_the_stream():
    upsampler = dada.Upsampler(model="none")
    upsampler(*frame(0))
    with pytest.raises(InputError, match="guide"):
        upsampler(frame(0)[0], np.zeros((4, 4, 3), np.uint8))
    upsampler(*frame(0))
    assert upsampler.frame.kept


def test_tensors_stay_tensors():
    upsampler = dada.Upsampler(model="none")
    source, guide = frame(0)
    for _ in range(2):
        result = upsampler(torch.from_numpy(source), torch.from_numpy(guide).permute(2, 0, 1))
    assert isinstance(result.values, torch.Tensor)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": "gf"}, "solves for nothing"),
        ({"temporal_weight": 1.0}, "between 0 and below 1"),
        ({"temporal_weight": 0.5, "sampling": "point"}, "sampling mean"),
    ],
)
def test_options_that_cannot_be(options, message):
    with pytest.raises(InputError, match=message):
        dada.Upsampler(**options)


def test_a_batch_is_refused():
    with pytest.raises(InputError, match="one frame after another"):
        dada.Upsampler(model="none")(np.ones((2, 4, 4)), np.ones((2, 8, 8, 3)))


@pytest.mark.parametrize("grain", [1.0, 3.0])
def test_a_pan_over_texture_is_motion_everywhere_it_matters(grain):
    rng = np.random.default_rng(0)
    images = [cv2.GaussianBlur(rng.random((64, 80), np.float32), (0, 0), grain) for _ in range(3)]
    texture = torch.from_numpy(np.stack([(image - image.min()) / np.ptp(image) for image in images]))
    source, valid = torch.ones(1, 1, 8, 8), torch.ones(1, 1, 8, 8, dtype=torch.bool)
    first, second = (Problem(texture[None, :, :, at : at + 64].contiguous(), source, valid) for at in (0, 4))
    found = change(first, second)
    assert not found.still
    assert found.moved.mean() > 0.95
