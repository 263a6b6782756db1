"""What `dada.upsample` returns: a finer image, and a report of how it was reached."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from dada.diffusion import partition
from dada.sample import MEAN, Sampling
from dada.upsampling.source import ArrayLike


class UpsampleWarning(UserWarning):
    """The pair was upsampled, but its owner should know something about it."""


@dataclass
class Report:
    """How a result was reached. Sizes are (height, width).

    Attributes:
        source_size: of the source, in cells.
        target_size: of the result, in pixels.
        factors: pixels for each cell, in rows and columns.
        bands: of the guide.
        guide_range: the guide's values that were taken as 0 and 1.
        edge_agreement: how much better edges of source and guide agree as they lie than with the guide moved, in
            standard deviations; None: that cannot be told.
        model: its name.
        sampling: how the source was taken to be made: mean, point, point:ROWS,COLUMNS or bicubic.
        promise: "averaged back down", or what stands for it with this sampling.
        adjust: ratio, shift, or none.
        solver: equilibrium, iterate, or direct: a method whose result the diffusion does not compute.
        rounds: of coefficients and their solution.
        iterations: in all rounds.
        residual: of the last round, relative.
        converged: whether the last round came to its end.
        reason: why it ended.
        consistency_max: largest |result, brought down by `sampling`, - source| of exact cells, in the unit of the
            source; None: there is no exact cell.
        consistency_mean: its mean.
        uncertain_max: the same over cells of a confidence between 0 and 1; None: there is none.
        uncertain_mean: its mean.
        invalid_cells: cells without a measurement.
        uncertain_cells: cells of a confidence between 0 and 1.
        invalid_pixels: pixels of the result without a value.
        filled_pixels: pixels of invalid cells that have a value, with `fill`.
        bounded_pixels: pixels that would have gone farther than "auto" allows, and were brought back.
        precision: in which it was computed: "bfloat16" is that of a model's networks alone.
        outliers: points that contradicted all their neighbours, of `dada.complete` with `robust`.
        seconds: of the whole call.
        warnings: what the user should know of this pair.
    """

    source_size: tuple[int, int]
    target_size: tuple[int, int]
    factors: tuple[float, float]
    bands: int
    guide_range: tuple[float, float]
    edge_agreement: float | None
    model: str
    sampling: str
    promise: str
    adjust: str
    solver: str
    rounds: int
    iterations: int
    residual: float
    converged: bool
    reason: str
    consistency_max: float | None
    consistency_mean: float | None
    uncertain_max: float | None
    uncertain_mean: float | None
    invalid_cells: int
    uncertain_cells: int
    invalid_pixels: int
    filled_pixels: int
    bounded_pixels: int
    precision: str = "float32"
    outliers: int = 0
    seconds: float = 0.0
    warnings: list[str] = field(default_factory=list)


@dataclass
class Result:
    """A finer image.

    Attributes:
        values: (H, W), of the source's kind and float dtype (float32 for integers of up to 16 bits, float64
            for wider ones); NaN where not valid.
        valid: (H, W) bool of the same kind.
        report: how it was reached.
        coefficients: what the model made of the guide, of the last round: (H - 1, W) between pixels above each other,
            (H, W - 1) between pixels side by side, small across an edge; of the same kind. None: the method solves for
            nothing, or it is a batch.
        reports: of a batch, how each image was; `report` then holds sums of what is counted and the worst of the rest.
            The arrays of a batch are (B, H, W), or (B, 1, H, W) where the sources have that dimension.
    """

    values: ArrayLike
    valid: ArrayLike
    report: Report
    coefficients: tuple[ArrayLike, ArrayLike] | None = None
    reports: list[Report] = field(default_factory=list)


def consistency(
    values: ArrayLike, source: np.ndarray, exact: np.ndarray, sampling: Sampling = MEAN
) -> tuple[float | None, float | None]:
    """Return the largest and the mean |values brought down - source| over exact cells.

    Args:
        values: (H, W).
        source: (h, w).
        exact: (h, w) bool.
        sampling: how the source was made.
    """
    if not exact.any():
        return None, None
    fine = values.detach().cpu().double().numpy() if isinstance(values, Tensor) else values
    if sampling.kind == "mean":
        blocks = partition(source.shape, fine.shape)
        total = np.add.reduceat(fine, blocks.rows[:-1], axis=0, dtype=np.float64)
        coarse = np.add.reduceat(total, blocks.cols[:-1], axis=1) / blocks.area
    else:
        coarse = sampling.down(torch.from_numpy(np.asarray(fine, np.float64)), source.shape).numpy()
    misfit = np.abs(coarse - source)[exact]
    misfit = misfit[np.isfinite(misfit)]  # a resized cell beside invalid pixels depends on these too
    return (float(misfit.max()), float(misfit.mean())) if misfit.size else (None, None)
