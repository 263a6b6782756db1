"""Diffusion coefficients from the features of the guide: Eq. 2 of the paper."""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from torch import Tensor

Distance = Literal["euclidean", "mean_absolute"]


class Coefficients(NamedTuple):
    """One coefficient for each edge of the 4-connected pixel grid."""

    vertical: Tensor  # [B, H - 1, W] between (i, j) and (i + 1, j)
    horizontal: Tensor  # [B, H, W - 1] between (i, j) and (i, j + 1)

    @property
    def size(self) -> tuple[int, int]:
        """(H, W) of the grid."""
        return self.horizontal.shape[-2], self.vertical.shape[-1]


def coefficients(features: Tensor, kappa: float | Tensor, distance: Distance = "euclidean") -> Coefficients:
    """Compute c(p, n) = kappa^2 / (kappa^2 + distance(p, n)) for each pair of neighbours (Eq. 2).

    Args:
        features: [B, C, H, W], any number of channels.
        kappa: > 0, how large a difference counts as an edge, in the unit of the features. A tensor (of any shape
            that broadcasts to [B, H, W]) may require a gradient.
        distance: "euclidean" is Eq. 2, the squared L2 norm of the difference; "mean_absolute" is what the authors'
            released code computes instead, the square of the mean over channels of the absolute difference.

    Returns:
        Coefficients in (0, 1].

    Raises:
        ValueError: wrong shape, kappa not positive, or an unknown distance.
    """
    if features.ndim != 4:
        raise ValueError(f"features must be [B, C, H, W], got shape {tuple(features.shape)}")
    if distance not in ("euclidean", "mean_absolute"):
        raise ValueError(f'distance must be "euclidean" or "mean_absolute", got {distance!r}')
    if not bool((torch.as_tensor(kappa) > 0).all()):
        raise ValueError(f"kappa must be positive, got {kappa}")
    measure = _squared_norm if distance == "euclidean" else _squared_mean
    return Coefficients(
        *(1 / (1 + measure(features.diff(dim=dim)) / kappa**2) for dim in (-2, -1)),
    )


def _squared_norm(difference: Tensor) -> Tensor:
    return difference.square().sum(dim=1)


def _squared_mean(difference: Tensor) -> Tensor:
    return difference.abs().mean(dim=1).square()
