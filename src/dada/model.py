"""Models turn a guide into diffusion coefficients. The default one is chosen here and nowhere else."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
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
KAPPA = 0.03  # of the paper's learning-free variant
RGB_MEAN, RGB_DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of ImageNet, as in the paper
BAND_MEAN, BAND_DEVIATION = 0.449, 0.226  # their means, for guides that are not RGB


class Model(Protocol):
    """What `dada.upsample` needs to know of a model."""

    @property
    def name(self) -> str:
        """What reports call it."""
        ...

    def coefficients(self, guide: Tensor, initial: Tensor, deviation: Tensor) -> Coefficients:
        """Return the coefficients of the H x W target grid.

        Args:
            guide: [B, C, H, W] float32 in 0..1.
            initial: [B, 1, H, W] float32, the bicubic source.
            deviation: [B], standard deviation of the valid source cells in the unit of `initial`; 0 if
                constant.
        """
        ...


@dataclass(frozen=True)
class LearningFree:
    """The paper's variant without learning: the features are the guide itself and the bicubic source.

    Attributes:
        kappa: of Eq. 2; smaller takes weaker changes of the guide for edges.
        distance: of Eq. 2, "euclidean" as in the paper or "mean_absolute" as in the released code.
        source_scale: one unit of the source channel, in standard deviations of the source.
        name: what reports call it.
    """

    kappa: float = KAPPA
    distance: Distance = "mean_absolute"
    source_scale: float = SOURCE_SCALE
    name: str = "none"

    def coefficients(self, guide: Tensor, initial: Tensor, deviation: Tensor) -> Coefficients:
        """Return coefficients that do not depend on the unit of the source; see `Model.coefficients`."""
        features = standardise(guide)
        if bool((deviation > 0).all()):
            unit = self.source_scale * deviation.to(initial)[:, None, None, None]
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
        name: "default", "none" for the learning-free variant, or a JSON file of its settings.

    Raises:
        InputError: there is no such model, or the file is not one; the message says what there is.
    """
    chosen = DEFAULT_MODEL if str(name) == "default" else str(name)
    if chosen == "none":
        return LearningFree()
    if chosen.endswith(".json"):
        return _read_settings(Path(chosen))
    found = "this file holds no model that this version can read" if Path(chosen).exists() else "is unknown"
    raise InputError(
        f"model {chosen!r}: {found}. Use one of: none (the learning-free variant), default (currently "
        f"{DEFAULT_MODEL}), or a JSON file of settings such as {EXAMPLE}."
    )


EXAMPLE = '{"kappa": 0.02, "distance": "euclidean", "source_scale": 4}'


def _read_settings(path: Path) -> LearningFree:
    """The learning-free variant with the settings of a JSON file."""
    try:
        settings = json.loads(path.read_bytes())
    except OSError as error:
        raise InputError(f"model {path}: cannot be read ({error.strerror}). Name a JSON file of settings.") from None
    except ValueError:
        raise InputError(f"model {path}: is not JSON. Write settings such as {EXAMPLE}.") from None
    if not isinstance(settings, dict) or not settings.keys() <= {"kappa", "distance", "source_scale"}:
        raise InputError(f"model {path}: settings must be some of kappa, distance, source_scale, such as {EXAMPLE}.")
    for key in ("kappa", "source_scale"):
        value = settings.get(key, 1.0)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
            raise InputError(f"model {path}: {key} must be a positive number, got {value!r}.")
    if settings.get("distance", "euclidean") not in ("euclidean", "mean_absolute"):
        raise InputError(f"model {path}: distance must be euclidean or mean_absolute, got {settings['distance']!r}.")
    return LearningFree(**settings, name=path.name)
