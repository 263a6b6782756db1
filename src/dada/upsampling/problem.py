"""Problems in the user's unit, and the same in numbers near 1, in which they are solved."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from dada.diffusion import Blocks, partition
from dada.diffusion.blocks import block_mean
from dada.diffusion.measurement import Adjust
from dada.errors import InputError
from dada.sample import Sample, Whole, bicubic


@dataclass(frozen=True)
class Problem:
    """A batch of problems of one size.

    Attributes:
        guide: [B, C, H, W] float32 in 0..1.
        source: [B, 1, h, w] of any unit; 0 where there is no measurement.
        valid: [B, 1, h, w] bool, cells with one. Each image has some.
        weight: [B, 1, h, w], of the source's dtype, how firmly each valid cell is held, infinite: exactly; None: all
            of them are exact.
        whole: of the image that this is a tile of, if it is one.
        blocks: which pixels each cell covers; `partition` of the two sizes where not given.
        interpolated: [B, 1, H, W], the source of the whole image interpolated, where this is a tile.
    """

    guide: Tensor
    source: Tensor
    valid: Tensor
    weight: Tensor | None = None
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
        return Problem(guide, source, valid, weight, self.whole, self.blocks, interpolated)

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

    def initial(self) -> Tensor:
        """[B, 1, H, W], the source interpolated."""
        if self.interpolated is not None:
            return self.interpolated
        return bicubic(self.source, self.valid, self.size, self.weight)

    def sample(self, initial: Tensor) -> Sample:
        """What models and methods see of it."""
        source, start = self.source.float(), initial.float()
        return Sample(self.guide, source, self.valid, start, whole=self.whole, blocks=self.blocks)

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
    """A problem in numbers near 1, whatever its unit: (source - offset) / unit, both exact to undo.

    Attributes:
        problem: with the scaled source.
        offset: [B, 1, 1, 1].
        unit: [B, 1, 1, 1], powers of 2.
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
        scaled = replace(problem, source=source)
        if problem.whole:
            scaled = replace(scaled, whole=problem.whole.scaled(offsets[0], units[0]))
        if problem.interpolated is not None:
            scaled = replace(scaled, interpolated=(problem.interpolated - zero) / unit)
        return cls(scaled, zero, unit)

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
