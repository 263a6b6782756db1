"""The two protocols of the field. Their numbers do not compare: every table says whose it is.

P1 is the paper's own (LGR, DADA), P2 that of DKN and its successors. A protocol says how a data set becomes problems
and how their errors become one number; it says nothing about methods.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch.nn.functional import interpolate

from dada.datasets.crops import grid_crops, to_sample, unit_guide
from dada.errors import InputError
from dada.evaluation.metrics import THRESHOLDS, Rule, Sums, Thresholds, measure
from dada.sample import Sample, Sampling

if TYPE_CHECKING:
    from torch import Tensor

    from dada.datasets.pair import Dataset, Pair


@dataclass(frozen=True)
class Protocol:
    """How problems are made and measured.

    Attributes:
        name: "P1" or "P2", printed beside every number.
        downsampling: how the source is made from the truth, as `dada.sample.Sampling` names it: "mean" over the valid
            pixels of each block, "point", or "bicubic", antialiased, as image libraries resize.
        crop: side of the crops in pixels; 0 for whole images, cropped to a multiple of the factor.
        border: pixels along each side that do not count.
        rule: how images are averaged in the main table; see `dada.evaluation.metrics.average`.
        headline: the measures of the main table.
    """

    name: str
    downsampling: str
    crop: int
    border: int
    rule: Rule
    headline: tuple[str, ...]

    def with_crop(self, crop: int) -> Protocol:
        """The same with crops of another side, or whole images for 0; what `describe` says changes with it.

        Raises:
            InputError: a side that cannot be.
        """
        if crop < 0 or 0 < crop < 2 * self.border + 1:
            raise InputError(
                f"crop {crop} is not a side in pixels. Use {PROTOCOLS[self.name].crop}, or 0 for whole images."
            )
        return replace(self, crop=crop)

    def with_sampling(self, sampling: str) -> Protocol:
        """The same with sources made in another way; what `describe` says changes with it.

        Raises:
            InputError: there is no such sampling.
        """
        return replace(self, downsampling=str(Sampling.of(sampling)))

    def check_factor(self, factor: int) -> None:
        """Raise InputError if crops cannot be downsampled by this factor."""
        if factor < 2:
            raise InputError(f"factor {factor} is not one to upsample by. Use 2 or more, as 4, 8, 16 or 32.")
        if self.crop % factor:
            raise InputError(f"crops of {self.crop} pixels cannot be divided by {factor}. Use --crop with a multiple.")

    def cut(self, pair: Pair) -> list[Pair]:
        """The crops of an image that have a valid pixel, row by row from the top left; the image itself if whole."""
        parts = grid_crops(pair, self.crop) if self.crop else [pair]
        return [part for part in parts if part.valid.any()]

    def sample(self, pair: Pair, factor: int, unit: float) -> Sample:
        """Make the problem of a crop.

        Raises:
            InputError: the image is smaller than the factor, or has holes where the protocol knows none.
        """
        height, width = (n - n % factor for n in pair.size)
        if not height or not width:
            raise InputError(f"{pair.name} has {pair.size[0]} x {pair.size[1]} pixels: too few for factor {factor}.")
        pair = pair.cut(0, 0, height, width)
        if self.name == "P2" and self.downsampling == "bicubic":
            return _bicubic_sample(pair, factor, unit)
        return to_sample(pair, factor, unit, "clough-tocher", self.downsampling)

    def measure(self, prediction: Tensor, sample: Sample, thresholds: Thresholds = THRESHOLDS) -> list[Sums]:
        """The sums of errors of each image; see `dada.evaluation.metrics.measure`."""
        return measure(prediction, sample, thresholds, border=self.border, averaged=self.downsampling != "bicubic")

    def describe(self, count: int) -> str:
        """What stands above every table, such as "P1, 100 crops of 256 x 256"."""
        own = PROTOCOLS.get(self.name)
        many = "" if count == 1 else "s"
        what = f"crop{many} of {self.crop} x {self.crop}" if self.crop else f"whole image{many}"
        changed = ", which is not the protocol's own size" if own and own.crop != self.crop else ""
        if own and own.downsampling != self.downsampling:
            changed += f", sources by sampling {self.downsampling}, not the protocol's own"
        border = f", a border of {self.border} px left out" if self.border else ""
        return f"protocol {self.name}, {count} {what}{changed}{border}"


P1 = Protocol("P1", "mean", crop=256, border=0, rule="pixels", headline=("mse", "mae"))
P2 = Protocol("P2", "bicubic", crop=0, border=6, rule="images", headline=("rmse",))

PROTOCOLS = {protocol.name: protocol for protocol in (P1, P2)}


def load_protocol(name: str) -> Protocol:
    """The protocol of a name.

    Raises:
        InputError: there is none of this name.
    """
    if name not in PROTOCOLS:
        raise InputError(f"protocol {name!r} is unknown. Use one of {', '.join(PROTOCOLS)}.")
    return PROTOCOLS[name]


def problems(dataset: Dataset, protocol: Protocol, limit: int | None = None) -> Iterator[list[Pair]]:
    """Yield the crops of each image in turn; images without any are passed over.

    Args:
        dataset: what to cut.
        protocol: how.
        limit: how many crops to take of all, spread evenly over the images and over each image; None: all.

    Raises:
        InputError: no image gives a crop.
    """
    found = False
    for index in range(len(dataset)):
        share = _share(limit, index, len(dataset)) if limit is not None else None
        if share == 0:
            continue
        parts = protocol.cut(dataset[index])
        if share is not None and share < len(parts):
            parts = [parts[int((i + 0.5) * len(parts) / share)] for i in range(share)]
        found = found or bool(parts)
        if parts:
            yield parts
    if not found:
        raise InputError(
            f"{dataset.name}: no image gives a crop of {protocol.crop} pixels. Use a smaller --crop, or --crop 0 for "
            "whole images."
        )


def _share(limit: int, index: int, count: int) -> int:
    """How many of `limit` crops fall to one of `count` images."""
    return limit * (index + 1) // count - limit * index // count


def _bicubic_sample(pair: Pair, factor: int, unit: float) -> Sample:
    """A problem of P2: resized bicubically with antialiasing, down for the source and up again for the start."""
    holes = int((~pair.valid).sum())
    if holes:
        raise InputError(
            f"{pair.name} has {holes} pixels without a value, and bicubic downsampling (P2) is defined for none. Use "
            "P1, or fill the holes."
        )
    guide = torch.from_numpy(np.ascontiguousarray(unit_guide(pair.guide).transpose(2, 0, 1)))[None]
    target = torch.from_numpy(pair.target / np.float32(unit))[None, None]
    height, width = pair.size
    source = Sampling("bicubic").down(target, (height // factor, width // factor))
    initial = interpolate(source, size=(height, width), mode="bicubic", antialias=True)
    known = torch.ones_like(source, dtype=torch.bool)
    valid = torch.ones_like(target, dtype=torch.bool)
    return Sample(guide, source, known, initial, target, valid, unit, (pair.name,), Sampling("bicubic"))
