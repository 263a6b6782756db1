"""A problem as every method sees it: guide, source, where the source is known, a first guess; and the truth, if any."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import interpolate

from dada.diffusion import Coefficients, equilibrium, partition
from dada.diffusion.blocks import block_sum

Solve = Callable[[Coefficients, Tensor], Tensor]
"""(coefficients, start [B, 1, H, W]) -> the image [B, 1, H, W] at which diffusion and adjustment end."""
Interpolation = Literal["clough-tocher", "torch"]


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
    """

    guide: Tensor
    source: Tensor
    source_mask: Tensor
    initial: Tensor
    target: Tensor | None = None
    target_mask: Tensor | None = None
    unit: float = 1.0
    names: tuple[str, ...] = ()

    def __len__(self) -> int:
        return self.guide.shape[0]

    @property
    def size(self) -> tuple[int, int]:
        """H, W of the target grid."""
        return self.guide.shape[-2], self.guide.shape[-1]

    @property
    def factor(self) -> float:
        """Target rows for a source row."""
        return self.guide.shape[-2] / self.source.shape[-2]

    def deviation(self) -> Tensor:
        """Standard deviation of the valid source cells, [B, 1, 1, 1]; 0 where they are constant."""
        known = self.source_mask.double()
        count = known.sum(dim=(1, 2, 3), keepdim=True).clamp(min=1)
        mean = (self.source * known).sum(dim=(1, 2, 3), keepdim=True) / count
        spread = (self.source - mean).square() * known
        deviation = (spread.sum(dim=(1, 2, 3), keepdim=True) / count).sqrt()
        return torch.where(deviation > 1e-6 * mean.abs(), deviation, 0.0)  # less is rounding

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


@runtime_checkable
class Method(Protocol):
    """What the bench compares: anything that turns a sample's guide and source into a target."""

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
) -> Sample:
    """Average a target down to a source and interpolate that back: a sample of protocol P1.

    A source cell is the mean over the valid target pixels of its block, and valid if there is any.

    Args:
        guide: [B, C, H, W] in 0..1.
        target: [B, 1, H, W] in units of `unit`.
        valid: [B, 1, H, W] bool.
        factor: target pixels for a source pixel; must divide H and W.
        unit: see `Sample`.
        interpolation: of the initial image; see `initialise`.
        names: see `Sample`.
    """
    height, width = target.shape[-2:]
    if height % factor or width % factor:
        raise ValueError(f"a target of {height} x {width} cannot be averaged by {factor}: crop it to a multiple")
    blocks = partition((height // factor, width // factor), (height, width))
    clean = torch.where(valid, target, 0)
    count = block_sum(valid.to(target.dtype), blocks)
    source = block_sum(clean, blocks) / count.clamp(min=1)
    mask = count > 0
    initial = initialise(source, mask, (height, width), interpolation)
    return Sample(guide, source, mask, initial, clean, valid, unit, names)


def initialise(source: Tensor, mask: Tensor, size: tuple[int, int], interpolation: Interpolation) -> Tensor:
    """Upsample [B, 1, h, w] to [B, 1, H, W] bicubically.

    "clough-tocher" is the paper's: piecewise cubic over a triangulation of the valid cells' centres, nearest
    outside their hull. "torch" is a tenth of the time: invalid cells are filled smoothly, then `interpolate`.
    """
    if interpolation == "clough-tocher":
        pairs = zip(source.detach().cpu().numpy(), mask.cpu().numpy(), strict=True)
        fine = [clough_tocher(image[0], known[0], size) for image, known in pairs]
        return torch.from_numpy(np.stack(fine)[:, None]).to(source)
    if interpolation != "torch":
        raise ValueError(f"interpolation {interpolation!r} is unknown: use clough-tocher or torch")
    return interpolate(fill(source, mask), size=size, mode="bicubic", align_corners=False)


def within(fine: Tensor, source: Tensor, mask: Tensor) -> Tensor:
    """Keep each image of [B, 1, H, W] in the range of its valid source cells, which bicubic interpolation leaves."""
    low = torch.where(mask, source, torch.inf).amin(dim=(-2, -1), keepdim=True)
    high = torch.where(mask, source, -torch.inf).amax(dim=(-2, -1), keepdim=True)
    return fine.clamp(low, high)


def fill(source: Tensor, mask: Tensor, weight: Tensor | None = None) -> Tensor:
    """Give invalid cells of [B, 1, h, w] a smooth value: the equilibrium with all coefficients 1.

    Where a `weight` says how firmly each cell is held, uncertain ones are drawn to their neighbours by it too.
    """
    if weight is None and bool(mask.all()):
        return source
    batch, _, h, w = source.shape
    ones = Coefficients(source.new_ones(batch, h - 1, w), source.new_ones(batch, h, w - 1))
    known = mask.flatten(1).any(1)[:, None, None, None]
    filled = equilibrium(
        source, ones, adjust="shift", mask=mask | ~known, weight=weight, tolerance=1e-3, warn=False
    )  # a start needs no accuracy
    return filled.values


def clough_tocher(source: np.ndarray, mask: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Upsample (h, w) to (H, W): cubic over a triangulation of the valid cells, nearest outside their hull."""
    from scipy.interpolate import CloughTocher2DInterpolator, NearestNDInterpolator

    # Places as (column, row) in target pixels: on a regular grid every triangulation is as good as any other, and
    # these are the coordinates that lead to the one of the released code.
    row, col = np.nonzero(mask)
    scale = size[1] / source.shape[1], size[0] / source.shape[0]
    places = np.stack([col * scale[0] + (scale[0] - 1) / 2, row * scale[1] + (scale[1] - 1) / 2], axis=-1)
    values = source[mask].astype(np.float64)
    if len(places) == 0:
        return np.zeros(size, source.dtype)
    wanted = np.stack(np.meshgrid(np.arange(size[1]), np.arange(size[0])), axis=-1).reshape(-1, 2)
    fine = np.full(len(wanted), np.nan)
    if np.linalg.matrix_rank(places - places[0]) == 2:  # a triangle needs three cells that are not in a line
        fine = CloughTocher2DInterpolator(places, values)(wanted)
    outside = np.isnan(fine)
    fine[outside] = NearestNDInterpolator(places, values)(wanted[outside])
    return fine.reshape(size).astype(source.dtype)
