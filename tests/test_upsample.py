"""Facts about `dada.upsample`: arrays of any kind in, the same kind out, and the measurement never
contradicted."""

import functools
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

import dada
from dada.diffusion import Coefficients, down
from dada.errors import InputError
from dada.inputs import check_sizes, read_source
from dada.learning_free import LearningFree
from dada.memory import available_memory, needed_memory
from dada.model import load_model
from dada.scene import render
from dada.upsampling import UpsampleWarning, consistency


@pytest.fixture(scope="module")
def scene():
    return render(192, 256)


@pytest.fixture(scope="module")
def source(scene) -> np.ndarray:
    return averaged(scene.depth, 24, 32)


def averaged(fine: np.ndarray, h: int, w: int) -> np.ndarray:
    return down(torch.from_numpy(fine).double(), (h, w)).float().numpy()


def nan_free(values) -> np.ndarray:
    return np.nan_to_num(np.asarray(values))


# ---- the promise -------------------------------------------------------------------------------------------


def test_averaged_back_down_the_result_is_the_source(scene, source):
    result = dada.upsample(source, scene.guide)
    np.testing.assert_allclose(averaged(result.values, *source.shape), source, rtol=1e-6)
    assert result.report.consistency_max < 1e-5
    assert result.valid.all()


def test_the_result_is_closer_to_the_truth_than_bicubic(scene, source):
    from dada.upsampling import bicubic

    plain = bicubic(torch.from_numpy(source), torch.ones(source.shape, dtype=torch.bool), scene.depth.shape)
    result = dada.upsample(source, scene.guide)
    assert np.abs(result.values - scene.depth).mean() < 0.7 * np.abs(plain.numpy() - scene.depth).mean()


def test_the_loop_ends_where_the_equilibrium_is(scene, source):
    solved = dada.upsample(source[:8, :8], scene.guide[:64, :64], model="none", tolerance=1e-6)
    looped = dada.upsample(source[:8, :8], scene.guide[:64, :64], model="none", method="iterate", steps=20_000)
    assert np.abs(solved.values - looped.values).max() < 5e-3
    assert (looped.report.method, looped.report.iterations) == ("iterate", 20_000)


@pytest.mark.parametrize("unit", [1e-30, 1e-3, 5000.0, 1e30])
@pytest.mark.parametrize("adjust", ["ratio", "shift"])
def test_the_unit_of_the_source_does_not_matter(scene, source, unit, adjust):
    one = dada.upsample(source, scene.guide, adjust=adjust).values
    other = dada.upsample(source.astype(np.float64) * unit, scene.guide, adjust=adjust).values
    np.testing.assert_allclose(other / unit, one, rtol=2e-3)


def test_an_offset_does_not_matter_to_shift(scene, source):
    one = dada.upsample(source.astype(np.float64), scene.guide, adjust="shift").values
    other = dada.upsample(source.astype(np.float64) - 1e6, scene.guide).values
    np.testing.assert_allclose(other + 1e6, one, atol=1e-3)


def test_a_constant_source_stays_constant(scene):
    result = dada.upsample(np.full((24, 32), 7.25), scene.guide)
    np.testing.assert_allclose(result.values, 7.25, rtol=1e-9)


# ---- kinds and dtypes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        ("float16", "float16"), ("float32", "float32"), ("float64", "float64"), (">f4", "float32"),
        ("uint8", "float32"), ("uint16", "float32"), ("int16", "float32"), ("int32", "float64"), (">u2", "float32"),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::dada.upsampling.UpsampleWarning")
def test_floats_keep_their_dtype_and_integers_become_floats(scene, source, dtype, expected):
    given = (source * 40).astype(dtype)
    result = dada.upsample(given, scene.guide)
    assert result.values.dtype == np.dtype(expected)
    step = 0.2 if dtype == "float16" else 1e-4
    np.testing.assert_allclose(averaged(result.values.astype(np.float64), 24, 32), given, atol=step)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int32, torch.uint8])
@pytest.mark.filterwarnings("ignore::dada.upsampling.UpsampleWarning")
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


# ---- sizes -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [(24, 32), (25, 33), (7, 9), (192, 256), (64, 256), (1, 1), (1, 32), (24, 1)])
@pytest.mark.filterwarnings("ignore::dada.upsampling.UpsampleWarning")
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


# ---- guides ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "convert",
    [
        lambda g: g.astype(np.uint16) * 257,
        lambda g: g.astype(np.float32) / 255,
        lambda g: g.astype(np.float64) / 255,
        lambda g: torch.from_numpy(g).permute(2, 0, 1).float() / 255,
    ],
    ids=["uint16", "float32", "float64", "tensor"],
)
def test_8_bits_16_bits_and_floats_are_the_same_guide(scene, source, convert):
    one = dada.upsample(source, scene.guide).values
    np.testing.assert_allclose(dada.upsample(source, convert(scene.guide)).values, one, rtol=1e-3)


