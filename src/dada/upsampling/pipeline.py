"""The whole way from a user's source and guide to the result."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dada.diffusion import up
from dada.errors import InputError
from dada.io.units import parse_unit
from dada.models.default import bands_used, suited_to
from dada.models.model import Model, data_unit_of
from dada.models.registry import load_model
from dada.sample import Method, Sampling
from dada.sample.guide import Bands, bands_first, unit_range
from dada.upsampling.adjust import Choice
from dada.upsampling.batch import over_batches
from dada.upsampling.confidence import read_trust
from dada.upsampling.device import on_device, usable_device
from dada.upsampling.half import chosen as half_precision
from dada.upsampling.labelled import is_labelled, plain_cells, plain_pair
from dada.upsampling.memory import check_memory
from dada.upsampling.problem import Problem, too_extreme
from dada.upsampling.registration import MIN_AGREEMENT, edge_agreement
from dada.upsampling.result import Report, Result, UpsampleWarning, consistency
from dada.upsampling.sampling import about_bounds, chosen_sampling
from dada.upsampling.solve import Solved, direct, solve
from dada.upsampling.solver import Precision, Solver, SolverName
from dada.upsampling.source import ArrayLike, Cells, Marker, check_sizes, read_source

Warn = Callable[[str], None]


@over_batches
def upsample(
    source: ArrayLike,
    guide: ArrayLike,
    *,
    model: str | os.PathLike[str] | Model | Method = "default",
    mask: ArrayLike | None = None,
    confidence: ArrayLike | None = None,
    noise: ArrayLike | float | None = None,
    invalid: Marker = "auto",
    adjust: Choice = "auto",
    solver: SolverName = "equilibrium",
    tolerance: float | None = None,
    steps: int | None = None,
    fill: bool = False,
    sampling: str | Sampling = "mean",
    unit: str | float | None = None,
    precision: Precision = "auto",
    device: str | torch.device | None = None,
    method: SolverName | None = None,
) -> Result:
    """Make the source as fine as the guide. Averaged (or sampled, see `sampling`) back down, the result is the source.

    Gradients are not kept; `dada.diffusion.equilibrium` is the differentiable operator.

    Args:
        source: (h, w) NumPy array, torch tensor or xarray DataArray of any real dtype and unit. NaN and infinities are
            invalid. A DataArray gives DataArrays, with the coordinates of a guide that is one too; where both have
            coordinates, they are laid on each other by these, as maps are (`dada.upsampling.labelled`).
        guide: NumPy (H, W) or (H, W, bands), torch (H, W) or (bands, H, W), with H >= h and W >= w, of the
            same area; 8-bit, 16-bit, or float; see `dada.sample.guide.unit_range` for how its values are taken. NumPy
            masked arrays are masked where they have no value. A guide of four dimensions, (B, H, W, bands) or torch
            (B, bands, H, W), makes a batch: then the source is (B, h, w) or (B, 1, h, w), mask and confidence are
            alike or (h, w) for all, and so are the arrays of the result. Each image is computed as if alone.
        model: "default", which is "learned" where that fits the guide; "fast", its first two rounds; "dynamic" or
            "none", which need no weights; a file of weights; or a model; see `load_model`.
        mask: (h, w) bool, True where the source is valid.
        confidence: (h, w) in 0..1: 1 is exact, 0 is no measurement. Between them, a cell is held with the
            weight c / (1 - c): the diffusion may move its mean, the less the closer c is to 1. At 1/2 a cell
            weighs about as much as its ties to one neighbouring cell in a flat part of the guide. Whole numbers are
            levels from 0 to 1 or 2, or 8 or 16 bits without sign; they are divided by the largest.
        noise: standard deviation of the measurements in the unit of the source, one number or (h, w). Cells are held
            with the weight that follows from it (`dada.upsampling.confidence`), so that their means may move.
        invalid: value that marks invalid cells in the source, beside NaN. By default 0 in sources of whole numbers and
            none in floats; None: no value does.
        adjust: "ratio" scales a cell to its measurement (positive values only), "shift" adds to it (any
            values); "auto" is what the model was trained with, "shift" for the learned default; for models that
            learned nothing "ratio" where all valid values are positive and within a factor of 100 of each other,
            unless its equilibrium is not reached or some pixel exceeds the largest value four times. With "auto",
            models that are solved for (not methods such as "gf") give no value below zero where the source has none,
            and none far beyond what was measured (`dada.upsampling.bounds`); "ratio" and "shift" have no such bound.
        solver: "equilibrium" solves directly for where the paper's loop ends, "iterate" runs the loop.
        tolerance: of the equilibrium; 2e-4 by default.
        steps: of the loop; 9024 by default, as in the paper.
        fill: also give values to the pixels of invalid cells; by default they stay invalid.
        sampling: how the source was made. "mean": each cell is the mean over its block, as in the paper. "point": it is
            the value of one pixel, that at the centre, or "point:ROWS,COLUMNS" with its place in the cell as shares
            from 0 to below 1. "bicubic": it was resized bicubically with antialiasing. "auto": "mean" or "point",
            whichever the source looks like, and "mean" where that is not clear. The result gives back what was
            measured in this way; see docs/how-to/sampling.md.
        unit: of the source, for weights that were trained in the unit of a data set: "mm", "cm", "m", "tum", how many
            units make a metre, or "raw" for values that are no lengths. None: not known. Other models take any unit.
        precision: "auto" runs the package's own network in bfloat16 (8 binary digits) where the processor has it, and
            all else in float32; "bfloat16" does so with any network, "float32" with none. A source of float64 (or of
            integers of 32 bits and more) is computed in float32 too, and its cells are adjusted at the end in float64:
            averaged back down, the result is the source to all digits, and between cell means float32 leaves some 1e-7
            of the values' range. "float64" computes in float64, whose code is compiled apart at its first use. So do,
            for a float64 source, a `tolerance` below 1e-6, and "ratio" on values that vary by less than a thousandth.
        device: of torch, on which models are computed, such as "cuda"; by default that of a tensor, and the CPU for
            arrays. The result is where the source is.
        method: what `solver` was called before; goes in a later version.

    Raises:
        InputError: the inputs cannot be used; the message says why and what to do.

    Warns:
        UpsampleWarning: something looks wrong, such as a pair that is not registered; also in
            `report.warnings`.
    """
    begin = time.perf_counter()
    notes: list[str] = []
    wrap = None
    if is_labelled(source) or is_labelled(guide):
        source, guide, part, invalid, wrap, notes = plain_pair(source, guide, invalid)
        mask, confidence, noise = (plain_cells(given, part) for given in (mask, confidence, noise))
    way = Solver.of(method or solver, tolerance, steps, precision)
    reading = Reading(model, invalid, sampling, unit, device)
    inputs, problem, chosen, known = prepared(source, guide, (mask, confidence, noise), reading, notes.append)
    result = compute(inputs, problem, chosen, way, adjust, fill, notes, **known)
    result.report.seconds = time.perf_counter() - begin
    for text in notes:
        warnings.warn(text, UpsampleWarning, stacklevel=3)
    return wrap(result) if wrap else result


@dataclass(frozen=True)
class Reading:
    """How the images of a user are understood; see `upsample`."""

    model: str | os.PathLike[str] | Model | Method = "default"
    invalid: Marker = "auto"
    sampling: str | Sampling = "mean"
    unit: str | float | None = None
    device: str | torch.device | None = None


def prepared(
    source: ArrayLike,
    guide: ArrayLike,
    held: tuple[ArrayLike | None, ArrayLike | None, ArrayLike | float | None],
    reading: Reading,
    warn: Warn,
) -> tuple[Inputs, Problem, Model | Method, dict[str, Any]]:
    """Return the inputs checked, the problem that they make, the model that suits it, and what a report says of them.

    Args:
        source: as for `upsample`, as is the guide.
        guide: of the same area.
        held: mask, confidence and noise.
        reading: how the images are understood.
        warn: takes what to warn of.
    """
    inputs = _read(source, guide, held[0], held[1:], reading.invalid, reading.device, warn)
    chosen = chosen_model(reading.model, inputs, warn)
    fine, guide_range = unit_range(bands_used(chosen, inputs.bands), inputs.device, warn)
    agreement = _check_registration(inputs, fine, warn)
    problem = Problem(fine[None], *measured(inputs, fine.device), unit=millimetres(reading.unit))
    problem = replace(problem, sampling=chosen_sampling(reading.sampling, problem, warn))
    check_data_unit(chosen, problem, warn)
    return inputs, problem, chosen, {"guide_range": guide_range, "edge_agreement": agreement}


def compute(
    inputs: Inputs,
    problem: Problem,
    chosen: Model | Method,
    way: Solver,
    adjust: Choice,
    fill: bool,
    notes: list[str],
    **known: Any,
) -> Result:
    """Solve a problem of one image and report; `notes` take what to warn of, `known` is more of the report."""
    (solved,) = solve(problem, chosen, way, adjust) if isinstance(chosen, Model) else direct(problem, chosen, adjust)
    return reported(inputs, problem, chosen, way, solved, fill, notes, **known)


def reported(
    inputs: Inputs,
    problem: Problem,
    chosen: Model | Method,
    way: Solver,
    solved: Solved,
    fill: bool,
    notes: list[str],
    **known: Any,
) -> Result:
    """What a solution of one image is for its user; arguments as those of `compute`."""
    if way.name == "equilibrium" and not solved.converged:
        notes.append(f"equilibrium not reached: {solved.reason}")
    values, kept = _finish(inputs, solved.values, fill)
    names = {"model": chosen.name, "solver": way.name if solved.adjust else "direct"}
    half = isinstance(chosen, Model) and half_precision(way.precision, chosen, problem.source.device)
    names["precision"] = "bfloat16" if half else "float64" if way.precision == "float64" else "float32"
    how = problem.sampling if problem.points is None else Sampling("point")
    report = _report(inputs, solved, values, kept, how, warnings=notes, **names, **known)
    if how.kind == "bicubic" and report.bounded_pixels:
        notes += about_bounds(report.consistency_max, problem.ranges()[0], report.bounded_pixels)
    edges = None if solved.coefficients is None else tuple(_of_kind(inputs, part) for part in solved.coefficients)
    return Result(values, _of_kind(inputs, kept), report, edges)


@dataclass(frozen=True)
class Inputs:
    """What the user gave, checked."""

    cells: Cells
    trust: NDArray[np.float64]  # [h, w] in 0..1: 1 is exact, 0 is no measurement
    bands: Bands
    factors: tuple[float, float]
    device: torch.device

    @property
    def size(self) -> tuple[int, int]:
        """H, W."""
        return self.bands.shape[1], self.bands.shape[2]


def _read(
    source: ArrayLike,
    guide: ArrayLike,
    mask: ArrayLike | None,
    held: tuple[ArrayLike | None, ArrayLike | float | None],
    invalid: Marker,
    device: str | torch.device | None,
    warn: Warn,
) -> Inputs:
    cells = read_source(source, invalid, mask, warn)
    trust = read_trust(*held, cells.values, cells.valid, warn)
    bands = bands_first(guide)
    factors = check_sizes(
        cells.values.shape, bands.shape[1:], warn, bands.shape[0], soft=int(((trust > 0) & (trust < 1)).sum())
    )
    check_memory((bands.shape[1], bands.shape[2]), bands.shape[0], cells.values.itemsize)
    found = cells.device or (guide.device if isinstance(guide, Tensor) else torch.device("cpu"))
    return Inputs(cells, trust, bands, factors, found if device is None else usable_device(device))


def chosen_model(model: str | os.PathLike[str] | Model | Method, inputs: Inputs, warn: Warn) -> Model | Method:
    """The model of a name, and of the default the one that suits the guide."""
    found = load_model(model) if isinstance(model, str | os.PathLike) else model
    if not isinstance(found, Model):
        return on_device(found, inputs.device)  # type: ignore[no-any-return]
    chosen, why = suited_to(found, len(inputs.bands), inputs.size)
    if why:
        warn(why)
    return on_device(chosen, inputs.device)  # type: ignore[no-any-return]


def _check_registration(inputs: Inputs, guide: Tensor, warn: Warn) -> float | None:
    source, valid = (torch.from_numpy(v).to(guide.device) for v in (inputs.cells.values, inputs.cells.valid))
    agreement = edge_agreement(source, valid, guide)
    if agreement is not None and agreement < MIN_AGREEMENT:
        warn(
            "the edges of source and guide do not lie in the same places: do both show the same scene, from "
            "the same viewpoint, without a shift or a flip? If they do, the guide has little to say about "
            "this source"
        )
    return agreement


def millimetres(unit: str | float | None) -> float | None:
    """What 1.0 of the source is, in millimetres; None: not known."""
    per_metre = None if unit is None else parse_unit(unit).per_metre
    return None if per_metre is None else 1000 / per_metre


def check_data_unit(model: Model | Method, problem: Problem, warn: Warn) -> None:
    """Say what is assumed where weights need the unit of a data set, and it cannot be told."""
    wanted = data_unit_of(model)
    if wanted is None or (wanted.deviation and problem.unit):
        return
    if wanted.deviation:
        missing = "the unit of the source is not stated"
        remedy = "State it with unit= (--unit), such as mm"
    else:
        missing = "their file does not tell which"
        remedy = "Name the data set after the file, such as FILE?unit=middlebury (or nyuv2, diml, its deviation in mm)"
    warn(
        f"the weights {model.name} were trained in the unit of a data set, and {missing}: the standard deviation of "
        f"this source was taken for it. {remedy}"
    )


def measured(inputs: Inputs, device: torch.device) -> tuple[Tensor, Tensor, Tensor | None]:
    """Source, valid cells and weight, [1, 1, h, w] each; see `Problem`."""
    used, values, trust = inputs.trust > 0, inputs.cells.values, inputs.trust
    weight = None
    if (used & (trust < 1)).any():
        with np.errstate(divide="ignore"):
            weight = torch.from_numpy((trust / (1 - trust)).astype(values.dtype)).to(device)[None, None]
    source, valid = (torch.from_numpy(v).to(device)[None, None] for v in (np.where(used, values, 0), used))
    return source, valid, weight


def _finish(inputs: Inputs, values: Tensor, fill: bool) -> tuple[ArrayLike, Tensor]:
    """Values of the source's kind and dtype, NaN where they are not kept; and where they are, [H, W] bool."""
    used = inputs.trust > 0
    if fill or used.all():
        kept = torch.ones_like(values, dtype=torch.bool)
    else:
        kept = up(torch.from_numpy(used).to(values.device), inputs.size)
        values = torch.where(kept, values, torch.nan)
    result = inputs.cells.like_source(values)
    finite = torch.isfinite(result) if isinstance(result, Tensor) else torch.from_numpy(np.isfinite(result))
    if not bool((finite.to(kept.device) | ~kept).all()):  # they left the range of their dtype
        raise InputError(too_extreme(torch.from_numpy(inputs.cells.values[inputs.cells.valid])))
    return result, kept


