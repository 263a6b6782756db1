"""Facts about `dada.upsample`: the measurement is never contradicted, whatever kind or size of array comes in."""

import numpy as np
import pytest
import torch

import dada
from dada.sample import bicubic
from dada.scene import render
from dada.upsampling.source import check_sizes

from .averaging import averaged

NAMES = ("method", "solver")

# ---- the promise -----------------------------------------------------------------------------------------------


def test_averaged_back_down_the_result_is_the_source(scene, source):
    result = dada.upsample(source, scene.guide)
    np.testing.assert_allclose(averaged(result.values, *source.shape), source, rtol=1e-6)
    assert result.report.consistency_max < 1e-5
    assert result.valid.all()


def test_the_result_is_closer_to_the_truth_than_bicubic(scene, source):
    coarse = torch.from_numpy(source)[None, None]
    plain = bicubic(coarse, torch.ones_like(coarse, dtype=torch.bool), scene.depth.shape)[0, 0]
    result = dada.upsample(source, scene.guide)
    assert np.abs(result.values - scene.depth).mean() < 0.7 * np.abs(plain.numpy() - scene.depth).mean()


def test_the_loop_ends_where_the_equilibrium_is(scene, source):
    solved = dada.upsample(source[:8, :8], scene.guide[:64, :64], model="none", tolerance=1e-6)
    looped = dada.upsample(source[:8, :8], scene.guide[:64, :64], model="none", solver="iterate", steps=20_000)
    assert np.abs(solved.values - looped.values).max() < 5e-3
    assert (looped.report.solver, looped.report.iterations) == ("iterate", 20_000)


@pytest.mark.parametrize("unit", [1e-30, 1e-3, 5000.0, 1e30])
@pytest.mark.parametrize("adjust", ["ratio", "shift"])
def test_the_unit_of_the_source_does_not_matter(scene, source, unit, adjust):
    one = dada.upsample(source, scene.guide, adjust=adjust, precision="float32").values
    other = dada.upsample(source.astype(np.float64) * unit, scene.guide, adjust=adjust, precision="float32").values
    np.testing.assert_allclose(other / unit, one, rtol=2e-3)


def test_an_offset_does_not_matter_to_shift(scene, source):
    one = dada.upsample(source.astype(np.float64), scene.guide, adjust="shift").values
    other = dada.upsample(source.astype(np.float64) - 1e6, scene.guide).values
    np.testing.assert_allclose(other + 1e6, one, atol=1e-3)


def test_the_old_name_of_the_solver_is_still_taken(scene, source):
    old, new = (dada.upsample(source, scene.guide, model="none", **{name: "iterate"}, steps=30) for name in NAMES)
    np.testing.assert_array_equal(old.values, new.values)
    assert old.report.solver == new.report.solver == "iterate"


def test_a_constant_source_stays_constant(scene):
    result = dada.upsample(np.full((24, 32), 7.25), scene.guide)
    np.testing.assert_allclose(result.values, 7.25, rtol=1e-9)


# ---- kinds and dtypes ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        ("float16", "float16"), ("float32", "float32"), ("float64", "float64"), (">f4", "float32"),
        ("uint8", "float32"), ("uint16", "float32"), ("int16", "float32"), ("int32", "float64"), (">u2", "float32"),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::dada.upsampling.result.UpsampleWarning")
def test_floats_keep_their_dtype_and_integers_become_floats(scene, source, dtype, expected):
    given = (source * 40).astype(dtype)
    result = dada.upsample(given, scene.guide)
    assert result.values.dtype == np.dtype(expected)
    step = 0.2 if dtype == "float16" else 1e-4
    np.testing.assert_allclose(averaged(result.values.astype(np.float64), 24, 32), given, atol=step)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int32, torch.uint8])
