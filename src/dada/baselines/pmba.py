"""PMBA: the progressive multi-branch aggregation network (Ye et al.: PMBANet, IEEE TIP 2020)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d, relu

from dada.baselines.learned import Learned, extend, multiple, source_at
from dada.io.weights import State, shape_of
from dada.sample import Sample

STAGES = 3
POOL = 4
"""The attention of a feedback block averages over POOL x POOL source pixels."""
EDGE = 2
"""How much a convolution between the grids reaches beyond its block of pixels, on each side."""


class Pmba(Learned):
    """Stages of feedback between the source's grid and the target's, helped by a multi-scale and a colour branch.

    One network for each factor. The keys are the authors', and so are the parameters that their forward pass never
    reaches (`unused` names them): their files load as they are.

    Args:
        factor: upsampling, from 2.
        base: channels of nearly everything.
        feat: channels of the first layers.
        stages: how many run, 1 to 3. By default the authors' number: 3, but 2 from x16.
    """

    name = "PMBA"
    key = "pmba"

    def __init__(self, factor: int = 8, base: int = 64, feat: int = 256, stages: int | None = None) -> None:
        super().__init__()
        stages = (STAGES if factor < 16 else 2) if stages is None else stages
        if factor < 2 or base < 1 or feat < 1 or not 1 <= stages <= STAGES:
            raise ValueError(f"factor {factor}, base {base}, feat {feat}, stages {stages}: out of range")
        self.config: dict[str, Any] = {"factor": factor, "base": base, "feat": feat, "stages": stages}
        self.factor, self.stages = factor, stages
        self.feat0 = Convolution(1, feat, 3)
        self.feat1 = Convolution(feat, base, 1)
        self.feat_color0 = Convolution(3, feat, 3)
        self.feat_color1 = Convolution(feat, base, 3)
        self.feat_color2 = Convolution(base, base, 3)
        self.feat_color3 = Convolution(base, base, 1)
        # the authors' order of keys: all multi-scale branches, all attentions, then the stages
        for stage in range(1, 5):
            self.add_module(f"m{stage}", ScalesBranch(stage * base, base, factor))
        for stage in range(1, 6):
            self.add_module(f"c{stage}", ChannelAttention(base))
        for stage in range(1, STAGES + 1):
            self.add_module(f"r{stage}_1", Feedback(stage * base, base, factor))
            for step in range(2, 6):
                self.add_module(f"r{stage}_{step}", Feedback(base, base, factor, from_target=True))
        for stage in range(2, 5):
            self.add_module(f"down{stage}", Downwards(base, factor))
        for stage in range(1, 6):
            self.add_module(f"output_conv{stage}_1", Convolution(4 * base, base, 3))
        self.output_conv = nn.Sequential()
        self.output_conv.add_module("conv", nn.Conv2d(base, 1, 3, padding=1))
        self._initialise()

    @property
    def unused(self) -> frozenset[str]:
        """See `Learned.unused`."""
        idle = {"feat_color2", "m4", "c4", "c5", "down4", "output_conv4_1", "output_conv5_1"}
        idle |= {f"r{stage}_5" for stage in range(1, STAGES + 1)}
        for stage in range(self.stages + 1, STAGES + 1):
            idle |= {f"m{stage}", f"c{stage}", f"down{stage}", f"output_conv{stage}_1"}
            idle |= {f"r{stage}_{step}" for step in range(1, 5)}
        return frozenset(name for name, _ in self.named_parameters() if name.partition(".")[0] in idle)

    def predict(self, sample: Sample) -> Tensor:
        """See `Learned.predict`."""
        return self.network(sample.guide, source_at(sample, self.factor))

    def network(self, guide: Tensor, depth: Tensor) -> Tensor:
        """The authors' network.

        Args:
            guide: [B, 3, H, W] red, green, blue in 0..1.
            depth: [B, 1, ceil(H / factor), ceil(W / factor)], the source in 0..1.

        Returns:
            [B, 1, H, W].
        """
        height, width = guide.shape[-2:]
        h, w = multiple(depth.shape[-2], POOL), multiple(depth.shape[-1], POOL)
        depth, guide = extend(depth, h, w), extend(guide, h * self.factor, w * self.factor)
        colours = self.feat_color3(self.feat_color1(self.feat_color0(guide)))
        x = self.feat1(self.feat0(depth))
        fine = colours + self._stage(1, x)
        fine = self.get_submodule("c1")(fine)
        for stage in range(2, self.stages + 1):
            x = torch.cat([x, self.get_submodule(f"down{stage}")(fine)], dim=1)
            fine = self.get_submodule(f"c{stage}")(self._stage(stage, x))
        result: Tensor = self.output_conv(fine)[..., :height, :width]
        return result

    def _stage(self, stage: int, x: Tensor) -> Tensor:
        """Add the multi-scale and the reconstruction branch of a stage: [B, stage * base, h, w] to [B, base, H, W]."""
        steps = [self.get_submodule(f"r{stage}_1")(x)]
        for step in range(2, 5):
            steps.append(self.get_submodule(f"r{stage}_{step}")(steps[-1]))
        rebuilt = self.get_submodule(f"output_conv{stage}_1")(torch.cat(steps, dim=1))
        result: Tensor = self.get_submodule(f"m{stage}")(x) + rebuilt
        return result

    def _initialise(self) -> None:
        for module in self.modules():
            if isinstance(module, nn.Conv2d | nn.ConvTranspose2d):
                nn.init.kaiming_normal_(module.weight)
                nn.init.zeros_(module.bias)  # type: ignore[arg-type]  # every convolution here has one

    @classmethod
    def config_of(cls, state: State, path: Path) -> dict[str, Any]:
        """See `Learned.config_of`."""
        base, feat = shape_of(state, "feat1.conv.weight", path)[:2]
        kernel = shape_of(state, "down2.conv.weight", path)[-1]
        return {"factor": kernel - 2 * EDGE, "base": base, "feat": feat}


class Convolution(nn.Module):
    """Convolution that keeps the size, and a PReLU."""

    def __init__(self, inputs: int, outputs: int, kernel: int, dilation: int = 1) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2 * dilation, dilation=dilation)
        self.act = nn.PReLU()

    def forward(self, x: Tensor) -> Tensor:
        """Return [B, outputs, H, W]."""
        result: Tensor = self.act(self.conv(x))
        return result


class Downwards(nn.Module):
    """Convolution from a grid to one coarser by a factor, and a PReLU."""

    def __init__(self, channels: int, factor: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, factor + 2 * EDGE, factor, EDGE)
        self.act = nn.PReLU()

    def forward(self, x: Tensor) -> Tensor:
        """Return [B, channels, H / factor, W / factor]."""
        result: Tensor = self.act(self.conv(x))
        return result


class Upwards(nn.Module):
    """Transposed convolution from a grid to one finer by a factor, and a PReLU."""

    def __init__(self, channels: int, factor: int) -> None:
        super().__init__()
        self.deconv = nn.ConvTranspose2d(channels, channels, factor + 2 * EDGE, factor, EDGE)
        self.act = nn.PReLU()

    def forward(self, x: Tensor) -> Tensor:
        """Return [B, channels, factor * h, factor * w]."""
        result: Tensor = self.act(self.deconv(x))
        return result


class ScalesBranch(nn.Module):
    """Multi-scale branch: ever wider dilated convolutions, each of all before it, then up to the target's grid."""

    def __init__(self, inputs: int, base: int, factor: int) -> None:
        super().__init__()
        for number in range(1, 5):
            block = Convolution(inputs + (number - 1) * base, base, 3, dilation=number)
            self.add_module(f"dilaconv{number}", block)
        self.dilaconv1_2 = Convolution(inputs + 4 * base, base, 3)
        self.direct_up1 = Upwards(base, factor)

    def forward(self, x: Tensor) -> Tensor:
        """Return [B, base, factor * h, factor * w]."""
        for number in range(1, 5):
            x = torch.cat([x, self.get_submodule(f"dilaconv{number}")(x)], dim=1)
        result: Tensor = self.direct_up1(self.dilaconv1_2(x))
        return result


