"""MSG: depth super-resolution by multi-scale guidance (Hui, Loy, Tang: MSG-Net, ECCV 2016).

The network sees and returns high frequencies only; the low ones of the source are upsampled bicubically and added.

Its authors publish networks for x2 to x16. The paper compares at x32 too, with a network of which it says nothing; ours
has one level more than that for x16, alike in every layer to the level before it. Its transposed convolutions begin
with twice the authors' weights, since an output of theirs sees a quarter of the kernel: with five such levels in a row
the source would begin at a thirty-second of its size, and a training of it did not begin to learn.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d, interpolate, max_pool2d, pad

from dada.baselines.caffe import CaffeLayer, read_caffemodel
from dada.baselines.learned import Learned, extend, luminance, source_at
from dada.errors import InputError
from dada.io.weights import State, first_bytes, is_safetensors, shape_of
from dada.sample import Sample

CHANNELS = 32
SLOPE = 0.25  # where PReLUs begin
FACTORS = (2, 4, 8, 16, 32)
LARGEST_OF_THEIRS = 16  # factor of the networks that the authors publish
CUBIC_REACH = 2  # source cells that bicubic interpolation looks at, on each side


class Msg(Learned):
    """Guide features, pooled level by level, are fused with source features, upsampled level by level.

    Args:
        factor: upsampling: 2, 4, 8, 16 or 32; there is a level for each doubling.
    """

    name = "MSG"
    key = "msg"

    def __init__(self, factor: int = 8) -> None:
        super().__init__()
        if factor not in FACTORS:
            raise ValueError(f"factor {factor}: there are networks for {FACTORS}")
        self.config: dict[str, Any] = {"factor": factor}
        self.factor = factor
        levels = factor.bit_length() - 1
        self.guide = nn.ModuleList([Step(1, 49, 7), Step(49, CHANNELS, 5)])
        self.guide.extend(Step(CHANNELS, CHANNELS, 5) for _ in range(levels - 1))
        self.source = Step(1, 64, 5)
        gain = 2.0 if factor > LARGEST_OF_THEIRS else 1.0
        self.up = nn.ModuleList([UpStep(64, 2, gain)])
        self.up.extend(UpStep(CHANNELS, 1, gain) for _ in range(levels - 1))
        self.fuse = nn.ModuleList()
        for level in range(levels):
            count = 3 if level == levels - 1 else 2
            steps = [Step(CHANNELS if index else 2 * CHANNELS, CHANNELS, 5) for index in range(count)]
            self.fuse.append(nn.Sequential(*steps))
        self.residual = nn.Conv2d(CHANNELS, 1, 5, padding=2)
        nn.init.normal_(self.residual.weight, std=1e-3)
        nn.init.zeros_(self.residual.bias)  # type: ignore[arg-type]  # a convolution with a bias

    def predict(self, sample: Sample) -> Tensor:
        """See `Learned.predict`.

        As the authors do it, but with a source row and column more, repeated: theirs returns a row and a column less.
        """
        height, width = sample.size
        source = source_at(sample, self.factor)
        source = extend(source, source.shape[-2] + 1, source.shape[-1] + 1)
        h, w = (length * self.factor for length in source.shape[-2:])
        low = _mean_3x3(source)
        fine_low = _bicubic(low, self.factor)[..., : h - 1, : w - 1]
        bright = _normalised(luminance(sample.guide))
        high_pass = extend(_normalised(bright - _mean_3x3(bright)), h - 1, w - 1)
        return (self.network(high_pass, source - low) + fine_low)[..., :height, :width]

    def network(self, guide: Tensor, depth: Tensor) -> Tensor:
        """The authors' network.

        Args:
            guide: [B, 1, factor * h - 1, factor * w - 1], high-pass luminance.
            depth: [B, 1, h, w], high-pass source.

        Returns:
            [B, 1, factor * h - 1, factor * w - 1], high-pass depth.
        """
        wanted = tuple(self.factor * length - 1 for length in depth.shape[-2:])
        if tuple(guide.shape[-2:]) != wanted:
            raise ValueError(f"a guide of {tuple(guide.shape[-2:])} for such a depth, expected {wanted}")
        scales = [self.guide[1](self.guide[0](guide))]
        for step in self.guide[2:]:
            scales.append(max_pool2d(step(scales[-1]), 3, 2))
        x = self.source(depth)
        for up, fuse, scale in zip(self.up, self.fuse, reversed(scales), strict=True):
            x = fuse(torch.cat([scale, up(x)], dim=1))
        result: Tensor = self.residual(x)
        return result

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Return the network of a file, ready for use (evaluation mode).

        Args:
            path: a file that `save` wrote, a torch state dict with our keys, or a .caffemodel of the authors.

        Raises:
            InputError: the file cannot be read, or is not this network's.
        """
        file = Path(path)
        if is_safetensors(file) or first_bytes(file, 2) in (b"PK", b"\x80\x02"):  # of torch: a zip file, or before 2020
            return super().load(file)
        layers = read_caffemodel(file)
        levels = sum(layer.kind == "Deconvolution" for layer in layers.values())
        if 2**levels not in FACTORS:
            raise InputError(
                f"weights {file}: {levels} levels of upsampling; MSG-Net has 1 to 5. Name one of its files."
            )
        state = state_of(layers, 2**levels, file)
        return cls.of_state(state, {"factor": 2**levels}, file)

    @classmethod
    def config_of(cls, state: State, path: Path) -> dict[str, Any]:
        """See `Learned.config_of`."""
        shape_of(state, "residual.weight", path)
        return {"factor": 2 ** sum(key.startswith("up.") and key.endswith("conv.weight") for key in state)}


