"""Our own small U-Net, about a million parameters and no dependency beyond torch: made for CPUs.

A U-Net spends most of its time at full resolution. There this one only looks (`FineHead`, which places edges to the
pixel); it thinks at half the resolution and below, where 2 x 2 pixels are stacked as channels.

There is no normalisation layer: statistics of a batch of four to eight crops are noisy, those of an image differ
between a crop in training and a whole photograph later, and a network this shallow trains well without, as those for
plain super-resolution do. What a pixel's features are depends on its surroundings alone.

Without gradients, full resolution is computed in bands of rows: on large images, getting memory costs more than
computing.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate, pixel_shuffle, pixel_unshuffle

from dada.features.bands import around, bands, placed
from dada.features.convolution import convolve, convolve_by, gradient_free

WIDTHS = (32, 64, 96, 128, 128)  # channels at 1/2, 1/4, 1/8, 1/16, 1/32
FINE = 16  # channels at full resolution


class LightUNet(nn.Module):
    """[B, in_channels, H, W] to [B, classes, H, W]; H and W must be multiples of `stride`."""

    stride = 32

    def __init__(self, in_channels: int = 4, classes: int = 64) -> None:
        super().__init__()
        self.stem = nn.Conv2d(4 * in_channels, WIDTHS[0], 3, padding=1)
        self.halve = nn.ModuleList(nn.Conv2d(a, b, 3, stride=2, padding=1) for a, b in pairwise(WIDTHS))
        self.refine = nn.ModuleList(Residual(b) for b in WIDTHS[1:])
        self.decoder = Decoder(WIDTHS, WIDTHS[:-1])
        self.head = FineHead(WIDTHS[0], in_channels, classes)
        self.apply(keep_variance)
        self.head.begin_gently()

    def forward(self, image: Tensor) -> Tensor:
        features: Tensor = self.head(self.coarse(image), image)
        return features

    def coarse(self, image: Tensor) -> Tensor:
        """What the head is given, at half the resolution."""
        image = image.contiguous(memory_format=torch.channels_last)  # half the time on a CPU
        levels = [convolve_by(self.stem, pixel_unshuffle(image, 2), "relu")]
        for halve, refine in zip(self.halve, self.refine, strict=True):
            levels.append(refine(convolve_by(halve, levels[-1], "relu")))
        x: Tensor = self.decoder(levels)
        return x


class Residual(nn.Module):
    """x + conv(x), rectified."""

    def __init__(self, channels: int, dilation: int = 1) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=dilation, dilation=dilation)

    def forward(self, x: Tensor) -> Tensor:
        return convolve_by(self.conv, x, "relu", plus=x)


class Decoder(nn.Module):
    """From the coarsest level of an encoder to its finest, adding each level on the way."""

    def __init__(self, encoder: tuple[int, ...], widths: tuple[int, ...]) -> None:
        """Set up.

        Args:
            encoder: channels of the encoder's levels, fine to coarse.
            widths: channels of the decoder's levels, fine to coarse, one less.
        """
        super().__init__()
        coarser = (*widths[1:], encoder[-1])
        self.skip = nn.ModuleList(
            nn.Identity() if a == b else nn.Conv2d(a, b, 1) for a, b in zip(encoder[:-1], widths, strict=True)
        )
        self.lift = nn.ModuleList(nn.Conv2d(a, b, 1) for a, b in zip(coarser, widths, strict=True))
        self.refine = nn.ModuleList(Residual(b) for b in widths)

    def expect(self, size: float) -> None:
        """Start for levels of numbers as large as `size` instead of 1."""
        with torch.no_grad():
            for conv in (*self.skip, self.lift[-1]):
                conv.weight.div_(size)

    def forward(self, levels: list[Tensor]) -> Tensor:
        """Return the finest level; empties the list, so that each level is dropped when it was used."""
        x = levels.pop()
        for i in reversed(range(len(self.lift))):
            level = levels.pop()
            # before it is enlarged: 1x1 convolution and interpolation commute, and a quarter is cheaper
            wide = interpolate(convolve_by(self.lift[i], x), scale_factor=2.0, mode="nearest")
            skip = self.skip[i]
            x = convolve_by(skip, level, "relu", plus=wide) if isinstance(skip, nn.Conv2d) else wide.add_(level).relu_()
            x = self.refine[i](x)
        return x


class FineHead(nn.Module):
    """From half the resolution to the features, with a look at the image itself."""

    def __init__(self, channels: int, in_channels: int, classes: int, more: int = 0) -> None:
        """Set up.

        Args:
            channels: of what comes from half the resolution.
            in_channels: of the image.
            classes: number of features.
            more: residual convolutions at full resolution beyond the first; they start as doing nothing.
        """
        super().__init__()
        self.enlarge = nn.Conv2d(channels, 4 * FINE, 1)  # four pixels for one
        self.look = nn.Conv2d(in_channels, FINE, 3, padding=1)
        self.mix = nn.Conv2d(FINE, FINE, 3, padding=1)
        self.more = nn.ModuleList(Residual(FINE) for _ in range(more))
        self.out = nn.Conv2d(FINE, classes, 1, bias=False)  # only differences of features count

    def begin_gently(self, scale: float = 0.01) -> None:
        """Start with the four pixels of a stack alike, and with features near those of an image without edges."""
        with torch.no_grad():
            self.enlarge.weight.copy_(self.enlarge.weight[::4].repeat_interleave(4, 0))
            self.out.weight.mul_(scale)
            for weight in self.more.parameters():
                weight.zero_()

    def forward(self, x: Tensor, image: Tensor) -> Tensor:
        """Return the features of an image, given what comes from half the resolution."""
        height, features = image.shape[-2], None
        for start, stop in self.bands(height, image.shape[-1]):
            features = placed(features, self.rows(x, image, start, stop), start, height)
        assert features is not None
        return features

    def bands(self, height: int, width: int) -> Iterator[tuple[int, int]]:
        """In which rows are computed."""
        return bands(height, 2 * FINE * width)

    def rows(self, x: Tensor, image: Tensor, start: int, stop: int) -> Tensor:
        """Return the features of a band of rows."""
        low, high = around(start, stop, 2 + len(self.more), image.shape[-2])
        near = image[..., low:high, :].contiguous(memory_format=torch.channels_last)
        fine = convolve_by(self.look, near, "relu", plus=self._enlarged(x[..., low // 2 : high // 2, :]))
        fine = convolve_by(self.mix, fine, "relu", plus=fine)
        for residual in self.more:
            fine = residual(fine)
        # Eq. 2 takes differences, which bfloat16 would round away
        return convolve_by(self.out, fine[..., start - low : stop - low, :], whole=True)

    def _enlarged(self, x: Tensor) -> Tensor:
        """Four pixels for one: [B, channels, h, w] to [B, FINE, 2 h, 2 w]."""
        if not gradient_free():
            return pixel_shuffle(self.enlarge(x), 2)
        # the same with the channels of a pixel side by side, so that rows are copied whole
        order = torch.arange(4 * FINE).reshape(FINE, 4).t().flatten()
        bias = None if self.enlarge.bias is None else self.enlarge.bias[order]
        stacked = convolve(x.contiguous(memory_format=torch.channels_last), self.enlarge.weight[order], bias)
        batch, _, height, width = stacked.shape
        pixels = stacked.permute(0, 2, 3, 1).reshape(batch, height, width, 2, 2 * FINE).transpose(2, 3)
        return pixels.reshape(batch, 2 * height, 2 * width, FINE).permute(0, 3, 1, 2)


def keep_variance(module: nn.Module) -> None:
    """Start convolutions so that a signal keeps its size through ReLUs; residual ones at half of it."""
    if isinstance(module, nn.Conv2d):
        nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
        if module.bias is not None:
            nn.init.zeros_(module.bias)
    elif isinstance(module, Residual):
        with torch.no_grad():
            module.conv.weight.mul_(0.5)
