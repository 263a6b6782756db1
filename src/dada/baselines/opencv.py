"""What people use today: the edge-keeping filters of OpenCV's contrib modules on the bicubic image.

They come with the optional extra `opencv-contrib`; without it, calling a method says how to install it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dada.errors import InputError
from dada.sample import Sample

Filter = Callable[[np.ndarray, np.ndarray], np.ndarray]  # guide (H, W) or (H, W, 3) and image (H, W), float32


@dataclass(frozen=True)
class JointBilateral:
    """Joint bilateral upsampling (Kopf et al. 2007): the mean over near pixels of like colour, of the bicubic image.

    Attributes:
        sigma_space: of the distance, in source cells.
        sigma_colour: of the difference in the guide (in 0..1), which OpenCV sums over the bands.
        name: what tables call it.
    """

    sigma_space: float = 0.5
    sigma_colour: float = 0.1
    name: str = "JBU"

    def __call__(self, sample: Sample) -> Tensor:
        """Return [B, 1, H, W], see `dada.sample.Method`."""
        contrib = _contrib(self.name)
        sigma = self.sigma_space * sample.factor
        diameter = 2 * round(2 * sigma) + 1  # beyond two deviations there is little weight left

        def run(guide: np.ndarray, image: np.ndarray) -> np.ndarray:
            result: np.ndarray = contrib.jointBilateralFilter(guide, image, diameter, self.sigma_colour, sigma)
            return result

        return _filter(sample, run)


@dataclass(frozen=True)
class FastGlobalSmoother:
    """The fast global smoother (Min et al. 2014): weighted least squares, solved row by row and column by column.

    Attributes:
        smoothness: lambda.
        sigma_colour: how fast smoothness falls with the difference in the guide, in levels of 8 bits: OpenCV takes
            the guide in no other form.
        name: what tables call it.
    """

    smoothness: float = 500.0
    sigma_colour: float = 1.5
    name: str = "FGS"

    def __call__(self, sample: Sample) -> Tensor:
        """Return [B, 1, H, W], see `dada.sample.Method`."""
        contrib = _contrib(self.name)

        def run(guide: np.ndarray, image: np.ndarray) -> np.ndarray:
            levels = np.round(guide * 255).astype(np.uint8)
            result: np.ndarray = contrib.fastGlobalSmootherFilter(levels, image, self.smoothness, self.sigma_colour)
            return result

        return _filter(sample, run)


@dataclass(frozen=True)
class OpencvGuidedFilter:
    """OpenCV's guided filter, which mirrors the image at its border where ours cuts the window off.

    Attributes:
        radius: of the windows, in pixels.
        epsilon: how much variance of the guide (in 0..1) counts as none.
        name: what tables call it.
    """

    radius: int = 8
    epsilon: float = 0.1**2
    name: str = "GF-OpenCV"

    def __call__(self, sample: Sample) -> Tensor:
        """Return [B, 1, H, W], see `dada.sample.Method`."""
        contrib = _contrib(self.name)

        def run(guide: np.ndarray, image: np.ndarray) -> np.ndarray:
            result: np.ndarray = contrib.guidedFilter(guide, image, self.radius, self.epsilon)
            return result

        return _filter(sample, run)


def _contrib(name: str) -> Any:
    """OpenCV's ximgproc module.

    Raises:
        InputError: it is not installed.
    """
    import cv2

    if not hasattr(cv2, "ximgproc"):
        raise InputError(
            f"method {name} needs OpenCV's contrib modules, which are not installed. "
            'Install them with: pip install "dada-sr[opencv-contrib]"'
        )
    return cv2.ximgproc


def _filter(sample: Sample, run: Filter) -> Tensor:
    """Apply a filter of arrays to every image of a batch.

    The filters take guides of one or three bands; of any other number they see the mean. The image is brought to a
    range of about 1 around 0 and back: the filters are blind to both, but not the digits of float32.
    """
    bands = sample.guide if sample.guide.shape[1] in (1, 3) else sample.guide.mean(dim=1, keepdim=True)
    guides = bands.detach().cpu().float().permute(0, 2, 3, 1).numpy()
    mean = sample.initial.mean(dim=(-2, -1), keepdim=True)
    deviation = sample.initial.std(dim=(-2, -1), keepdim=True, correction=0)
    scale = torch.where(deviation > 0, deviation, 1)
    images = ((sample.initial - mean) / scale).detach().cpu().float()[:, 0].numpy()
    filtered = [
        run(np.ascontiguousarray(guide.squeeze(-1) if guide.shape[-1] == 1 else guide), image)
        for guide, image in zip(guides, images, strict=True)
    ]
    return torch.from_numpy(np.stack(filtered))[:, None].to(sample.initial) * scale + mean
