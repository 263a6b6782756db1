"""DKN: the deformable kernel network (Kim, Ponce, Ham: Deformable Kernel Networks ..., IJCV 2021)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import pad, relu

from dada.baselines.dkn_sampling import KERNEL, deformable_filter
from dada.baselines.learned import Learned, blue_first
from dada.sample import Sample

BEFORE, AFTER = 25, 24
"""A kernel is computed from so many rows and columns before its pixel and after it."""


class Dkn(Learned):
    """Kernel weights and offsets from the colours of the guide and from the bicubic source, multiplied.

    The keys are the authors'; their released files load as they are.
    """

    name = "DKN"
    key = "dkn"

    def __init__(self) -> None:
        super().__init__()
        self.config: dict[str, Any] = {}
        self.ImageKernel = Kernel(3)
        self.DepthKernel = Kernel(1)

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
        image_weights, image_offsets = self.ImageKernel(guide)
        depth_weights, depth_offsets = self.DepthKernel(depth)
        weights = image_weights * depth_weights
        residual_weights = weights - weights.mean(1, keepdim=True)
        return deformable_filter(depth, residual_weights, image_offsets * depth_offsets)


class Kernel(nn.Module):
    """One of the two branches: [B, bands, H, W] to weights [B, 9, H, W] in 0..1 and offsets [B, 18, H, W].

    The authors run a network with two strides of 2 on the 16 shifts of the image and interleave the results. The
    same numbers come from one run without strides and with every later convolution dilated: what is done here, at
    any size. (In training the batch normalisation then sees all shifts at once, not one after another.)
    """

    def __init__(self, bands: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(bands, 32, 7)
        self.conv1_bn = nn.BatchNorm2d(32)
        self.conv2 = nn.Conv2d(32, 32, 2)
        self.conv3 = nn.Conv2d(32, 64, 5, dilation=2)
        self.conv3_bn = nn.BatchNorm2d(64)
        self.conv4 = nn.Conv2d(64, 64, 2, dilation=2)
        self.conv5 = nn.Conv2d(64, 128, 5, dilation=4)
        self.conv5_bn = nn.BatchNorm2d(128)
        self.conv6 = nn.Conv2d(128, 128, 3, dilation=4)
        self.conv7 = nn.Conv2d(128, 128, 3, dilation=4)
        self.conv_weight = nn.Conv2d(128, KERNEL**2, 1)
        self.conv_offset = nn.Conv2d(128, 2 * KERNEL**2, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the weights and the offsets."""
        x = pad(x, (BEFORE, AFTER, BEFORE, AFTER))
        x = relu(self.conv2(relu(self.conv1_bn(self.conv1(x)))))
        x = relu(self.conv4(relu(self.conv3_bn(self.conv3(x)))))
        x = relu(self.conv6(relu(self.conv5_bn(self.conv5(x)))))
        x = relu(self.conv7(x))
        return torch.sigmoid(self.conv_weight(x)), self.conv_offset(x)
