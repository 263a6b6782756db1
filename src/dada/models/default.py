"""The model of `model="default"`: the network that comes with the package, or what needs none where it does not fit."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from dada.models.learning_free import Dynamic
from dada.models.memory import available_memory
from dada.models.model import Guidance, Model, TrainedAdjust
from dada.sample import Sample

if TYPE_CHECKING:
    from dada.models.dada import DADA

WEIGHTS = Path(__file__).parents[1] / "weights" / "learned.safetensors"
NETWORK_BYTES = 900  # for a target pixel, at the peak


@lru_cache(maxsize=1)
def learned() -> DADA:
    """Return the network that comes with the package; docs/model-card.md tells of it."""
    from dada.models.dada import DADA

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

    @property
    def rounds(self) -> int:
        """Those of the network."""
        return self.network.rounds

    @property
    def adjust(self) -> TrainedAdjust:
        """That of the network."""
        return self.network.adjust

    def prepare(self, sample: Sample) -> Guidance:
        """That of the network; `suited` says where another model is better. See `dada.models.model.Model`."""
        return self.network.prepare(sample)

    def suited(self, bands: int, size: tuple[int, int]) -> tuple[DADA | Dynamic, str]:
        """Return the model for a guide of so many bands and a target of H x W; if not the network, also why."""
        wanted = self.network.config.bands
        if bands not in (1, wanted):
            return self.otherwise, f"the guide has {bands} bands, the learned model takes 1 or {wanted}"
        need, there = NETWORK_BYTES * size[0] * size[1], available_memory()
        if there is not None and need > there:
            return self.otherwise, f"the learned model needs {need / 1e9:.1f} GB of memory, {there / 1e9:.1f} are there"
        return self.network, ""


def suited_to(model: Model, bands: int, size: tuple[int, int]) -> tuple[Model, str]:
    """Return the model itself, or of the default what suits the problem, and why; see `Default.suited`."""
    return model.suited(bands, size) if isinstance(model, Default) else (model, "")
