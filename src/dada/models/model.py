"""What a model is: asked for coefficients, given the result, asked again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from torch import Tensor

from dada.diffusion import Coefficients
from dada.sample import DataUnit, Sample

TrainedAdjust = Literal["ratio", "shift", "auto"]
HalfPrecision = Literal["no", "asked", "usual"]

LIFT = 0.1  # units by which values near zero are lifted before ratios are taken, as in the released code


@dataclass(frozen=True)
class Round:
    """A solution, for the coefficients of the next one.

    Attributes:
        number: of the round, from 0.
        coefficients: that were solved for.
        result: [B, 1, H, W], what came out, in the unit of the sample.
    """

    number: int
    coefficients: Coefficients
    result: Tensor


class Guidance(Protocol):
    """A model on one problem: holds what does not depend on a result, such as the features of a network."""

    def coefficients(self, before: Round | None = None) -> Coefficients:
        """Return coefficients of the H x W target grid, given the round before; None: it is the first."""
        ...


@runtime_checkable
class Model(Protocol):
    """What `dada.upsample` needs to know of a model whose result the diffusion computes."""

    @property
    def name(self) -> str:
        """What reports call it."""
        ...

    @property
    def rounds(self) -> int:
        """How many solutions there are; from the second on, coefficients may depend on the one before."""
        ...

    @property
    def adjust(self) -> TrainedAdjust:
        """What it was trained with; "auto" where it does not matter."""
        ...

    def prepare(self, sample: Sample) -> Guidance:
        """Compute, once for each problem, what all rounds share."""
        ...


def half_precision_of(model: object) -> HalfPrecision:
    """Whether its networks may compute in bfloat16: its attribute `half_precision`, "no" for models without it.

    "asked": where that is asked for. "usual": also by default, since its errors were measured to be the same.
    """
    found: HalfPrecision = getattr(model, "half_precision", "no")
    return found


def data_unit_of(model: object) -> DataUnit | None:
    """The unit of a data set in which a model or method needs its source; None: any unit will do.

    A model states it as the attribute `data_unit`. Parts that are not known are 0.
    """
    unit: DataUnit | None = getattr(model, "data_unit", None)
    return unit