@pytest.mark.parametrize("bands", [1, 2, 4, 13])
def test_one_to_many_bands(scene, source, bands):
    guide = np.concatenate([scene.guide] * 5, axis=2)[..., :bands]
    result = dada.upsample(source, guide[..., 0] if bands == 1 else guide)
    assert result.report.bands == bands
    assert result.report.consistency_max < 1e-5


def test_a_12_bit_guide_is_stretched(scene, source):
    result = dada.upsample(source, scene.guide.astype(np.uint16) * 16)
    low, high = result.report.guide_range
    assert 0 <= low < 1000 < high <= 4080
    eight = dada.upsample(source, scene.guide)
    assert np.abs(result.values - scene.depth).mean() < 1.2 * np.abs(eight.values - scene.depth).mean()


def test_guide_pixels_without_value_are_filled_and_counted(scene, source):
    guide = scene.guide.astype(np.float32) / 255
    guide[20:30, 40:50, 1] = np.nan
    guide[0, 0, 0] = np.inf
    with pytest.warns(UpsampleWarning, match="101 guide pixels"):
        result = dada.upsample(source, guide)
    whole = dada.upsample(source, scene.guide)
    assert np.isfinite(result.values).all()
    assert np.abs(result.values - whole.values)[60:].max() < 1e-2


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_masked_guide_pixels_do_not_change_how_the_others_are_scaled(scene, source, dtype):
    guide = scene.guide.astype(dtype) * dtype(257 if dtype == np.uint16 else 1)
    mask = np.zeros(guide.shape, bool)
    mask[:10, :20] = True
    with pytest.warns(UpsampleWarning, match="200 guide pixels have no value"):
        result = dada.upsample(source, np.ma.MaskedArray(guide, mask))
    assert result.report.guide_range == dada.upsample(source, guide).report.guide_range == (0, np.iinfo(dtype).max)


def test_an_alien_guide_warns_and_its_own_does_not(scene):
    source = averaged(scene.depth, 48, 64)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dada.upsample(source, scene.guide)
    with pytest.warns(UpsampleWarning, match="same scene"):
        result = dada.upsample(source, scene.guide[:, ::-1])
    assert len(result.report.warnings) == 1


# ---- invalid cells and confidence --------------------------------------------------------------------------


def holes(shape=(24, 32)) -> np.ndarray:
    valid = np.random.default_rng(3).random(shape) > 0.1
    valid[5:12, 8:20] = False
    return valid


def test_invalid_stays_invalid_however_it_is_said(scene, source):
    valid = holes()
    marked = {
        "NaN": dada.upsample(np.where(valid, source, np.nan), scene.guide),
        "mask": dada.upsample(source, scene.guide, mask=valid),
        "value": dada.upsample(np.where(valid, source, -1), scene.guide, invalid=-1),
        "masked array": dada.upsample(np.ma.array(source, mask=~valid), scene.guide),
        "confidence": dada.upsample(source, scene.guide, confidence=valid.astype(np.float32)),
    }
    wide = valid.repeat(8, 0).repeat(8, 1)
    for name, result in marked.items():
        np.testing.assert_array_equal(result.valid, wide, err_msg=name)
        np.testing.assert_array_equal(np.isnan(result.values), ~wide, err_msg=name)
        np.testing.assert_array_equal(nan_free(result.values), nan_free(marked["NaN"].values), err_msg=name)
        assert consistency(result.values, source, valid)[0] < 1e-5
        assert result.report.invalid_cells == (~valid).sum()
        assert result.report.invalid_pixels == 64 * (~valid).sum()


def test_holes_are_filled_on_request(scene, source):
    result = dada.upsample(np.where(holes(), source, np.nan), scene.guide, fill=True)
    assert result.valid.all()
    assert np.isfinite(result.values).all()
    assert result.report.filled_pixels == 64 * (~holes()).sum()
    assert np.abs(result.values - scene.depth).mean() < 0.25


