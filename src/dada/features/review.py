"""A small network that looks at a result beside the guide, and says what the next solution should change.

As in `light`, 2 x 2 pixels are stacked as channels: the work is done at half the resolution, what is said is said of
each pixel.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d, conv2d, interpolate, pad, pixel_shuffle, pixel_unshuffle

from dada.diffusion import Coefficients, down, partition
from dada.diffusion.blocks import block_sum, spread
from dada.diffusion.coefficients import laplacian

from .light import Decoder, Residual, keep_variance

Kind = Literal["near", "wide", "deep"]
WIDTH = 32  # channels inside
NEAR = (1, 1)  # dilations of the convolutions after the first
FAR = (2, 4)  # and of those that follow in a wide or deep review: it sees 46 pixels instead of 22
DEEP = (64, 96, 128)  # channels of a deep review at 1/4, 1/8 and 1/16 of the resolution
AROUND = 5  # side of the window whose mean a pixel is compared with, in stacks of 2 x 2
SMALL = 0.1  # differences to it that are large enough to count by their logarithm, in deviations of the source
HOLD = 2  # channels of `hold`
SAID = 3  # what is said of a pixel: two logarithms for its edges down and right, and one for the weight of the result


class Review(nn.Module):
    """What is known of a pixel [B, in_channels, H, W] and a result [B, 1, H, W] to [B, SAID, H, W]; 0 at the start.

    What does not depend on the result is computed once for all rounds, by `prepare`.
    """

    def __init__(self, in_channels: int, kind: Kind = "near", turns: int = 1) -> None:
        """Set up.

        Args:
            in_channels: of what is known of a pixel beside the result.
            kind: "near" sees 22 pixels; "wide" has two more convolutions and sees 46; "deep" has a U-Net after these
                and sees how the measurements hold the result (`hold`). What either adds starts as doing nothing.
            turns: how many results it looks at, one after the other. What suits a result that is looked at again (an
                edge, wherever it is) may not suit the last one (a slope where its place is uncertain).
        """
        super().__init__()
        self.known = nn.Conv2d(4 * in_channels, WIDTH, 1)
        self.seen = nn.Conv2d(3 * 4, WIDTH, 3, padding=1, bias=False)
        self.more = nn.Sequential(*(Residual(WIDTH, dilation) for dilation in NEAR + FAR * (kind != "near")))
        self.out = nn.Conv2d(WIDTH, 4 * SAID, 1)
        self.felt = nn.Conv2d(HOLD * 4, WIDTH, 3, padding=1, bias=False) if kind == "deep" else None
        self.around = Around() if kind == "deep" else None
        self.turn = nn.Parameter(torch.zeros(turns, WIDTH))  # what is added to the first channels in each turn
        self.apply(keep_variance)
        with torch.no_grad():
            self.known.weight.mul_(0.5)
            self.out.weight.zero_()
            for weight in self.more[len(NEAR) :].parameters():
                weight.zero_()
            if self.felt and self.around:
                self.felt.weight.zero_()
                self.around.out.weight.zero_()

    def prepare(self, known: Tensor, scale: Tensor) -> Tensor:
        """What `forward` needs of all but the result.

        Args:
            known: of each pixel.
            scale: what its channels are to be multiplied by, [in_channels].
        """
        # the same as self.known on stacks of 2 x 2 scaled pixels, without making them
        weight = self.known.weight.reshape(WIDTH, -1, 2, 2) * scale[:, None, None]
        return conv2d(_even(known), weight, self.known.bias, stride=2)

    def forward(
        self, prepared: Tensor, result: Tensor, initial: Tensor, held: Tensor | None = None, turn: int = 0
    ) -> Tensor:
        """Say what to change.

        Args:
            prepared: from `prepare`.
            result: the last one, [B, 1, H, W], in deviations of the source and about 0.
            initial: the bicubic source in the same unit.
            held: how the measurements hold the result, from `hold`, for a deep review.
            turn: how many results it has looked at before.
        """
        height, width = result.shape[-2:]
        result, initial = _stack(result), _stack(initial)
        mean = result.mean(dim=1, keepdim=True)
        around = avg_pool2d(mean, AROUND, stride=1, padding=AROUND // 2, count_include_pad=False)
        seen = torch.cat([result, result - initial, ((result - around) / SMALL).asinh()], dim=1)
        x = self.seen(seen.contiguous(memory_format=torch.channels_last)).add_(prepared)
        x.add_(self.turn[turn][:, None, None])
        if self.felt is not None and held is not None:
            x.add_(self.felt(_stack(held)))
        x = self.more(x.relu_())
        if self.around is not None:
            x = self.around(x).add_(x).relu_()
        return pixel_shuffle(self.out(x), 2)[..., :height, :width]


class Around(nn.Module):
    """A U-Net below half the resolution: [B, WIDTH, h, w] to what it adds to them, of any size; 0 at the start."""

    def __init__(self) -> None:
        super().__init__()
        self.halve = nn.ModuleList(nn.Conv2d(a, b, 3, stride=2, padding=1) for a, b in pairwise((WIDTH, *DEEP)))
        self.refine = nn.ModuleList(Residual(b) for b in DEEP)
        self.decoder = Decoder(DEEP, DEEP[:-1])
        self.out = nn.Conv2d(DEEP[0], WIDTH, 1)

    def forward(self, x: Tensor) -> Tensor:
        height, width = x.shape[-2:]
        step = 1 << len(DEEP)
        x = pad(x, (0, -width % step, 0, -height % step), mode="replicate")
        levels = []
        for halve, refine in zip(self.halve, self.refine, strict=True):
            x = refine(halve(x).relu_())
            levels.append(x)
        return interpolate(self.out(self.decoder(levels)), scale_factor=2.0, mode="nearest")[..., :height, :width]


def hold(c: Coefficients, result: Tensor, mask: Tensor) -> Tensor:
    """How the measurements hold a result, [B, HOLD, H, W]; 0 in cells without one.

    At the equilibrium what flows into a cell is what the adjustment takes away there: nothing where the edges are in
    their places, much where one is missing or beside its place, of a sign that tells to which side.

    Args:
        c: the coefficients whose equilibrium it is.
        result: [B, 1, H, W] in deviations of the source.
        mask: [B, 1, h, w] bool, valid cells.

    Returns:
        By how much each pixel lies above the mean of its cell, and by how much the cell's pull would bend an image
        without edges (of a cell s pixels wide: s^2 / 8 of the pull on a pixel); large ones by their logarithm.
    """
    cells, size = (mask.shape[-2], mask.shape[-1]), (result.shape[-2], result.shape[-1])
    blocks = partition(cells, size)
    pull = torch.where(mask, -block_sum(laplacian(result[:, 0], c)[:, None], blocks) / 8, 0)
    above = torch.where(spread(mask, blocks), result - spread(down(result, cells), blocks), 0)
    return (torch.cat([above, spread(pull, blocks)], dim=1) / SMALL).asinh()


def _even(image: Tensor) -> Tensor:
    """The image with odd sides made even by repeating the last row and column."""
    height, width = image.shape[-2:]
    return pad(image, (0, width % 2, 0, height % 2), mode="replicate") if height % 2 or width % 2 else image


def _stack(image: Tensor) -> Tensor:
    """2 x 2 pixels as channels."""
    return pixel_unshuffle(_even(image), 2).contiguous(memory_format=torch.channels_last)
