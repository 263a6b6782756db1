"""Sparse measurements at single pixels of the guide's own grid, made dense: depth completion."""

from __future__ import annotations

import math
import os
import time
import warnings
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dada.errors import InputError
from dada.io.points import points_image
from dada.models.default import bands_used
from dada.models.model import Model
from dada.sample import Method
from dada.sample.guide import bands_first, unit_range
from dada.upsampling.adjust import Choice
from dada.upsampling.confidence import read_trust
from dada.upsampling.device import usable_device
from dada.upsampling.memory import check_memory
from dada.upsampling.pipeline import Inputs, check_data_unit, chosen_model, compute, measured, millimetres
from dada.upsampling.problem import Points, Problem
from dada.upsampling.result import Result, UpsampleWarning
from dada.upsampling.solver import Precision, Solver, SolverName
from dada.upsampling.source import ArrayLike, read_source

NEIGHBOURS = 8  # points that an outlier must contradict, all of them
CONTRADICTION = 10.0  # typical differences to the nearest neighbour in value that make a contradiction
LEAST_CONTRADICTION = 0.05  # of the range of all points: less is none
OUTLIER = 0.05  # confidence that is left to an outlier
MOST_CELL = 64  # pixels a side of the cells that models look at


def complete(
    sparse: ArrayLike,
    guide: ArrayLike,
    *,
    model: str | os.PathLike[str] | Model | Method = "default",
    mask: ArrayLike | None = None,
    confidence: ArrayLike | None = None,
    invalid: float | None = 0.0,
    adjust: Choice = "auto",
    solver: SolverName = "equilibrium",
    tolerance: float | None = None,
    steps: int | None = None,
    robust: bool = False,
    unit: str | float | None = None,
    precision: Precision = "auto",
    device: str | torch.device | None = None,
) -> Result:
    """Give every pixel of the guide a value. At the measured pixels the result is the measurement.

    Args:
        sparse: (H, W) of the guide's size, with measurements at some pixels; or (n, 3) points: x, y, value, with pixel
            centres at whole numbers; the mean of those that fall on the same pixel is taken.
        guide: as for `dada.upsample`.
        model: as for `dada.upsample`.
        mask: (H, W) bool, True where something was measured.
        confidence: (H, W) or, of points, (n,) in 0..1; see `dada.upsample`.
        invalid: value that marks pixels without a measurement, beside NaN; None: there is none.
        adjust: as for `dada.upsample`, as are solver, tolerance and steps.
        solver: how the end of the diffusion is found.
        tolerance: of the equilibrium.
        steps: of the loop.
        robust: let points that contradict all their neighbours weigh little; the report counts them.
        unit: as for `dada.upsample`, as are precision and device.
        precision: in which it is computed.
        device: on which models are computed.

    Raises:
        InputError: the inputs cannot be used; the message says why and what to do.
    """
    begin, notes = time.perf_counter(), []  # type: float, list[str]
    bands = bands_first(guide)
    size = bands.shape[1], bands.shape[2]
    if len(sparse.shape) == 2 and sparse.shape[1] == 3 and tuple(sparse.shape) != size:
        sparse, confidence = _scattered(sparse, size, confidence)
        invalid = None
    cells = read_source(sparse, invalid, mask, lambda text: None)
    if cells.values.shape != size:
        raise InputError(
            f"the sparse image has {cells.values.shape[1]} x {cells.values.shape[0]} pixels (width x height), the "
            f"guide {size[1]} x {size[0]}: points are measured on the grid of the guide. For a coarse image of all "
            "pixels use upsample; for another camera use align."
        )
    trust, outliers = read_trust(confidence, None, cells.values, cells.valid, notes.append), 0
    if robust:
        trust, outliers = without_outliers(cells.values, trust)
    check_memory(size, bands.shape[0], cells.values.itemsize)
    found = cells.device or (guide.device if isinstance(guide, Tensor) else torch.device("cpu"))
    inputs = Inputs(cells, trust, bands, (1.0, 1.0), found if device is None else usable_device(device))
    chosen = chosen_model(model, inputs, notes.append)
    way = Solver.of(solver, tolerance, steps, precision)
    fine, guide_range = unit_range(bands_used(chosen, bands), inputs.device, notes.append)
    problem = _problem(inputs, fine, millimetres(unit))
    check_data_unit(chosen, problem, notes.append)
    known: dict[str, Any] = {"guide_range": guide_range, "edge_agreement": None, "outliers": outliers}
    result = compute(inputs, problem, chosen, way, adjust, True, notes, **known)
    result.report.seconds = time.perf_counter() - begin
    for text in notes:
        warnings.warn(text, UpsampleWarning, stacklevel=2)
    return result


def _problem(inputs: Inputs, guide: Tensor, unit: float | None) -> Problem:
    """Points, and cells as large as the area of a point for models to look at."""
    points = Points(*measured(inputs, guide.device))
    height, width = inputs.size
    side = max(1, min(MOST_CELL, round(math.sqrt(height * width / int(points.measured.sum())))))
    cells = max(1, round(height / side)), max(1, round(width / side))
    source, valid = points.gathered(cells)
    return Problem(guide[None], source, valid, unit=unit, points=points)


def _scattered(
    points: ArrayLike, size: tuple[int, int], confidence: ArrayLike | None
) -> tuple[np.ndarray, np.ndarray | None]:
    """Bring points (n, 3) to an image (H, W), NaN where there is none; and their confidence (n,)."""
    array = np.asarray(points.detach().cpu() if isinstance(points, Tensor) else points)
    if array.dtype.kind not in "uif" or not np.isfinite(array.astype(np.float64)).all():
        raise InputError(f"the points of shape {array.shape} and type {array.dtype} are not finite x, y, value.")
    image = points_image(array.astype(np.float64), size).astype(np.float32 if array.dtype == np.float32 else np.float64)
    if confidence is None:
        return image, None
    given = np.asarray(confidence, np.float64)
    if given.shape != (len(array),):
        raise InputError(f"confidence has shape {given.shape}; expected ({len(array)},), one number for each point.")
    return image, np.nan_to_num(points_image(np.column_stack([array[:, :2], given]), size))


def without_outliers(values: np.ndarray, trust: np.ndarray) -> tuple[np.ndarray, int]:
    """Let points that contradict all their neighbours weigh little: the trust (H, W), and how many these are."""
    outliers = contradictions(values, trust > 0)
    return np.where(outliers, np.minimum(trust, OUTLIER), trust), int(outliers.sum())


def contradictions(values: np.ndarray, measured: np.ndarray) -> np.ndarray:
    """Find points that contradict all their neighbours, (H, W) bool.

    A point is one if even the most similar of its `NEIGHBOURS` nearest points differs by more than `CONTRADICTION`
    times what is typical of all points. Beside a jump some neighbour is always on the same side.
    """
    from scipy.spatial import cKDTree

    found = np.zeros(values.shape, bool)
    places = np.argwhere(measured)
    if len(places) <= NEIGHBOURS:
        return found
    value = values[measured].astype(np.float64)
    _, near = cKDTree(places).query(places, k=NEIGHBOURS + 1)
    least = np.abs(value[near[:, 1:]] - value[:, None]).min(axis=1)
    low, high = np.percentile(value, (2, 98))
    typical = max(float(np.percentile(least, 75)), 1e-12)
    odd = least > max(CONTRADICTION * typical, LEAST_CONTRADICTION * float(high - low))
    found[tuple(places[odd].T)] = True
    return found
