"""Small problems for the tests of the heart."""

from __future__ import annotations

import torch
from torch import Tensor

from dada.diffusion import Coefficients, coefficients

DOUBLE = torch.float64


def random_problem(
    target: tuple[int, int],
    source: tuple[int, int],
    *,
    seed: int = 0,
    batch: int = 1,
    channels: int = 1,
    dtype: torch.dtype = DOUBLE,
    low: float = 0.5,
    high: float = 3.0,
    kappa: float = 0.3,
) -> tuple[Tensor, Coefficients]:
    """Source values in [low, high] and coefficients of random features."""
    generator = torch.Generator().manual_seed(seed)
    values = torch.rand(batch, channels, *source, generator=generator, dtype=DOUBLE) * (high - low) + low
    features = torch.rand(batch, 3, *target, generator=generator, dtype=DOUBLE)
    c = coefficients(features, kappa)
    return values.to(dtype), Coefficients(*(v.to(dtype) for v in c))


def random_mask(shape: tuple[int, ...], seed: int = 1, share: float = 0.3) -> Tensor:
    """Bool, False in about `share` of the places, True in at least one."""
    mask = torch.rand(shape, generator=torch.Generator().manual_seed(seed)) > share
    mask[..., 0, 0] = True
    return mask


def random_weight(shape: tuple[int, ...], seed: int = 2) -> Tensor:
    """Soft weights from 0.1 to 20, and infinite ones in about half of the places."""
    generator = torch.Generator().manual_seed(seed)
    soft = torch.rand(shape, generator=generator, dtype=DOUBLE) * 20 + 0.1
    return torch.where(torch.rand(shape, generator=generator) > 0.5, soft, torch.inf)
