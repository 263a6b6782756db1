"""Diffusion coefficients from the features of the guide: Eq. 2 of the paper."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from dada.operators import recorded

Distance = Literal["euclidean", "mean_absolute"]
BAND = 1 << 19  # numbers that are looked at together
Pair = tuple[Tensor, Tensor]


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
    if not recorded() and not _positive(kappa):
        raise ValueError(f"kappa must be positive, got {kappa}")
    features = at_least_float32(features)
    scale = 1 / (kappa if isinstance(kappa, Tensor) else torch.tensor(kappa, dtype=features.dtype))
    if scale.numel() > 1:
        if scale.shape != (features.shape[0], 1, 1):
            raise ValueError(f"kappa must have one element or be [B, 1, 1], got shape {tuple(scale.shape)}")
        scale = scale[:, None]  # beside the channels
    followed = recorded() or torch._C._are_functorch_transforms_active()
    if followed or (torch.is_grad_enabled() and distance != "euclidean"):
        squared = _squared_distances(features, scale, distance)
    elif torch.is_grad_enabled():
        squared = _Euclidean.apply(features, scale)  # type: ignore[no-untyped-call]
    else:
        squared = _in_bands(features, scale, distance)
    return Coefficients(*(1 / (1 + part) for part in squared))


def _positive(kappa: float | Tensor) -> bool:
    try:
        return bool((torch.as_tensor(kappa) > 0).all())
    except RuntimeError:  # torch.vmap over kappa lets nobody look at values; one below 0 counts as its size
        return True


def _squared_distances(features: Tensor, scale: Tensor, distance: Distance) -> Pair:
    """Those of neighbours down and right, in units of kappa: scaled before squared, as kappa^2 may underflow."""
    down, right = (features.diff(dim=dim) * scale for dim in (-2, -1))
    if distance == "euclidean":
        return down.square().sum(dim=1), right.square().sum(dim=1)
    return down.abs().mean(dim=1).square(), right.abs().mean(dim=1).square()


def _in_bands(features: Tensor, scale: Tensor, distance: Distance = "euclidean") -> Pair:
    """The same in bands of rows: differences of all channels of an image at once take longer to store than to find."""
    height, width = features.shape[-2:]
    rows, found = max(BAND * height * width // max(features.numel(), 1), 1), []
    for start in range(0, height, rows):
        down, right = _squared_distances(features[..., start : start + rows + 1, :], scale, distance)
        found.append((down, right[..., :rows, :]))
    down, right = (torch.cat(parts, dim=-2) for parts in zip(*found, strict=True))
    return down, right


class _Euclidean(torch.autograd.Function):
    """`_in_bands` with its gradient, a Laplacian of the features, found by channels in a fifth of the time."""

    @staticmethod
    def forward(ctx: Any, features: Tensor, scale: Tensor) -> Pair:
        squared = _in_bands(features, scale)
        ctx.save_for_backward(features, scale, *squared)
        return squared

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Pair:
        features, scale, *squared = ctx.saved_tensors
        c = Coefficients(*(2 * scale.square() * part[:, None] for part in gradients))
        to_features, some = torch.empty_like(features), max(BAND * features.shape[1] // max(features.numel(), 1), 1)
        for k in range(0, features.shape[1], some):
            to_features[:, k : k + some] = laplacian(features[:, k : k + some], c)
        to_scale = sum((2 * g * s).sum(dim=(-2, -1)) for g, s in zip(gradients, squared, strict=True)) / scale.flatten()
        return to_features, to_scale.sum_to_size(scale.flatten().shape).reshape(scale.shape)


def laplacian(y: Tensor, c: Coefficients) -> Tensor:
    """(L y)_p = sum over the neighbours of c (y_p - y_n); y is [..., H, W]."""
    flow_v, flow_h = c.vertical * y.diff(dim=-2), c.horizontal * y.diff(dim=-1)
    return pad(flow_v, (0, 0, 1, 0)) - pad(flow_v, (0, 0, 0, 1)) + pad(flow_h, (1, 0)) - pad(flow_h, (0, 1))
