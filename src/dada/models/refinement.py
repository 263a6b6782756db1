"""The refinement network: looks at a result beside the guide, and says what the next solution should change.

As in `dada.features.light`, 2 x 2 pixels are stacked as channels: the work is done at half the resolution, each pixel
gets its own outputs.
"""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d, interpolate, pixel_shuffle, pixel_unshuffle

from dada.diffusion import Blocks, Coefficients, partition
from dada.diffusion.blocks import block_mean, block_sum, spread
from dada.diffusion.coefficients import laplacian
from dada.features.convolution import convolve, convolve_by, gradient_free
from dada.features.light import Decoder, Residual, keep_variance
from dada.features.padding import padded
from dada.models.config import RefinementName

WIDTH = 32  # channels inside
DILATIONS = {"wide": (1, 1, 2, 4), "narrow": (1,)}  # of the convolutions after the first
CONTEXT = {"wide": (64, 96, 128), "narrow": (48, 64, 96)}
"""Channels of the U-Net below them, at 1/4, 1/8 and 1/16 of the resolution."""
WINDOW = 5  # side of the window whose mean a pixel is compared with, in stacks of 2 x 2
SMALL = 0.1  # differences to it that are large enough to count by their logarithm, in deviations of the source
PULL = 2  # channels of `measurement_pull`
OUTPUTS = 3  # for each pixel: two logarithms for its edges down and right, and one for the weight of the result


