"""Blocks whose sizes are known only where a graph runs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from dada.diffusion import Blocks


@dataclass(frozen=True, eq=False)
class GraphBlocks(Blocks):
    """Those of `partition`, found by operations that a graph can hold. Any ratio is taken for one that is not whole."""

    @classmethod
    def between(cls, source: Tensor, target: Tensor) -> GraphBlocks:
        """Those of a source [..., h, w] and a target [..., H, W]."""
        none = np.zeros(0, np.int64)
        return cls((source.shape[-2], source.shape[-1]), (target.shape[-2], target.shape[-1]), none, none)

    @property
    def uniform(self) -> None:
        """Not known."""
        return None

    def owners(self, device: torch.device) -> tuple[Tensor, ...]:
        """See `Blocks.owners`: pixel i of n belongs to cell floor((2 i + 1) cells / (2 n))."""
        sizes = zip(self.source_size, self.target_size, strict=True)
        return tuple((2 * torch.arange(n, device=device) + 1) * cells // (2 * n) for cells, n in sizes)

    def areas(self, like: Tensor) -> Tensor:
        """See `Blocks.areas`."""
        sides = [
            like.new_zeros(cells).index_add(-1, owner, like.new_ones(n))
            for cells, n, owner in zip(self.source_size, self.target_size, self.owners(like.device), strict=True)
        ]
        return sides[0][:, None] * sides[1]
