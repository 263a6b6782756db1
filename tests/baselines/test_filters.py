"""The learning-free methods: what all of them keep, then what each of them computes."""

import sys
from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest
import torch
from scipy.sparse import coo_array, diags_array
from scipy.sparse.linalg import spsolve

from dada.baselines.bicubic import Bicubic, Convolution
from dada.baselines.dada_free import DadaFree
from dada.baselines.guided_filter import GuidedFilter, box_mean, guided_filter
from dada.baselines.lgr import LgrFree
from dada.baselines.opencv import FastGlobalSmoother, JointBilateral, OpencvGuidedFilter
from dada.baselines.pixtransform import PixTransform
from dada.baselines.static_dynamic import StaticDynamic, centres, edge_weights, lab
from dada.diffusion import down, up
from dada.errors import InputError
from dada.models.registry import METHODS, load_method
from dada.sample import Method, Sample

from .scenes import error, scene

QUICK = PixTransform(iterations=2, batch=8)
OURS = [
    Bicubic(),
    Convolution(),
    GuidedFilter(),
    StaticDynamic(),
    StaticDynamic(measured="block"),
    QUICK,
    LgrFree(),
    LgrFree(solver="equilibrium"),
    DadaFree(),
]
OPENCV = [JointBilateral(), FastGlobalSmoother(), OpencvGuidedFilter()]
SIZES = {
    "integer": ((48, 64), (6, 8)),
    "odd": ((37, 53), (37, 53)),
    "not integer": ((37, 53), (5, 7)),
    "one source row": ((9, 30), (1, 4)),
}


def name(method: Method) -> str:
    variant = getattr(method, "measured", None) or getattr(method, "solver", None)
    return f"{method.name}-{variant}" if variant else method.name


@pytest.fixture(params=OURS + OPENCV, ids=name)
def method(request):
    if request.param in OPENCV:
        pytest.importorskip("cv2.ximgproc", reason="needs opencv-contrib")
    return request.param


class TestEveryMethod:
    @pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
    @pytest.mark.parametrize("bands", [1, 3, 5])
    def test_any_size_and_number_of_bands(self, method, sizes, bands):
        sample = scene(*sizes, bands=bands)
        values = method(sample)
        assert values.shape == sample.initial.shape
        assert values.dtype == sample.initial.dtype
        assert values.isfinite().all()
        assert error(values, sample) < 0.4

    def test_invalid_cells_are_not_looked_at(self, method):
        sample = scene(holes=0.3)
        assert not sample.source_mask.all()
        other = replace(sample, source=torch.where(sample.source_mask, sample.source, 0.05))
        torch.testing.assert_close(method(sample), method(other), rtol=0, atol=0)

    def test_an_image_does_not_depend_on_its_batch(self, method):
        if method == LgrFree():
            pytest.skip("its authors solve a batch as one system, see test_lgr.py")
        sample = scene(batch=3, holes=0.2)
        torch.testing.assert_close(method(sample)[1:2], method(sample[1]), rtol=0, atol=1e-5)

    def test_a_constant_stays_constant(self, method):
        sample = scene()
        flat = replace(sample, source=torch.full_like(sample.source, 2.5), initial=torch.full_like(sample.initial, 2.5))
        torch.testing.assert_close(method(flat), flat.initial, rtol=0, atol=1e-4)

    def test_a_guide_of_one_colour_is_allowed(self, method):
        sample = replace(scene(), guide=torch.full((1, 3, 48, 64), 0.5))
        assert method(sample).isfinite().all()

    def test_the_truth_is_not_looked_at(self, method):
        sample = scene()
        blind = replace(sample, target=None, target_mask=None)
        torch.testing.assert_close(method(sample), method(blind), rtol=0, atol=0)

    @pytest.mark.parametrize("offset", [-0.5, 1000.0])
    def test_any_range_of_values(self, method, offset):
        sample = scene(offset=offset)
        values = method(sample)
        assert values.isfinite().all()
        assert error(values, sample) < 0.4

    def test_float64(self, method):
        assert method(scene(dtype=torch.float64)).dtype == torch.float64


def test_the_names_of_dada_methods_lead_here():
    assert {load_method(text).name for text in METHODS if text in ("bicubic", "gf", "sd", "pixt")} == {
        "Bicubic",
        "GF",
        "SD",
        "PixT",
    }
    for text in ("bicubic-torch", "lgr-free", "dada-free", "jbu", "fgs", "gf-opencv"):
        assert isinstance(load_method(text), Method)


@pytest.mark.parametrize("method", [DadaFree(), StaticDynamic(), LgrFree()], ids=name)
def test_a_guide_with_the_same_edges_helps(method):
    sample = scene()
    assert error(method(sample), sample) < error(sample.initial, sample)


