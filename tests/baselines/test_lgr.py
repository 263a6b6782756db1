"""LGR: the energy it minimises, its authors' solver, the gradients of what it learns, and its files."""

import math
from dataclasses import replace
from importlib.util import find_spec

import pytest
import torch

from dada.baselines import lgr_solver
from dada.baselines.lgr import Lgr, LgrFree, affinities, regularised, solved
from dada.diffusion import Coefficients, down
from dada.errors import InputError
from dada.features.backbones import import_smp
from dada.features.standardising import standardise
from dada.sample import Sample

from .scenes import scene


@pytest.fixture
def network():
    torch.manual_seed(0)
    return Lgr("light", channels=8)


def energy(x: torch.Tensor, edges: Coefficients, sample: Sample) -> torch.Tensor:
    """|down(x) - s|^2 over the valid cells + x'Lx, written out."""
    misfit = (down(x, sample.source.shape[-2:]) - sample.source)[sample.source_mask]
    smooth = (edges.vertical * x[:, 0].diff(dim=-2).square()).sum()
    return misfit.square().sum() + smooth + (edges.horizontal * x[:, 0].diff(dim=-1).square()).sum()


@pytest.mark.parametrize("sizes", [((24, 32), (6, 8)), ((23, 31), (5, 7))])
def test_the_result_is_the_minimum_of_the_energy(sizes):
    sample = scene(*sizes, holes=0.2, dtype=torch.float64)
    edges = affinities(sample.guide, 0.3, 0.2)
    x = regularised(sample, edges).requires_grad_()
    least = energy(x, edges, sample)
    (slope,) = torch.autograd.grad(least, x)
    (start,) = torch.autograd.grad(energy(begin := sample.initial.requires_grad_(), edges, sample), begin)
    assert slope.norm() < 2e-3 * start.norm()
    generator = torch.Generator().manual_seed(0)
    for _ in range(5):
        nearby = x + 0.01 * torch.randn(x.shape, generator=generator, dtype=x.dtype)
        assert energy(nearby, edges, sample) > least


def test_affinities_fall_with_the_mean_squared_difference():
    features = torch.tensor([[[0.0, 0.3]], [[0.0, 0.1]]])[None]
    found = affinities(features, 2.0, 0.5).horizontal
    expected = 2 * torch.exp(torch.tensor(-(0.09 + 0.01) / 2 / (1e-6 + 0.25)))
    torch.testing.assert_close(found.squeeze(), expected)


def test_the_consistency_error_is_small_but_not_zero():
    sample = scene()
    misfit = (down(LgrFree()(sample), (6, 8)) - sample.source).square().mean()
    bicubic = (down(sample.initial, (6, 8)) - sample.source).square().mean()
    assert 1e-9 < misfit < 0.1 * bicubic


def test_a_larger_lambda_trusts_the_source_less():
    sample = scene()
    weak, firm = (down(LgrFree(strength=s)(sample), (6, 8)) - sample.source for s in (1.0, 0.01))
    assert weak.abs().mean() > 5 * firm.abs().mean()


