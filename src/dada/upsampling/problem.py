"""Problems in the user's unit, and the same in numbers near 1, in which they are solved."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from dada.diffusion import down
from dada.diffusion.measurement import Adjust
from dada.errors import InputError
from dada.sample import MEAN, Sample, Sampling, bicubic

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
        sampling: how the source was made.
        points: what was measured, where that are single pixels instead of cells; the source is then their mean in
            each cell, which models look at and nothing is held to.
    """

    guide: Tensor
    source: Tensor
    valid: Tensor
    weight: Tensor | None = None
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
        return replace(
            self,
            guide=self.guide[images],
            source=self.source[images],
            valid=self.valid[images],
            weight=weight,
            points=points,
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
        """The least and the largest valid value of each source."""
        known = (self.source, self.valid) if self.points is None else (self.points.values, self.points.measured)
        low = torch.where(known[1], known[0], torch.inf).flatten(1).amin(dim=1)
        high = torch.where(known[1], known[0], -torch.inf).flatten(1).amax(dim=1)
        return list(zip(low.tolist(), high.tolist(), strict=True))

    def initial(self) -> Tensor:
        """[B, 1, H, W], the source interpolated; points are met more and more closely."""
        if self.points is None:
            return bicubic(self.source, self.valid, self.size, self.weight, self.sampling)
        image = bicubic(self.source, self.valid, self.size)
        for _ in range(CORRECTIONS):
            left, known = self.points.gathered(self.cells, image)
            image = image + bicubic(left, known, self.size)
        (low, high), *_ = self.ranges()
        return image.clamp(low, high) if len(self) == 1 else image

    def sample(self, initial: Tensor) -> Sample:
        """What models and methods see of it."""
        return Sample(self.guide, self.source.float(), self.valid, initial.float(), sampling=self.sampling)

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
        settled = torch.where(uncertain, self.sampling.down(values, self.cells), self.source)
        return replace(self, source=settled, weight=None)


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
        points = problem.points
        if points is not None:
            points = replace(points, values=torch.where(points.measured, (points.values - zero) / unit, 0))
        return cls(replace(problem, source=source, points=points), zero, unit)

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
