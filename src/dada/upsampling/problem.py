"""Problems in the user's unit, and the same in numbers near 1, in which they are solved."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from dada.diffusion import Blocks, partition
from dada.diffusion.blocks import block_mean, spread
from dada.diffusion.measurement import Adjust
from dada.errors import InputError
from dada.sample import DataUnit, Interpolation, Sample, Whole, bicubic, deviation, initialise


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
        whole: of the image that this is a tile of, if it is one.
        blocks: which pixels each cell covers; `partition` of the two sizes where not given.
        interpolated: [B, 1, H, W], the source of the whole image interpolated, where this is a tile.
    """

    guide: Tensor
    source: Tensor
    valid: Tensor
    weight: Tensor | None = None
    unit: float | None = None
    whole: Whole | None = None
    blocks: Blocks | None = None
    interpolated: Tensor | None = None

    def __len__(self) -> int:
        return self.source.shape[0]

    def __getitem__(self, images: list[int]) -> Problem:
        """Some of the batch."""
        if len(images) == len(self):
            return self
        weight = None if self.weight is None else self.weight[images]
        interpolated = None if self.interpolated is None else self.interpolated[images]
        guide, source, valid = self.guide[images], self.source[images], self.valid[images]
        return Problem(guide, source, valid, weight, self.unit, self.whole, self.blocks, interpolated)

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
        """The least and the largest valid value of each source, or of the whole image where these are tiles."""
        if self.whole:
            return len(self) * [(self.whole.low, self.whole.high)]
        low = torch.where(self.valid, self.source, torch.inf).flatten(1).amin(dim=1)
        high = torch.where(self.valid, self.source, -torch.inf).flatten(1).amax(dim=1)
        return list(zip(low.tolist(), high.tolist(), strict=True))

    def initial(self, interpolation: Interpolation = "torch") -> Tensor:
        """[B, 1, H, W], the source interpolated.

        Args:
            interpolation: "clough-tocher" is the paper's (`dada.sample.initialise`), for exact cells; uncertain ones
                are drawn to their neighbours before. A tile has its own already.
        """
        if self.interpolated is not None:
            return self.interpolated
        if interpolation == "clough-tocher" and self.weight is None:
            return initialise(self.source, self.valid, self.size, interpolation)
        return bicubic(self.source, self.valid, self.size, self.weight)

    def sample(self, initial: Tensor) -> Sample:
        """What models and methods see of it."""
        source, start, unit = self.source.float(), initial.float(), self.unit or 1.0
        return Sample(self.guide, source, self.valid, start, unit=unit, whole=self.whole, blocks=self.blocks)

    def to(self, dtype: torch.dtype) -> Problem:
        """The same in another type of numbers."""
        weight = None if self.weight is None else self.weight.to(dtype)
        interpolated = None if self.interpolated is None else self.interpolated.to(dtype)
        return replace(self, source=self.source.to(dtype), weight=weight, interpolated=interpolated)

    def met(self, values: Tensor, adjust: Adjust) -> Tensor:
        """Bring values [B, 1, H, W] to the source's type, and by Eq. 3 exact cells to all of its digits."""
        if values.dtype == self.source.dtype:
            return values
        fine, blocks = values.double(), self.blocks or partition(self.cells, self.size)
        mean = block_mean(fine, blocks)
        if adjust == "ratio":
            fine = fine * spread(torch.where(self.exact, self.source / mean, 1), blocks)
        else:
            fine = fine + spread(torch.where(self.exact, self.source - mean, 0), blocks)
        return fine.to(self.source.dtype)

    def _scaled(self, source: Tensor, offset: Tensor, unit: Tensor) -> Problem:
        """The same of (v - offset) / unit, which the source already is."""
        whole, interpolated = self.whole, self.interpolated
        if whole:
            whole = whole.scaled(float(offset.flatten()[0]), float(unit.flatten()[0]))
        if interpolated is not None:
            interpolated = (interpolated - offset) / unit
        return replace(self, source=source, unit=None, whole=whole, interpolated=interpolated)

    def settled(self, values: Tensor) -> Problem:
        """The same with uncertain cells held to the mean that a first solution [B, 1, H, W] gave them.

        Coefficients that depend on a result would take the misfit of such a cell for an edge, and keep it.
        """
        if self.weight is None:
            return self
        uncertain = self.valid & torch.isfinite(self.weight)
        means = block_mean(values, self.blocks or partition(self.cells, self.size))
        return replace(self, source=torch.where(uncertain, means, self.source), weight=None)


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
        whole = problem.whole
        for source, valid in zip(problem.source, problem.valid, strict=True):
            measured = source.new_tensor([whole.low, whole.high]).double() if whole else source[valid].double()
            mean = measured.new_tensor(whole.mean) if whole else measured.mean()
            offset = float(mean.to(source.dtype)) if adjust == "shift" else 0.0
            largest = (measured - offset).abs().max()
            if not bool(torch.isfinite(largest)):
                raise InputError(too_extreme(measured))
            offsets.append(offset)
            units.append(float(2.0 ** largest.log2().floor()) if largest > 0 else 1.0)
        zero, unit = (problem.source.new_tensor(v)[:, None, None, None] for v in (offsets, units))
        source = torch.where(problem.valid, (problem.source - zero) / unit, 0)
        return cls(problem._scaled(source, zero, unit), zero, unit)

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
            if problem.whole:
                unit = torch.full_like(unit, problem.whole.deviation)
            unit = torch.where(unit > 0, unit, 1.0)
        least = torch.where(problem.valid, problem.source, 0).amin(dim=(-2, -1), keepdim=True)
        if problem.whole:
            least = torch.full_like(least, problem.whole.low)
        offset = torch.where(least <= lift * unit, -lift * unit, 0.0)
        source = torch.where(problem.valid, (problem.source - offset) / unit, 0)
        return cls(replace(problem._scaled(source, offset, unit), unit=known), offset, unit)

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