def test_gradients_to_features_lambda_and_mu_are_those_of_differences():
    sample = scene((12, 15), (3, 4), dtype=torch.float64)
    probe = torch.rand(1, 1, 12, 15, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    features, log_lambda, log_mu = sample.guide, torch.tensor(-1.0).double(), torch.tensor(-1.0).double()
    inputs = [t.clone().requires_grad_() for t in (features, log_lambda, log_mu)]

    def loss(features, log_lambda, log_mu):
        return (
            regularised(sample, affinities(features, log_lambda.exp(), log_mu.exp()), tolerance=1e-10) * probe
        ).sum()

    gradients = torch.autograd.grad(loss(*inputs), inputs)
    for index, gradient in enumerate(gradients):
        direction = torch.randn(gradient.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
        ahead, behind = ([t.detach().clone() for t in inputs] for _ in range(2))
        ahead[index] += 1e-5 * direction
        behind[index] -= 1e-5 * direction
        expected = (loss(*ahead) - loss(*behind)) / 2e-5
        assert (gradient * direction).sum().item() == pytest.approx(expected.item(), rel=1e-4), f"input {index}"


class TestAuthorsSolver:
    """The oracle vectors have its numbers; here is what they do not show."""

    def test_it_is_the_default_and_ours_is_an_option(self):
        sample = scene((64, 64), (4, 4))
        edges = affinities(torch.cat([standardise(sample.guide), sample.initial], dim=1), 0.01, 0.1)
        theirs, ours = (LgrFree(solver=solver)(sample) for solver in ("authors", "equilibrium"))
        torch.testing.assert_close(ours, regularised(sample, edges), rtol=0, atol=0)
        assert torch.equal(LgrFree()(sample), theirs)
        assert not torch.equal(theirs, ours)
        with pytest.raises(ValueError, match="authors or equilibrium"):
            LgrFree(solver="direct")

    def test_images_of_a_batch_are_one_system(self):
        sample = scene((48, 64), (6, 8), batch=2)
        edges = affinities(sample.guide, 0.01, 0.1)
        both, count = lgr_solver.solve(sample.source - 2, sample.source_mask, edges)
        alone, own = lgr_solver.solve(
            sample.source[:1] - 2, sample.source_mask[:1], Coefficients(*(edge[:1] for edge in edges))
        )
        assert count != own
        assert not torch.equal(both[:1], alone)
        torch.testing.assert_close(both[:1], alone, rtol=0, atol=1e-2)

    def test_gradients_are_those_of_the_minimum(self):
        sample = scene((12, 15), (3, 4))
        probe = torch.rand(1, 1, 12, 15, generator=torch.Generator().manual_seed(0))

        def gradients(solver):
            features = sample.guide.clone().requires_grad_()
            values = solved(sample, affinities(features, 0.3, 0.3), 2.0, solver)
            return torch.autograd.grad((values * probe).sum(), features)[0]

        theirs, ours = gradients("authors"), gradients("equilibrium")
        assert (theirs - ours).norm() < 1e-2 * ours.norm()

    def test_pixels_without_any_affinity_stay_finite(self):
        sample = scene((24, 24), (3, 3))
        edges = affinities(1e4 * sample.guide, 0.01, 0.1)
        assert not bool(edges.vertical.any())
        assert bool(solved(sample, edges, 2.0, "authors").isfinite().all())
        assert bool(solved(sample, edges, 2.0, "equilibrium").isfinite().all())

    @pytest.mark.parametrize(("unit", "centre"), [(1122.7, 2296.78 / 1122.7), (1386.05, 2796.32 / 1386.05)])
    def test_it_begins_about_the_mean_of_the_data_set(self, unit, centre):
        sample = replace(scene(), unit=unit)
        edges = affinities(torch.cat([standardise(sample.guide), sample.initial], dim=1), 0.01, 0.1)
        assert torch.equal(LgrFree()(sample), solved(sample, edges, centre, "authors"))


class TestNetwork:
    @pytest.mark.parametrize("sizes", [((48, 64), (6, 8)), ((37, 53), (5, 7))])
    @pytest.mark.parametrize("bands", [1, 3, 5])
    def test_any_size_and_number_of_bands(self, network, sizes, bands):
        sample = scene(*sizes, bands=bands, batch=2, holes=0.1)
        values = network.eval()(sample)
        assert values.shape == sample.initial.shape
        assert values.isfinite().all()
        assert torch.equal(values, network(sample))

    def test_a_step_of_training_moves_every_parameter(self, network):
        sample = scene()
        (network(sample) - sample.target).abs().mean().backward()
        for key, parameter in network.named_parameters():
            assert parameter.grad is not None, key
            assert parameter.grad.isfinite().all(), key
        assert network.log_lambda.grad != 0
        assert network.log_mu.grad != 0

    def test_it_learns(self, network):
        sample = scene((32, 32), (4, 4), batch=2)
        optimiser = torch.optim.Adam(network.parameters(), lr=1e-2)
        losses = []
        for _ in range(25):
            loss = (network(sample) - sample.target).abs().mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
        assert losses[-1] < 0.6 * losses[0]

    def test_the_unit_does_not_matter_where_the_features_do_not_see_it(self, network):
        sample = scene()
        lifted = replace(sample, source=sample.source + 50, initial=sample.initial + 50)
        torch.testing.assert_close(network.eval()(lifted) - 50, network(sample), rtol=0, atol=2e-3)

    def test_it_starts_where_the_authors_do(self, network):
        torch.testing.assert_close(network.log_lambda.exp().item(), 1.0)
        torch.testing.assert_close(network.log_mu.exp().item(), 0.1)

    def test_two_bands_are_refused(self, network):
        with pytest.raises(InputError, match="2 bands"):
            network(scene(bands=2))

    def test_save_and_load(self, network, tmp_path):
        network.save(tmp_path / "lgr.safetensors")
        again = Lgr.load(tmp_path / "lgr.safetensors")
        sample = scene()
        assert torch.equal(again(sample), network.eval()(sample))

    def test_a_torch_state_dict_of_the_paper_s_network_loads(self, tmp_path):
        if find_spec("segmentation_models_pytorch") is None:
            pytest.skip("needs the extra backbones")
        torch.manual_seed(1)
        network = Lgr().eval()
        torch.save(network.state_dict(), tmp_path / "lgr.pt")
        sample = scene()
        assert torch.equal(Lgr.load(tmp_path / "lgr.pt")(sample), network(sample))

    def test_a_checkpoint_of_the_authors_loads_and_sees_what_theirs_saw(self, tmp_path):
        if find_spec("segmentation_models_pytorch") is None:
            pytest.skip("needs the extra backbones")
        smp = import_smp("unet-resnet50")
        torch.manual_seed(2)
        plain = smp.Unet("resnet50", encoder_weights=None, classes=64, in_channels=4).eval()
        state = {f"feature_extractor.{key}": value for key, value in plain.state_dict().items()}
        state |= {"log_lambda": torch.tensor([-1.0]), "log_mu": torch.tensor([-0.5])}
        torch.save({"model": state, "optimizer": {"lr": 1e-4}, "epoch": 3, "iter": 7}, tmp_path / "best_model.pth")
        network = Lgr.load(tmp_path / "best_model.pth")
        assert network.config == {
            "features": "unet-resnet50", "channels": 64, "centre": "dataset", "solver": "authors", "unit": 0, "mean": 0
        }  # fmt: skip

        sample = replace(scene((32, 32), (4, 4)), unit=1386.05)  # NYUv2's
        with torch.no_grad():
            seen = torch.cat([standardise(sample.guide), sample.initial - 2796.32 / 1386.05], dim=1)
            edges = affinities(plain(seen), math.exp(-1), math.exp(-0.5))
            expected = solved(sample, edges, 2796.32 / 1386.05, "authors")
            torch.testing.assert_close(network(sample), expected)
            network.save(tmp_path / "ours.safetensors")
            torch.testing.assert_close(Lgr.load(tmp_path / "ours.safetensors")(sample), expected)

    def test_a_file_of_something_else_is_refused(self, tmp_path):
        (tmp_path / "lgr.pt").write_bytes(b"not weights at all")
        with pytest.raises(InputError, match=r"lgr\.pt"):
            Lgr.load(tmp_path / "lgr.pt")
