"""How far beyond its measurements "auto" lets a result go."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from dada.diffusion import down
from dada.sample import MEAN, Sampling
from dada.upsampling.projection import between

LEAST_SHARE = 0.1  # of the least value of a source: how low a result may go
MARGIN, HIDDEN = 0.05, 1024  # how far out of the range of its source a result may go, see `bounds`


def bounds(low: float, high: float, pixels: float) -> tuple[float, float]:
    """Between which values "auto" keeps a result.

    What lies out of the range of all measurements shares its cells with something else, and the fewer pixels a cell
    has, the less can hide in it. Where a cell holds a few pixels of a far hill and the coefficients leave it fewer
    still, these would have to be far behind the hill to make up for the rest. Positive values stay positive.

    Args:
        low: least value of the source.
        high: its largest value.
        pixels: of a source cell.

    Returns:
        The least and the largest value: a twentieth of the source's range on either side, and the whole range for each
        1024 pixels of a cell (x32); no lower than a tenth of the least value of a source that is nowhere below zero.
    """
    reach = (MARGIN + pixels / HIDDEN) * (high - low)
    return max(low - reach, LEAST_SHARE * low) if low >= 0 else low - reach, high + reach


def kept_within(
    values: np.ndarray, source: np.ndarray, trust: np.ndarray, ends: tuple[float, float], sampling: Sampling = MEAN
) -> np.ndarray:
    """Return the nearest image between two values, such as those that a file can hold, with the means of its cells.

    Args:
        values: (H, W), NaN where it is invalid.
        source: (h, w) between these values.
        trust: (h, w) in 0..1: 1 is exact, 0 is no measurement.
        ends: least and largest value of the result.
        sampling: how the source was made.
    """
    known = np.isfinite(values)
    image = torch.from_numpy(np.where(known, values, values.dtype.type(0)))
    valid, exact = (torch.from_numpy(cells) for cells in (trust > 0, trust == 1))
    inside = bounded(image, torch.from_numpy(source), valid, exact, ends, sampling).clamp(*ends).numpy()
    return np.where(known, inside, values).astype(values.dtype)


def bounded(
    values: Tensor,
    source: Tensor,
    valid: Tensor,
    exact: Tensor,
    ends: tuple[float, float],
    sampling: Sampling = MEAN,
) -> Tensor:
    """Return the nearest image [H, W] between two values, with the means of exact cells.

    Uncertain cells keep their own mean, as far as it lies between them too; so do all cells of a source that was
    resized. Points lie between the two values themselves.

    Args:
        values: [H, W].
        source: [h, w].
        valid: [h, w] bool, cells with a measurement.
        exact: [h, w] bool, those that keep it.
        ends: least and largest value of the result.
        sampling: how the source was made.
    """
    if sampling.kind == "point":
        return values.clamp(*ends)
    means, kept = source.double(), exact & (sampling.kind == "mean")
    if not torch.equal(kept, valid):
        own = down(values.double(), (source.shape[0], source.shape[1])).clamp(*ends)
        means = torch.where(kept, means, own)
    return between(values, torch.where(valid, means, torch.nan), *ends)
