"""What a solve returns: the image, and an honest account of how it was reached."""

from __future__ import annotations

import math
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
        values: [B, K, H, W]; down(values) equals the source in every hard cell, converged or not, as long as values
            stay within the range of their type.
        iterations: [B, K] steps of the loop, or iterations of the solver.
        residual: [B, K] what is left to do. For the solver, the estimated energy norm of the error relative to that
            of the nearest-neighbour image; for the loop, the largest change in the last step relative to the range of
            the source.
        misfit_max: [B, K] largest |down(values) - source| over measured cells.
        misfit_mean: [B, K] mean of the same.
        converged: [B, K] bool, whether the tolerance was reached.
        tolerance: of the solver; None: the loop's steps were done.
        told: why it stopped, in words, for each image; None: as the numbers tell.
        smooth: [B, K, H, W], of a solution for points: the part of it that is a solution for means; see
            `dada.sample.sampling.smoothed`.
    """

    values: Tensor
    iterations: Tensor
    residual: Tensor
    converged: Tensor
    misfit_max: Tensor
    misfit_mean: Tensor
    tolerance: float | None = None
    told: list[str] | None = None
    smooth: Tensor | None = None

    @classmethod
    def of(cls, shape: tuple[int, ...], values: Tensor, *numbers: Tensor, tolerance: float | None = None) -> Solution:
        """Bring values [N, H, W] and five numbers for each of the N images to [B, K]."""
        iterations, residual, converged, largest, mean = (number.reshape(shape) for number in numbers)
        values = values.reshape(*shape, *values.shape[1:])
        return cls(values, iterations, residual, converged, largest, mean, tolerance)

    @property
    def reason(self) -> list[str]:
        """Why it stopped, in words, for each image."""
        return self.told or why(self.iterations, self.residual, self.converged, self.tolerance)


def why(iterations: Tensor, residual: Tensor, converged: Tensor, tolerance: float | None) -> list[str]:
    """Why solves stopped, in words."""

    def reason(count: int, left: float, done: bool) -> str:
        if tolerance is None:
            return "stands still" if done else f"{count} steps done"
        if done:
            return f"reached tolerance {tolerance:g}"
        if left == math.inf:
            return "values left the range of their type; rescale the source, or use float64 or shift"
        return f"stopped after {count} iterations with residual {left:.1e}, tolerance {tolerance:g}"

    return [
        reason(*one) for one in zip(*(v.flatten().tolist() for v in (iterations, residual, converged)), strict=True)
    ]


def misfit(values: Tensor, measurement: Measurement) -> tuple[Tensor, Tensor]:
    """Largest and mean |down(values) - source| over the measured cells of each image, [N]."""
    used = (measurement.count > 0).flatten(1)
    with torch.no_grad():
        error = (measurement.down(values.detach().double()) - measurement.source.detach()).abs().flatten(1) * used
        return error.amax(dim=1), error.sum(dim=1) / used.sum(dim=1)
