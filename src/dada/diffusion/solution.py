"""What a solve returns: the image, and an honest account of how it was reached."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from .measurement import Measurement


class ConvergenceWarning(UserWarning):
    """A solve ended before it reached its tolerance."""


@dataclass
class Solution:
    """The target and how it was reached. Shapes: B samples, K channels.

    Attributes:
        values: [B, K, H, W]; down(values) equals the source in every hard cell, converged or not.
        iterations: [B, K] steps of the loop, or iterations of the solver.
        residual: [B, K] what is left to do. For the solver, the estimated energy norm of the error relative to that
            of the nearest-neighbour image; for the loop, the largest change in the last step relative to the range of
            the source.
        misfit_max: [B, K] largest |down(values) - source| over measured cells.
        misfit_mean: [B, K] mean of the same.
        converged: [B, K] bool, whether the tolerance was reached.
        reason: why it stopped, in words, for each image.
    """

    values: Tensor
    iterations: Tensor
    residual: Tensor
    misfit_max: Tensor
    misfit_mean: Tensor
    converged: Tensor
    reason: list[str]


def summarise(
    values: Tensor,  # [N, H, W]
    measurement: Measurement,
    shape: tuple[int, int],  # B, K
    reason: list[str],
    iterations: Tensor,
    residual: Tensor,
    converged: Tensor,
) -> Solution:
    """Measure the misfit and bring everything to [B, K]."""
    with torch.no_grad():
        largest, mean = _misfit(values.detach().double(), measurement)
    return Solution(
        values=values.reshape(*shape, *values.shape[-2:]),
        iterations=iterations.reshape(shape),
        residual=residual.reshape(shape),
        misfit_max=largest.reshape(shape),
        misfit_mean=mean.reshape(shape),
        converged=converged.reshape(shape),
        reason=reason,
    )


def _misfit(values: Tensor, measurement: Measurement) -> tuple[Tensor, Tensor]:
    """Largest and mean |down(values) - source| over the measured cells of each image, [N]."""
    used = (measurement.count > 0).flatten(1)
    error = (measurement.down(values) - measurement.source.detach()).abs().flatten(1) * used
    return error.amax(dim=1), error.sum(dim=1) / used.sum(dim=1)
