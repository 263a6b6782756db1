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
        kappa: > 0, how large a difference counts as an edge, in the unit of the features; a number, or a tensor of
            one element or [B, 1, 1], which may require a gradient.
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
    if isinstance(kappa, Tensor) and kappa.numel() > 1:
        if kappa.shape != (features.shape[0], 1, 1):
            raise ValueError(f"kappa must have one element or be [B, 1, 1], got shape {tuple(kappa.shape)}")
        kappa = kappa[:, None]  # beside the channels
    relative = (features.diff(dim=dim) / kappa for dim in (-2, -1))  # before squaring: kappa^2 may underflow
    if distance == "euclidean":
        return Coefficients(*(1 / (1 + d.square().sum(dim=1)) for d in relative))
    return Coefficients(*(1 / (1 + d.abs().mean(dim=1).square()) for d in relative))
