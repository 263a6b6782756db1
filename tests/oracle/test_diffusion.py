"""The authors' own loop, without a network and on given features: coefficients, images and gradients."""

import math

import pytest
import torch

from dada.baselines.dada_free import DadaFree
from dada.datasets.crops import to_sample
from dada.datasets.pair import Pair
from dada.diffusion import Coefficients, coefficients, iterate
from dada.features.standardising import standardise

from .vectors import load, relative, sample_of

FREE = ("basket_x4", "basket_x8", "basket_x16", "chair_holes_x8")
GIVEN = ("chair_x8", "chair_holes_x8")


@pytest.fixture(params=FREE)
def free(request):
    return load(f"dada_free_{request.param}")


def test_source_and_bicubic_are_the_authors(free):
    factor = free["target"].shape[0] // free["source"].shape[0]
    made = to_sample(Pair(free["guide_uint8"].numpy(), free["target"].numpy(), "crop"), factor, 1.0)
    assert torch.equal(made.source_mask[0, 0], free["source_valid"] > 0)
    assert relative(made.source[0, 0], free["source"]) < 1e-6
    assert relative(made.initial[0, 0], free["bicubic"]) < 1e-6


def test_coefficients(free):
    sample = sample_of(free)
    c = coefficients(torch.cat([standardise(sample.guide), sample.initial], dim=1), 0.03, "mean_absolute")
    torch.testing.assert_close(c.vertical[0], free["cv"], rtol=0, atol=1e-5)
    torch.testing.assert_close(c.horizontal[0], free["ch"], rtol=0, atol=1e-5)


@pytest.mark.parametrize(("steps", "tolerance"), [(1, 1e-5), (100, 1e-5), (2000, 1e-4)])
def test_the_loop_without_a_network(free, steps, tolerance):
    values = DadaFree(method="iterate", steps=steps)(sample_of(free))[0, 0]
    assert relative(values, free[f"after_{steps}"]) < tolerance


def given_problem(name, dtype):
    """Source, start, mask and coefficients of given features, lifted as in the released code; and what to add back."""
    vector, features = load(f"dada_features_{name}"), load("dada_features_chair_x8")["features"][None].to(dtype)
    sample = sample_of(vector, dtype)
    features, logk = features.requires_grad_(), vector["logk"].to(dtype).requires_grad_()
    lift = 0.0 if sample.source_mask.all() else 0.1
    c = coefficients(features, logk.exp(), "mean_absolute")
    start = {"initial": sample.initial + lift, "mask": sample.source_mask, "epsilon": 1e-8}
    return vector, (features, logk), (sample.source + lift, c), start, lift


@pytest.mark.parametrize("name", GIVEN)
def test_the_loop_on_given_features(name):
    vector, _, problem, start, lift = given_problem(name, torch.float32)
    source, c = problem[0], Coefficients(*(edges.detach() for edges in problem[1]))
    if "cv" in vector:
        torch.testing.assert_close(c.vertical[0], vector["cv"], rtol=0, atol=1e-5)
        torch.testing.assert_close(c.horizontal[0], vector["ch"], rtol=0, atol=1e-5)
    assert relative(iterate(source, c, **start, steps=200).values[0, 0] - lift, vector["after_200"]) < 1e-5


@pytest.mark.parametrize("name", GIVEN)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-6), (torch.float32, 1e-5)])
def test_its_gradients(name, dtype, tolerance):
    vector, inputs, problem, start, lift = given_problem(name, dtype)
    values = iterate(*problem, **start, steps=50, grad_steps=50).values[0, 0] - lift
    valid = vector["target"].isfinite()
    l1 = (values - vector["target"])[valid].abs().mean()
    features, logk = torch.autograd.grad(l1, inputs)
    assert relative(values, vector["after_50"]) < tolerance
    assert math.isclose(l1.item(), vector["l1"].item(), rel_tol=tolerance)
    assert relative(features[0], vector["grad_features"]) < tolerance
    assert math.isclose(logk.item(), vector["grad_logk"].item(), rel_tol=tolerance)
