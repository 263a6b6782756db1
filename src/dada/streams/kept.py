"""Coefficients of a frame, noted while a model makes them and given again for the frames that look the same."""

from __future__ import annotations

from dataclasses import dataclass, field

from dada.diffusion import Coefficients
from dada.models.model import Guidance, HalfPrecision, Model, Round, TrainedAdjust, data_unit_of, half_precision_of
from dada.sample import DataUnit, Sample


@dataclass(frozen=True)
class Noted:
    """A model, and the coefficients that it made for the last problem.

    Attributes:
        model: that makes them.
        made: of each round.
    """

    model: Model
    made: list[Coefficients] = field(default_factory=list)

    @property
    def name(self) -> str:
        """That of the model."""
        return self.model.name

    @property
    def rounds(self) -> int:
        """Those of the model."""
        return self.model.rounds

    @property
    def adjust(self) -> TrainedAdjust:
        """That of the model."""
        return self.model.adjust

    @property
    def data_unit(self) -> DataUnit | None:
        """That of the model."""
        return data_unit_of(self.model)

    @property
    def half_precision(self) -> HalfPrecision:
        """That of the model."""
        return half_precision_of(self.model)

    def prepare(self, sample: Sample) -> Guidance:
        """That of the model; what was noted of an earlier problem is forgotten."""
        self.made.clear()
        return _Noting(self.model.prepare(sample), self.made)


@dataclass(frozen=True)
class _Noting:
    guidance: Guidance
    made: list[Coefficients]

    def coefficients(self, before: Round | None = None) -> Coefficients:
        """See `dada.models.model.Guidance`."""
        self.made.append(self.guidance.coefficients(before))
        return self.made[-1]


@dataclass(frozen=True)
class Kept:
    """A model that looks at nothing and gives the coefficients of an earlier frame.

    Attributes:
        name: of the model that made them.
        adjust: what that was trained with.
        data_unit: in which it needs its source.
        made: what it made.
    """

    name: str
    adjust: TrainedAdjust
    data_unit: DataUnit | None
    made: tuple[Coefficients, ...]

    @classmethod
    def of(cls, noted: Noted, uncertain: bool) -> Kept:
        """Keep what the solution depends on: the last round; of uncertain cells all, as the first settles them."""
        made = noted.made if uncertain else noted.made[-1:]
        return cls(noted.name, noted.adjust, noted.data_unit, tuple(made))

    @property
    def rounds(self) -> int:
        """How many are kept."""
        return len(self.made)

    def prepare(self, sample: Sample) -> Kept:
        """Nothing is left to compute."""
        return self

    def coefficients(self, before: Round | None = None) -> Coefficients:
        """See `dada.models.model.Guidance`."""
        return self.made[0 if before is None else before.number + 1]
