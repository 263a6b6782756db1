"""Models turn a guide into diffusion coefficients. The default one is chosen here and nowhere else."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor

from dada.diffusion import Coefficients, coefficients
from dada.diffusion.coefficients import Distance
from dada.errors import InputError

DEFAULT_MODEL = "none"
"""What `model="default"` means: "none" is the learning-free variant."""

SOURCE_SCALE = 4.0
"""One unit of the learning-free variant's source channel, in standard deviations of the source."""

KAPPA = 0.03  # of the paper's learning-free variant
RGB_MEAN, RGB_DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of ImageNet, as in the paper
BAND_MEAN, BAND_DEVIATION = 0.449, 0.226  # their means, for guides that are not RGB


class Model(Protocol):
    """What `dada.upsample` needs to know of a model."""

    name: str

    def coefficients(self, guide: Tensor, initial: Tensor, deviation: Tensor) -> Coefficients:
        """Return the coefficients of the H x W target grid.

        Args:
            guide: [B, C, H, W] float32 in 0..1.
            initial: [B, 1, H, W] float32, the bicubic source.
            deviation: [B], standard deviation of the valid source cells in the unit of `initial`; 0 if
                constant.
        """
        ...


class LearningFree:
    """The paper's variant without learning: the features are the guide itself and the bicubic source."""

    def __init__(self, kappa: float = KAPPA, distance: Distance = "mean_absolute") -> None:
        """Take kappa and the distance of Eq. 2; see `dada.diffusion.coefficients`."""
        self.name = "none"
        self.kappa, self.distance = kappa, distance

    def coefficients(self, guide: Tensor, initial: Tensor, deviation: Tensor) -> Coefficients:
        """Return coefficients that do not depend on the unit of the source; see `Model.coefficients`."""
        features = standardise(guide)
        if bool((deviation > 0).all()):
            unit = SOURCE_SCALE * deviation.to(initial)[:, None, None, None]
            features = torch.cat([features, initial / unit], dim=1)
        return coefficients(features, self.kappa, self.distance)


def standardise(guide: Tensor) -> Tensor:
    """Bring bands [B, C, H, W] in 0..1 to the mean 0 and deviation 1 of natural images."""
    if guide.shape[1] != 3:
        return (guide - BAND_MEAN) / BAND_DEVIATION
    mean, deviation = (guide.new_tensor(v)[:, None, None] for v in (RGB_MEAN, RGB_DEVIATION))
    return (guide - mean) / deviation


def load_model(name: str | os.PathLike[str] = "default") -> Model:
    """Return the model of a name.

    Args:
        name: "default", or "none" for the learning-free variant.

    Raises:
        InputError: there is no such model; the message lists those that there are.
    """
    chosen = DEFAULT_MODEL if str(name) == "default" else str(name)
    if chosen == "none":
        return LearningFree()
    found = "this file holds no model that this version can read" if Path(chosen).exists() else "is unknown"
    raise InputError(
        f"model {chosen!r}: {found}. Use one of: none (the learning-free variant), default (currently {DEFAULT_MODEL})."
    )
