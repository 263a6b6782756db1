"""Which target pixels each source cell covers, and the two maps between the grids: `down` and `up`.

The blocks are a partition of the target grid: each pixel belongs to exactly one cell, the one that holds its centre.
With integer ratios these are the usual s x s blocks; with any other ratio the blocks differ by one pixel in size.
(Overlapping windows, as in adaptive pooling, could not be satisfied exactly by adjusting each block on its own.)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Blocks:
    """The partition of an H x W target into the cells of an h x w source; see `partition` and `from_starts`."""

    source_size: tuple[int, int]  # h, w
    target_size: tuple[int, int]  # H, W
    rows: np.ndarray  # [h + 1] first target row of each cell, then H
    cols: np.ndarray  # [w + 1] first target column of each cell, then W

    @cached_property
    def uniform(self) -> tuple[int, int] | None:
        """Block height and width where all blocks are alike (integer ratios), else None."""
        heights, widths = np.diff(self.rows), np.diff(self.cols)
        alike = bool((heights == heights[0]).all() and (widths == widths[0]).all())
        return (int(heights[0]), int(widths[0])) if alike else None

    @property
    def area(self) -> np.ndarray:
        """Number of pixels in each block, [h, w]."""
        return np.diff(self.rows)[:, None] * np.diff(self.cols)[None, :]

    def areas(self, like: Tensor) -> Tensor:
        """The same as numbers of the type of a tensor, beside it."""
        return torch.from_numpy(self.area).to(like)

    def owners(self, device: torch.device) -> tuple[Tensor, ...]:
        """The row of cells that each row of pixels belongs to, and the same of columns."""
        starts = self.rows, self.cols
        return tuple(torch.from_numpy(np.repeat(np.arange(len(s) - 1), np.diff(s))).to(device) for s in starts)


@lru_cache(maxsize=64)
def partition(source_size: tuple[int, int], target_size: tuple[int, int]) -> Blocks:
    """Return the blocks of a target grid: pixel i of H belongs to cell floor((i + 1/2) h / H).

    Raises:
        ValueError: a size is not positive, or the target is smaller than the source in some direction.
    """
    for name, size in (("source", source_size), ("target", target_size)):
        if len(size) != 2 or min(size) < 1:
            raise ValueError(f"{name} size must be two positive numbers (height, width), got {tuple(size)}")
    if target_size[0] < source_size[0] or target_size[1] < source_size[1]:
        raise ValueError(
            f"target {target_size[0]} x {target_size[1]} is smaller than source {source_size[0]} x {source_size[1]}; "
            "every source cell needs at least one target pixel (height x width): are the two swapped?"
        )
    rows, cols = (
        # the first pixel whose centre is at or beyond k n / cells, in whole numbers
        (2 * n * np.arange(cells + 1, dtype=np.int64) + cells - 1) // (2 * cells)
        for cells, n in zip(source_size, target_size, strict=True)
    )
    return Blocks(tuple(source_size), tuple(target_size), rows, cols)  # type: ignore[arg-type]


def from_starts(rows: np.ndarray, cols: np.ndarray) -> Blocks:
    """Return the blocks whose first rows and columns are given, and last the ends; each block has some pixels."""
    return Blocks((len(rows) - 1, len(cols) - 1), (int(rows[-1]), int(cols[-1])), rows, cols)


def block_sum(target: Tensor, blocks: Blocks) -> Tensor:
    """Sum [..., H, W] over each block, giving [..., h, w]."""
    h, w = blocks.source_size
    if blocks.uniform:
        sh, sw = blocks.uniform
        return target.reshape(*target.shape[:-2], h, sh, w, sw).sum(dim=-3).sum(dim=-1)  # four times as fast as at once
    rows, cols = blocks.owners(target.device)
    by_row = target.new_zeros(*target.shape[:-2], h, target.shape[-1]).index_add(-2, rows, target)
    return target.new_zeros(*target.shape[:-2], h, w).index_add(-1, cols, by_row)


def block_mean(target: Tensor, blocks: Blocks) -> Tensor:
    """Average [..., H, W] over each block, giving [..., h, w]."""
    return block_sum(target, blocks) / blocks.areas(target)


def spread(cells: Tensor, blocks: Blocks) -> Tensor:
    """Copy each cell of [..., h, w] to its block, giving [..., H, W]."""
    if blocks.uniform:
        sh, sw = blocks.uniform
        h, w = blocks.source_size
        expanded = cells[..., :, None, :, None].expand(*cells.shape[:-2], h, sh, w, sw)
        return expanded.reshape(*cells.shape[:-2], *blocks.target_size)
    rows, cols = blocks.owners(cells.device)
    return cells.index_select(-2, rows).index_select(-1, cols)


def down(target: Tensor, source_size: tuple[int, int], coverage: Tensor | None = None) -> Tensor:
    """Average the target [..., H, W] over each source cell (the paper's `down`, Eq. 3), giving [..., h, w].

    Only pixels where `coverage` (bool, broadcastable to the target) is True count; cells without any become NaN.
    """
    blocks = partition(tuple(source_size), tuple(target.shape[-2:]))
    if coverage is None:
        return block_mean(target, blocks)
    counted = coverage.expand_as(target)
    total = block_sum(torch.where(counted, target, torch.zeros_like(target)), blocks)
    return total / block_sum(counted.to(target.dtype), blocks)


def up(source: Tensor, target_size: tuple[int, int]) -> Tensor:
    """Copy each source cell to the target pixels of its block: nearest-neighbour upsampling (`up`, Eq. 3)."""
    return spread(source, partition(tuple(source.shape[-2:]), tuple(target_size)))
