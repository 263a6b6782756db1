"""Facts about guides, cells without a measurement and uncertain ones, and how values are adjusted."""

import warnings

import numpy as np
import pytest
import torch

import dada
from dada.diffusion import Coefficients
from dada.models.learning_free import Fixed
from dada.models.registry import load_model
from dada.upsampling.bounds import bounds
from dada.upsampling.result import UpsampleWarning, consistency
from dada.upsampling.source import read_source

from .averaging import averaged, holes


def nan_free(values) -> np.ndarray:
    return np.nan_to_num(np.asarray(values))


# ---- guides ----------------------------------------------------------------------------------------------------


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
        result = dada.upsample(source, guide, precision="float32")
    whole = dada.upsample(source, scene.guide, precision="float32")
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


# ---- invalid cells and confidence ------------------------------------------------------------------------------


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


# ---- adjust ----------------------------------------------------------------------------------------------------


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

    name, rounds, adjust = "scaled", 1, "auto"

    def __init__(self, by):
        self.by = by

    def prepare(self, sample):
        plain = load_model("none").prepare(sample).coefficients()
        return Fixed(Coefficients(*(self.by * edges for edges in plain)))


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


def test_auto_is_what_the_network_was_trained_with_and_positive_values_stay_positive(scene, source):
    result = dada.upsample(source, scene.guide)
    assert (result.report.model, result.report.adjust) == ("learned", "shift")
    pit = np.ones((24, 32), np.float32)
    pit[8:16, 8:16] = 0.02  # beside so large a jump a sum goes below zero, where the bounds end
    result = dada.upsample(pit, scene.guide)
    assert result.values.min() > 0.09 * pit.min()
    assert result.report.adjust == "shift"
    assert result.report.bounded_pixels > 0
    np.testing.assert_allclose(averaged(result.values, 24, 32), pit, atol=1e-5)


def cliff(scene) -> tuple[np.ndarray, np.ndarray]:
    """Heights of 0 and 30, and their source: diffusion by addition digs a ditch at the foot."""
    height = np.where(scene.depth < np.median(scene.depth), 30, 0).astype(np.float32)
    return height, averaged(height, 24, 32)


def test_heights_that_are_nowhere_negative_stay_so_unless_shift_is_asked_for(scene):
    height, source = cliff(scene)
    plain = dada.upsample(source, scene.guide, model="none", adjust="shift")
    assert plain.values.min() < -1
    assert plain.report.bounded_pixels == 0
    result = dada.upsample(source, scene.guide, model="none")
    assert result.values.min() == 0
    assert 0 < result.report.bounded_pixels <= ((plain.values < 0) | (plain.values > 30)).sum()
    np.testing.assert_allclose(averaged(result.values, 24, 32), source, atol=1e-5)
    assert result.report.consistency_max < 1e-5
    assert np.square(result.values - height).mean() < np.square(plain.values - height).mean()


def test_signed_values_have_no_floor_at_zero(scene):
    _, source = cliff(scene)
    result = dada.upsample(source - 1, scene.guide, model="none")
    assert result.values.min() < -2


def test_nothing_goes_far_beyond_what_was_measured_unless_shift_is_asked_for(scene):
    _, source = cliff(scene)
    free = dada.upsample(source - 10, scene.guide, model="none", adjust="shift")
    result = dada.upsample(source - 10, scene.guide, model="none")
    least, most = bounds(-10, 20, 64)
    assert free.values.min() < least
    assert free.values.max() > most
    assert free.report.bounded_pixels == 0
    assert result.values.min() == pytest.approx(least)
    assert result.values.max() == pytest.approx(most)
    assert result.report.bounded_pixels >= ((free.values < least - 0.01) | (free.values > most + 0.01)).sum()
    assert result.report.consistency_max < 1e-5


def test_small_cells_hide_less_than_large_ones():
    least, most = bounds(-1.0, 3.0, 16)
    assert -1.5 < least < -1 < 3 < most < 3.5
    assert bounds(-1.0, 3.0, 1024) == pytest.approx((-5.2, 7.2))
    assert bounds(2.0, 3.0, 1024) == pytest.approx((0.95, 4.05))
    assert bounds(0.5, 9.0, 256) == pytest.approx((0.05, 9 + 0.3 * 8.5))
    assert bounds(2.0, 2.0, 64) == (2.0, 2.0)


def test_positive_values_stay_positive_where_shift_is_chosen_for_them(scene):
    """A zero would mean no measurement in many files."""
    _, source = cliff(scene)
    result = dada.upsample(source + 0.05, scene.guide, model="none")
    assert result.report.adjust == "shift"
    assert result.report.bounded_pixels > 0
    assert result.values.min() == pytest.approx(0.005)
    assert result.report.consistency_max < 1e-5


def test_uncertain_cells_keep_their_own_means_above_the_floor_and_holes_are_cut_off(scene):
    _, source = cliff(scene)
    uncertain = ~holes() & (np.indices((24, 32)).sum(0) % 2 == 1)
    confidence = np.where(holes(), 1.0, np.where(uncertain, 0.5, 0.0))
    options = {"model": "none", "confidence": confidence, "fill": True}
    plain = dada.upsample(source, scene.guide, adjust="shift", **options)
    result = dada.upsample(source, scene.guide, **options)
    assert plain.values.min() < -1
    assert result.values.min() >= 0
    assert result.report.consistency_max < 1e-5
    own, moved = (averaged(one.values, 24, 32)[uncertain] for one in (plain, result))
    np.testing.assert_allclose(moved, np.maximum(own, 0), atol=1e-3)
    assert np.abs(moved - source[uncertain]).max() > 0.1
