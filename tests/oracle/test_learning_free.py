"""PixTransform, the static/dynamic filter and the guided filter."""

import numpy as np
import pytest
import torch

from dada.baselines.guided_filter import guided_filter
from dada.baselines.pixtransform import PixelNetwork, PixTransform
from dada.baselines.static_dynamic import StaticDynamic, centres, lab

from .vectors import entries, filled, load, relative, sample_of


class GivenStart(PixTransform):
    """With the weights and the order of the vector instead of those of a seed."""

    def _network(self, bands):
        network = PixelNetwork(bands).double()
        state = filled(entries("pixt_filled_chair_x8"), np.float64)
        own = network.state_dict()  # in the same order, without the sides of their 1 x 1 convolutions
        given = (value.reshape(own[key].shape) for key, value in zip(own, state.values(), strict=True))
        network.load_state_dict(dict(zip(own, given, strict=True)))
        return network

    def _draw(self, cells):
        order = load("pixt_filled_chair_x8")["order"].long()
        yield from (cells[batch] for one in order for batch in torch.split(one, self.batch))


def test_pixtransform_is_trained_as_the_authors_train_it():
    vector = load("pixt_filled_chair_x8")
    assert PixTransform().decay_head == 1e-4  # as in their notebook for depth; the vector has the default of their code
    values = GivenStart(iterations=64, decay_head=1e-3)(sample_of(vector, torch.float64))[0, 0]
    assert relative(values, vector["after_64"]) < 1e-6


@pytest.fixture(params=["basket_x8", "plant_x4"])
def static_dynamic(request):
    return load(f"sd_{request.param}")


def test_lab_is_the_authors(static_dynamic):
    found = lab(sample_of(static_dynamic, torch.float64).guide)[0]
    torch.testing.assert_close(found.float(), static_dynamic["lab"], rtol=0, atol=1e-4)


def test_a_measurement_stands_at_the_centre_of_its_cell(static_dynamic):
    marks = centres(static_dynamic["source"][None, None], tuple(static_dynamic["sparse"].shape))[0, 0]
    assert torch.equal(marks, static_dynamic["sparse"] > 0)
    torch.testing.assert_close(static_dynamic["sparse"][marks], static_dynamic["source"].flatten())


@pytest.mark.parametrize("rounds", [1, 5])
def test_the_static_dynamic_filter(static_dynamic, rounds):
    values = StaticDynamic(rounds=rounds)(sample_of(static_dynamic, torch.float64))[0, 0]
    assert relative(values, static_dynamic[f"after_{rounds}"]) < 1e-6


def test_the_guided_filter():
    vector = load("gf_basket_x8")
    sample = sample_of(vector)
    assert relative(guided_filter(sample.guide, sample.initial, 8, 1e-2)[0, 0], vector["out"]) < 1e-6
