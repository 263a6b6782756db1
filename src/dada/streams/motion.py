"""Where guide or source changed by more than their noise since an earlier frame."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dada.diffusion import up
from dada.upsampling.problem import Problem

MEDIAN = 1.4826  # standard deviations of noise for a median of its size
STRIDE = 4  # rows and columns between the pixels that the noise is estimated from
GUIDE_NOISE = (1 / 255, 6 / 255)  # least and largest noise that a guide in 0..1 is taken to have
GUIDE_CHANGE = 3.0  # deviations of the noise by which the mean of 3 x 3 pixels has to change
CONTRAST = 0.12  # of the contrast around a pixel, by which it has to change beside: video codecs err at edges
LEAST = np.ones((3, 3), np.uint8)  # the least part of a guide that can move
NEAR = np.ones((5, 5), np.uint8)  # what is around a pixel
SOURCE_NOISE = (2e-4, 0.02)  # the same for the source, in its standard deviations
SOURCE_CHANGE = 6.0  # deviations of the noise by which a cell has to change
LEVELS = 8  # ranges of source values that have noise of their own: that of depth grows with distance
AROUND = 9  # pixels a side around a change that count as changed too


@dataclass(frozen=True)
class Change:
    """What changed since an earlier frame.

    Attributes:
        moved: [H, W] bool, pixels that changed by more than noise, and those around them.
        still: whether there is none.
    """

    moved: NDArray[np.bool_]
    still: bool


def change(before: Problem | None, now: Problem) -> Change:
    """Compare two frames of one stream.

    Noise is estimated from the differences themselves, by their median, and limited: a camera that pans changes more
    than half of the pixels.
    """
    if before is None or _another_kind(before, now):
        return Change(np.ones(now.size, bool), False)
    guide = _guide_moved(before.guide[0].cpu().numpy(), now.guide[0].cpu().numpy())
    cells = _source_moved(before, now)
    if not guide.any() and not cells.any():
        return Change(guide, True)
    moved = guide | up(torch.from_numpy(cells), now.size).numpy()
    return Change(cv2.dilate(moved.astype(np.uint8), np.ones((AROUND, AROUND), np.uint8)) > 0, False)


def same_source(before: Problem, now: Problem) -> bool:
    """Whether the sources of two frames of one size are the same to the last digit, and as certain."""
    one, other = (torch.ones_like(p.source) if p.weight is None else p.weight for p in (before, now))
    same = torch.equal(before.source, now.source) and torch.equal(before.valid, now.valid)
    return same and torch.equal(one, other)


def _another_kind(before: Problem, now: Problem) -> bool:
    same = before.guide.shape == now.guide.shape and before.source.shape == now.source.shape
    alike = before.sampling == now.sampling and before.unit == now.unit and before.source.dtype == now.source.dtype
    return not (same and alike and (before.weight is None) == (now.weight is None))


def _guide_moved(before: NDArray[np.float32], now: NDArray[np.float32]) -> NDArray[np.bool_]:
    """[H, W] of two guides [C, H, W] in 0..1."""
    moved: NDArray[np.bool_] = np.zeros(now.shape[1:], bool)
    for old, new in zip(before, now, strict=True):
        difference = cv2.subtract(new, old)
        noise = _noise(difference[::STRIDE, ::STRIDE].ravel(), *GUIDE_NOISE)
        contrast = cv2.dilate(new, NEAR) - cv2.erode(new, NEAR)
        moved |= np.abs(cv2.blur(difference, (3, 3))) > GUIDE_CHANGE * noise + CONTRAST * contrast
    return cv2.morphologyEx(moved.astype(np.uint8), cv2.MORPH_OPEN, LEAST) > 0


def _source_moved(before: Problem, now: Problem) -> NDArray[np.bool_]:
    """[h, w]; a cell whose measurement came, went or became more or less certain has moved."""
    valid = now.valid[0, 0].cpu().numpy()
    moved: NDArray[np.bool_] = valid != before.valid[0, 0].cpu().numpy()
    if now.weight is not None and before.weight is not None:
        moved |= (now.weight != before.weight)[0, 0].cpu().numpy()
    old, new = (_values(problem) for problem in (before, now))
    both: NDArray[np.bool_] = valid & before.valid[0, 0].cpu().numpy()
    if not both.any():
        moved |= valid
        return moved
    deviation = float(new[both].std())
    ends = np.quantile(old[both], np.linspace(0, 1, LEVELS + 1)[1:-1])
    level = np.searchsorted(ends, old)
    for number in range(LEVELS):
        of_level = both & (level == number)
        if of_level.any():
            noise = _noise((new - old)[of_level], *(share * deviation for share in SOURCE_NOISE))
            moved |= of_level & (np.abs(new - old) > SOURCE_CHANGE * noise)
    return moved


def _values(problem: Problem) -> NDArray[np.float64]:
    return problem.source[0, 0].cpu().double().numpy()


def _noise(differences: NDArray[np.floating], least: float, most: float) -> float:
    """Standard deviation of the noise of differences of which more than half are nothing but noise."""
    return float(np.clip(MEDIAN * np.median(np.abs(differences)), least, most))


def static(moved: NDArray[np.bool_], like: Tensor) -> Tensor:
    """[H, W] of another type of numbers: 1 where nothing moved."""
    return torch.from_numpy(~moved).to(like)
