"""Facts about the coefficients of a result: what the model made of the guide."""

import numpy as np
import torch

import dada


def pair():
    guide = np.full((32, 48, 3), 40, np.uint8)
    guide[:, 24:] = 200
    return np.repeat([[1.0, 2.0]], 4, axis=0).repeat(3, axis=1).astype(np.float32), guide


def test_coefficients_are_small_across_an_edge_of_the_guide():
    source, guide = pair()
    vertical, horizontal = dada.upsample(source, guide, model="none").coefficients
    assert (vertical.shape, horizontal.shape) == ((31, 48), (32, 47))
    assert horizontal[:, 23].max() < 0.1 * np.median(horizontal)


def test_they_are_of_the_sources_kind():
    source, guide = pair()
    result = dada.upsample(torch.from_numpy(source), torch.from_numpy(guide).movedim(-1, 0), model="none")
    assert all(isinstance(part, torch.Tensor) for part in result.coefficients)


def test_a_method_that_solves_for_nothing_has_none():
    assert dada.upsample(*pair(), model="gf").coefficients is None
