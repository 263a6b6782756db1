"""Guides in deviations of natural images, and how large a difference of such colours counts as an edge."""

from __future__ import annotations

from torch import Tensor

RGB_MEAN, RGB_DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of ImageNet, as in the paper
BAND_MEAN, BAND_DEVIATION = 0.449, 0.226  # their means, for guides that are not RGB
KAPPA = 0.03  # of Eq. 2 for colours standardised so, as in the paper's variant without learning


def standardise(guide: Tensor) -> Tensor:
    """Bring bands [B, C, H, W] in 0..1 to the mean 0 and deviation 1 of natural images."""
    if guide.shape[1] != 3:
        return (guide - BAND_MEAN) / BAND_DEVIATION
    mean, deviation = (guide.new_tensor(v)[:, None, None] for v in (RGB_MEAN, RGB_DEVIATION))
    return (guide - mean) / deviation
