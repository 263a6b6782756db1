"""How firmly each cell is held to its measurement: stated as a confidence, as the noise of the sensor, or both."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dada.errors import InputError
from dada.upsampling.source import ArrayLike, per_cell

LEVELS = 2  # largest number of a confidence in levels, as phones write it: low, medium, high
TYPICAL = 0.6745  # median of |x| where x is normal with deviation 1
LEAST_WEIGHT = 1 / 64  # of a noisy cell: what is flat but for its noise is averaged over some eight cells each way

Warn = Callable[[str], None]


def read_trust(
    confidence: ArrayLike | None, noise: ArrayLike | float | None, values: np.ndarray, valid: np.ndarray, warn: Warn
) -> np.ndarray:
    """Return how firmly each cell is held, in 0..1: 1 exactly, 0 not at all, between them with c / (1 - c).

    Args:
        confidence: (h, w), see `dada.upsample`; None: 1 in all cells.
        noise: deviation in the unit of the values, one number or (h, w); None: 0.
        values: (h, w) of the source.
        valid: (h, w) bool; the others get 0.
        warn: takes what the user should know.

    Raises:
        InputError: another size than the source, or numbers that are none of these.
    """
    trust = (
        np.ones(values.shape)
        if confidence is None
        else _unit_range(per_cell("confidence", confidence, values.shape), warn)
    )
    trust = np.where(valid, trust, 0.0)
    if not trust.any():
        raise InputError("every valid source cell has confidence 0. Confidence 1 is exact, 0 is no measurement.")
    if noise is None:
        return trust
    deviation = _read_noise(noise, values.shape)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        stated = (1 - trust) / trust  # the inverse of a weight is a variance: independent ones add up
        inverse = stated + 1 / noise_weight(values, trust > 0, deviation)
        return np.where(trust > 0, 1 / (1 + inverse), 0.0)


def noise_weight(values: np.ndarray, valid: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    """Return the weight of cells whose noise has this deviation, (h, w); infinite where it is 0.

    Cells that are neighbours in a flat part of the guide differ by what the surface does and by their noise. The tie
    between them weighs 1, so that a measurement weighs the variance of the former over that of the latter. The median
    of all differences, which edges do not touch, tells the sum.
    """
    pairs = [
        (values[1:] - values[:-1])[valid[1:] & valid[:-1]],
        (values[:, 1:] - values[:, :-1])[valid[:, 1:] & valid[:, :-1]],
    ]
    steps = np.abs(np.concatenate(pairs).astype(np.float64))
    both = (float(np.median(steps)) / TYPICAL) ** 2 if steps.size else 0.0
    surface = max(both - 2 * float(np.median(deviation[valid])) ** 2, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        weight: np.ndarray = np.where(deviation > 0, np.maximum(surface / deviation**2, LEAST_WEIGHT), np.inf)
    return weight


def _unit_range(given: np.ndarray, warn: Warn) -> np.ndarray:
    """Confidence in 0..1: floats as they are, levels and whole numbers of 8 or 16 bits divided by their largest."""
    if given.dtype.kind in "ui":
        most = int(given.max())
        if 0 < most <= LEVELS:
            warn(f"confidence has levels 0 to {most}, taken as 0 to 1 (1: exact)")
            return given / most
        if given.dtype.kind == "u" and given.dtype.itemsize <= 2:
            return given / np.iinfo(given.dtype).max
    trust = given.astype(np.float64)
    wrong = ~((trust >= 0) & (trust <= 1))
    if wrong.any():
        raise InputError(
            f"confidence must lie in 0 (no measurement) to 1 (exact), but {int(wrong.sum())} of its values, "
            f"such as {trust[wrong][0]:g}, do not. Scale it to 0..1, and set 0 where it is NaN; whole numbers may be "
            f"levels from 0 to {LEVELS}, or 8 or 16 bits without sign."
        )
    return trust


def _read_noise(noise: ArrayLike | float, shape: tuple[int, ...]) -> np.ndarray:
    deviation = np.full(shape, float(noise)) if isinstance(noise, int | float) else per_cell("noise", noise, shape)
    deviation = deviation.astype(np.float64)
    wrong = ~((deviation >= 0) & np.isfinite(deviation))
    if wrong.any():
        raise InputError(
            f"noise must be a standard deviation of 0 or more in the unit of the source, and is "
            f"{deviation[wrong][0]:g}. Give one number, or one for each source cell."
        )
    return deviation
