"""What the networks of other authors share: inputs made as they made them, any size, and files of weights."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from math import ceil
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d, pad

from dada.errors import InputError
from dada.io.weights import (
    State,
    check_sizes,
    fill_network,
    is_safetensors,
    read_safetensors,
    read_state,
    write_weights,
)
from dada.sample import Sample, fill

LUMA = (0.299, 0.587, 0.114)  # of red, green, blue: BT.601, as OpenCV and Matlab have it


class Learned(nn.Module):
    """A network that predicts on a scale of its own, on which the source of each image runs from 0 to 1.

    A subclass sets `name` and `key`, computes `predict`, and tells its settings: `config` as an attribute, and
    `config_of` for files that do not name them.
    """

    name: ClassVar[str]
    """What tables call it."""
    key: ClassVar[str]
    """What `dada.models.registry.NETWORKS` and files call it."""
    config: dict[str, Any]
    """Arguments that build it anew."""

    def forward(self, sample: Sample) -> Tensor:
        """Return [B, 1, H, W], see `dada.sample.Method`; with gradients to the parameters.

        The scale of an image is the lowest and the highest of its valid source cells: a function of the input
        alone, so that no gradient passes through it.

        Raises:
            InputError: the guide has two bands, or the factor is not the network's.
        """
        dtype = next(self.parameters()).dtype
        low, span = source_range(sample)
        scaled = replace(
            sample,
            guide=three_bands(sample.guide).to(dtype),
            source=torch.where(sample.source_mask, (sample.source - low) / span, 0).to(dtype),
            initial=((sample.initial - low) / span).to(dtype),
        )
        return self.predict(scaled).to(sample.initial.dtype) * span + low

    def accept(self, **settings: str) -> None:
        """Take settings that stand beside the file, as in "lgr:FILE?solver=equilibrium".

        Raises:
            InputError: there is no such setting.
        """
        raise InputError(f"{self.name} has no settings beside its weights. Leave out ?{'&'.join(settings)}.")

    @property
    def unused(self) -> frozenset[str]:
        """Names of the authors' parameters that no output depends on; they get no gradient."""
        return frozenset()

    def predict(self, sample: Sample) -> Tensor:
        """Return [B, 1, H, W] on the scale of the sample, which has a guide of three bands and a source in 0..1."""
        raise NotImplementedError

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the weights and settings to a safetensors file, whole or not at all.

        Raises:
            InputError: the file cannot be written.
        """
        write_weights(Path(path), self.state_dict(), {"method": self.key, "config": json.dumps(self.config)})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Return the network of a file, ready for use (evaluation mode).

        Args:
            path: a file that `save` wrote, or a torch state dict with the authors' keys.

        Raises:
            InputError: the file cannot be read, or is not this network's.
        """
        file = Path(path)
        state, config = _read(file, cls.key)
        return cls.of_state(state, cls.config_of(state, file) if config is None else config, file)

    @classmethod
    def of_state(cls, state: State, config: dict[str, Any], path: Path) -> Self:
        """Build the network of some settings, filled with tensors.

        Raises:
            InputError: these are no settings of it, or the tensors are another network's.
        """
        check_sizes(config, state, path)
        try:
            network = cls(**config)
        except (TypeError, ValueError) as error:
            raise InputError(f"weights {path}: {config} are no settings of {cls.name} ({error}).") from None
        fill_network(network, state, path)
        return network.eval()

    @classmethod
    def config_of(cls, state: State, path: Path) -> dict[str, Any]:
        """Tell the settings from the shapes of the weights."""
        return {}


def _read(path: Path, key: str) -> tuple[State, dict[str, Any] | None]:
    """The tensors of a file by name, and the settings inside; None where it has none."""
    if not is_safetensors(path):
        return read_state(path), None
    state, metadata = read_safetensors(path)
    if metadata.get("method", key) != key:
        raise InputError(f"weights {path}: they are of {metadata['method']}. Write {metadata['method']}:{path}.")
    try:
        config = json.loads(metadata.get("config", "null"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"weights {path}: the settings inside are damaged ({error}). Get it anew.") from None
    if config is not None and not isinstance(config, dict):
        raise InputError(f"weights {path}: the settings inside are {config!r}, expected names and values. Get it anew.")
    return state, config


def three_bands(guide: Tensor) -> Tensor:
    """Return [B, 3, H, W] of a guide with one band (three times), three, or more (the first three).

    Raises:
        InputError: it has two.
    """
    bands = guide.shape[1]
    if bands == 2:
        raise InputError("the guide has 2 bands; this network looks at red, green and blue. Give 1, 3 or more bands.")
    return guide.expand(-1, 3, -1, -1) if bands == 1 else guide[:, :3]


def blue_first(guide: Tensor) -> Tensor:
    """Red, green, blue as blue, green, red: how OpenCV reads images."""
    return guide.flip(1)


def luminance(guide: Tensor) -> Tensor:
    """Return [B, 1, H, W] of [B, 3, H, W] red, green, blue."""
    return (guide * guide.new_tensor(LUMA)[:, None, None]).sum(1, keepdim=True)


def source_range(sample: Sample) -> tuple[Tensor, Tensor]:
    """Lowest valid source value of each image and the distance to the highest, each [B, 1, 1, 1].

    The distance is 1 where all are equal or none is valid.
    """
    valid, source = sample.source_mask, sample.source.detach()
    low = torch.where(valid, source, torch.inf).amin((-2, -1), keepdim=True)
    high = torch.where(valid, source, -torch.inf).amax((-2, -1), keepdim=True)
    any_valid = valid.any(-1, keepdim=True).any(-2, keepdim=True)
    low, span = torch.where(any_valid, low, 0), torch.where(any_valid, high - low, 1)
    return low, torch.where(span > 0, span, 1)


def source_at(sample: Sample, factor: int) -> Tensor:
    """The source without holes on the grid of an exact factor: [B, 1, ceil(H / factor), ceil(W / factor)].

    Where the target grid is no multiple of the source's, the bicubic image is averaged over blocks instead.

    Raises:
        InputError: the sample's factor is another one, by a source row or column or more.
    """
    (height, width), (h, w) = sample.size, sample.source.shape[-2:]
    if abs(height / factor - h) >= 1 or abs(width / factor - w) >= 1:
        raise InputError(
            f"a source of {h} x {w} for a guide of {height} x {width} is x{height / h:.4g}; this network is for "
            f"x{factor}. Use weights for that factor."
        )
    if (height, width) == (h * factor, w * factor):
        return fill(sample.source, sample.source_mask)
    return avg_pool2d(extend(sample.initial, ceil(height / factor) * factor, ceil(width / factor) * factor), factor)


def extend(image: Tensor, height: int, width: int) -> Tensor:
    """Repeat the last row and column of [B, C, H, W] until it is height x width."""
    return pad(image, (0, width - image.shape[-1], 0, height - image.shape[-2]), mode="replicate")


def multiple(length: int, of: int) -> int:
    """The next multiple."""
    return ceil(length / of) * of
