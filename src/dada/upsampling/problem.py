"""Problems in the user's unit, and the same in numbers near 1, in which they are solved."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from dada.diffusion import Blocks, down, partition
from dada.diffusion.blocks import block_mean, spread
from dada.diffusion.measurement import Adjust
from dada.errors import InputError
from dada.sample import MEAN, DataUnit, Interpolation, Sample, Sampling, Whole, bicubic, deviation, initialise

SPARE = 3  # cells a side for each point, among which points are spread
FAR = 96  # pixels from every point, from which on coarser grids pay
CORRECTIONS = 3  # of the interpolation of points


@dataclass(frozen=True)
class Points:
    """Measurements at single pixels of the target, for each image of a batch.

    Attributes:
        values: [B, 1, H, W] of any unit; 0 where there is none.
        measured: [B, 1, H, W] bool.
        weight: as that of `Problem`, for pixels.
    """

    values: Tensor
    measured: Tensor
    weight: Tensor | None = None

    def __getitem__(self, images: list[int]) -> Points:
        """Some of the batch."""
        weight = None if self.weight is None else self.weight[images]
        return Points(self.values[images], self.measured[images], weight)

    def to(self, dtype: torch.dtype) -> Points:
        """The same in another type of numbers."""
        return Points(self.values.to(dtype), self.measured, None if self.weight is None else self.weight.to(dtype))

    @property
    def exact(self) -> Tensor:
        """[B, 1, H, W] bool, pixels that keep their value."""
        return self.measured if self.weight is None else self.measured & torch.isinf(self.weight)

    @cached_property
    def sparse(self) -> bool:
        """Whether some pixel is far from every point, so that a solver needs coarser grids."""
        import cv2

        empty = (~self.measured[:, 0]).cpu().numpy().astype("uint8")
        return any(bool((cv2.distanceTransform(image, cv2.DIST_L2, 3) > FAR).any()) for image in empty)

    @cached_property
    def small_cells(self) -> tuple[int, int] | None:
        """Rows and columns of cells that mostly hold one point or none; None where points are dense or uncertain."""
        height, width = self.values.shape[-2:]
        side = int(math.sqrt(self.measured[:, 0].numel() / max(int(self.measured.sum()), 1)) / SPARE)
        if side < 2 or self.weight is not None:
            return None
        whole = [n for n in (side, side + 1, side - 1) if n > 1 and height % n == 0 and width % n == 0]
        side = whole[0] if whole else side  # blocks of one size are faster
        return max(1, height // side), max(1, width // side)

    def gathered(self, cells: tuple[int, int], left: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Mean of the points in each cell [B, 1, h, w] (or of what an image leaves of them), and cells with any."""
        values = self.values if left is None else self.values - left
        mean = down(values, cells, coverage=self.measured)
        known = torch.isfinite(mean)
        return torch.where(known, mean, 0), known


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
        sampling: how the source was made.
        points: what was measured, where that are single pixels instead of cells; the source is then their mean in
            each cell, which models look at and nothing is held to.
    """

    guide: Tensor
    source: Tensor
    valid: Tensor
    weight: Tensor | None = None
    unit: float | None = None
    whole: Whole | None = None
    blocks: Blocks | None = None
    interpolated: Tensor | None = None
    sampling: Sampling = MEAN
    points: Points | None = None

    def __len__(self) -> int:
        return self.source.shape[0]

    def __getitem__(self, images: list[int]) -> Problem:
        """Some of the batch."""
        if len(images) == len(self):
            return self
        weight = None if self.weight is None else self.weight[images]
        points = None if self.points is None else self.points[images]
        interpolated = None if self.interpolated is None else self.interpolated[images]
        guide, source, valid = self.guide[images], self.source[images], self.valid[images]
        return replace(
            self, guide=guide, source=source, valid=valid, weight=weight, interpolated=interpolated, points=points
        )

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
        """[B, 1, h, w] bool, cells whose measurement the result gives back."""
        return self.valid if self.weight is None else self.valid & torch.isinf(self.weight)

    def ranges(self) -> list[tuple[float, float]]:
        """The least and the largest valid value of each source, or of the whole image where these are tiles."""
        if self.whole:
            return len(self) * [(self.whole.low, self.whole.high)]
        source, valid = (self.source, self.valid) if self.points is None else (self.points.values, self.points.measured)
        low = torch.where(valid, source, torch.inf).flatten(1).amin(dim=1)
        high = torch.where(valid, source, -torch.inf).flatten(1).amax(dim=1)
        return list(zip(low.tolist(), high.tolist(), strict=True))

    def initial(self, interpolation: Interpolation = "torch") -> Tensor:
        """[B, 1, H, W], the source interpolated; points are met more and more closely.

        Args:
            interpolation: "clough-tocher" is the paper's (`dada.sample.initialise`), for exact cells; uncertain ones
                are drawn to their neighbours before. A tile has its own already.
        """
        if self.interpolated is not None:
            return self.interpolated
        if self.points is not None:
            return self._through(self.points)
        if interpolation == "clough-tocher" and self.weight is None:
            return initialise(self.source, self.valid, self.size, interpolation, self.sampling)
        return bicubic(self.source, self.valid, self.size, self.weight, self.sampling)

    def _through(self, points: Points) -> Tensor:
        """[B, 1, H, W], points interpolated."""
        image = bicubic(self.source, self.valid, self.size)
        for _ in range(CORRECTIONS):
            left, known = points.gathered(self.cells, image)
            image = image + bicubic(left, known, self.size)
        (low, high), *_ = self.ranges()
        return image.clamp(low, high) if len(self) == 1 else image

    def sample(self, initial: Tensor) -> Sample:
        """What models and methods see of it."""
        given = {"unit": self.unit or 1.0, "whole": self.whole, "blocks": self.blocks, "sampling": self.sampling}
        return Sample(self.guide, self.source.float(), self.valid, initial.float(), **given)  # type: ignore[arg-type]

    def to(self, dtype: torch.dtype) -> Problem:
        """The same in another type of numbers."""
        weight = None if self.weight is None else self.weight.to(dtype)
        interpolated = None if self.interpolated is None else self.interpolated.to(dtype)
        points = None if self.points is None else self.points.to(dtype)
        return replace(self, source=self.source.to(dtype), weight=weight, interpolated=interpolated, points=points)

    def met(self, values: Tensor, adjust: Adjust) -> Tensor:
        """Bring values [B, 1, H, W] to the source's type, and what is exact to all of its digits.

        Means by Eq. 3; points as they are. A resized source is met to the tolerance of its back-projection.
        """
        if values.dtype == self.source.dtype:
            return values
        if self.points is not None:
            points = self.points
            return torch.where(points.exact, points.values, values.to(points.values.dtype))
        if self.sampling.kind == "point":
            return self.sampling.placed(self.source, self.exact, values.to(self.source.dtype))
        if self.sampling.kind == "bicubic":
            return values.to(self.source.dtype)
        fine, blocks = values.double(), self.blocks or partition(self.cells, self.size)
        mean = block_mean(fine, blocks)
        if adjust == "ratio":
            fine = fine * spread(torch.where(self.exact, self.source / mean, 1), blocks)
        else:
            fine = fine + spread(torch.where(self.exact, self.source - mean, 0), blocks)
        return fine.to(self.source.dtype)

    def _scaled(self, source: Tensor, offset: Tensor, unit: Tensor) -> Problem:
        """The same of (v - offset) / unit, which the source already is."""
        whole, interpolated, points = self.whole, self.interpolated, self.points
        if whole:
            whole = whole.scaled(float(offset.flatten()[0]), float(unit.flatten()[0]))
        if interpolated is not None:
            interpolated = (interpolated - offset) / unit
        if points is not None:
            points = replace(points, values=torch.where(points.measured, (points.values - offset) / unit, 0))
        return replace(self, source=source, unit=None, whole=whole, interpolated=interpolated, points=points)

    def settled(self, values: Tensor) -> Problem:
        """The same with uncertain cells held to what a first solution [B, 1, H, W] gave them.

        Coefficients that depend on a result would take the misfit of such a cell for an edge, and keep it.
        """
        if self.points is not None and self.points.weight is not None:
            soft = self.points.measured & torch.isfinite(self.points.weight)
            held = torch.where(soft, values, self.points.values)
            return replace(self, points=Points(held, self.points.measured))
        if self.weight is None:
            return self
        uncertain = self.valid & torch.isfinite(self.weight)
        if self.sampling.kind == "mean":
            own = block_mean(values, self.blocks or partition(self.cells, self.size))
        else:
            own = self.sampling.down(values, self.cells)
        return replace(self, source=torch.where(uncertain, own, self.source), weight=None)


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
        values = torch.where(problem.valid, problem.source, 0) if problem.points is None else problem.points.values
        least = values.amin(dim=(-2, -1), keepdim=True)
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
