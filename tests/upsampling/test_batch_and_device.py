"""Several images in one call, where they are computed, and in which precision."""

import numpy as np
import pytest
import torch

import dada
from dada.diffusion import down, equilibrium, system
from dada.diffusion.torch_backend import TorchBackend
from dada.errors import InputError
from dada.models.default import learned
from dada.upsampling import solver
from dada.upsampling.result import UpsampleWarning

pytestmark = pytest.mark.filterwarnings("ignore::dada.upsampling.result.UpsampleWarning")
RNG = np.random.default_rng(0)
SOURCES = (1 + RNG.random((3, 5, 6))).astype(np.float32)
GUIDES = RNG.integers(0, 255, (3, 20, 24, 3), dtype=np.uint8)


def block_means(values, shape):
    """In float64."""
    return down(torch.from_numpy(values).double(), shape).numpy()


# ---- batches


@pytest.mark.parametrize("model", ["none", "learned"])
def test_each_image_of_a_batch_is_as_it_would_be_alone(model):
    mask = np.ones((3, 5, 6), bool)
    mask[1, 2, 2] = False
    confidence = np.full((5, 6), 0.9)  # one for all
    batch = dada.upsample(SOURCES, GUIDES, model=model, mask=mask, confidence=confidence)
    assert batch.values.shape == batch.valid.shape == (3, 20, 24)
    for i in range(3):
        alone = dada.upsample(SOURCES[i], GUIDES[i], model=model, mask=mask[i], confidence=confidence)
        np.testing.assert_array_equal(batch.values[i], alone.values)
        np.testing.assert_array_equal(batch.valid[i], alone.valid)
        assert batch.reports[i].residual == alone.report.residual
    assert batch.report.invalid_cells == 1
    assert batch.report.invalid_pixels == 16
    assert batch.report.residual == max(report.residual for report in batch.reports)


def test_tensors_keep_the_dimension_of_their_channel():
    sources, guides = torch.from_numpy(SOURCES)[:, None], torch.from_numpy(GUIDES).permute(0, 3, 1, 2)
    batch = dada.upsample(sources, guides, model="none")
    assert batch.values.shape == (3, 1, 20, 24)
    assert batch.values.dtype == torch.float32
    expected = dada.upsample(SOURCES, GUIDES, model="none").values
    np.testing.assert_array_equal(batch.values[:, 0].numpy(), expected)
    assert batch.report.consistency_max < 1e-6


def test_warnings_name_the_image():
    sources = SOURCES.copy()
    sources[2, 0, 0] = np.inf
    with pytest.warns(UpsampleWarning, match="image 2: 1 source cells are infinite") as caught:
        result = dada.upsample(sources, GUIDES, model="none")
    assert caught[0].filename == __file__
    assert result.report.warnings[0].startswith("image 2: ")
    with pytest.warns(UpsampleWarning) as caught:
        dada.upsample(sources[2], GUIDES[2], model="none")
    assert caught[0].filename == __file__


@pytest.mark.parametrize("source", [SOURCES[:2], SOURCES[0], np.ones((3, 2, 5, 6), np.float32)])
def test_a_batch_needs_as_many_sources_as_guides(source):
    with pytest.raises(InputError, match="as many sources as guides"):
        dada.upsample(source, GUIDES, model="none")


def test_a_mistake_names_the_image():
    sources = SOURCES.copy()
    sources[1] = np.nan
    with pytest.raises(InputError, match="image 1 of the batch: the source holds nothing but NaN"):
        dada.upsample(sources, GUIDES, model="none", mask=np.ones((5, 6), bool).tolist())


# ---- devices


@pytest.mark.parametrize("device", ["cuda:99", "meta", "abacus", ""])
def test_a_device_that_cannot_compute_is_refused(device):
    with pytest.raises(InputError, match=r"cannot be used: .* Use cpu"):
        dada.upsample(SOURCES[0], GUIDES[0], model="none", device=device)


@pytest.mark.parametrize("device", ["cpu", torch.device("cpu"), "cpu:0"])
def test_the_device_may_be_named(device):
    expected = dada.upsample(SOURCES[0], GUIDES[0], model="learned").values
    np.testing.assert_array_equal(dada.upsample(SOURCES[0], GUIDES[0], model="learned", device=device).values, expected)