def _of_kind(inputs: Inputs, image: Tensor) -> ArrayLike:
    """A tensor where the source is, if it is one, else an array."""
    where = inputs.cells.device
    return image.cpu().numpy() if where is None else image.to(where)


def _report(
    inputs: Inputs, solved: Solved, values: ArrayLike, kept: Tensor, sampling: Sampling, **known: Any
) -> Report:
    trust, (h, w), (height, width) = inputs.trust, inputs.cells.values.shape, inputs.size
    largest, mean = consistency(values, inputs.cells.values, trust == 1, sampling)
    soft = consistency(values, inputs.cells.values, (trust > 0) & (trust < 1), sampling)
    invalid = 0 if (trust > 0).all() else int((~up(torch.from_numpy(trust > 0), inputs.size)).sum())
    lost = height * width - int(kept.sum())
    return Report(
        source_size=(h, w),
        target_size=(height, width),
        factors=inputs.factors,
        bands=len(inputs.bands),
        sampling=str(sampling),
        promise=sampling.promise,
        adjust=solved.adjust or "none",
        rounds=solved.rounds,
        iterations=solved.iterations,
        residual=solved.residual,
        converged=solved.converged,
        reason=solved.reason,
        consistency_max=largest,
        consistency_mean=mean,
        uncertain_max=soft[0],
        uncertain_mean=soft[1],
        invalid_cells=int((trust == 0).sum()),
        uncertain_cells=int(((trust > 0) & (trust < 1)).sum()),
        invalid_pixels=lost,
        filled_pixels=invalid - lost,
        bounded_pixels=0 if solved.bounded is None else int((kept & solved.bounded).sum()),
        **known,
    )
