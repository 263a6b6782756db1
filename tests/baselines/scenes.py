"""Small scenes for the tests of the baselines: a slanted floor and a raised square, each of its own colour."""

from __future__ import annotations

import torch
from torch import Tensor

from dada.diffusion import down
from dada.sample import Sample, initialise


def scene(
    target: tuple[int, int] = (48, 64),
    source: tuple[int, int] = (6, 8),
    *,
    bands: int = 3,
    batch: int = 1,
    holes: float = 0.0,
    offset: float = 2.0,
    dtype: torch.dtype = torch.float32,
) -> Sample:
    """A sample whose depth jumps exactly where its guide does.

    Args:
        target: H, W.
        source: h, w.
        bands: of the guide.
        batch: scenes, the square a little further down in each.
        holes: share of invalid source cells.
        offset: added to depths that are about 0 to 1.
        dtype: of all images.
    """
    generator = torch.Generator().manual_seed(0)
    rows, cols = (torch.linspace(0, 1, n, dtype=torch.float64) for n in target)
    rows, cols = torch.meshgrid(rows, cols, indexing="ij")
    depth, colour = [], []
    for index in range(batch):
        square = ((rows - 0.45 - 0.05 * index).abs() < 0.25) & ((cols - 0.5).abs() < 0.3)
        depth.append(0.3 * cols + 0.1 * rows + 0.6 * ~square + offset)
        shades = torch.where(square, 0.75, 0.35) + torch.linspace(-0.1, 0.1, bands)[:, None, None]
        colour.append(shades + 0.02 * torch.randn(bands, *target, generator=generator))
    guide, truth = torch.stack(colour).clamp(0, 1).to(dtype), torch.stack(depth)[:, None].to(dtype)
    mask = torch.rand(batch, 1, *source, generator=generator) >= holes
    mask[..., 0, 0] = True
    measured = torch.where(mask, down(truth, source), 0)
    initial = initialise(measured, mask, target, "clough-tocher")
    valid = torch.ones_like(truth, dtype=torch.bool)
    return Sample(guide, measured, mask, initial, truth, valid, names=tuple(str(index) for index in range(batch)))


def error(values: Tensor, sample: Sample) -> float:
    """Mean absolute error."""
    assert sample.target is not None
    return (values - sample.target).abs().mean().item()
