"""FDSR: fast depth super-resolution (He et al.: Towards Fast and Accurate Real-World Depth SR, CVPR 2021)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d, interpolate, leaky_relu, pixel_shuffle, pixel_unshuffle

from dada.baselines.learned import Learned, blue_first, extend, luminance, multiple
from dada.io.weights import State, shape_of
from dada.sample import Sample

RATE = 4
"""Features live on a grid this many times coarser; the input's pixels become channels, the output's come from them."""
LOW_SHARE = 4
"""One in so many channels of the guide is of low frequency, on a grid coarser by 2 again."""
SLOPE = 0.2


class Fdsr(Learned):
    """High frequencies of the guide, by octave convolution, join dilated residual blocks of the bicubic source.

    Args:
        features: channels of the first layers.

    The keys are the authors'; their released files load as they are.
    """

    name = "FDSR"
    key = "fdsr"

    def __init__(self, features: int = 32) -> None:
        super().__init__()
        if features < LOW_SHARE:
            raise ValueError(f"features must be at least {LOW_SHARE}, got {features}")
        self.config: dict[str, Any] = {"features": features}
        low = features // LOW_SHARE
        high = features - low
        self.conv_rgb1 = nn.Conv2d(RATE**2, features, 3, padding=1)
        self.rgb_cbl2 = OctaveBlock(features, 0, high, low)
        self.rgb_cbl3 = OctaveBlock(high, low, high, low)
        self.rgb_cbl4 = OctaveBlock(high, low, high, low)
        self.conv_dp1 = nn.Conv2d(RATE**2, features, 3, padding=1)
        self.MSB1 = ScaleBlock(features)
        self.MSB2 = ScaleBlock(features + high)
        self.MSB3 = ScaleBlock(features + 2 * high)
        self.MSB4 = ScaleBlock(features + 3 * high)
        self.conv_recon1 = nn.Conv2d(features + 3 * high, 4 * features, 3, padding=1)
        self.conv_recon2 = nn.Conv2d(features, 4 * features, 3, padding=1)
        self.restore = nn.Conv2d(features, 1, 3, padding=1)

    @property
    def unused(self) -> frozenset[str]:
        """See `Learned.unused`: the last low frequencies of the guide join nothing."""
        return frozenset(f"rgb_cbl4.conv.conv_{way}.weight" for way in ("l2l", "h2l"))

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
        size = multiple(height, 2 * RATE), multiple(width, 2 * RATE)
        grey, depth = extend(luminance(blue_first(guide)), *size), extend(depth, *size)
        second = self.rgb_cbl2(leaky_relu(self.conv_rgb1(pixel_unshuffle(grey, RATE)), SLOPE), None)
        third = self.rgb_cbl3(*second)
        fourth = self.rgb_cbl4(*third)
        x = self.MSB1(leaky_relu(self.conv_dp1(pixel_unshuffle(depth, RATE)), SLOPE))
        for block, (high, _) in ((self.MSB2, second), (self.MSB3, third), (self.MSB4, fourth)):
            x = block(torch.cat([x, high], dim=1))
        x = pixel_shuffle(self.conv_recon1(leaky_relu(x, SLOPE)), 2)
        x = pixel_shuffle(self.conv_recon2(x), 2)
        result: Tensor = (depth + self.restore(x))[..., :height, :width]
        return result

    @classmethod
    def config_of(cls, state: State, path: Path) -> dict[str, Any]:
        """See `Learned.config_of`."""
        return {"features": shape_of(state, "conv_rgb1.weight", path)[0]}


class OctaveBlock(nn.Module):
    """Octave convolution and a leaky ReLU; the authors' keys have the convolutions one level down, in `conv`."""

    def __init__(self, high_in: int, low_in: int, high: int, low: int) -> None:
        super().__init__()
        self.conv = OctaveConvolution(high_in, low_in, high, low)

    def forward(self, high: Tensor, low: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return the high and the low frequencies."""
        new_high, new_low = self.conv(high, low)
        return leaky_relu(new_high, SLOPE), leaky_relu(new_low, SLOPE)


class OctaveConvolution(nn.Module):
    """Convolutions between features at full and at half resolution (Chen et al. 2019), four ways or two."""

    def __init__(self, high_in: int, low_in: int, high: int, low: int) -> None:
        super().__init__()
        if low_in:
            self.conv_l2l = nn.Conv2d(low_in, low, 3, padding=1, bias=False)
            self.conv_l2h = nn.Conv2d(low_in, high, 3, padding=1, bias=False)
        self.conv_h2l = nn.Conv2d(high_in, low, 3, padding=1, bias=False)
        self.conv_h2h = nn.Conv2d(high_in, high, 3, padding=1, bias=False)

    def forward(self, high: Tensor, low: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return the high and the low frequencies."""
        new_high, new_low = self.conv_h2h(high), self.conv_h2l(avg_pool2d(high, 2))
        if low is None:
            return new_high, new_low
        return new_high + interpolate(self.conv_l2h(low), scale_factor=2.0), new_low + self.conv_l2l(low)


class ScaleBlock(nn.Module):
    """Residual block that looks at two scales: a convolution and a dilated one, summed."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(features, features, 3, padding=1)
        self.conv2 = nn.Conv2d(features, features, 3, padding=2, dilation=2)
        self.conv4 = nn.Conv2d(features, features, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Return features of the same shape."""
        both = leaky_relu(self.conv1(x), SLOPE) + leaky_relu(self.conv2(x), SLOPE)
        result: Tensor = x + self.conv4(both)
        return result
