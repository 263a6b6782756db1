"""GF: the guided filter of the bicubic image (He, Sun, Tang: Guided Image Filtering, TPAMI 2012)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d

from dada.sample import Sample


@dataclass(frozen=True)
class GuidedFilter:
    """In every window the target is a linear function of the guide's bands; a pixel takes the mean of its windows'.

    Attributes:
        radius: of the windows, in pixels; they are 2 radius + 1 wide.
        epsilon: how much variance of the guide (in 0..1) counts as none; larger is smoother.
        name: what tables call it.
    """

    radius: int = 8
    epsilon: float = 0.1**2
    name: str = "GF"

    def __post_init__(self) -> None:
        if self.radius < 1 or not self.epsilon > 0:
            raise ValueError(f"need radius >= 1 and epsilon > 0, got {self.radius} and {self.epsilon}")

    def __call__(self, sample: Sample) -> Tensor:
        """Return [B, 1, H, W], see `dada.sample.Method`."""
        return guided_filter(sample.guide, sample.initial, self.radius, self.epsilon)


def guided_filter(guide: Tensor, image: Tensor, radius: int, epsilon: float) -> Tensor:
    """Filter an image by a guide: Eq. 14 to 16 of the paper, for any number of bands.

    Args:
        guide: [B, C, H, W] in 0..1.
        image: [B, 1, H, W].
        radius: of the windows, which are cut off at the image's border.
        epsilon: > 0, added to the variance of each band.
    """
    # Moments about the image's own means: a variance of 1e-4 beside a squared mean of 1 costs float32 its digits.
    bands = guide - guide.mean(dim=(-2, -1), keepdim=True)
    offset = image.mean(dim=(-2, -1), keepdim=True)
    values = image - offset
    batch, count, height, width = bands.shape
    products = (bands[:, :, None] * bands[:, None]).reshape(batch, count * count, height, width)

    mean, mean_values = box_mean(bands, radius), box_mean(values, radius)
    covariance = box_mean(bands * values, radius) - mean * mean_values  # [B, C, H, W]
    square = box_mean(products, radius).reshape(batch, count, count, height, width)
    variance = (square - mean[:, :, None] * mean[:, None]).permute(0, 3, 4, 1, 2)  # [B, H, W, C, C]
    ridge = epsilon * torch.eye(count, dtype=guide.dtype, device=guide.device)
    slope = torch.linalg.solve(variance + ridge, covariance.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
    intercept = mean_values - (slope * mean).sum(dim=1, keepdim=True)
    return (box_mean(slope, radius) * bands).sum(dim=1, keepdim=True) + box_mean(intercept, radius) + offset


def box_mean(image: Tensor, radius: int) -> Tensor:
    """Mean of [B, C, H, W] over the square of 2 radius + 1 pixels around each pixel, as far as it is in the image."""
    for axis in (0, 1):
        # A window that reaches past both ends is the whole row; avg_pool2d wants it no wider than that needs.
        reach = min(radius, image.shape[axis + 2] - 1)
        kernel, padding = [1, 1], [0, 0]
        kernel[axis], padding[axis] = 2 * reach + 1, reach
        image = avg_pool2d(image, kernel, stride=1, padding=padding, count_include_pad=False)
    return image
