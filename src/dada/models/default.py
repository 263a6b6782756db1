"""The model of `model="default"`: the network that comes with the package, or what needs none where it does not fit."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from dada.models.learning_free import Dynamic
from dada.models.memory import available_memory
from dada.models.model import Guidance, HalfPrecision, Model, TrainedAdjust
from dada.sample import Sample

if TYPE_CHECKING:
    from dada.models.dada import DADA

WEIGHTS = Path(__file__).parents[1] / "weights" / "learned.safetensors"
NETWORK_BYTES = 900  # for a target pixel, at the peak
FAST_ROUNDS = 2


@lru_cache(maxsize=1)
def learned() -> DADA:
    """Return the network that comes with the package; docs/results/model-card.md tells of it."""
    from dada.models.dada import DADA

    network = DADA.load(WEIGHTS)
    network.name, network.half_precision = "learned", "usual"
    return network


@lru_cache(maxsize=1)
def fast() -> DADA:
    """Return the same network without its last round, for streams and large images; the model card compares both."""
    network = learned().first_rounds(FAST_ROUNDS)
    network.name, network.half_precision = "fast", "usual"
    return network


@dataclass(frozen=True)
class ThreeBands:
    """The network on three bands of a guide that has two, or more than three; see `three_bands`.

    Attributes:
        network: that takes three.
    """

    network: DADA

    @property
    def half_precision(self) -> HalfPrecision:
        """That of the network."""
        return self.network.half_precision

    @property
    def name(self) -> str:
        """That of the network."""
        return self.network.name

    @property
    def rounds(self) -> int:
        """Those of the network."""
        return self.network.rounds

    @property
    def adjust(self) -> TrainedAdjust:
        """That of the network."""
        return self.network.adjust

    def prepare(self, sample: Sample) -> Guidance:
        """That of the network on fewer bands. See `dada.models.model.Model`."""
        return self.network.prepare(replace(sample, guide=three_bands(sample.guide)))


def three_bands(guide: Tensor) -> Tensor:
    """Three bands of [B, C, H, W]: the first three; of two bands both and their mean.

    On canopy heights with four bands this leaves less of bicubic's error than `dynamic` on all of them, other three of
    them, or their principal components; docs/results/model-card.md has the numbers.
    """
    return guide[:, :3] if guide.shape[1] > 2 else torch.cat([guide, guide.mean(dim=1, keepdim=True)], dim=1)


def bands_used(model: object, bands: Any) -> Any:
    """Those of [C, H, W] that the model looks at, before they are brought to one range: others shall not change it."""
    return bands[:3] if isinstance(model, ThreeBands) else bands


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
    def half_precision(self) -> HalfPrecision:
        """That of the network."""
        return self.network.half_precision

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

    def suited(self, bands: int, size: tuple[int, int]) -> tuple[DADA | ThreeBands | Dynamic, str]:
        """Return the model for a guide of so many bands and a target of H x W; if not all of it is used, also why."""
        need, there = NETWORK_BYTES * size[0] * size[1], available_memory()
        if there is not None and need > there:
            why = f"the learned model needs {need / 1e9:.1f} GB of memory, {there / 1e9:.1f} are there"
            return self.otherwise, f"model {self.otherwise.name} was used, which learned nothing: {why}"
        if bands in self.network.takes:
            return self.network, ""
        used = "both and their mean" if bands == 2 else "the first three (--model dynamic uses all)"
        return ThreeBands(self.network), f"the guide has {bands} bands, and the learned model uses {used}"


def suited_to(model: Model, bands: int, size: tuple[int, int]) -> tuple[Model, str]:
    """Return the model itself, or of the default what suits the problem, and why; see `Default.suited`."""
    return model.suited(bands, size) if isinstance(model, Default) else (model, "")
