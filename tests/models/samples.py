"""Small problems for the tests of DADA."""

from dataclasses import replace

import torch
from torch import Tensor

from dada.diffusion import Coefficients
from dada.models.config import DadaConfig
from dada.models.dada import DADA
from dada.models.model import Round
from dada.sample import Sample, make_sample

SMALL = DadaConfig(features=8)


def random_sample(batch: int = 1, factor: int = 4, low: float = 1.0) -> Sample:
    """With a hole in the last image; 20 x 28."""
    valid = torch.ones(batch, 1, 20, 28, dtype=torch.bool)
    valid[-1, :, 4:12, 4:12] = False
    return make_sample(
        torch.rand(batch, 3, 20, 28), low + torch.rand(batch, 1, 20, 28), valid, factor, interpolation="torch"
    )


def opinionated(model: DADA) -> DADA:
    """The network with a refinement network that has something to say, where it has one."""
    if model.refinement:
        torch.nn.init.normal_(model.refinement.out.weight, std=0.01)
        torch.nn.init.normal_(model.refinement.pull.weight, std=0.1)
        torch.nn.init.normal_(model.refinement.context.out.weight, std=0.1)
    return model


def rounds_of(model: DADA, sample: Sample) -> list[tuple[Coefficients, Tensor]]:
    """The coefficients of every round and its result, if each added random numbers to the one before."""
    guidance, result, rounds = model.prepare(sample), sample.initial, []
    for number in range(model.rounds):
        c = guidance.coefficients(Round(number - 1, *rounds[-1]) if rounds else None)
        result = result + torch.rand(sample.size)
        rounds.append((c, result))
    return rounds


def cut(sample: Sample, size: int) -> Sample:
    """The middle of a sample at x8."""
    at = (sample.size[0] - size) // 16 * 8
    part = (..., slice(at, at + size), slice(at, at + size))
    return make_sample(sample.guide[part], sample.target[part], sample.target_mask[part], 8, interpolation="torch")


def double(sample: Sample) -> Sample:
    """The same in float64."""
    fields = ("guide", "source", "initial", "target")
    return replace(sample, **{name: getattr(sample, name).double() for name in fields})
