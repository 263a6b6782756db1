"""DADA whose loop starts from a constant image instead of the bicubic one: an ablation of the paper."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from torch import Tensor

from dada.diffusion import Coefficients
from dada.models.dada import DADA
from dada.sample import Sample


class ConstantStart(DADA):
    """DADA whose Y0 is the mean of the bicubic image; its features still use that image.

    Its weights are those of a DADA, and are saved and read as such.
    """

    def _solve(self, sample: Sample, unit: Tensor, c: Coefficients, start: Tensor, *how: Any) -> Tensor:
        mean = start.mean(dim=(-2, -1), keepdim=True).expand_as(start).contiguous()
        return super()._solve(sample, unit, c, mean, *how)


def from_constant(network: DADA) -> ConstantStart:
    """Return the same network with a constant start."""
    changed = ConstantStart(replace(network.config, pretrained=False))  # its weights follow
    changed.load_state_dict(network.state_dict())
    return changed.train(network.training)
