"""Bicubic: what every guided method must beat, since it never looks at the guide."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from dada.sample import Sample, initialise


@dataclass(frozen=True)
class Bicubic:
    """The sample's initial image as it is: in the bench, Clough-Tocher over the valid cells, as in the paper.

    Attributes:
        name: what tables call it.
    """

    name: str = "Bicubic"

    def __call__(self, sample: Sample) -> Tensor:
        """Return [B, 1, H, W], see `dada.sample.Method`."""
        return sample.initial


@dataclass(frozen=True)
class Convolution:
    """Cubic convolution (Keys 1981), which is what image libraries call bicubic; holes are filled smoothly before.

    Attributes:
        name: what tables call it.
    """

    name: str = "Bicubic (torch)"

    def __call__(self, sample: Sample) -> Tensor:
        """Return [B, 1, H, W], see `dada.sample.Method`."""
        return initialise(sample.source, sample.source_mask, sample.size, "torch", sample.sampling)