@pytest.mark.parametrize(
    ("dtype", "marker", "said"),
    [
        (np.float32, -9999, "2 source cells are -9999,.*invalid=-9999.0"),
        (np.int32, -32768, "2 source cells are -32768,"),
        (np.float64, float(np.finfo(np.float32).max), "are 3.40282e[+]38"),
        (np.uint16, 65535, "2 source cells are 65535,"),
        (np.float64, 1e20, "2 source cells, such as 1e[+]20, are 1000 times larger"),
        (np.int32, -99999999, "such as -1e[+]08"),
    ],
)
def test_markers_that_nobody_stated_are_warned_of(scene, source, dtype, marker, said):
    given = np.rint(source * 100).astype(dtype)
    given[2, 3:5] = marker
    with pytest.warns(UpsampleWarning, match=said):
        result = dada.upsample(given, scene.guide)
    assert len(result.report.warnings) >= 1
    assert not any("source cells" in text for text in dada.upsample(given, scene.guide, invalid=marker).report.warnings)


@pytest.mark.parametrize(
    "ordinary",
    [
        np.linspace(0, 65535, 96).astype(np.uint16),  # saturated, but all the range is used
        np.linspace(-9999, 9999, 96),
        np.linspace(-32768, 32767, 96).astype(np.int16),
        np.exp(np.random.default_rng(0).normal(0, 4, 96)),
        np.where(np.arange(96) < 9, 1e-17, 20_000.0 + np.arange(96)),  # a few zeros that were computed
        np.where(np.arange(96) < 90, 0.0, 50_000.0 + np.arange(96)),
        1e30 * (1 + np.arange(96.0)),
        -np.arange(96.0),
    ],
)
def test_ordinary_values_are_not_taken_for_markers(ordinary):
    said: list[str] = []
    read_source(ordinary.reshape(8, 12), None, None, said.append)
    assert said == []


def test_infinities_are_invalid_and_counted(scene, source):
    given = source.copy()
    given[2, 3:5] = np.inf, -np.inf
    with pytest.warns(UpsampleWarning, match="2 source cells are infinite"):
        result = dada.upsample(given, scene.guide)
    assert result.report.invalid_cells == 2


@pytest.mark.parametrize("adjust", ["ratio", "shift"])
def test_the_less_confident_a_cell_the_further_it_may_move(scene, source, adjust):
    wrong = source.copy()
    wrong[12, 16] += 3
    moved = []
    for trust in (1.0, 0.9, 0.5, 0.1, 0.01):
        confidence = np.ones(source.shape)
        confidence[12, 16] = trust
        result = dada.upsample(wrong, scene.guide, confidence=confidence, adjust=adjust, tolerance=1e-5)
        moved.append(wrong[12, 16] - averaged(result.values, 24, 32)[12, 16])
        assert result.report.consistency_max < 1e-4
        assert result.report.uncertain_cells == (trust < 1)
    assert abs(moved[0]) < 1e-4
    assert moved == sorted(moved)
    assert moved[-1] > 0.3


# ---- adjust ------------------------------------------------------------------------------------------------


def test_auto_is_ratio_for_positive_values_and_shift_for_others(scene, source):
    assert dada.upsample(source, scene.guide, model="dynamic").report.adjust == "ratio"
    below = source - source.mean()
    result = dada.upsample(below, scene.guide, model="dynamic")
    assert result.report.adjust == "shift"
    np.testing.assert_allclose(averaged(result.values, 24, 32), below, atol=1e-5)
    holes = np.where(below > 0, source, 0)
    assert dada.upsample(holes, scene.guide, model="dynamic", invalid=0).report.adjust == "ratio"


class Scaled:
    """The paper's variant with all coefficients times a number: the same image where every cell is exact."""

    name = "scaled"

    def __init__(self, by):
        self.by = by

    def diffuse(self, sample, solve):
        plain = load_model("none").coefficients(sample)
        return solve(Coefficients(*(self.by * edges for edges in plain)), sample.initial)


def test_confidence_means_the_same_whatever_the_scale_of_a_models_coefficients(scene, source):
    confidence = np.full(source.shape, 0.9)
    weak, strong = (dada.upsample(source, scene.guide, model=Scaled(s), confidence=confidence) for s in (1, 50))
    np.testing.assert_allclose(strong.values, weak.values, rtol=1e-3)
    outlier, one = source.copy(), np.ones(source.shape)
    outlier[10, 10] *= 2
    one[10, 10] = 0.5
    for model in ("default", "none"):
        mean = averaged(dada.upsample(outlier, scene.guide, model=model, confidence=one).values, 24, 32)[10, 10]
        moved = (outlier[10, 10] - mean) / source[10, 10]
        assert 0.5 < moved < 0.98  # most of the way back to its neighbours, but not all of it


def test_auto_is_what_the_network_was_trained_with_as_long_as_positive_values_stay_positive(scene, source):
    result = dada.upsample(source, scene.guide)
    assert (result.report.model, result.report.adjust) == ("learned", "shift")
    pit = np.ones((24, 32), np.float32)
    pit[8:16, 8:16] = 0.02  # beside so large a jump a sum goes below zero, a product does not
    result = dada.upsample(pit, scene.guide)
    assert result.values.min() > 0
    assert result.report.adjust == "ratio"