class TestGuidedFilter:
    def test_box_mean_is_the_mean_of_the_pixels_that_exist(self):
        image = torch.rand(1, 2, 7, 40, dtype=torch.float64)
        found = box_mean(image, 8)
        for i, j in ((0, 0), (3, 20), (6, 39), (5, 9)):
            window = image[..., max(0, i - 8) : i + 9, max(0, j - 8) : j + 9]
            torch.testing.assert_close(found[..., i, j], window.mean(dim=(-2, -1)))

    def test_an_image_that_is_linear_in_the_guide_stays(self):
        guide = torch.rand(2, 3, 30, 41, dtype=torch.float64)
        image = (guide * torch.tensor([0.5, -1.0, 2.0])[:, None, None]).sum(dim=1, keepdim=True) + 3
        torch.testing.assert_close(guided_filter(guide, image, 4, 1e-9), image, rtol=0, atol=1e-5)

    def test_a_large_epsilon_smooths_twice(self):
        guide, image = torch.rand(1, 3, 30, 41), torch.rand(1, 1, 30, 41)
        expected = box_mean(box_mean(image, 5), 5)
        torch.testing.assert_close(guided_filter(guide, image, 5, 1e6), expected, rtol=0, atol=1e-5)

    def test_opencv_agrees_away_from_the_border(self):
        pytest.importorskip("cv2.ximgproc", reason="needs opencv-contrib")
        sample = scene((96, 96), (12, 12))
        ours, theirs = GuidedFilter()(sample), OpencvGuidedFilter()(sample)
        inside = np.s_[..., 16:-16, 16:-16]
        torch.testing.assert_close(ours[inside], theirs[inside], rtol=0, atol=1e-4)

    def test_settings_are_checked(self):
        with pytest.raises(ValueError, match="radius >= 1"):
            GuidedFilter(radius=0)


class TestStaticDynamic:
    def test_each_cell_has_one_pixel_near_its_centre(self):
        marks = centres(torch.empty(1, 1, 5, 7), (37, 53))
        assert (down(marks.double(), (5, 7)) > 0).all()
        assert marks.sum() == 35
        assert centres(torch.empty(1, 1, 1, 1), (5, 4))[0, 0].nonzero().tolist() == [[2, 1]]

    @pytest.mark.parametrize("rounds", [1, 4])
    def test_it_is_the_filter_solved_directly(self, rounds):
        sample = scene((20, 24), (5, 6), holes=0.2, dtype=torch.float64)
        found = StaticDynamic(rounds=rounds)(sample)
        expected = direct_filter(sample, 0.1, 60.0, 30.0, rounds)
        torch.testing.assert_close(found[0, 0], torch.from_numpy(expected), rtol=0, atol=2e-3)

    def test_measured_pixels_never_lead_out_of_their_range(self):
        sample = scene(holes=0.3)
        values, known = StaticDynamic()(sample), sample.source[sample.source_mask]
        assert values.min() > known.min() - 1e-3
        assert values.max() < known.max() + 1e-3

    def test_measured_blocks_are_met_more_closely(self):
        sample = scene()
        pixel, block = (StaticDynamic(measured=what)(sample) for what in ("pixel", "block"))
        misfit = [(down(v, (6, 8)) - sample.source).abs().mean() for v in (pixel, block)]
        assert misfit[1] < 0.5 * misfit[0]

    def test_edge_weights_take_the_largest_difference_for_one(self):
        image = torch.tensor([[0.0, 1.0, 3.0]])[None, None]
        horizontal = edge_weights(image, 2.0).horizontal.flatten()
        torch.testing.assert_close(horizontal, torch.exp(torch.tensor([-2 / 4, -2.0])) + 1e-5)

    def test_lab_of_white_and_of_other_bands(self):
        white = lab(torch.ones(1, 3, 2, 2))[0, :, 0, 0]
        torch.testing.assert_close(white, torch.tensor([100.0, 0.0, 0.0]), rtol=0, atol=0.05)
        bands = torch.rand(1, 4, 3, 3)
        assert lab(bands) is bands

    def test_settings_are_checked(self):
        with pytest.raises(ValueError, match='"pixel" or "block"'):
            StaticDynamic(measured="cell")


def direct_filter(sample: Sample, smoothness, sigma_guide, sigma_result, rounds) -> np.ndarray:
    """The same by sparse matrices and elimination."""
    H, W = sample.size
    index = np.arange(H * W).reshape(H, W)
    first = np.concatenate([index[:-1].ravel(), index[:, :-1].ravel()])
    second = np.concatenate([index[1:].ravel(), index[:, 1:].ravel()])

    def weights(image, sigma):
        return np.concatenate([edge.numpy().ravel() for edge in edge_weights(image, sigma)])

    marked = (centres(sample.source, (H, W)) & up(sample.source_mask, (H, W)))[0, 0].numpy().ravel()
    values = up(sample.source, (H, W))[0, 0].numpy().ravel() * marked
    static = edges = weights(lab(sample.guide), sigma_guide)
    for _ in range(rounds):
        adjacency = coo_array((edges, (first, second)), (H * W, H * W))
        adjacency = adjacency + adjacency.T
        laplacian = diags_array(adjacency.sum(axis=1)) - adjacency
        result = spsolve((diags_array(marked.astype(float)) + smoothness * laplacian).tocsc(), values)
        edges = static * weights(torch.from_numpy(result.reshape(1, 1, H, W)), sigma_result)
    return result.reshape(H, W)


