"""How a source was made, seen from a window of the target: where its points lie there, and how it would be resized."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from dada.diffusion.blocks import Blocks, block_mean
from dada.rasters.axis import Axis
from dada.sample import Sampling

CUBIC = -0.5  # of the antialiased cubic, as in Pillow, MATLAB and torch
SUPPORT = 2  # cells on either side of the centre of a cell that a resize looks at

Span = tuple[int, int]


@dataclass(frozen=True, eq=False)
class InWindow(Sampling):
    """A sampling in a window whose blocks are not those of a partition.

    Attributes:
        blocks: which pixels of the window each cell covers.
        points: the row of each row of cells, and the column of each column, in pixels of the window.
        resize: weights [h, H] and [w, W] of the resize; None: it was not resized.
    """

    blocks: Blocks | None = None
    points: tuple[np.ndarray, np.ndarray] = field(default_factory=lambda: (np.empty(0), np.empty(0)))
    resize: tuple[Tensor, Tensor] | None = None

    def places(self, cells: tuple[int, int], size: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
        """See `Sampling`."""
        return self.points

    def means(self, target: Tensor, cells: tuple[int, int]) -> Tensor:
        """See `Sampling`."""
        assert self.blocks is not None
        return block_mean(target, self.blocks)

    def down(self, target: Tensor, cells: tuple[int, int]) -> Tensor:
        """See `Sampling`."""
        if self.kind == "mean":
            return self.means(target, cells)
        if self.resize is None:
            return super().down(target, cells)
        tall, wide = (weights.to(target.dtype) for weights in self.resize)
        bad = ~torch.isfinite(target)
        if not bool(bad.any()):
            return tall @ target @ wide.T
        touched = (tall != 0).to(target.dtype) @ bad.to(target.dtype) @ (wide != 0).to(target.dtype).T > 0
        return torch.where(touched, torch.nan, tall @ torch.where(bad, 0, target) @ wide.T)


def in_window(sampling: Sampling, axes: tuple[Axis, Axis], spans: tuple[Span, Span], blocks: Blocks) -> InWindow:
    """Return a sampling for the rows and columns of a window; points of blocks that it cuts are moved into it."""
    points, resize = [], []
    for axis, span, starts, share in zip(axes, spans, (blocks.rows, blocks.cols), sampling.offset, strict=True):
        first, last = axis.cells_of(*span)
        points.append(np.clip(axis.points(share)[first:last] - span[0], starts[:-1], starts[1:] - 1))
        if sampling.kind == "bicubic":
            resize.append(_weights(axis, span, (first, last)))
    pair = (resize[0], resize[1]) if resize else None
    return InWindow(sampling.kind, sampling.offset, blocks, (points[0], points[1]), pair)


def _weights(axis: Axis, span: Span, cells: Span) -> Tensor:
    """[cells, pixels] what an antialiased bicubic resize takes of each pixel; what lies outside is left out."""
    centres = (np.arange(*cells) + 0.5 - axis.offset) / axis.scale
    far = np.abs(np.arange(*span) + 0.5 - centres[:, None]) * axis.scale
    near = ((CUBIC + 2) * far - (CUBIC + 3)) * far * far + 1
    outer = ((CUBIC * far - 5 * CUBIC) * far + 8 * CUBIC) * far - 4 * CUBIC
    weights = np.where(far < 1, near, np.where(far < SUPPORT, outer, 0))
    return torch.from_numpy(weights / weights.sum(axis=1, keepdims=True))


def share_of(sampling: Sampling) -> tuple[float | None, float | None]:
    """Where the cells of a source lie that is interpolated: shares of their height and width; None: at the centre."""
    return sampling.offset if sampling.kind == "point" else (None, None)
