"""Any size in, the same size out: around networks that need multiples of their stride."""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor, nn
from torch.nn.functional import avg_pool2d, interpolate

from dada.features.convolution import gradient_free
from dada.features.light import LightUNet
from dada.features.lite0 import Lite0UNet
from dada.features.padding import padded


class Framed(nn.Module):
    """A network with padding inside and, if asked for, the paper's enlargement around it.

    Attributes:
        net: [B, C, H, W] to [B, F, H, W] for multiples of `stride`.
        stride: what H and W are padded to, on the right and below, by repeating the last row and column.
        upsample: enlarge the input twice (bicubic) and average the features over 2 x 2: edges come out
            sharper, for four times the work.
    """

    def __init__(self, net: nn.Module, stride: int, upsample: bool) -> None:
        super().__init__()
        self.net, self.stride, self.upsample = net, stride, upsample

    def forward(self, image: Tensor) -> Tensor:
        """Return the features of an image [B, C, H, W] of any size, [B, F, H, W]."""
        if self.upsample:
            image = interpolate(image, scale_factor=2.0, mode="bicubic", align_corners=False)
        height, width = image.shape[-2:]
        features: Tensor = self.net(padded(image, self.stride))[..., :height, :width]
        return avg_pool2d(features, 2) if self.upsample else features

    def in_bands(self, image: Tensor) -> Iterator[tuple[int, Tensor]]:
        """Yield the same in bands of rows from the top: the number of the first row, and the features.

        A band has the first row of the next one at its end. There is one band where gradients are kept, of networks
        without a `FineHead`, and for whoever looks at what goes in and out by a hook.
        """
        hooked = bool(self._forward_hooks or self._forward_pre_hooks)
        if hooked or self.upsample or not gradient_free() or not isinstance(self.net, LightUNet | Lite0UNet):
            yield 0, self(image)
            return
        height, width = image.shape[-2:]
        image = padded(image, self.stride)
        x, head = self.net.coarse(image), self.net.head
        for start, stop in head.bands(height, width):
            yield start, head.rows(x, image, start, min(stop + 1, height))[..., :width]
