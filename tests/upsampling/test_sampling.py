"""Sources that were averaged, sampled or resized: each is given back in the way it was made."""

import numpy as np
import pytest
import torch
from torch.nn.functional import interpolate

import dada
from dada.diffusion import Coefficients, equilibrium
from dada.errors import InputError
from dada.sample import MEAN, Sampling, bicubic, make_sample
from dada.upsampling import UpsampleWarning
from dada.upsampling.problem import Problem
from dada.upsampling.sampling import likeness

pytestmark = pytest.mark.filterwarnings("ignore::dada.upsampling.UpsampleWarning")
SIZE = (96, 120)


@pytest.fixture(scope="module")
def scene():
    """A slanted wall and two boxes before it; the guide shows all three."""
    row, col = np.mgrid[: SIZE[0], : SIZE[1]]
    depth, colour = 4.0 + 0.01 * col + 0.004 * row, np.full((*SIZE, 3), 200, np.uint8)
    for top, left, value, paint in ((13, 21, 2.0, 90), (50, 66, 1.4, 30)):
        depth[top : top + 33, left : left + 41] = value
        colour[top : top + 33, left : left + 41] = paint
    return depth, colour


def down(depth, kind, cells):
    return Sampling.of(kind).down(torch.from_numpy(depth), cells).numpy()


@pytest.mark.parametrize("cells", [(12, 15), (24, 30), (17, 23)], ids=["x8", "x4", "no whole factor"])
@pytest.mark.parametrize("kind", ["mean", "point", "point:0,0", "point:0.9,0.25", "bicubic"])
@pytest.mark.parametrize("adjust", ["ratio", "shift"])
def test_the_result_gives_back_what_was_measured(scene, cells, kind, adjust):
    depth, guide = scene
    source = down(depth, kind, cells)
    result = dada.upsample(source, guide, model="none", sampling=kind, adjust=adjust)
    wrong = np.abs(down(result.values, kind, cells) - source).max()
    assert wrong < (1e-3 if kind == "bicubic" else 1e-6) * np.ptp(source)
    assert result.report.consistency_max == pytest.approx(wrong, abs=1e-9)
    assert result.report.sampling == kind


@pytest.mark.parametrize("confident", [True, False])
@pytest.mark.parametrize("adjust", ["ratio", "shift"])
def test_points_of_float64_sources_are_met_to_all_digits(scene, adjust, confident):
    """They are solved in float32, as means are."""
    depth, guide = scene
    source = down(depth.astype(np.float64) + 1 / 3, "point", (12, 15))
    confidence = np.where(np.arange(180).reshape(12, 15) % 7 == 0, 0.5, 1.0)
    given = {} if confident else {"confidence": confidence}
    result = dada.upsample(source, guide, model="none", sampling="point", adjust=adjust, **given)
    met = np.abs(down(result.values, "point", (12, 15)) - source) < 1e-14
    assert result.values.dtype == np.float64
    assert met[(confidence == 1) | confident].all()
    assert confident or not met[confidence < 1].all()


def test_images_of_a_batch_are_sampled_as_they_would_be_alone(scene):
    depth, guide = scene
    sources = np.stack([down(depth, "point", (12, 15)), down(depth[::-1].copy(), "point", (12, 15))])
    both = dada.upsample(sources, np.stack([guide, guide[::-1]]), model="none", sampling="point")
    alone = dada.upsample(sources[0], guide, model="none", sampling="point")
    assert np.array_equal(both.values[0], alone.values)
    assert both.report.sampling == "point"


def test_points_taken_for_points_leave_less_than_taken_for_means_or_interpolated(scene):
    depth, guide = scene
    source = down(depth, "point", (12, 15))
    coarse = torch.from_numpy(source)[None, None]
    plain = bicubic(coarse, torch.ones_like(coarse, dtype=torch.bool), SIZE, sampling=Sampling("point"))[0, 0].numpy()

    def error(image):
        return float(np.square(image - depth).mean())

    as_points = error(dada.upsample(source, guide, model="dynamic", sampling="point").values)
    as_means = error(dada.upsample(source, guide, model="dynamic", sampling="mean").values)
    assert as_points < 0.5 * as_means
    assert as_points < 0.5 * error(plain)


def test_a_slope_between_points_has_neither_peaks_nor_steps():
    row, col = np.mgrid[:64, :64]
    depth = 3.0 + 0.02 * col + 0.01 * row
    source = down(depth, "point", (8, 8))
    result = dada.upsample(source, np.full((64, 64), 128, np.uint8), model="none", sampling="point").values
    inner = np.s_[12:52, 12:52]
    assert np.abs(result - depth)[inner].max() < 0.25 * 0.02 * 8  # a quarter of the step from cell to cell


