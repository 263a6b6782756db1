"""A small network that looks at a result beside the guide, and says what the next solution should change.

As in `light`, 2 x 2 pixels are stacked as channels: the work is done at half the resolution, what is said is said of
each pixel.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d, conv2d, pad, pixel_shuffle, pixel_unshuffle

from .light import Residual, keep_variance

WIDTH = 32  # channels inside
NEAR = (1, 1)  # dilations of the convolutions after the first
FAR = (2, 4)  # and of those that follow in a wide review: it sees 46 pixels instead of 22
AROUND = 5  # side of the window whose mean a pixel is compared with, in stacks of 2 x 2
SMALL = 0.1  # differences to it that are large enough to count by their logarithm, in deviations of the source
SAID = 3  # what is said of a pixel: two logarithms for its edges down and right, and one for the weight of the result


class Review(nn.Module):
    """What is known of a pixel [B, in_channels, H, W] and a result [B, 1, H, W] to [B, SAID, H, W]; 0 at the start.

    What does not depend on the result is computed once for all rounds, by `prepare`.
    """

    def __init__(self, in_channels: int, wide: bool = False) -> None:
        """Set up.

        Args:
            in_channels: of what is known of a pixel beside the result.
            wide: see farther, by two more convolutions that start as doing nothing.
        """
        super().__init__()
        self.known = nn.Conv2d(4 * in_channels, WIDTH, 1)
        self.seen = nn.Conv2d(3 * 4, WIDTH, 3, padding=1, bias=False)
        self.more = nn.Sequential(*(Residual(WIDTH, dilation) for dilation in NEAR + FAR * wide))
        self.out = nn.Conv2d(WIDTH, 4 * SAID, 1)
        self.apply(keep_variance)
        with torch.no_grad():
            self.known.weight.mul_(0.5)
            self.out.weight.zero_()
            for weight in self.more[len(NEAR) :].parameters():
                weight.zero_()

    def prepare(self, known: Tensor, scale: Tensor) -> Tensor:
        """What `forward` needs of all but the result.

        Args:
            known: of each pixel.
            scale: what its channels are to be multiplied by, [in_channels].
        """
        # the same as self.known on stacks of 2 x 2 scaled pixels, without making them
        weight = self.known.weight.reshape(WIDTH, -1, 2, 2) * scale[:, None, None]
        return conv2d(_even(known), weight, self.known.bias, stride=2)

    def forward(self, prepared: Tensor, result: Tensor, initial: Tensor) -> Tensor:
        """Say what to change.

        Args:
            prepared: from `prepare`.
            result: the last one, [B, 1, H, W], in deviations of the source and about 0.
            initial: the bicubic source in the same unit.
        """
        height, width = result.shape[-2:]
        result, initial = _stack(result), _stack(initial)
        mean = result.mean(dim=1, keepdim=True)
        around = avg_pool2d(mean, AROUND, stride=1, padding=AROUND // 2, count_include_pad=False)
        seen = torch.cat([result, result - initial, ((result - around) / SMALL).asinh()], dim=1)
        x = self.seen(seen.contiguous(memory_format=torch.channels_last)).add_(prepared).relu_()
        return pixel_shuffle(self.out(self.more(x)), 2)[..., :height, :width]


def _even(image: Tensor) -> Tensor:
    """The image with odd sides made even by repeating the last row and column."""
    height, width = image.shape[-2:]
    return pad(image, (0, width % 2, 0, height % 2), mode="replicate") if height % 2 or width % 2 else image


def _stack(image: Tensor) -> Tensor:
    """2 x 2 pixels as channels."""
    return pixel_unshuffle(_even(image), 2).contiguous(memory_format=torch.channels_last)
