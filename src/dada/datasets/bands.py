"""Guides of other numbers of bands than photographs have: grey ones, and with an imitated near infrared."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from dada.datasets.crops import unit_guide
from dada.datasets.pair import Pair

RGB, GREY, INFRARED = 3, 1, 4
Rng = np.random.Generator


def with_bands(pair: Pair, count: int, rng: Rng) -> Pair:
    """Return an RGB pair with a guide of 1, 3 or 4 bands; a guide that is not RGB stays as it is.

    Args:
        pair: as read.
        count: 1 for a random mixture of the colours, 3 for the colours, 4 for these and a near infrared.
        rng: source of all random choices.
    """
    if count == RGB or pair.guide.shape[2] != RGB:
        return pair
    colours = unit_guide(pair.guide)
    if count == GREY:
        return replace(pair, guide=(colours @ rng.dirichlet((2, 3, 1)).astype(np.float32))[..., None])
    return replace(pair, guide=np.dstack([colours, near_infrared(colours, rng)]))


def near_infrared(colours: np.ndarray, rng: Rng) -> np.ndarray:
    """A band (H, W) in 0..1 that shows mostly the edges of the colours (H, W, 3), with other contrasts.

    Plants are bright, as they are in the near infrared; what is as bright in all colours may be dark or bright.
    """
    mixed = colours @ rng.normal(1 / 3, 0.3, 3).astype(np.float32)
    plants = np.maximum(2 * colours[..., 1] - colours[..., 0] - colours[..., 2], 0)
    mixed = mixed + np.float32(rng.uniform(0, 3)) * plants
    low, high = np.percentile(mixed, (1, 99))
    band = np.clip((mixed - low) / max(float(high - low), 1e-3), 0, 1)
    if rng.random() < 0.3:  # surfaces whose brightness has another order
        band = (1 + np.sin(rng.uniform(2, 6) * band + rng.uniform(0, 2 * math.pi))) / 2
    band = band ** math.exp(rng.uniform(-0.7, 0.7)) * rng.uniform(0.5, 1)
    band += rng.uniform(0, 0.02) * rng.standard_normal(band.shape, np.float32)
    return np.asarray(np.clip(band, 0, 1), np.float32)
