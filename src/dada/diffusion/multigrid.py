"""The V-cycle that preconditions conjugate gradients where blocks are wide, or regions without hard cells are.

Pixels are grouped, and groups become the pixels of a coarser grid. Groups never cross the border of a block, so that
every grid has the same blocks and the same constraint. Within blocks, pixels are grouped two by two until no block is
more than two wide; in wide blocks the first groups are four by four. Where cells are not hard, further grids follow:
one pixel for each cell, without the hard ones, and then these in pairs. A hole costs no more iterations than a block.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from .blocks import Blocks, block_sum, from_starts
from .measurement import Measurement

OMEGA = 0.9  # damping of the smoother
# Around holes, coarse corrections are enlarged: a group of pixels that moves as one looks stiffer than what it stands
# for. Larger values take more iterations again; with soft cells any enlargement does.
ENLARGEMENT = 1.3
WIDE = 24  # pixels from which a V-cycle, which costs about three plain iterations, pays
FIRST_GROUP = 4  # pixels a side of the first groups in wide blocks: more iterations than with 2, each of less time
TINY = 1e-30  # least diagonal


@dataclass(frozen=True)
class Grid:
    """One grid below the finest.

    Attributes:
        kind: "within" blocks, one pixel for each of the "cells", or pairs of these "across" cells.
        blocks: of this grid; single pixels where there is no constraint.
        groups: which pixels of the finer grid each of its pixels stands for.
    """

    kind: Literal["within", "cells", "across"]
    blocks: Blocks
    groups: Blocks


@dataclass
class Level:
    """One grid with its part of the system, scaled to a unit diagonal; pixels are [N, H, W], cells [N, h, w].

    Attributes:
        layout: the blocks as the backend's operators take them.
        groups: the same of the groups of pixels that the next coarser grid stands for.
        wv: [N, H + 1, W] weights of vertical edges, with a border of zeros; row i joins pixel rows i - 1 and i.
        wh: [N, H, W + 1] the same of horizontal edges.
        sd: square root of the unscaled diagonal; 0 where a pixel takes no part.
        g: the vector of the constraint.
        squares, inverse: [N, h, w] sums of g^2, and 1 / (slack + squares), 0 where there is no constraint.
        constrained: whether there is a constraint on this grid.
        gain: [N, H, W] on the grid of cells, the multiplier that a unit correction of a cell brings.
        memory: what the backend keeps for its own use.
    """

    layout: Any
    groups: Any
    wv: Any
    wh: Any
    sd: Any
    g: Any
    squares: Any
    inverse: Any
    constrained: bool = True
    gain: Any = None
    memory: dict[str, Any] = field(default_factory=dict)


def cycle(
    backend: Any, levels: list[Level], r: Any, rest: Any, kappa: Any, enlargement: float, active: Any
) -> tuple[Any, Any, Any]:
    """Apply the V-cycle to a residual r, given rest = r - g kappa, of which the first smoothing step takes OMEGA.

    Returns:
        z, its multiplier [N, h, w], and r'z in parts [N, bands].
    """
    level, coarser = levels[0], levels[1:]
    if not coarser:
        return OMEGA * rest, OMEGA * kappa, None
    coarse_r = backend.restrict(level, coarser[0], r, rest, active)
    coarse_rest, multiplier = backend.project(coarser[0], coarse_r, active)
    correction, multiplier, _ = cycle(backend, coarser, coarse_r, coarse_rest, multiplier, enlargement, active)
    z = backend.prolong(level, coarser[0], rest, correction, enlargement, active)
    if coarser[0].gain is not None:  # a correction of whole cells moves them against their measurements
        multiplier = coarser[0].gain * backend.unscaled(coarser[0], correction)
    elif not coarser[0].constrained:
        multiplier = 0
    kappa = OMEGA * kappa + enlargement * multiplier
    z, last, rz = backend.smooth(level, r, z, kappa, active)
    return z, kappa + last, rz


@lru_cache(maxsize=128)
def grids(blocks: Blocks, loose: bool) -> tuple[Grid, ...]:
    """The grids below the finest, finer first; those across blocks only where some cells are not hard (`loose`)."""
    out = []
    rows, cols = blocks.rows, blocks.cols
    side = FIRST_GROUP if widest_block(blocks) >= WIDE else 2
    while max(np.diff(rows).max(), np.diff(cols).max()) > 2:
        (down, rows), (right, cols) = _group_within(rows, side), _group_within(cols, side)
        out.append(Grid("within", from_starts(rows, cols), from_starts(down, right)))
        side = 2
    if loose:
        kind: Literal["cells", "across"] = "cells"
        down, right = rows, cols
        while True:
            h, w = len(down) - 1, len(right) - 1
            out.append(Grid(kind, from_starts(np.arange(h + 1), np.arange(w + 1)), from_starts(down, right)))
            if max(h, w) <= 2:
                break
            kind = "across"
            down, right = (np.append(np.arange(0, n, 2), n) for n in (h, w))
    return tuple(out)


def _group_within(starts: np.ndarray, side: int) -> tuple[np.ndarray, np.ndarray]:
    """Group pixels within each block; blocks no wider than two stay as they are. Returns groups and new blocks."""
    groups = [np.arange(a, b, side if b - a > 2 else 1) for a, b in pairwise(starts)]
    return np.append(np.concatenate(groups), starts[-1]), np.cumsum([0] + [len(group) for group in groups])


def worth_it(blocks: Blocks, hard: np.ndarray) -> bool:
    """Whether a V-cycle will be faster than plain Jacobi; `hard` is [N, h, w] bool."""
    side = widest_block(blocks)
    return side >= WIDE or (not hard.all() and side * max(_widest_square(~image) for image in hard) >= WIDE)


def alike(measurement: Measurement) -> list[Tensor]:
    """Numbers of the images that are preconditioned alike: no image must depend on those beside it."""
    if len(measurement.count) == 1:
        return [torch.zeros(1, dtype=torch.int64)]
    used = (measurement.count > 0).cpu().numpy()
    hard = used & torch.isinf(measurement.weight).cpu().numpy()
    kinds = [(worth_it(measurement.blocks, h[None]), h.all(), (u & ~h).any()) for u, h in zip(used, hard, strict=True)]
    return [torch.tensor([n for n, kind in enumerate(kinds) if kind == one]) for one in dict.fromkeys(kinds)]


@lru_cache(maxsize=128)
def widest_block(blocks: Blocks) -> int:
    """Longest side of a block, in pixels."""
    return int(max(np.diff(blocks.rows).max(), np.diff(blocks.cols).max()))


def _widest_square(region: np.ndarray) -> int:
    """Side of the largest square inside the region, among the squares of a dyadic grid; 0 if it is empty."""
    side = 0
    while region.any():
        side = max(1, 2 * side)
        h, w = (n // 2 * 2 for n in region.shape)
        region = np.asarray(region[:h, :w].reshape(h // 2, 2, w // 2, 2).all(axis=(1, 3)))
    return side


# ---- the grids across cells, in torch for every backend: they are small


def across_cells(grid: Grid, wv: Tensor, wh: Tensor, sd: Tensor, g: Tensor, slack: Tensor) -> dict[str, Tensor]:
    """Build the grid of cells, or one of pairs across cells, from the next finer grid; names as in `Level`."""
    sd = sd.double()
    vertical = wv[:, 1:-1].double() * sd[:, 1:] * sd[:, :-1]
    horizontal = wh[:, :, 1:-1].double() * sd[:, :, 1:] * sd[:, :, :-1]
    coarse_v, coarse_h = between_groups(vertical, horizontal, grid.groups)
    edges = _edge_sum(coarse_v, coarse_h)
    if grid.kind == "cells":
        total = block_sum(g.double() * sd, grid.groups)
        gain = torch.where(slack > 0, total * _reciprocal(slack), 0.0)
        diagonal = (edges + total * gain).clamp(min=TINY)
        return {**_scaled(coarse_v, coarse_h, diagonal, slack > 0), "gain": gain}
    total = block_sum(sd**2, grid.groups)
    inside = total - block_sum(_edge_sum(vertical, horizontal), grid.groups)
    return _scaled(coarse_v, coarse_h, torch.maximum(inside + edges, 1e-12 * total), total > 0)


def _scaled(vertical: Tensor, horizontal: Tensor, diagonal: Tensor, active: Tensor) -> dict[str, Tensor]:
    """Scale to a unit diagonal; pixels that are not active take no part."""
    sd = torch.where(active, diagonal.sqrt(), 0.0)
    inverse = _reciprocal(sd)
    wv = pad(vertical * inverse[:, 1:] * inverse[:, :-1], (0, 0, 1, 1))
    return {"wv": wv, "wh": pad(horizontal * inverse[:, :, 1:] * inverse[:, :, :-1], (1, 1)), "sd": sd}


@lru_cache(maxsize=128)
def _edges_between(groups: Blocks) -> tuple[Blocks, Blocks]:
    """The edges between groups that join the same two: above each other, and side by side."""
    h, w = groups.source_size
    return from_starts(np.arange(h), groups.cols), from_starts(groups.rows, np.arange(w))


def between_groups(vertical: Tensor, horizontal: Tensor, groups: Blocks) -> tuple[Tensor, Tensor]:
    """Sum the edges between groups."""
    (h, w), (by_column, by_row) = groups.source_size, _edges_between(groups)
    rows, cols = (torch.from_numpy(starts[1:-1] - 1).to(vertical.device) for starts in (groups.rows, groups.cols))
    N = len(vertical)
    return (
        block_sum(vertical[:, rows], by_column) if h > 1 else vertical.new_zeros(N, 0, w),
        block_sum(horizontal[:, :, cols], by_row) if w > 1 else horizontal.new_zeros(N, h, 0),
    )


def _edge_sum(vertical: Tensor, horizontal: Tensor) -> Tensor:
    """Sum of the edges at each pixel."""
    return pad(vertical, (0, 0, 1, 0)) + pad(vertical, (0, 0, 0, 1)) + pad(horizontal, (1, 0)) + pad(horizontal, (0, 1))


def _reciprocal(value: Tensor) -> Tensor:
    usable = (value > 0) & torch.isfinite(value)
    return torch.where(usable, 1 / torch.where(usable, value, 1), 0.0)