# ---- mistakes ----------------------------------------------------------------------------------------------

GUIDE, SOURCE = np.zeros((64, 96, 3), np.uint8), np.ones((8, 12), np.float32)
GUIDE[:, 48:] = 200
MIXED = np.where(np.indices((8, 12)).sum(0) % 5 == 0, -1, 1)
CHECKS = GUIDE.copy()
CHECKS[4::8] = 255


@pytest.mark.parametrize(
    ("source", "guide", "options", "said"),
    [
        (GUIDE[..., 0], SOURCE, {}, "smaller than the source.*Swap"),
        (GUIDE, GUIDE, {}, "colour image has no measurements"),
        (SOURCE[None, None], GUIDE, {}, "one image at a time"),
        (SOURCE[0], GUIDE, {}, "expected .height, width."),
        (SOURCE[:0], GUIDE, {}, "no side of length 0"),
        (SOURCE.astype(complex), GUIDE, {}, "complex128"),
        (SOURCE.astype(str), GUIDE, {}, "not measurements"),
        (SOURCE > 0, GUIDE, {}, "bool"),
        (SOURCE * np.nan, GUIDE, {}, "nothing but NaN"),
        (SOURCE * 0, GUIDE, {"invalid": 0}, "all zeros"),
        (SOURCE, GUIDE, {"invalid": 1}, "equals the invalid marker 1"),
        (SOURCE, GUIDE, {"invalid": "0"}, "invalid '0' is no number"),
        (SOURCE, GUIDE, {"invalid": [0, 1]}, "is no number.*mask="),
        (SOURCE, GUIDE, {"invalid": True}, "is no number"),
        (SOURCE, GUIDE, {"mask": SOURCE < 0}, "inverted"),
        (SOURCE, GUIDE, {"mask": SOURCE * np.nan}, "96 values that are NaN"),
        (SOURCE * np.float64(1e308) * MIXED, GUIDE, {}, "invalid= .--invalid."),
        ((SOURCE * MIXED * 65500).astype(np.float16), CHECKS, {}, "ranges from -6.* to 6.*invalid="),
        (SOURCE, GUIDE, {"mask": GUIDE[..., 0] > 0}, r"mask has shape \(64, 96\)"),
        (SOURCE, GUIDE, {"confidence": SOURCE * 2}, "0 .no measurement. to 1"),
        (SOURCE, GUIDE, {"confidence": SOURCE * np.nan}, "NaN"),
        (SOURCE, GUIDE, {"confidence": SOURCE * 0}, "confidence 0"),
        (SOURCE, GUIDE, {"confidence": SOURCE[:4]}, "one value for each source cell"),
        (-SOURCE, GUIDE, {"adjust": "ratio"}, "adjust shift"),
        (SOURCE, GUIDE, {"adjust": "scale"}, "auto, ratio or shift"),
        (SOURCE, GUIDE, {"method": "jump"}, "equilibrium or iterate"),
        (SOURCE, GUIDE, {"steps": 5}, "has no steps"),
        (SOURCE, GUIDE, {"method": "iterate", "tolerance": 1e-3}, "has no tolerance"),
        (SOURCE, GUIDE, {"method": "iterate", "steps": 0}, "1 or more"),
        (SOURCE, GUIDE, {"tolerance": 0}, "between 0 and 1"),
        (SOURCE, GUIDE, {"model": "best"}, "default, learned, dynamic and none"),
        (SOURCE, np.moveaxis(GUIDE, -1, 0), {}, "numpy.moveaxis"),
        (SOURCE, torch.from_numpy(GUIDE), {}, r"permute\(2, 0, 1\)"),
        (SOURCE, GUIDE[None], {}, "the guide has shape"),
        (SOURCE, GUIDE[:0], {}, "no side of length 0"),
        (SOURCE, GUIDE.astype(complex), {}, "complex"),
        (SOURCE, torch.zeros(64, 96, dtype=torch.complex64), {}, "complex"),
        (SOURCE, np.full((64, 96), np.nan), {}, "nothing but NaN"),
        (SOURCE, np.broadcast_to(np.uint8(0), (200_000, 300_000, 3)), {}, "needs about .* GB .* are available"),
    ],
)  # fmt: skip
def test_mistakes_are_explained(source, guide, options, said):
    with pytest.raises(dada.InputError, match=said) as refused:
        dada.upsample(source, guide, **options)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("source", "guide", "said"),
    [
        (SOURCE.astype(np.uint8), GUIDE, "256 levels"),
        (SOURCE, GUIDE[:60], "the factors differ"),
        (SOURCE, GUIDE * 0, "uniform"),
        (SOURCE, GUIDE[:8, :12], "nothing to upsample"),
    ],
)
def test_oddities_warn(source, guide, said):
    with pytest.warns(UpsampleWarning, match=said):
        result = dada.upsample(source, guide)
    assert any(said in text for text in result.report.warnings)