@pytest.mark.filterwarnings("ignore::dada.upsampling.result.UpsampleWarning")
def test_tensors_give_tensors(scene, source, dtype):
    given = torch.from_numpy(source * 40).to(dtype)
    result = dada.upsample(given, torch.from_numpy(scene.guide).permute(2, 0, 1))
    expected = {torch.int32: torch.float64, torch.uint8: torch.float32}.get(dtype, dtype)
    assert (result.values.dtype, result.valid.dtype) == (expected, torch.bool)
    assert result.values.shape == (192, 256)


def test_tensors_and_arrays_give_the_same_values(scene, source):
    arrays = dada.upsample(source, scene.guide)
    tensors = dada.upsample(torch.from_numpy(source), torch.from_numpy(scene.guide).permute(2, 0, 1))
    mixed = dada.upsample(source, torch.from_numpy(scene.guide).permute(2, 0, 1))
    np.testing.assert_array_equal(tensors.values.numpy(), arrays.values)
    assert isinstance(mixed.values, np.ndarray)
    np.testing.assert_array_equal(mixed.values, arrays.values)


def test_inputs_are_not_changed(scene, source):
    given, guide = source.copy(), scene.guide.astype(np.float32)
    given[3, 3] = np.nan
    before = given.copy(), guide.copy()
    dada.upsample(given, guide)
    np.testing.assert_array_equal(given, before[0])
    np.testing.assert_array_equal(guide, before[1])


def test_views_with_any_strides_are_welcome(scene, source):
    view, copy = (
        (source[::-1, ::-1], scene.guide[::-1, ::-1]),
        (source[::-1, ::-1].copy(), scene.guide[::-1, ::-1].copy()),
    )
    np.testing.assert_array_equal(dada.upsample(*view).values, dada.upsample(*copy).values)
    flipped = dada.upsample(*view, model="dynamic")  # a network may see things in another way when they are flipped
    straight = dada.upsample(source, scene.guide, model="dynamic")
    assert np.abs(flipped.values[::-1, ::-1] - straight.values).mean() < 1e-5
    closer = dada.upsample(source, scene.guide, model="dynamic", tolerance=1e-5)
    assert np.abs(flipped.values[::-1, ::-1] - closer.values).mean() < 1e-3


# ---- sizes -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [(24, 32), (25, 33), (7, 9), (192, 256), (64, 256), (1, 1), (1, 32), (24, 1)])
@pytest.mark.filterwarnings("ignore::dada.upsampling.result.UpsampleWarning")
def test_any_ratio_is_met_exactly(scene, size):
    source = averaged(scene.depth, *size)
    result = dada.upsample(source, scene.guide)
    np.testing.assert_allclose(averaged(result.values, *size), source, rtol=2e-6)


def test_the_ratio_of_phones_whose_depth_is_256_x_192_and_whose_photo_is_1920_x_1440():
    scene = render(1440 // 8, 1920 // 8)
    result = dada.upsample(averaged(scene.depth, 192 // 8, 256 // 8), scene.guide)
    assert result.report.factors == (7.5, 7.5)
    assert result.report.consistency_max < 1e-5


def test_the_size_rules_say_what_a_person_wants_to_hear():
    said: list[str] = []
    assert check_sizes((192, 256), (1440, 1920), said.append) == (7.5, 7.5)
    assert check_sizes((60, 80), (483, 640), said.append) == (8.05, 8.0)
    assert said == []
    check_sizes((60, 80), (480, 660), said.append)
    check_sizes((80, 60), (480, 640), said.append)
    check_sizes((60, 80), (60, 80), said.append)
    for text, part in zip(said, ["x8.25 across and x8 down", "rotated by 90", "nothing to upsample"], strict=True):
        assert part in text
    with pytest.raises(dada.InputError, match=r"\(80 x 60 pixels.*smaller.*\(640 x 480\).*Swap"):
        check_sizes((480, 640), (60, 80), said.append)
    with pytest.raises(dada.InputError, match=r"smaller than the source .*Rotate or crop"):
        check_sizes((60, 80), (640, 79), said.append)