def test_what_runs_on_other_devices_gives_the_same(monkeypatch):
    """The solver in plain torch operations, as on any device but the CPU, with the network and its rounds."""
    tensors = torch.from_numpy(SOURCES[0]), torch.from_numpy(GUIDES[0]).permute(2, 0, 1)
    compiled = dada.upsample(*tensors, model="learned", tolerance=1e-5)
    monkeypatch.setattr(system, "backend_of", lambda tensor: TorchBackend)
    plain = dada.upsample(*tensors, model="learned", tolerance=1e-5)
    torch.testing.assert_close(plain.values, compiled.values, rtol=0, atol=1e-4)
    assert plain.report.consistency_max < 1e-6


def test_a_network_elsewhere_is_copied_and_stays_where_it_is():
    from dada.upsampling.device import on_device

    network = learned()
    assert on_device(network, torch.device("cpu")) is network
    moved = on_device(network, torch.device("meta"))
    assert {weight.device.type for weight in moved.parameters()} == {"meta"}
    assert {weight.device.type for weight in network.parameters()} == {"cpu"}
    assert moved.name == "learned"


# ---- precision


@pytest.fixture
def solved_in(monkeypatch):
    """The types in which equilibria are computed."""
    kinds = []

    def spy(source, *arguments, **options):
        kinds.append(source.dtype)
        return equilibrium(source, *arguments, **options)

    monkeypatch.setattr(solver, "equilibrium", spy)
    return kinds


@pytest.mark.parametrize("adjust", ["ratio", "shift", "auto"])
def test_float64_is_solved_in_float32_and_met_to_all_its_digits(adjust, solved_in):
    source = SOURCES[0].astype(np.float64) + 1e-9 * RNG.random((5, 6))
    result = dada.upsample(source, GUIDES[0], model="none", adjust=adjust)
    assert set(solved_in) == {torch.float32}
    assert result.values.dtype == np.float64
    assert np.abs(block_means(result.values, source.shape) - source).max() < 1e-14
    assert result.report.consistency_max < 1e-14
    exact = dada.upsample(source, GUIDES[0], model="none", adjust=adjust, precision="float64", tolerance=1e-5)
    assert solved_in[-1] == torch.float64
    assert np.abs(result.values - exact.values).max() < 1e-3
    assert exact.report.consistency_max < 1e-14


def test_soft_cells_are_left_where_the_solver_put_them():
    source, confidence = SOURCES[0].astype(np.float64), np.full((5, 6), 0.5)
    confidence[0] = 1
    found = dada.upsample(source, GUIDES[0], model="none", adjust="shift", confidence=confidence)
    exact = dada.upsample(
        source, GUIDES[0], model="none", adjust="shift", confidence=confidence, precision="float64", tolerance=1e-6
    )
    assert np.abs(found.values - exact.values).max() < 2e-3
    assert found.report.consistency_max < 1e-14
    assert np.abs(block_means(found.values, source.shape) - source)[1:].max() > 1e-3


@pytest.mark.parametrize("options", [{"precision": "float64"}, {"tolerance": 1e-8}, {"adjust": "ratio"}])
def test_float64_is_used_where_it_is_asked_for_or_needed(options, solved_in):
    narrow = 1e6 + SOURCES[0].astype(np.float64)
    result = dada.upsample(narrow, GUIDES[0], model="none", **options)
    assert set(solved_in) == {torch.float64}
    assert result.report.consistency_max < 1e-9


def test_a_float32_source_may_be_solved_in_float64(solved_in):
    result = dada.upsample(SOURCES[0], GUIDES[0], model="none", precision="float64")
    assert set(solved_in) == {torch.float64}
    assert result.values.dtype == np.float32
    with pytest.raises(InputError, match="Use auto, bfloat16, float32 or float64"):
        dada.upsample(SOURCES[0], GUIDES[0], precision="half")


def test_half_precision_in_half_precision_out():
    for dtype in (torch.float16, torch.bfloat16):
        result = dada.upsample(torch.from_numpy(SOURCES[0]).to(dtype), torch.from_numpy(GUIDES[0]).permute(2, 0, 1))
        assert result.values.dtype == dtype
        assert torch.isfinite(result.values).all()


def test_under_autocast_the_promise_stands():
    with torch.autocast("cpu", torch.bfloat16):
        result = dada.upsample(SOURCES[0], GUIDES[0])
    assert result.report.consistency_max < 1e-6