def test_what_did_not_converge_is_said(scene, source, monkeypatch):
    import dada.upsampling as module

    monkeypatch.setattr(module, "equilibrium", functools.partial(module.equilibrium, max_iterations=1))
    with pytest.warns(UpsampleWarning, match="equilibrium not reached: stopped after 1 iterations"):
        result = dada.upsample(source, scene.guide)
    assert result.report.converged is False


def test_threads_leave_the_warnings_of_the_process_alone(scene, source):
    holed = np.where(holes(), source, np.nan)
    before = list(warnings.filters)
    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(4) as pool:
        patch.setattr(warnings, "catch_warnings", None)  # it is not safe in threads: not to be used
        list(pool.map(lambda _: dada.upsample(holed, scene.guide), range(8)))
    assert list(warnings.filters) == before


# ---- the package -------------------------------------------------------------------------------------------


def test_importing_the_package_imports_nothing_heavy():
    code = (
        "import dada, sys; print([m for m in ('torch', 'numba', 'cv2', 'numpy') if m in sys.modules], dada.__version__)"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed == f"[] {dada.__version__}\n"


def test_the_package_exposes_its_front_door_and_nothing_unknown():
    from dada import InputError, Result, load_model, upsample

    assert callable(upsample)
    assert Result.__name__ == "Result"
    assert issubclass(InputError, ValueError)
    assert load_model().name == load_model("default").name
    assert set(dada.__all__) <= set(dir(dada))
    with pytest.raises(AttributeError, match="downsample"):
        _ = dada.downsample


def test_a_model_of_ones_own(scene, source):
    smooth = dada.upsample(source, scene.guide, model=LearningFree(kappa=10.0)).values
    sharp = dada.upsample(source, scene.guide, model=load_model("none")).values
    assert np.abs(np.diff(smooth)).max() < np.abs(np.diff(sharp)).max()


def test_settings_of_the_learning_free_variant_come_from_a_json_file(scene, source, tmp_path):
    path = tmp_path / "smooth.json"
    path.write_text('{"kappa": 10, "distance": "euclidean"}')
    result = dada.upsample(source, scene.guide, model=path)
    assert result.report.model == "smooth.json"
    by_hand = dada.upsample(source, scene.guide, model=LearningFree(kappa=10.0, distance="euclidean"))
    np.testing.assert_array_equal(result.values, by_hand.values)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kappa: 1", "is not JSON"),
        ("[1]", "some of kappa, distance, source_scale"),
        ('{"kapa": 1}', "some of kappa, distance, source_scale"),
        ('{"kappa": 0}', "kappa must be a positive number, got 0"),
        ('{"kappa": "x"}', "kappa must be a positive number"),
        ('{"distance": "cosine"}', "euclidean or mean_absolute"),
    ],
)
def test_settings_that_cannot_be_used_are_named(text, message, tmp_path):
    path = tmp_path / "settings.json"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        load_model(path)


def test_the_estimate_of_memory_is_below_what_there_is_for_ordinary_images():
    available = available_memory()
    assert available is None or needed_memory((1088, 1376), 3, 4) < available
    assert needed_memory((1088, 1376), 3, 4) < 1e9


@pytest.mark.parametrize("name", ["bicubic", "gf", "dada-free"])
def test_methods_of_the_bench_are_models_too_and_say_how_far_they_miss_the_source(scene, source, name):
    result = dada.upsample(source, scene.guide, model=name)
    report = result.report
    assert (report.method, report.adjust, report.converged) == ("direct", "none", True)
    assert np.isfinite(result.values).all()
    missed = np.abs(averaged(result.values, *source.shape) - source).max()
    assert report.consistency_max == pytest.approx(missed, rel=1e-3, abs=1e-6)
    assert (missed < 1e-4) == (name == "dada-free")


def test_a_source_over_many_magnitudes_is_shifted_and_not_scaled(scene, source):
    wide = np.geomspace(1e-3, 10, source.size).reshape(source.shape)
    assert dada.upsample(wide, scene.guide).report.adjust == "shift"
    assert dada.upsample(wide, scene.guide, model="none", adjust="ratio").report.adjust == "ratio"
