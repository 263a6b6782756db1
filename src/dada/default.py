"""The model of `model="default"`: the network that comes with the package, or what needs none where it does not fit."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from torch import Tensor

from dada.learning_free import Dynamic
from dada.memory import available_memory
from dada.sample import Sample, Solve

if TYPE_CHECKING:
    from dada.network import DADA

WEIGHTS = Path(__file__).parent / "weights" / "learned.safetensors"
NETWORK_BYTES = 900  # for a target pixel, at the peak


@lru_cache(maxsize=1)
def learned() -> DADA:
    """Return the network that comes with the package; docs/model-card.md tells of it."""
    from dada.network import DADA

    network = DADA.load(WEIGHTS)
    network.name = "learned"
    return network


@dataclass(frozen=True)
class Default:
    """Chooses for each problem.

    Attributes:
        network: what comes with the package.
        otherwise: what is used where the network does not fit.
        name: what tables call it.
    """

    network: DADA = field(default_factory=learned)
    otherwise: Dynamic = field(default_factory=Dynamic)
    name: str = "default"

    def diffuse(self, sample: Sample, solve: Solve) -> Tensor:
        """Solve with what suits the problem; see `dada.model.Model`."""
        return self.suited(sample.guide.shape[1], sample.size)[0].diffuse(sample, solve)

    def suited(self, bands: int, size: tuple[int, int]) -> tuple[DADA | Dynamic, str]:
        """Return the model for a guide of so many bands and a target of H x W; if not the network, also why."""
        wanted = self.network.config.bands
        if bands not in (1, wanted):
            return self.otherwise, f"the guide has {bands} bands, the learned model takes 1 or {wanted}"
        need, there = NETWORK_BYTES * size[0] * size[1], available_memory()
        if there is not None and need > there:
            return self.otherwise, f"the learned model needs {need / 1e9:.1f} GB of memory, {there / 1e9:.1f} are there"
        return self.network, ""
