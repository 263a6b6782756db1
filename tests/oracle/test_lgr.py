"""The graph regulariser without a network: affinities, the authors' solver, and the minimum of its energy."""

import pytest
import torch

from dada.baselines import lgr_solver
from dada.baselines.lgr import LgrFree, affinities, regularised
from dada.diffusion import down
from dada.features.standardising import standardise

from .vectors import load, relative, sample_of

NAMES = ("chair_x4", "plant_mu05_x8")


@pytest.fixture(params=NAMES)
def vector(request):
    return load(f"lgr_free_{request.param}")


def edges_of(vector, dtype=torch.float32):
    sample = sample_of(vector, dtype)
    return affinities(torch.cat([standardise(sample.guide), sample.initial], dim=1), 0.01, float(vector["mu"]))


def energy(image, vector) -> float:
    """|block means - source|^2 + the sum over edges of affinity times squared difference, about the centre."""
    x, source = image.double(), vector["source"].double() - vector["centre"].double()
    vertical, horizontal = vector["affinity_vertical"].double(), vector["affinity_horizontal"].double()
    smooth = (vertical * x.diff(dim=0).square()).sum() + (horizontal * x.diff(dim=1).square()).sum()
    return float((down(x, source.shape) - source).square().sum() + smooth)


def test_affinities(vector):
    edges = edges_of(vector)
    torch.testing.assert_close(edges.vertical[0], vector["affinity_vertical"], rtol=0, atol=1e-8)
    torch.testing.assert_close(edges.horizontal[0], vector["affinity_horizontal"], rtol=0, atol=1e-8)


def test_the_authors_solver_gives_their_image_in_as_many_iterations(vector):
    sample = sample_of(vector)
    values, iterations = lgr_solver.solve(sample.source - vector["centre"], sample.source_mask, edges_of(vector))
    assert abs(iterations - int(vector["cg_iterations"])) <= 2
    assert relative(values[0, 0], vector["result_centred"]) < 1e-2


def test_the_bench_runs_the_authors_solver(vector):
    values = LgrFree(mu=float(vector["mu"]))(sample_of(vector))[0, 0] - vector["centre"]
    assert relative(values, vector["result_centred"]) < 1e-2


def test_our_solver_reaches_the_minimum():
    vector = load("lgr_free_plant_mu05_x8")
    values = regularised(sample_of(vector, torch.float64), edges_of(vector, torch.float64), tolerance=1e-9)[0, 0]
    assert relative(values - vector["centre"], vector["exact_centred"]) < 1e-5


def test_our_solver_copes_with_affinities_that_float32_rounds_to_nothing():
    vector = load("lgr_free_chair_x4")
    assert int((vector["affinity_vertical"] == 0).sum()) > 0
    values = LgrFree(solver="equilibrium")(sample_of(vector))[0, 0] - vector["centre"]
    assert energy(values, vector) < energy(vector["result_centred"], vector)
