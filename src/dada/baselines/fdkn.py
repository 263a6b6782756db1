"""FDKN: the fast deformable kernel network (Kim, Ponce, Ham: Deformable Kernel Networks ..., IJCV 2021)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import pixel_shuffle, pixel_unshuffle, relu

from dada.baselines.dkn_sampling import KERNEL, deformable_filter
from dada.baselines.learned import Learned, blue_first, extend, luminance, multiple
from dada.sample import Sample

RATE = 4
"""Everything but the filter runs on a grid this many times coarser, its pixels as channels."""


class Fdkn(Learned):
    """Kernel weights and offsets from the guide's luminance and from the bicubic source, multiplied.

    The keys are the authors'; their released files load as they are.
    """

    name = "FDKN"
    key = "fdkn"

    def __init__(self) -> None:
        super().__init__()
        self.config: dict[str, Any] = {}
        self.ImageKernel = FastKernel()
        self.DepthKernel = FastKernel()

    def predict(self, sample: Sample) -> Tensor:
        """See `Learned.predict`."""
        return self.network(blue_first(sample.guide), sample.initial)

    def network(self, guide: Tensor, depth: Tensor) -> Tensor:
        """The authors' network.

        Args:
            guide: [B, 3, H, W] blue, green, red in 0..1; any size.
            depth: [B, 1, H, W], the bicubic source in 0..1.

        Returns:
            [B, 1, H, W].
        """
        height, width = depth.shape[-2:]
        size = multiple(height, RATE), multiple(width, RATE)
        grey, depth = extend(luminance(blue_first(guide)), *size), extend(depth, *size)
        image_weights, image_offsets = self.ImageKernel(pixel_unshuffle(grey, RATE))
        depth_weights, depth_offsets = self.DepthKernel(pixel_unshuffle(depth, RATE))
        weights = pixel_shuffle(image_weights * depth_weights, RATE)
        offsets = pixel_shuffle(image_offsets * depth_offsets, RATE)
        residual_weights = weights - weights.mean(1, keepdim=True)
        return deformable_filter(depth, residual_weights, offsets)[..., :height, :width]


class FastKernel(nn.Module):
    """One of the two branches: [B, 16, h, w] to weights [B, 9 * 16, h, w] in 0..1 and offsets [B, 18 * 16, h, w]."""

    def __init__(self) -> None:
        super().__init__()
        cells = RATE**2
        self.conv1 = nn.Conv2d(cells, 32, 3, padding=1)
        self.conv1_bn = nn.BatchNorm2d(32)
        self.conv2 = nn.Conv2d(32, 32, 3, padding=1)
        self.conv3 = nn.Conv2d(32, 64, 3, padding=1)
        self.conv3_bn = nn.BatchNorm2d(64)
        self.conv4 = nn.Conv2d(64, 64, 3, padding=1)
        self.conv5 = nn.Conv2d(64, 128, 3, padding=1)
        self.conv5_bn = nn.BatchNorm2d(128)
        self.conv6 = nn.Conv2d(128, 128, 3, padding=1)
        self.conv_weight = nn.Conv2d(128, KERNEL**2 * cells, 1)
        self.conv_offset = nn.Conv2d(128, 2 * KERNEL**2 * cells, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the weights and the offsets."""
        x = relu(self.conv2(relu(self.conv1_bn(self.conv1(x)))))
        x = relu(self.conv4(relu(self.conv3_bn(self.conv3(x)))))
        x = relu(self.conv6(relu(self.conv5_bn(self.conv5(x)))))
        return torch.sigmoid(self.conv_weight(x)), self.conv_offset(x)
