"""The model of `model="default"`: the network that comes with the package, or what needs none where it does not fit."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from torch import Tensor

from dada.learning_free import Dynamic
from dada.memory import available_memory
from dada.sample import Sample, Solve

if TYPE_CHECKING:
    from dada.model import Model
    from dada.network import DADA

WEIGHTS = Path(__file__).parent / "weights" / "learned.safetensors"
BANDS = (1, 3)  # of guides that it takes
NETWORK_BYTES = 700  # for a target pixel, at the peak


class Default:
    """Chooses for each problem.

    Attributes:
        name: what tables call it.
    """

    name = "default"

    def diffuse(self, sample: Sample, solve: Solve) -> Tensor:
        """Solve with what suits the problem; see `dada.model.Model`."""
        return self.suited(sample.guide.shape[1], sample.size)[0].diffuse(sample, solve)

    def suited(self, bands: int, size: tuple[int, int]) -> tuple[Model, str]:
        """Return the model for a guide of so many bands and a target of H x W, and why it is not the network."""
        if bands not in BANDS:
            return Dynamic(), f"the learned model takes guides of 1 or 3 bands, this one has {bands}"
        need, there = NETWORK_BYTES * size[0] * size[1], available_memory()
        if there is not None and need > there:
            return Dynamic(), f"the learned model needs {need / 1e9:.1f} GB of memory, {there / 1e9:.1f} GB are there"
        return learned(), ""


@lru_cache(maxsize=1)
def learned() -> DADA:
    """The network that comes with the package."""
    from dada.network import DADA

    network = DADA.load(WEIGHTS)
    network.name = "learned"
    return network
