"""Bicubic: what every guided method must beat, since it never looks at the guide."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from dada.sample import Sample


@dataclass(frozen=True)
class Bicubic:
    """The sample's initial image as it is (Keys 1981; here Clough-Tocher over the valid cells).

    Attributes:
        name: what tables call it.
    """

    name: str = "Bicubic"

    def __call__(self, sample: Sample) -> Tensor:
        """Return [B, 1, H, W], see `dada.sample.Method`."""
        return sample.initial