def test_ratio_keeps_points_and_what_lies_between_them_positive():
    source = np.full((8, 8), 0.01)
    source[:, 4:] = 100.0
    result = dada.upsample(source, np.zeros((64, 64), np.uint8), model="none", sampling="point", adjust="ratio")
    assert result.values.min() > 0


@pytest.mark.parametrize("kind", ["point", "bicubic"])
def test_invalid_and_uncertain_cells_bind_nothing(scene, kind):
    depth, guide = scene
    cells = (12, 15)
    source = down(depth, kind, cells)
    confidence = np.ones(cells)
    confidence[2:4, 9:12], confidence[8, 3], source[8, 3] = 0, 0.5, 9.0
    source[2:4, 9:12] = 77.0
    result = dada.upsample(source, guide, model="none", sampling=kind, confidence=confidence, fill=True, adjust="shift")
    assert np.isfinite(result.values).all()
    assert result.values.max() < 9
    assert result.report.uncertain_cells == 1
    exact = confidence == 1
    assert np.abs(down(result.values, kind, cells) - source)[exact].max() < 1e-3 * np.ptp(source[exact])


def test_resizing_agrees_with_pillow(scene):
    from PIL import Image

    depth, _ = scene
    ours = down(depth, "bicubic", (12, 15))
    theirs = np.asarray(Image.fromarray(depth.astype(np.float32)).resize((15, 12), Image.Resampling.BICUBIC))
    assert np.abs(ours - theirs).max() < 1e-4


@pytest.mark.parametrize(
    ("kind", "mode", "cells"),
    [("point", "nearest-exact", (12, 15)), ("point", "nearest-exact", (17, 23)), ("point:0,0", "nearest", (12, 15))],
)
def test_points_are_the_pixels_that_nearest_resizes_take(scene, kind, mode, cells):
    depth = torch.from_numpy(scene[0])
    theirs = interpolate(depth[None, None], size=cells, mode=mode)[0, 0]
    assert torch.equal(Sampling.of(kind).down(depth, cells), theirs)


def test_interpolation_passes_through_the_points_in_their_places():
    rng = torch.Generator().manual_seed(1)
    source = torch.rand(1, 1, 6, 7, generator=rng, dtype=torch.float64)
    sampling = Sampling("point", (0.2, 0.7))
    fine = bicubic(source, torch.ones_like(source, dtype=torch.bool), (45, 61), sampling=sampling)
    assert torch.allclose(sampling.down(fine, (6, 7)), source, atol=1e-6)


def test_samples_of_the_bench_hold_the_values_of_their_pixels(scene):
    depth = torch.from_numpy(scene[0])[None, None]
    valid = torch.ones_like(depth, dtype=torch.bool)
    valid[..., 20, 20] = False  # the centre of the cell (2, 2) at x8
    sample = make_sample(torch.rand(1, 3, *SIZE), depth, valid, 8, sampling=Sampling("point"))
    assert not sample.source_mask[0, 0, 2, 2]
    assert int((~sample.source_mask).sum()) == 1
    assert torch.equal(sample.source[sample.source_mask], Sampling("point").down(depth, (12, 15))[sample.source_mask])
    resized = make_sample(torch.rand(1, 3, *SIZE), depth, valid, 8, sampling=Sampling("bicubic"))
    holes = ~resized.source_mask[0, 0]
    assert holes[2, 2]
    assert not holes[8:].any()


@pytest.mark.parametrize(("kind", "solves", "share"), [("point", 3, 1e-3), ("bicubic", 1, 0.5)])
def test_trainings_solve_less_often_points_exactly_and_resized_sources_nearly(scene, kind, solves, share):
    depth = torch.from_numpy(scene[0])[None, None]
    sampling, cells = Sampling.of(kind), (6, 8)  # cells of 16 x 15 pixels
    source, used = sampling.down(depth, cells), torch.ones(1, 1, *cells, dtype=torch.bool)
    start, calls = bicubic(source, used, SIZE, sampling=sampling), []
    c = Coefficients(torch.ones(1, 95, 120, dtype=torch.float64), torch.ones(1, 96, 119, dtype=torch.float64))

    def run(given, begin, coverage, exactly):
        calls.append(given)
        return equilibrium(given, c, initial=begin, adjust="shift", coverage=coverage, tolerance=1e-5)

    result = sampling.solved(run, source, used, start, quick=True).values
    assert len(calls) == solves
    uncorrected = run(source, start, None, False).values
    wrong, before = ((sampling.down(image, cells) - source).abs().max() for image in (result, uncorrected))
    assert float(wrong) < share * float(before)


