"""Problems in the user's unit, and the same in numbers near 1, in which they are solved."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from dada.diffusion import down, up
from dada.diffusion.measurement import Adjust
from dada.errors import InputError
from dada.sample import DataUnit, Interpolation, Sample, bicubic, deviation, initialise


@dataclass(frozen=True)
class Problem:
    """A batch of problems of one size.

    Attributes:
        guide: [B, C, H, W] float32 in 0..1.
        source: [B, 1, h, w] of any unit; 0 where there is no measurement.
        valid: [B, 1, h, w] bool, cells with one. Each image has some.
        weight: [B, 1, h, w], of the source's dtype, how firmly each valid cell is held, infinite: exactly; None: all
            of them are exact.
        unit: what 1.0 of the source stands for, in millimetres; None: not known.
    """

    guide: Tensor
    source: Tensor
    valid: Tensor
    weight: Tensor | None = None
    unit: float | None = None

    def __len__(self) -> int:
        return self.source.shape[0]

    def __getitem__(self, images: list[int]) -> Problem:
        """Some of the batch."""
        if len(images) == len(self):
            return self
        weight = None if self.weight is None else self.weight[images]
        return Problem(self.guide[images], self.source[images], self.valid[images], weight, self.unit)

    @property
    def size(self) -> tuple[int, int]:
        """H, W."""
        return self.guide.shape[-2], self.guide.shape[-1]

    @property
    def cells(self) -> tuple[int, int]:
        """h, w."""
        return self.source.shape[-2], self.source.shape[-1]

    @property
    def exact(self) -> Tensor:
        """[B, 1, h, w] bool, cells whose mean is the source's."""
        return self.valid if self.weight is None else self.valid & torch.isinf(self.weight)

    def ranges(self) -> list[tuple[float, float]]:
        """The least and the largest valid value of each source."""
        low = torch.where(self.valid, self.source, torch.inf).flatten(1).amin(dim=1)
        high = torch.where(self.valid, self.source, -torch.inf).flatten(1).amax(dim=1)
        return list(zip(low.tolist(), high.tolist(), strict=True))

    def initial(self, interpolation: Interpolation = "torch") -> Tensor:
        """[B, 1, H, W], the source interpolated.

        Args:
            interpolation: "clough-tocher" is the paper's (`dada.sample.initialise`), for exact cells; uncertain ones
                are drawn to their neighbours before.
        """
        if interpolation == "clough-tocher" and self.weight is None:
            return initialise(self.source, self.valid, self.size, interpolation)
        return bicubic(self.source, self.valid, self.size, self.weight)

    def sample(self, initial: Tensor) -> Sample:
        """What models and methods see of it."""
        return Sample(self.guide, self.source.float(), self.valid, initial.float(), unit=self.unit or 1.0)

    def to(self, dtype: torch.dtype) -> Problem:
        """The same in another type of numbers."""
        weight = None if self.weight is None else self.weight.to(dtype)
        return replace(self, source=self.source.to(dtype), weight=weight)

    def met(self, values: Tensor, adjust: Adjust) -> Tensor:
        """Bring values [B, 1, H, W] to the source's type, and by Eq. 3 exact cells to all of its digits."""
        if values.dtype == self.source.dtype:
            return values
        fine = values.double()
        mean = down(fine, self.cells)
        if adjust == "ratio":
            fine = fine * up(torch.where(self.exact, self.source / mean, 1), self.size)
        else:
            fine = fine + up(torch.where(self.exact, self.source - mean, 0), self.size)
        return fine.to(self.source.dtype)

    def settled(self, values: Tensor) -> Problem:
        """The same with uncertain cells held to the mean that a first solution [B, 1, H, W] gave them.

        Coefficients that depend on a result would take the misfit of such a cell for an edge, and keep it.
        """
        if self.weight is None:
            return self
        uncertain = self.valid & torch.isfinite(self.weight)
        return replace(self, source=torch.where(uncertain, down(values, self.cells), self.source), weight=None)


@dataclass(frozen=True)
class Scaled:
    """A problem in numbers near 1, whatever its unit: (source - offset) / unit.

    Attributes:
        problem: with the scaled source.
        offset: [B, 1, 1, 1].
        unit: [B, 1, 1, 1], powers of 2, which are exact to undo; or the unit of a data set.
    """

    problem: Problem
    offset: Tensor
    unit: Tensor

    @classmethod
    def of(cls, problem: Problem, adjust: Adjust) -> Scaled:
        """Scale a problem; only shift is free to move the zero.

        Raises:
            InputError: the values range too far to be computed with.
        """
        offsets, units = [], []
        for source, valid in zip(problem.source, problem.valid, strict=True):
            measured = source[valid].double()
            offset = float(measured.mean().to(source.dtype)) if adjust == "shift" else 0.0
            largest = (measured - offset).abs().max()
            if not bool(torch.isfinite(largest)):
                raise InputError(too_extreme(measured))
            offsets.append(offset)
            units.append(float(2.0 ** largest.log2().floor()) if largest > 0 else 1.0)
        zero, unit = (problem.source.new_tensor(v)[:, None, None, None] for v in (offsets, units))
        source = torch.where(problem.valid, (problem.source - zero) / unit, 0)
        return cls(replace(problem, source=source, unit=None), zero, unit)

    @classmethod
    def of_data_set(cls, problem: Problem, wanted: DataUnit, lift: float = 0.0) -> Scaled:
        """Scale a problem to the unit of a data set, as the paper's code does, without a shift of the zero.

        Where that unit or the problem's own is not known, the standard deviation of each source stands for it.

        Args:
            problem: what to scale.
            wanted: mean and deviation of the data set.
            lift: where some cell is at or below this, also one without a measurement (which holds 0), all are lifted by
                it, in the unit of the data set.
        """
        known = wanted.deviation if wanted.deviation and problem.unit else None
        if known and problem.unit:
            unit = torch.full_like(problem.source[:, :, :1, :1], known / problem.unit)
        else:
            unit = deviation(problem.source, problem.valid).to(problem.source)
            unit = torch.where(unit > 0, unit, 1.0)
        low = torch.where(problem.valid, problem.source, 0).amin(dim=(-2, -1), keepdim=True) <= lift * unit
        offset = torch.where(low, -lift * unit, 0.0)
        source = torch.where(problem.valid, (problem.source - offset) / unit, 0)
        return cls(replace(problem, source=source, unit=known), offset, unit)

    def unscaled(self, values: Tensor) -> Tensor:
        """[B, 1, H, W] in numbers near 1 to the source's unit."""
        return values * self.unit + self.offset


def too_extreme(measured: Tensor) -> str:
    """What to say of a source whose values cannot be computed with."""
    return (
        f"the source ranges from {float(measured.min()):g} to {float(measured.max()):g}, too far to be computed with "
        "in its type. If such a value means no measurement, state it with invalid= (--invalid); if not, rescale the "
        "source."
    )