class TestPixTransform:
    def test_it_learns_the_image(self):
        sample = scene((32, 32), (8, 8))
        rough, finer = (PixTransform(iterations=n)(sample) for n in (2, 100))
        assert error(finer, sample) < 0.3 * error(rough, sample)

    def test_the_seed_decides(self):
        sample = scene((16, 16), (4, 4))
        state = torch.get_rng_state()
        first, again, other = (PixTransform(iterations=2, seed=seed)(sample) for seed in (1, 1, 2))
        assert torch.equal(first, again)
        assert not torch.equal(first, other)
        assert torch.equal(state, torch.get_rng_state())

    def test_it_trains_where_gradients_are_off(self):
        with torch.no_grad():
            values = QUICK(scene())
        assert not values.requires_grad
        torch.testing.assert_close(values, QUICK(scene()), rtol=0, atol=0)

    def test_only_valid_cells_are_drawn_each_once_in_a_pass(self):
        cells = torch.tensor([3, 5, 8, 13, 21])
        batches = list(PixTransform(iterations=7, batch=2)._draw(cells))
        assert [len(batch) for batch in batches] == [2, 2, 1, 2, 2, 1, 2]
        assert sorted(torch.cat(batches[:3]).tolist()) == cells.tolist()

    def test_an_image_without_measurements_is_refused(self):
        sample = scene()
        with pytest.raises(ValueError, match="no valid source cell"):
            QUICK(replace(sample, source_mask=torch.zeros_like(sample.source_mask)))


class TestDadaFree:
    VECTORS = ("moebius_x4", "moebius_x8", "moebius_x16", "moebius_x32", "art_holes_x8", "art_holes_x32")

    @pytest.fixture(params=VECTORS)
    def vector(self, request, oracle):
        with np.load(oracle / f"dada_free_{request.param}.npz") as data:
            return {name: torch.from_numpy(data[name]) for name in data.files}

    @staticmethod
    def sample_of(vector) -> Sample:
        mask = vector["source_valid"][None, None] > 0
        source = torch.where(mask, vector["source"][None, None], 0)
        guide = vector["guide_uint8"].permute(2, 0, 1)[None].float() / 255
        return Sample(guide, source, mask, vector["bicubic"][None, None], unit=1122.7)

    @pytest.mark.parametrize(("steps", "tolerance"), [(1, 1e-5), (100, 1e-5), (9024, 1e-4)])
    def test_the_loop_is_the_released_one(self, vector, steps, tolerance):
        sample = self.sample_of(vector)
        values = DadaFree(method="iterate", steps=steps)(sample)[0, 0]
        expected = vector[f"after_{steps}"]
        # Block means are rounded in the vectors themselves: what they miss their source by, nothing can reproduce.
        misfit = (down(expected.double(), sample.source.shape[-2:]) - sample.source).abs()
        torch.testing.assert_close(values, expected, rtol=tolerance, atol=misfit[sample.source_mask].max().item())

    def test_the_equilibrium_is_where_the_released_loop_goes(self, vector):
        sample = self.sample_of(vector)
        values, end = DadaFree()(sample)[0, 0], vector["after_9024"]
        before = vector["after_100"]
        known = sample.source[sample.source_mask]
        spread = known.max() - known.min()
        assert (values - end).abs().mean() < 0.2 * (before - end).abs().mean() + 1e-3 * spread

    def test_the_source_is_met(self):
        sample = scene(holes=0.2)
        misfit = (down(DadaFree()(sample), (6, 8)) - sample.source)[sample.source_mask]
        assert misfit.abs().max() < 1e-5

    def test_the_released_loop_lifts_a_batch_together(self):
        high, low = scene(offset=0.2), scene(offset=-0.05)
        lifted = replace(high, source=high.source + 0.1, initial=high.initial + 0.1)
        assert high.source.min() > 0.1 >= low.source.min()
        loop = DadaFree(method="iterate", steps=100)
        both = loop(Sample.batch([high, low]))
        torch.testing.assert_close(both[:1], loop(lifted) - 0.1, rtol=0, atol=1e-6)
        assert (both[:1] - loop(high)).abs().max() > 1e-4

    def test_values_below_zero_are_adjusted_by_addition(self):
        low, high = scene(offset=-0.5), scene(offset=2.0)
        both = DadaFree()(Sample.batch([low, high]))
        torch.testing.assert_close(down(both[:1], (6, 8)), low.source, rtol=0, atol=1e-5)
        torch.testing.assert_close(both[1:], DadaFree()(high), rtol=0, atol=0)

    def test_settings_are_checked(self):
        with pytest.raises(ValueError, match='"equilibrium" or "iterate"'):
            DadaFree(method="loop")


class TestOpencv:
    @pytest.mark.parametrize("method", OPENCV, ids=name)
    def test_without_the_contrib_modules_it_says_what_to_install(self, method, monkeypatch):
        monkeypatch.setitem(sys.modules, "cv2", ModuleType("cv2"))
        with pytest.raises(InputError, match=r'pip install "dada-sr\[opencv-contrib\]"'):
            method(scene())