@pytest.mark.parametrize("kind", ["point", "bicubic"])
def test_gradients_pass_through_every_sampling(kind):
    rng = torch.Generator().manual_seed(3)
    sampling, cells = Sampling(kind), (3, 3)
    source = (1 + torch.rand(1, 1, *cells, generator=rng, dtype=torch.float64)).requires_grad_()
    edges = [torch.rand(1, *shape, generator=rng, dtype=torch.float64) + 0.2 for shape in ((11, 12), (12, 11))]

    def result(values, vertical, horizontal):
        def run(given, start, coverage, exactly):
            c = Coefficients(vertical, horizontal)
            return equilibrium(given, c, initial=start, adjust="shift", coverage=coverage, tolerance=1e-9)

        start = torch.zeros(1, 1, 12, 12, dtype=torch.float64)
        used = torch.ones(1, 1, *cells, dtype=torch.bool)
        return sampling.solved(run, values, used, start).values

    inputs = (source, *(edge.requires_grad_() for edge in edges))
    loss = result(*inputs).square().sum()
    gradients = torch.autograd.grad(loss, inputs)
    for which in range(3):
        step = torch.zeros_like(inputs[which])
        step.view(-1)[2] = 1e-5
        there, back = (
            result(*(v.detach() + sign * step if i == which else v.detach() for i, v in enumerate(inputs)))
            for sign in (1, -1)
        )
        numeric = float((there.square().sum() - back.square().sum()) / 2e-5)
        assert float(gradients[which].view(-1)[2]) == pytest.approx(numeric, rel=2e-3, abs=1e-4)


@pytest.mark.parametrize("kind", ["mean", "point"])
def test_auto_tells_means_from_samples(scene, kind):
    depth, guide = scene
    result = dada.upsample(down(depth, kind, (24, 30)), guide, model="none", sampling="auto")
    assert result.report.sampling == kind
    assert not any("auto" in text for text in result.report.warnings)


@pytest.mark.parametrize("cells", [(24, 30), (12, 15)])
def test_means_of_the_source_go_with_means_of_the_guide_and_points_with_its_pixels(scene, cells):
    depth, colour = scene
    texture = np.random.default_rng(0).normal(size=SIZE)  # that depth and guide share, whatever their units
    guide = torch.from_numpy(colour / 255 + 0.1 * texture[..., None]).float().permute(2, 0, 1)[None]
    for unit in (1.0, 1000.0):
        for kind, sign in (("mean", -1), ("point", 1)):
            source = torch.from_numpy(unit * down(depth + 0.05 * texture, kind, cells))[None, None]
            known = torch.ones_like(source, dtype=torch.bool)
            known[..., 3, 4], source[..., 3, 4] = False, 0
            assert sign * likeness(Problem(guide, source, known)) > 0.1


def test_auto_does_not_decide_by_a_guide_without_anything_on_it(scene):
    source = down(scene[0], "mean", (24, 30))
    report = dada.upsample(source, np.full((*SIZE, 3), 9, np.uint8), model="none", sampling="auto").report
    assert report.sampling == "mean"
    assert any("not clear" in text for text in report.warnings)


def test_auto_says_where_it_cannot_tell():
    source, guide = np.full((6, 6), 2.0), np.zeros((24, 24), np.uint8)
    report = dada.upsample(source, guide, model="none", sampling="auto").report
    assert report.sampling == "mean"
    assert any("not clear" in text for text in report.warnings)


def test_a_sampled_source_taken_for_means_is_warned_of(scene):
    depth, guide = scene
    with pytest.warns(UpsampleWarning, match="looks sampled"):
        dada.upsample(down(depth, "point", (24, 30)), guide, model="none")


@pytest.mark.parametrize("text", ["centre", "point:1,0", "point:0", "mean:1"])
def test_an_unknown_sampling_is_refused(scene, text):
    with pytest.raises(InputError, match="sampling"):
        dada.upsample(scene[0][::4, ::4], scene[1], model="none", sampling=text)


def test_the_text_of_a_sampling_is_read_back():
    for sampling in (MEAN, Sampling("point"), Sampling("point", (0.25, 0.0)), Sampling("bicubic")):
        assert Sampling.of(str(sampling)) == sampling


def test_a_resized_source_that_is_not_given_back_because_of_bounds_is_warned_of():
    """The truth leaves the range of the source by more than "auto" lets a result go."""
    depth = np.full((64, 64), 2.0)
    depth[:, 30:33], guide = 9.0, np.full((64, 64), 200, np.uint8)
    guide[:, 30:33] = 20
    source = down(depth, "bicubic", (8, 8))
    report = dada.upsample(source, guide, model="none", sampling="bicubic").report
    assert report.bounded_pixels
    assert any("adjust shift" in text for text in report.warnings)
    plain = dada.upsample(source, guide, model="none", sampling="bicubic", adjust="shift").report
    assert plain.consistency_max <= 1e-4 * np.ptp(source)
    assert not any("kept back" in text for text in plain.warnings)
