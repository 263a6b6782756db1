"""Crops of pairs, for tests and for training, and samples made of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import cv2
import numpy as np

from dada.datasets.pair import Pair
from dada.errors import InputError

if TYPE_CHECKING:
    from dada.sample import Interpolation, Sample, Sampling

SIZE = 256
SOURCE_VALID, TARGET_VALID = 0.9, 0.8  # smallest valid shares of a training crop
TRIES = 50


def grid_crops(pair: Pair, size: int = SIZE) -> list[Pair]:
    """Cut square crops that do not overlap, row by row from the top left; what remains is dropped.

    Args:
        pair: any size; one smaller than a crop gives none.
        size: of a crop, in pixels.

    Returns:
        Crops named "NAME@row,col" after their first pixel, whether or not they have a valid one.
    """
    height, width = pair.size
    places = [(r, c) for r in range(0, height - size + 1, size) for c in range(0, width - size + 1, size)]
    return [cut_named(pair, row, col, size) for row, col in places]


def random_crop(pair: Pair, rng: np.random.Generator, size: int = SIZE, factor: int = 8) -> Pair:
    """Cut a random crop as the paper trains on.

    A crop needs at least 0.9 of the source and 0.8 of the target valid. After `TRIES` draws without such a crop the
    best one is taken, so that an image full of holes cannot stop a training.

    Args:
        pair: no smaller than the crop.
        rng: draws the position of the crop.
        size: height and width of the crop in pixels.
        factor: target pixels per source cell, along each axis.

    Raises:
        InputError: the pair is smaller than the crop.
    """
    height, width = pair.size
    if min(height, width) < size:
        raise InputError(
            f"{pair.name} has {height} x {width} pixels, too few for crops of {size} x {size}. Take smaller crops "
            "or enlarge the images (zoom)."
        )
    row, col = draw_place(
        pair.size, size, rng, lambda r, c: validity(np.isfinite(pair.target[r : r + size, c : c + size]), factor)
    )
    return cut_named(pair, row, col, size)


def draw_place(
    size: tuple[int, int], side: int, rng: np.random.Generator, share: Callable[[int, int], float]
) -> tuple[int, int]:
    """Draw the first pixel of a window of side x side until its `share` is 1, at most `TRIES` times; else the best."""
    best, most = (0, 0), -1.0
    for _ in range(TRIES):
        place = int(rng.integers(size[0] - side + 1)), int(rng.integers(size[1] - side + 1))
        if (found := share(*place)) > most:
            best, most = place, found
        if most >= 1:
            break
    return best


def validity(valid: np.ndarray, factor: int) -> float:
    """How far a mask satisfies the rule for training crops: 1 or more if it does.

    Args:
        valid: (H, W) bool of the target.
        factor: a source cell is valid if any of its factor x factor target pixels is; must divide H and W.

    Returns:
        The smaller of both valid shares, each divided by its required share.
    """
    height, width = valid.shape
    cells = valid.reshape(height // factor, factor, width // factor, factor).any((1, 3))
    return float(min(cells.mean() / SOURCE_VALID, valid.mean() / TARGET_VALID))


def zoom(pair: Pair, scale: float) -> Pair:
    """Resize a pair.

    The guide is averaged down (area) or interpolated up (cubic). The target takes the nearest pixel, so that no value
    between an object and its background arises.

    Args:
        pair: any size.
        scale: new pixels per old pixel, along each axis.
    """
    height, width = (max(1, round(n * scale)) for n in pair.size)
    if (height, width) == pair.size:
        return pair
    guide, target = resize_guide(pair.guide, (height, width)), resize_target(pair.target, (height, width))
    return replace(pair, guide=guide, target=target)


def resize_guide(guide: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Resize (H, W, C) of any dtype to `size` (H, W): area down, cubic up, within the range of its dtype."""
    method = cv2.INTER_AREA if size[0] * size[1] < guide.shape[0] * guide.shape[1] else cv2.INTER_CUBIC
    fine = cv2.resize(guide, size[::-1], interpolation=method)
    fine = fine[..., None] if fine.ndim == 2 else fine
    return fine.clip(0, 1) if fine.dtype.kind == "f" else fine


def resize_target(target: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Resize (H, W) to `size` (H, W) by taking the nearest pixel, NaN or not."""
    return cv2.resize(target, size[::-1], interpolation=cv2.INTER_NEAREST_EXACT)


def to_sample(
    pairs: Pair | Sequence[Pair],
    factor: int,
    unit: float,
    interpolation: Interpolation = "clough-tocher",
    sampling: str | Sampling = "mean",
) -> Sample:
    """Make a batch of problems; those of protocol P1 have the average of the valid pixels of the target as the source.

    Args:
        pairs: one, or several of one size and number of bands; `factor` must divide height and width.
        factor: target pixels per source cell, along each axis.
        unit: the value that becomes 1.0: the data set's `unit`.
        interpolation: of the initial image; see `dada.sample.initialise`.
        sampling: how the source is made: "mean", "point", "point:ROWS,COLUMNS" or "bicubic".
    """
    import torch

    from dada.sample import Sampling, make_sample

    pairs = [pairs] if isinstance(pairs, Pair) else list(pairs)
    guide = torch.from_numpy(np.stack([unit_guide(p.guide).transpose(2, 0, 1) for p in pairs]))
    target = torch.from_numpy(np.stack([p.target for p in pairs])[:, None])
    valid = torch.isfinite(target)
    scaled = torch.where(valid, target, 0) / unit
    names = tuple(p.name for p in pairs)
    how = Sampling.of(sampling)
    return make_sample(guide, scaled, valid, factor, unit=unit, interpolation=interpolation, names=names, sampling=how)


def unit_guide(guide: np.ndarray) -> np.ndarray:
    """The guide as float32 in 0..1: 8 bits divided by 255, 16 bits by 65535, floats as they are."""
    if guide.dtype.kind == "f":
        return guide.astype(np.float32, copy=False)
    return guide.astype(np.float32) / np.float32(np.iinfo(guide.dtype).max)


def cut_named(pair: Pair, row: int, col: int, size: int) -> Pair:
    """A square crop, named after its first pixel."""
    return replace(pair.cut(row, col, size, size), name=f"{pair.name}@{row},{col}")
