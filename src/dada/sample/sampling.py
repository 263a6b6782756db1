"""How a source came from the fine image: the mean over each block, one pixel of it, or an antialiased bicubic resize.

`mean` is the paper's. `point` is what a sensor with a small aperture, or a resize to the nearest pixel, leaves.
`bicubic` is what image libraries call so (Pillow, MATLAB, torch with antialias): its cells overlap.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import interpolate, max_pool2d

from dada.diffusion import Solution, down, partition
from dada.errors import InputError

Kind = Literal["mean", "point", "bicubic"]
Solve = Callable[[Tensor, Tensor, Tensor | None, bool], Solution]
"""Solves for the means [B, 1, h, w] over covered pixels ([H, W] bool; None: all) from a start [B, 1, H, W]; the last
argument is whether by `shift` and all cells exactly, or as the problem says."""

Points = Callable[[Tensor, Tensor, bool], Solution]
Means = Callable[[Tensor], Solution]

CENTRE = (0.5, 0.5)
BACK_PROJECTIONS = 24  # solves of `bicubic` at most
MISFIT = 1e-4  # of the source's range: how far the resized result may be from the source
LEAST = 0.1  # of a positive cell: the least mean that it is given instead
SMOOTHINGS = ((24, 6), (12, 4), (0, 1))  # of points, from cells of so many pixels a side on


@dataclass(frozen=True)
class Sampling:
    """A way in which a source was made.

    Attributes:
        kind: "mean", "point" or "bicubic".
        offset: of a point in its cell, (rows, columns) as shares of the cell from 0 to below 1. 1/2 is the pixel that
            Pillow's and torch's exact nearest resizes take, 0 that of OpenCV's INTER_NEAREST and of a stride.
    """

    kind: Kind = "mean"
    offset: tuple[float, float] = CENTRE

    @classmethod
    def of(cls, text: str | Sampling) -> Sampling:
        """Return the sampling of a text: mean, bicubic, point, or point:ROWS,COLUMNS.

        Raises:
            InputError: there is none such.
        """
        if isinstance(text, Sampling):
            return text
        kind, colon, rest = text.partition(":")
        if text in ("mean", "bicubic"):
            return cls(text)  # type: ignore[arg-type]
        try:
            numbers = tuple(float(part) for part in rest.split(",")) if colon else CENTRE
        except ValueError:
            numbers = ()
        if kind != "point" or len(numbers) != 2 or not all(0 <= number < 1 for number in numbers):
            raise InputError(
                f"sampling {text!r} is unknown. Use mean, bicubic, point (the pixel at the centre of each cell), or "
                "point:ROWS,COLUMNS with the pixel's place in the cell from 0 to below 1, such as point:0,0."
            )
        return cls("point", (numbers[0], numbers[1]))

    def __str__(self) -> str:
        """The text that `of` takes."""
        if self.kind != "point" or self.offset == CENTRE:
            return self.kind
        return f"point:{self.offset[0]:g},{self.offset[1]:g}"

    def places(self, cells: tuple[int, int], size: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
        """Where the cells lie in target pixels, whose centres are whole numbers: of rows [h] and of columns [w].

        Those of points are whole numbers and lie within their blocks.
        """
        blocks = partition(cells, size)
        found = []
        for count, length, starts, offset in zip(cells, size, (blocks.rows, blocks.cols), self.offset, strict=True):
            scale = length / count
            if self.kind == "point":
                nearest = np.floor((np.arange(count) + offset) * scale + 1e-9).astype(np.int64)
                found.append(np.clip(nearest, starts[:-1], starts[1:] - 1))
            else:
                found.append((np.arange(count) + 0.5) * scale - 0.5)
        return found[0], found[1]

    def coverage(self, cells: tuple[int, int], size: tuple[int, int]) -> Tensor | None:
        """[H, W] bool, the pixels that were measured; None: all of them were."""
        if self.kind != "point":
            return None
        rows, cols = self.places(cells, size)
        covered = torch.zeros(size, dtype=torch.bool)
        covered[torch.from_numpy(rows)[:, None], torch.from_numpy(cols)] = True
        return covered

    def down(self, target: Tensor, cells: tuple[int, int]) -> Tensor:
        """What a source of [..., h, w] would measure of a target [..., H, W]."""
        if self.kind == "mean":
            return down(target, cells)
        if self.kind == "point":
            rows, cols = self.places(cells, (target.shape[-2], target.shape[-1]))
            return target[..., torch.from_numpy(rows)[:, None], torch.from_numpy(cols)]
        images = target.reshape(-1, 1, *target.shape[-2:])
        # antialias=True also chooses the cubic (a = -1/2) of Pillow and MATLAB
        small = interpolate(images, size=cells, mode="bicubic", antialias=True)
        return small.reshape(*target.shape[:-2], *cells)

    def means(self, target: Tensor, cells: tuple[int, int]) -> Tensor:
        """The means of a target [..., H, W] over the blocks of its cells."""
        return down(target, cells)

    def placed(self, source: Tensor, known: Tensor, image: Tensor) -> Tensor:
        """An image [..., H, W] with the known points [..., h, w] of a source in their places."""
        cells, size = (source.shape[-2], source.shape[-1]), (image.shape[-2], image.shape[-1])
        rows, cols = (torch.from_numpy(at) for at in self.places(cells, size))
        fine = image.clone()
        fine[..., rows[:, None], cols] = torch.where(known, source, fine[..., rows[:, None], cols])
        return fine

    def whole(self, valid: Tensor, cells: tuple[int, int]) -> Tensor:
        """[..., h, w] bool: where a point, or every pixel that a resized cell depends on, is valid [..., H, W]."""
        if self.kind == "point":
            return self.down(valid, cells)
        height, width = valid.shape[-2:]
        holes = (~valid).reshape(-1, 1, height, width).float()
        # a cubic reaches two cells to each side of the centre of its own
        sides = [2 * math.ceil(2 * n / k) + 1 for n, k in zip((height, width), cells, strict=True)]
        near = max_pool2d(holes, (sides[0], 1), stride=1, padding=(sides[0] // 2, 0))  # rows, then columns: at x32
        near = max_pool2d(near, (1, sides[1]), stride=1, padding=(0, sides[1] // 2))  # 60 times as fast as both at once
        rows, cols = (torch.from_numpy(np.floor(at).astype(np.int64)) for at in self.places(cells, (height, width)))
        touched = [near[..., (rows + i).clamp(max=height - 1)[:, None], (cols + j).clamp(max=width - 1)]
                   for i in (0, 1) for j in (0, 1)]  # fmt: skip
        return (torch.stack(touched).amax(dim=0) == 0).reshape(*valid.shape[:-2], *cells)

    @property
    def promise(self) -> str:
        """What the misfit of a result is, as the beginning of a sentence."""
        words = {
            "mean": "averaged back down",
            "point": "at the pixels that were sampled",
            "bicubic": "resized back down (bicubic, antialiased)",
        }
        return words[self.kind]

    def solved(self, solve: Solve, source: Tensor, used: Tensor, start: Tensor, quick: bool = False) -> Solution:
        """Solve for a source of this sampling by a function that solves for means.

        Args:
            solve: by `equilibrium` or `iterate`; has the coefficients, the mask and the weights.
            source: [B, 1, h, w].
            used: [B, 1, h, w] bool, cells with a measurement.
            start: [B, 1, H, W].
            quick: one correction at most, as training needs: points are exact, a resized source is only nearly so.
        """
        if self.kind == "bicubic" and quick:
            given, _ = _corrected(self, source, used, start.detach())
            return solve(given, start, None, False)
        if self.kind == "bicubic":
            return _back_projected(self, solve, source, used, start)
        if self.kind == "point":
            cells = source.shape[-2], source.shape[-1]
            covered = self.coverage(cells, (start.shape[-2], start.shape[-1]))
            coverage = None if covered is None else covered.to(source.device)
            return smoothed(
                lambda given, begin, exactly: solve(given, begin, coverage, exactly),
                lambda image: solve(self.means(image, cells), image.detach(), None, True),
                lambda image: self.down(image, cells),
                source,
                start,
                cells,
                1 if quick else None,
            )
        return solve(source, start, None, False)


def smoothed(
    points: Points,
    means: Means,
    at: Callable[[Tensor], Tensor],
    source: Tensor,
    start: Tensor,
    cells: tuple[int, int],
    count: int | None = None,
) -> Solution:
    """Solve for points without the peaks that diffusion from single pixels has.

    A membrane held at a point has a logarithmic peak there, and is flat between points on a slope. The means of such a
    solution over blocks are good, though, and a solution for means is smooth. What that one leaves at the points is
    small, and is added as another solution for points: the sum is exact there.

    Args:
        points: solves for points from a start; the last argument is whether by `shift` and all points exactly.
        means: smooths an image: solves for its means over blocks, from the image itself.
        at: takes the points of an image, in the form of `source`.
        source: the points.
        start: [B, 1, H, W].
        cells: h, w of the blocks.
        count: of smooth solutions; None: as many as the size of the cells asks for.
    """
    height, width = start.shape[-2:]
    side = math.sqrt(height * width / (cells[0] * cells[1]))
    first = points(source, start, False)
    wanted, values, parts = at(first.values), first.values, [first]
    for _ in range(count or next(n for least, n in SMOOTHINGS if side >= least)):
        smooth = means(values)
        left = points(wanted - at(smooth.values), torch.zeros_like(start), True)
        values = smooth.values + left.values
        parts += [smooth, left]
    spent = torch.stack([part.iterations for part in parts]).sum(dim=0)
    converged = torch.stack([part.converged for part in parts]).all(dim=0)
    worst = [min(parts, key=lambda part: bool(part.converged.flatten()[i])) for i in range(len(first.reason))]
    reason = [part.reason[i] for i, part in enumerate(worst)]
    return replace(first, values=values, iterations=spent, converged=converged, told=reason, smooth=smooth.values)


def _corrected(sampling: Sampling, source: Tensor, used: Tensor, image: Tensor) -> tuple[Tensor, Tensor]:
    """The means that a resized source stands for, judged by what averaging and resizing an image differ by.

    Returns:
        The means and the resized image, both [B, 1, h, w].
    """
    cells = source.shape[-2], source.shape[-1]
    resized = sampling.down(image, cells)
    given = torch.where(used, source + sampling.means(image, cells) - resized, source)
    positive = ((source > 0) | ~used).all(dim=-1, keepdim=True).all(dim=-2, keepdim=True)
    return torch.where(positive, torch.maximum(given, LEAST * source), given), resized  # as ratios need it


def _back_projected(sampling: Sampling, solve: Solve, source: Tensor, used: Tensor, start: Tensor) -> Solution:
    """Solve for a resized source, whose cells overlap, by solving for means again and again.

    The means that are right differ from the source by what averaging and resizing the result differ by:
    s = S + down(y) - resized(y), until this changes by no more than `MISFIT` of the source's range. In exact cells
    resized(y) is then S as closely; soft cells keep their weight. An image that is done stays as it is, whatever is
    beside it in the batch.
    """
    over = (-2, -1)
    high = torch.where(used, source, -torch.inf).amax(dim=over)
    limit = MISFIT * (high - torch.where(used, source, torch.inf).amin(dim=over))
    given, found, done = source, None, torch.zeros_like(limit, dtype=torch.bool)
    for _ in range(BACK_PROJECTIONS):
        now = solve(given, start, None, False)
        if found is not None:
            values = torch.where(done[..., None, None], found.values, now.values)
            spent = torch.where(done, found.iterations, found.iterations + now.iterations)
            now = replace(now, values=values, iterations=spent)
        found, before = now, given
        given, resized = _corrected(sampling, source, used, found.values)
        done = done | ((given - before).detach().abs().amax(dim=over) <= limit)
        if bool(done.all()):
            break
        start = found.values.detach()
    assert found is not None
    wrong = torch.where(used, (resized - source).detach().abs(), 0)
    reason = [
        text if right else f"resized it is not the source to {MISFIT:g} of its range after {BACK_PROJECTIONS} solves"
        for text, right in zip(found.reason, done.flatten().tolist(), strict=True)
    ]
    return replace(
        found,
        misfit_max=wrong.amax(dim=over),
        misfit_mean=wrong.sum(dim=over) / used.sum(dim=over),
        converged=found.converged & done,
        told=reason,
    )


MEAN = Sampling()
