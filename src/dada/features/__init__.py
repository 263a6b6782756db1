"""Feature extractors: networks that turn guide and source into the features of Eq. 2, by name."""

from __future__ import annotations

from .framing import Framed
from .light import LightUNet
from .lite0 import Lite0UNet

__all__ = ["NAMES", "build"]

NAMES = (
    "light",
    "lite0",
    "lite0-fine",
    "unet-resnet18",
    "unet-resnet34",
    "unet-resnet50",
    "unet-efficientnet-b0",
    "unet-efficientnet-b1",
    "unet-efficientnet-b2",
    "fpn-resnet50",
    "deeplabv3plus-resnet50",
)
"""Ours and the paper's; "ARCHITECTURE-ENCODER" with any other encoder of segmentation-models-pytorch works too."""

MORE = 2  # convolutions at full resolution that "lite0-fine" has beyond those of "lite0"


def build(
    name: str, in_channels: int = 4, classes: int = 64, pretrained: bool = False, upsample: bool = True
) -> Framed:
    """Make the extractor of a name.

    Args:
        name: one of NAMES, or unet, fpn or deeplabv3plus with an encoder of segmentation-models-pytorch.
        in_channels: bands of the guide, standardised, and one for the source.
        classes: number of features.
        pretrained: start the encoder from ImageNet; "light" has no such weights.
        upsample: enlarge the input twice and average the features (the paper's; not needed by "light" and "lite0").

    Returns:
        A module from [B, in_channels, H, W] to [B, classes, H, W], for any H and W.

    Raises:
        InputError: the name is unknown, or a package or weights cannot be had.
    """
    if name == "light":
        return Framed(LightUNet(in_channels, classes), LightUNet.stride, upsample)
    if name in ("lite0", "lite0-fine"):
        more = MORE if name == "lite0-fine" else 0
        return Framed(Lite0UNet(in_channels, classes, pretrained, more), Lite0UNet.stride, upsample)
    from .backbones import backbone

    return Framed(*backbone(name, in_channels, classes, pretrained), upsample)
