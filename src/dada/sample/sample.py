"""A problem as every method sees it: guide, source, where the source is known, a first guess; and the truth, if any."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from dada.diffusion import Blocks, partition
from dada.diffusion.blocks import block_sum
from dada.sample.interpolation import Interpolation, initialise
from dada.sample.sampling import MEAN, Sampling

BATCH = 32
"""Problems that the authors of LGR and DADA solve, and average over, at a time."""


@dataclass(frozen=True)
class Whole:
    """What a tile takes from the image that it is cut from, so that it is computed as the image would be.

    Attributes:
        low: least valid value of the source.
        high: its largest value.
        mean: of its valid cells.
        deviation: of the same; 0 where they are constant.
        mean_initial: of the interpolated source.
        factors: target rows for a source row, and columns for a column.
    """

    low: float
    high: float
    mean: float
    deviation: float
    mean_initial: float
    factors: tuple[float, float]

    def scaled(self, offset: float, unit: float) -> Whole:
        """The same for values (v - offset) / unit."""
        moved = {n: (getattr(self, n) - offset) / unit for n in ("low", "high", "mean", "mean_initial")}
        return replace(self, deviation=self.deviation / unit, **moved)


@dataclass(frozen=True)
class Sample:
    """A batch of problems of one size and factor.

    Attributes:
        guide: [B, C, H, W] in 0..1.
        source: [B, 1, h, w] in units of `unit`; 0 in invalid cells.
        source_mask: [B, 1, h, w] bool, valid cells.
        initial: [B, 1, H, W], the source upsampled bicubically.
        target: [B, 1, H, W], the truth in units of `unit`; 0 in invalid pixels. None where it is not known.
        target_mask: [B, 1, H, W] bool, valid pixels of the truth.
        unit: what 1.0 stands for, in millimetres (or in the unit of data that are not lengths).
        names: what each of the B problems is called.
        sampling: how the source was made.
        whole: of the image that this is a tile of, if it is one.
        blocks: which pixels each cell covers; `partition` of the two sizes where not given.
    """

    guide: Tensor
    source: Tensor
    source_mask: Tensor
    initial: Tensor
    target: Tensor | None = None
    target_mask: Tensor | None = None
    unit: float = 1.0
    names: tuple[str, ...] = ()
    sampling: Sampling = MEAN
    whole: Whole | None = None
    blocks: Blocks | None = None

    def __len__(self) -> int:
        return self.guide.shape[0]

    @property
    def size(self) -> tuple[int, int]:
        """H, W of the target grid."""
        return self.guide.shape[-2], self.guide.shape[-1]

    @property
    def factor(self) -> float:
        """Target rows for a source row."""
        return self.whole.factors[0] if self.whole else self.guide.shape[-2] / self.source.shape[-2]

    def mean_initial(self) -> Tensor:
        """Mean of the interpolated source, [B, 1, 1, 1]."""
        if self.whole:
            return self.initial.new_full((len(self), 1, 1, 1), self.whole.mean_initial)
        return self.initial.double().mean(dim=(-2, -1), keepdim=True).to(self.initial)  # the same wherever it runs

    def deviation(self) -> Tensor:
        """Standard deviation of the valid source cells, [B, 1, 1, 1]; 0 where they are constant."""
        if self.whole:
            return torch.full((len(self), 1, 1, 1), self.whole.deviation, dtype=torch.float64)
        return deviation(self.source, self.source_mask)

    def to(self, device: torch.device | str) -> Sample:
        """The same on another device."""
        moved: dict[str, Any] = {
            f.name: v.to(device) for f in fields(self) if isinstance(v := getattr(self, f.name), Tensor)
        }
        return replace(self, **moved)

    def __getitem__(self, index: int | slice) -> Sample:
        """Some of the batch, which stays a batch."""
        part = slice(index, index + 1 or None) if isinstance(index, int) else index
        cut: dict[str, Any] = {f.name: v[part] for f in fields(self) if isinstance(v := getattr(self, f.name), Tensor)}
        return replace(self, **cut, names=self.names[part])

    @staticmethod
    def batch(samples: Sequence[Sample]) -> Sample:
        """Several samples of one size, factor and unit as one."""
        first = samples[0]
        tensors = [f.name for f in fields(first) if isinstance(getattr(first, f.name), Tensor)]
        joined: dict[str, Any] = {name: torch.cat([getattr(s, name) for s in samples]) for name in tensors}
        return replace(first, **joined, names=tuple(n for s in samples for n in s.names))


def deviation(source: Tensor, mask: Tensor) -> Tensor:
    """Standard deviation of the valid cells of each [1, h, w], [B, 1, 1, 1] in float64; 0 where they are constant."""
    known = mask.double()
    count = known.sum(dim=(1, 2, 3), keepdim=True).clamp(min=1)
    mean = (source * known).sum(dim=(1, 2, 3), keepdim=True) / count
    spread = (source - mean).square() * known
    found = (spread.sum(dim=(1, 2, 3), keepdim=True) / count).sqrt()
    return torch.where(found > 1e-6 * mean.abs(), found, 0.0)  # less is rounding


@runtime_checkable
class Method(Protocol):
    """What the bench compares: anything that turns a sample's guide and source into a target.

    A method whose result for an image depends on the others of its batch has an attribute `together` as well: how many
    problems the bench gives it at a time.
    """

    @property
    def name(self) -> str:
        """What tables call it."""
        ...

    def __call__(self, sample: Sample) -> Tensor:
        """Return [B, 1, H, W] in the sample's unit. `sample.target` is not to be looked at."""
        ...


def make_sample(
    guide: Tensor,
    target: Tensor,
    valid: Tensor,
    factor: int,
    *,
    unit: float = 1.0,
    interpolation: Interpolation = "clough-tocher",
    names: tuple[str, ...] = (),
    sampling: Sampling = MEAN,
) -> Sample:
    """Bring a target down to a source and interpolate that back: a sample of protocol P1 where it is averaged.

    A source cell is the mean over the valid target pixels of its block, and valid if there is any. A point is valid
    where its pixel is, a resized cell where all pixels are that it depends on.

    Args:
        guide: [B, C, H, W] in 0..1.
        target: [B, 1, H, W] in units of `unit`.
        valid: [B, 1, H, W] bool.
        factor: target pixels for a source pixel; must divide H and W.
        unit: see `Sample`.
        interpolation: of the initial image; see `initialise`.
        names: see `Sample`.
        sampling: how the source is made.
    """
    height, width = target.shape[-2:]
    if height % factor or width % factor:
        raise ValueError(f"a target of {height} x {width} cannot be averaged by {factor}: crop it to a multiple")
    cells = height // factor, width // factor
    clean = torch.where(valid, target, 0)
    source, mask = _measured(clean, valid, cells, sampling)
    initial = initialise(source, mask, (height, width), interpolation, sampling)
    return Sample(guide, source, mask, initial, clean, valid, unit, names, sampling)


def _measured(clean: Tensor, valid: Tensor, cells: tuple[int, int], sampling: Sampling) -> tuple[Tensor, Tensor]:
    """A source [B, 1, h, w] of a target that is 0 where it is not valid, and its valid cells."""
    if sampling.kind == "mean":
        blocks = partition(cells, (clean.shape[-2], clean.shape[-1]))
        count = block_sum(valid.to(clean.dtype), blocks)
        return block_sum(clean, blocks) / count.clamp(min=1), count > 0
    mask = sampling.whole(valid, cells)
    return torch.where(mask, sampling.down(clean, cells), 0), mask
