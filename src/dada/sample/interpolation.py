"""The first guess of a target: the source, interpolated; cells without a measurement are filled before."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import grid_sample, interpolate

from dada.diffusion import Coefficients, equilibrium
from dada.sample.sampling import MEAN, Sampling

Interpolation = Literal["clough-tocher", "torch"]


def bicubic(
    source: Tensor, mask: Tensor, size: tuple[int, int], weight: Tensor | None = None, sampling: Sampling = MEAN
) -> Tensor:
    """Upsample [B, 1, h, w] to [B, 1, H, W] bicubically, cells in their true places, within the range of each source.

    Invalid cells are first filled smoothly, and uncertain ones drawn to their neighbours (`fill`): what models see of
    the source shall not have an edge around an outlier.

    Args:
        source: [B, 1, h, w].
        mask: [B, 1, h, w] bool, valid cells.
        size: H, W.
        weight: [B, 1, h, w], how firmly each valid cell is held; exactly where not given.
        sampling: says where the cells lie.
    """
    return within(convolved(fill(source, mask, weight), size, sampling), source, mask)


def initialise(
    source: Tensor, mask: Tensor, size: tuple[int, int], interpolation: Interpolation, sampling: Sampling = MEAN
) -> Tensor:
    """Upsample [B, 1, h, w] to [B, 1, H, W] bicubically.

    "clough-tocher" is the paper's: piecewise cubic over a triangulation of the valid cells' centres, nearest
    outside their hull. "torch" is a tenth of the time: invalid cells are filled smoothly, then `interpolate`.
    """
    if interpolation == "clough-tocher":
        pairs = zip(source.detach().cpu().numpy(), mask.cpu().numpy(), strict=True)
        fine = [clough_tocher(image[0], known[0], size, sampling) for image, known in pairs]
        return torch.from_numpy(np.stack(fine)[:, None]).to(source)
    if interpolation != "torch":
        raise ValueError(f"interpolation {interpolation!r} is unknown: use clough-tocher or torch")
    return convolved(fill(source, mask), size, sampling)


def convolved(source: Tensor, size: tuple[int, int], sampling: Sampling = MEAN) -> Tensor:
    """Cubic convolution of [B, 1, h, w] without holes to [B, 1, H, W]."""
    if sampling.kind != "point":
        return interpolate(source, size=size, mode="bicubic", align_corners=False)
    cells = source.shape[-2], source.shape[-1]
    axes = []
    for places, count, length in zip(sampling.places(cells, size), cells, size, strict=True):
        at = np.interp(np.arange(length), places, np.arange(count))  # in cells; beyond the last ones, their values
        axes.append(torch.from_numpy(2 * at / max(count - 1, 1) - 1).to(source))
    grid = torch.stack(torch.meshgrid(axes[1], axes[0], indexing="xy"), dim=-1).expand(len(source), -1, -1, -1)
    return grid_sample(source, grid, mode="bicubic", padding_mode="border", align_corners=True)


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


def clough_tocher(
    source: NDArray[Any], mask: NDArray[np.bool_], size: tuple[int, int], sampling: Sampling = MEAN
) -> NDArray[Any]:
    """Upsample (h, w) to (H, W): cubic over a triangulation of the valid cells, nearest outside their hull."""
    from scipy.interpolate import CloughTocher2DInterpolator, NearestNDInterpolator

    # Places as (column, row) in target pixels: on a regular grid every triangulation is as good as any other, and
    # these are the coordinates that lead to the one of the released code.
    row, col = np.nonzero(mask)
    rows, cols = sampling.places((source.shape[0], source.shape[1]), size)
    places = np.stack([cols[col], rows[row]], axis=-1).astype(np.float64)
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