class RefinementNetwork(nn.Module):
    """Features of a pixel [B, in_channels, H, W] and a result [B, 1, H, W] to [B, OUTPUTS, H, W]; 0 at the start.

    It sees some 150 pixels. What does not depend on the result is computed once for all rounds, by `prepare`.
    """

    def __init__(self, in_channels: int, results: int = 1, size: RefinementName = "wide") -> None:
        """Set up.

        Args:
            in_channels: of the features.
            results: how many it looks at, one after the other. What suits a result that is refined again (an edge,
                wherever it is) may not suit the last one (a slope where its place is uncertain).
            size: see `dada.models.config.DadaConfig`.
        """
        super().__init__()
        self.known = nn.Conv2d(4 * in_channels, WIDTH, 1)
        self.look = nn.Conv2d(3 * 4, WIDTH, 3, padding=1, bias=False)
        self.more = nn.Sequential(*(Residual(WIDTH, dilation) for dilation in DILATIONS[size]))
        self.out = nn.Conv2d(WIDTH, 4 * OUTPUTS, 1)
        self.pull = nn.Conv2d(PULL * 4, WIDTH, 3, padding=1, bias=False)
        self.context = Context(CONTEXT[size])
        self.offsets = nn.Parameter(torch.zeros(results, WIDTH))  # added to the first channels, for each result
        self.apply(keep_variance)
        with torch.no_grad():
            self.known.weight.mul_(0.5)
            for start in (self.out, self.pull, self.context.out):
                start.weight.zero_()
            for weight in self.more[2:].parameters():
                weight.zero_()

    def prepare(self, features: Tensor, scale: Tensor) -> Tensor:
        """Compute what `forward` needs of all but the result.

        Args:
            features: [B, in_channels, H, W].
            scale: what its channels are to be multiplied by, [in_channels].
        """
        # the same as self.known on stacks of 2 x 2 scaled pixels, without making them
        weight = self.known.weight.reshape(WIDTH, -1, 2, 2) * scale[:, None, None]
        even = padded(features, 2).contiguous(memory_format=torch.channels_last)
        return convolve(even, weight, self.known.bias, stride=2)

    def forward(self, prepared: Tensor, result: Tensor, initial: Tensor, pull: Tensor, number: int = 0) -> Tensor:
        """Return what to change, [B, OUTPUTS, H, W].

        Args:
            prepared: from `prepare`.
            result: the last one, [B, 1, H, W], in deviations of the source and about 0.
            initial: the bicubic source in the same unit.
            pull: [B, PULL, H, W], from `measurement_pull`.
            number: of the result, from 0.
        """
        height, width = result.shape[-2:]
        result, initial = _stack(result), _stack(initial)
        mean = result.mean(dim=1, keepdim=True)
        around = avg_pool2d(mean, WINDOW, stride=1, padding=WINDOW // 2, count_include_pad=False)
        seen = [result, result - initial, _logarithmic((result - around) / SMALL), _stack(pull)]
        channels = torch.cat(seen, dim=1).contiguous(memory_format=torch.channels_last)
        weight = torch.cat([self.look.weight, self.pull.weight], dim=1)
        x = convolve(channels, weight, self.offsets[number], padding=1, after="relu", plus=prepared)
        x = self.more(x)
        x = self.context(x).add_(x).relu_()
        return pixel_shuffle(convolve_by(self.out, x, whole=True).contiguous(), 2)[..., :height, :width]


class Context(nn.Module):
    """A U-Net below half the resolution: [B, WIDTH, h, w] to what it adds to them, of any size; 0 at the start."""

    def __init__(self, widths: tuple[int, ...]) -> None:
        super().__init__()
        self.halve = nn.ModuleList(nn.Conv2d(a, b, 3, stride=2, padding=1) for a, b in pairwise((WIDTH, *widths)))
        self.refine = nn.ModuleList(Residual(b) for b in widths)
        self.decoder = Decoder(widths, widths[:-1])
        self.out = nn.Conv2d(widths[0], WIDTH, 1)

    def forward(self, x: Tensor) -> Tensor:
        height, width = x.shape[-2:]
        x = padded(x, 1 << len(self.refine))
        levels = []
        for halve, refine in zip(self.halve, self.refine, strict=True):
            x = refine(convolve_by(halve, x, "relu"))
            levels.append(x)
        x = convolve_by(self.out, self.decoder(levels))
        return interpolate(x, scale_factor=2.0, mode="nearest")[..., :height, :width]


def measurement_pull(c: Coefficients, result: Tensor, mask: Tensor, blocks: Blocks | None = None) -> Tensor:
    """How hard each measurement pulls at a result, [B, PULL, H, W]; 0 in cells without one.

    At the equilibrium what flows into a cell is what the adjustment takes away there: nothing where the edges are in
    their places, much where one is missing or beside its place, of a sign that tells to which side.

    Args:
        c: the coefficients whose equilibrium it is.
        result: [B, 1, H, W] in deviations of the source.
        mask: [B, 1, h, w] bool, valid cells.
        blocks: which pixels each cell covers; `partition` of the two sizes where not given.

    Returns:
        By how much each pixel lies above the mean of its cell, and by how much the cell's pull would bend an image
        without edges (of a cell s pixels wide: s^2 / 8 of the pull on a pixel); large ones by their logarithm.
    """
    blocks = blocks or partition((mask.shape[-2], mask.shape[-1]), (result.shape[-2], result.shape[-1]))
    pull = torch.where(mask, -block_sum(laplacian(result[:, 0], c)[:, None], blocks) / 8, 0)
    above = torch.where(spread(mask, blocks), result - spread(block_mean(result, blocks), blocks), 0)
    return _logarithmic(torch.cat([above, spread(pull, blocks)], dim=1) / SMALL)


def _logarithmic(x: Tensor) -> Tensor:
    """The inverse hyperbolic sine: small numbers as they are, large ones by their logarithm."""
    if not gradient_free():
        return x.asinh()
    size = x.abs()  # asinh takes ten times as long on a CPU
    square = size.square()
    return size.add_(square.div_(square.add(1).sqrt_().add_(1))).log1p_().copysign_(x)


def _stack(image: Tensor) -> Tensor:
    """2 x 2 pixels as channels."""
    return pixel_unshuffle(padded(image, 2), 2).contiguous(memory_format=torch.channels_last)