class Step(nn.Module):
    """Convolution that keeps the size, and a PReLU with a slope for each channel."""

    def __init__(self, inputs: int, outputs: int, kernel: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2)
        self.act = nn.PReLU(outputs, SLOPE)
        _initialise(self.conv)

    def forward(self, x: Tensor) -> Tensor:
        """Return [B, outputs, H, W]."""
        result: Tensor = self.act(self.conv(x))
        return result


class UpStep(nn.Module):
    """Transposed convolution that doubles the size, less 1 (margin 2) or plus 1 (margin 1), and a PReLU.

    Args:
        inputs: channels.
        margin: see above.
        gain: what the authors' first weights are multiplied by.
    """

    def __init__(self, inputs: int, margin: int, gain: float) -> None:
        super().__init__()
        self.conv = nn.ConvTranspose2d(inputs, CHANNELS, 5, 2, margin)
        self.act = nn.PReLU(CHANNELS, SLOPE)
        _initialise(self.conv, gain)

    def forward(self, x: Tensor) -> Tensor:
        """Return [B, 32, 2 H -+ 1, 2 W -+ 1]."""
        result: Tensor = self.act(self.conv(x))
        return result


def caffe_names(factor: int) -> Iterator[tuple[str, str, str]]:
    """The key map: name of each of the authors' convolutions, of its PReLU ("" for none), and our key."""
    levels = factor.bit_length() - 1
    for number in range(levels + 1):
        yield f"conv{number + 1}-Y", f"prelu{number + 1}-Y", f"guide.{number}"
    yield "conv1-D", "prelu1-D", "source"
    yield "deconv2-D", "prelu2-D", "up.0"
    for level in range(1, levels):
        scale = f"-x{2 ** (level + 1)}"
        yield f"deconv{level + 2}{scale}", f"prelu{level + 2}{scale}", f"up.{level}"
    for level in range(levels):
        last = level == levels - 1
        scale = "" if last else f"-x{2 ** (level + 2)}"
        for index, letter in enumerate("abc" if last else "ab"):
            yield f"conv{level + 2}{letter}{scale}", f"prelu{level + 2}{letter}{scale}", f"fuse.{level}.{index}"
    yield f"conv{levels + 2}", "", "residual"


def state_of(layers: dict[str, CaffeLayer], factor: int, path: Path) -> State:
    """Our state dict of the authors' layers."""
    state = {}
    for convolution, prelu, key in caffe_names(factor):
        inner = f"{key}.conv" if prelu else key
        state[f"{inner}.weight"], state[f"{inner}.bias"] = _blobs(layers, convolution, 2, path)
        if prelu:
            (state[f"{key}.act.weight"],) = _blobs(layers, prelu, 1, path)
    return state


def _blobs(layers: dict[str, CaffeLayer], name: str, count: int, path: Path) -> list[Tensor]:
    if name not in layers or len(layers[name].blobs) != count:
        raise InputError(f"weights {path}: no layer {name} with {count} arrays, so this is not MSG-Net. Name its file.")
    return [torch.from_numpy(blob) for blob in layers[name].blobs]


def _initialise(convolution: nn.Conv2d | nn.ConvTranspose2d, gain: float = 1.0) -> None:
    """As the authors, times a gain: He et al. 2015 for PReLUs, by the number of outputs."""
    fan = convolution.out_channels * convolution.kernel_size[0] ** 2
    nn.init.normal_(convolution.weight, std=gain * (2 / ((1 + SLOPE**2) * fan)) ** 0.5)
    nn.init.zeros_(convolution.bias)  # type: ignore[arg-type]  # every convolution here has one


def _normalised(image: Tensor) -> Tensor:
    """Each image of [B, 1, H, W] from 0 to 1; 0 where it is constant."""
    low, high = image.amin((-2, -1), keepdim=True), image.amax((-2, -1), keepdim=True)
    return (image - low) / torch.where(high > low, high - low, 1)


def _mean_3x3(image: Tensor) -> Tensor:
    return avg_pool2d(pad(image, (1, 1, 1, 1), mode="replicate"), 3, 1)


def _bicubic(image: Tensor, factor: int) -> Tensor:
    """Keys' cubic with a = -0.5, as Matlab has it; torch has that one with antialias=True only, elsewhere -0.75."""
    around = pad(image, [CUBIC_REACH] * 4, mode="replicate")
    fine = interpolate(around, scale_factor=float(factor), mode="bicubic", antialias=True)
    cut = CUBIC_REACH * factor
    return fine[..., cut:-cut, cut:-cut]
