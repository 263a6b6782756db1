"""Diffusion coefficients from the features of the guide: Eq. 2 of the paper."""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

Distance = Literal["euclidean", "mean_absolute"]
BAND = 64  # rows that are looked at together


class Coefficients(NamedTuple):
    """One coefficient for each edge of the 4-connected pixel grid."""

    vertical: Tensor  # [B, H - 1, W] between (i, j) and (i + 1, j)
    horizontal: Tensor  # [B, H, W - 1] between (i, j) and (i, j + 1)

    @property
    def size(self) -> tuple[int, int]:
        """(H, W) of the grid."""
        return self.horizontal.shape[-2], self.vertical.shape[-1]


def at_least_float32(values: Tensor) -> Tensor:
    """Half precision has too few digits for Eq. 1 to 3; networks give it under torch.autocast."""
    return values.float() if values.dtype in (torch.float16, torch.bfloat16) else values


def coefficients(features: Tensor, kappa: float | Tensor, distance: Distance = "euclidean") -> Coefficients:
    """Compute c(p, n) = kappa^2 / (kappa^2 + distance(p, n)) for each pair of neighbours (Eq. 2).

    Args:
        features: [B, C, H, W], any number of channels; float16 and bfloat16 are computed with in float32.
        kappa: > 0, how large a difference counts as an edge, in the unit of the features; a number, or a tensor of
            one element or [B, 1, 1], which may require a gradient.
        distance: "euclidean" is Eq. 2, the squared L2 norm of the difference; "mean_absolute" is what the authors'
            released code computes instead, the square of the mean over channels of the absolute difference.

    Returns:
        Coefficients in (0, 1].
    """
    if features.ndim != 4:
        raise ValueError(f"features must be [B, C, H, W], got shape {tuple(features.shape)}")
    if distance not in ("euclidean", "mean_absolute"):
        raise ValueError(f'distance must be "euclidean" or "mean_absolute", got {distance!r}')
    if not torch.compiler.is_compiling() and not _positive(kappa):
        raise ValueError(f"kappa must be positive, got {kappa}")
    features = at_least_float32(features)
    if isinstance(kappa, Tensor) and kappa.numel() > 1:
        if kappa.shape != (features.shape[0], 1, 1):
            raise ValueError(f"kappa must have one element or be [B, 1, 1], got shape {tuple(kappa.shape)}")
        kappa = kappa[:, None]  # beside the channels
    if torch.is_grad_enabled() or torch.compiler.is_compiling():
        return Coefficients(*(_along(features, dim, kappa, distance) for dim in (-2, -1)))
    # without a gradient, in bands of rows: differences of all channels of a large image at once cost more to hold than
    # to compute
    height = features.shape[-2]
    starts = range(0, height, BAND)
    vertical = [_along(features[..., i : min(i + BAND, height - 1) + 1, :], -2, kappa, distance) for i in starts]
    horizontal = [_along(features[..., i : i + BAND, :], -1, kappa, distance) for i in starts]
    return Coefficients(torch.cat(vertical, dim=-2), torch.cat(horizontal, dim=-2))


def _positive(kappa: float | Tensor) -> bool:
    try:
        return bool((torch.as_tensor(kappa) > 0).all())
    except RuntimeError:  # torch.vmap over kappa lets nobody look at values; one below 0 counts as its size
        return True


def _along(features: Tensor, dim: int, kappa: float | Tensor, distance: Distance) -> Tensor:
    """Those of the edges along one dimension."""
    relative = features.diff(dim=dim) / kappa  # before squaring: kappa^2 may underflow
    if distance == "euclidean":
        return 1 / (1 + relative.square().sum(dim=1))
    return 1 / (1 + relative.abs().mean(dim=1).square())


def laplacian(y: Tensor, c: Coefficients) -> Tensor:
    """(L y)_p = sum over the neighbours of c (y_p - y_n); y is [N, H, W]."""
    flow_v, flow_h = c.vertical * y.diff(dim=-2), c.horizontal * y.diff(dim=-1)
    return pad(flow_v, (0, 0, 1, 0)) - pad(flow_v, (0, 0, 0, 1)) + pad(flow_h, (1, 0)) - pad(flow_h, (0, 1))
