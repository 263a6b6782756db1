"""The paper's extractors, made by segmentation-models-pytorch (smp), which is imported when first used."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

import torch
from torch import nn

from dada.errors import InputError

ARCHITECTURES = {"unet": "Unet", "fpn": "FPN", "deeplabv3plus": "DeepLabV3Plus"}
INSTALL = 'Run: pip install "dada-sr[backbones]", or use the extractor light or lite0, which need nothing.'


def backbone(name: str, in_channels: int, classes: int, pretrained: bool) -> tuple[nn.Module, int]:
    """Return an smp network of a name such as "unet-resnet50", and the stride its input must be padded to.

    Raises:
        InputError: smp is missing, the name is unknown, or the ImageNet weights cannot be had.
    """
    architecture, _, encoder = name.partition("-")
    if architecture not in ARCHITECTURES or not encoder:
        raise InputError(
            f"feature extractor {name!r} is unknown. Use light, lite0, or an architecture ({', '.join(ARCHITECTURES)}) "
            "and an encoder of segmentation-models-pytorch, such as unet-resnet50."
        )
    smp = import_smp(name)
    make = getattr(smp, ARCHITECTURES[architecture])
    try:
        net = make(
            encoder, encoder_weights="imagenet" if pretrained else None, in_channels=in_channels, classes=classes
        )
    except KeyError:
        raise InputError(
            f"feature extractor {name!r}: segmentation-models-pytorch {smp.__version__} knows no encoder {encoder!r}. "
            "It lists its own with smp.encoders.get_encoder_names(); those of timm are written tu-NAME."
        ) from None
    except OSError as error:  # the hub's, requests' and the system's errors of connection are all of this kind
        raise InputError(
            f"feature extractor {name!r}: the ImageNet weights could not be downloaded ({_first_line(error)}). Go "
            "online once, start without (pretrained = false), or use lite0, whose weights come with a package."
        ) from None
    return net, 2**5  # the coarsest of an encoder's five levels


def import_smp(name: str) -> ModuleType:
    """Import smp, also where torchvision was not built for the torch beside it."""
    try:
        try:
            return import_module("segmentation_models_pytorch")
        except RuntimeError as error:
            if "operator torchvision::nms does not exist" not in str(error):
                raise
            _define_missing_operators()
            return import_module("segmentation_models_pytorch")
    except ImportError as error:
        raise InputError(
            f"feature extractor {name!r} needs segmentation-models-pytorch and timm ({_first_line(error)}). {INSTALL}"
        ) from None


_OPERATORS: list[torch.library.Library] = []  # what they define ends with them


def _define_missing_operators() -> None:
    """Name the operators of torchvision whose compiled part is missing; none of them is called by an extractor."""
    library = torch.library.Library("torchvision", "FRAGMENT")  # type: ignore[no-untyped-call]
    for operator in ("nms", "qnms"):
        library.define(f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")  # type: ignore[no-untyped-call]
    _OPERATORS.append(library)


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
