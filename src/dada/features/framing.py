"""Any size in, the same size out: around networks that need multiples of their stride."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn.functional import avg_pool2d, interpolate, pad


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
        below, right = -height % self.stride, -width % self.stride
        if below or right:
            image = pad(image, (0, right, 0, below), mode="replicate")
        features = self.net(image)[..., :height, :width]
        return avg_pool2d(features, 2) if self.upsample else features