class Feedback(nn.Module):
    """Attention-based feedback: up, down again, and the error of that way back, up too.

    Args:
        inputs: channels of the input.
        base: channels of everything else.
        factor: between the grids.
        from_target: whether the input is on the target's grid, so that it is brought down first.
    """

    def __init__(self, inputs: int, base: int, factor: int, from_target: bool = False) -> None:
        super().__init__()
        self.down1 = Downwards(base, factor) if from_target else None
        self.conv1 = Convolution(inputs, base, 1)
        self.up_1 = Upwards(base, POOL)
        self.up_conv1 = Upwards(base, factor)
        self.up_conv2 = Downwards(base, factor)
        self.up_conv3 = Upwards(base, factor)

    def forward(self, x: Tensor) -> Tensor:
        """Return [B, base, factor * h, factor * w]; h and w are multiples of POOL."""
        x = self.conv1(x if self.down1 is None else self.down1(x))
        detail = relu(x - self.up_1(avg_pool2d(x, POOL)))  # what stands out of its neighbourhood: depth edges
        x = x + 0.1 * detail * x
        fine = self.up_conv1(x)
        result: Tensor = fine + self.up_conv3(self.up_conv2(fine) - x)
        return result


class ChannelAttention(nn.Module):
    """Amplify each channel by 1 to 2, as the mean over the image of all channels tells."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        inner = max(1, round(channels / 16))
        self.fc1 = nn.Linear(channels, inner)
        self.fc2 = nn.Linear(inner, channels)

    def forward(self, x: Tensor) -> Tensor:
        """Return the shape given."""
        gain = torch.sigmoid(self.fc2(relu(self.fc1(x.mean((-2, -1))))))
        return x + x * gain[:, :, None, None]
