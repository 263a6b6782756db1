"""What is decided once for a whole raster: the guide's range, statistics of the source, the model, ratio or shift."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch

from dada.diffusion.measurement import Adjust
from dada.errors import InputError
from dada.models.default import ThreeBands, learned, suited_to
from dada.models.learning_free import Dynamic
from dada.models.model import Model, data_unit_of
from dada.models.registry import load_model
from dada.rasters.axis import Axis
from dada.rasters.files import Info, opened_guide, read_guide
from dada.rasters.grids import Match
from dada.rasters.interpolation import taps
from dada.rasters.plan import Settings
from dada.rasters.sampled import share_of
from dada.rasters.tile import Geometry
from dada.sample import MEAN, Sampling, Whole, fill
from dada.sample.guide import fill_nearest, value_range
from dada.upsampling.adjust import chosen_adjust
from dada.upsampling.problem import Problem
from dada.upsampling.registration import MIN_AGREEMENT, edge_agreement
from dada.upsampling.sampling import check_means
from dada.upsampling.solve import solve
from dada.upsampling.solver import Solver
from dada.upsampling.source import Cells

OVERVIEW = 1024  # pixels a side, at most, of the overview by which ratio or shift is chosen

Warn = Callable[[str], None]


def chosen_model(settings: Settings, bands: int, warn: Warn) -> Model:
    """The model for a guide of so many bands.

    Raises:
        InputError: there is none such, or it solves for nothing.
    """
    found = load_model(settings.model)
    if not isinstance(found, Model):
        raise InputError(
            f"model {settings.model} solves for nothing, so that its tiles cannot be made to fit together. Use "
            "default, learned, fast, dynamic, none, or weights of DADA."
        )
    if data_unit_of(found) is not None:
        raise InputError(
            f"model {settings.model} was trained in the unit of a data set, which rasters do not have. Use default, "
            'dynamic, none, or weights trained with `source = "own"`.'
        )
    chosen, why = suited_to(found, bands, (1, 1))
    if isinstance(chosen, ThreeBands):
        chosen, why = Dynamic(), f"model dynamic was used, which learned nothing: the guide has {bands} bands"
    if why:
        warn(why)
    return chosen


def chosen_sampling(settings: Settings, cells: Cells, warn: Warn) -> Sampling:
    """The sampling that was asked for; warn where it is the mean and the source looks sampled."""
    sampling = Sampling.of(settings.sampling)
    if sampling.kind == "mean":
        check_means(cells.values, cells.valid, warn)
    return sampling


def used_bands(settings: Settings, guide: Info, warn: Warn) -> Info:
    """The guide with the bands that the model looks at."""
    if settings.model not in ("default", "learned", "fast") or len(guide.bands) <= 3:
        return guide
    if len(guide.bands) in learned().takes:
        return guide
    warn(
        f"the guide has {len(guide.bands)} bands, and the learned model uses the first three (--model dynamic uses all)"
    )
    return replace(guide, bands=guide.bands[:3])


def guide_overview(match: Match, guide: Info, shape: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """The guide on the target grid with fewer pixels, [C, H, W] as stored, and which have no value."""
    rows, cols = ((f, f + n) for f, n in zip(match.first_pixel, match.geometry.size, strict=True))
    with opened_guide(guide, match.warp) as dataset:
        return read_guide(dataset, guide.bands, rows, cols, shape)


def overview_of(
    match: Match, guide: Info, cells: Cells, sampling: Sampling, warn: Warn
) -> tuple[Problem, tuple[float, float]]:
    """Source and guide with fewer cells and pixels, in the same ratio; and the guide's values that become 0 and 1.

    Fewer cells are means of those of the source, however these were made.
    """
    (h, w), (H, W) = match.geometry.cells, match.geometry.size
    step = max(1, -(-max(H, W) // OVERVIEW))
    step = min(step, h, w)
    shape = max(1, H // step), max(1, W // step)
    stored, empty = guide_overview(match, guide, shape)
    if empty.all():
        raise InputError(
            f"{guide.path}: the guide has no value (nodata or NaN only) where it covers the source. Check the file, "
            "and that both show the same area."
        )
    values = torch.from_numpy(stored.astype(np.float32))
    bad = torch.from_numpy(empty)
    if bool(bad.any()):
        share = float(bad.float().mean())
        warn(f"about {share:.1%} of the guide has no value; there the result takes that of the nearest pixel")
        values = fill_nearest(values, bad)
    low, high = value_range(values, stored)
    values.sub_(low).div_(high - low or 1.0).clamp_(0, 1)
    if not bool((values != values[:, :1, :1]).any()):
        warn("the guide is one uniform colour: without edges to follow, the result is merely smooth")
    source, valid = _averaged(cells, (max(1, h // step), max(1, w // step)))
    agreement = edge_agreement(source, valid, values)
    if agreement is not None and agreement < MIN_AGREEMENT:
        warn(
            "the edges of source and guide do not lie in the same places: do both show the same scene, without a shift "
            "or a flip? If they do, the guide has little to say about this source"
        )
    made = sampling if step == 1 else MEAN
    return Problem(values[None], source[None, None], valid[None, None], sampling=made), (low, high)


def _averaged(cells: Cells, size: tuple[int, int]) -> tuple[torch.Tensor, torch.Tensor]:
    """Fewer cells: means of the valid ones."""
    from dada.diffusion import down

    values, valid = torch.from_numpy(cells.values), torch.from_numpy(cells.valid)
    if size == tuple(values.shape):
        return values, valid
    mean = down(values.double(), size, coverage=valid)
    known = torch.isfinite(mean)
    return torch.where(known, mean, 0).to(values.dtype), known


def chosen_by_overview(problem: Problem, model: Model, settings: Settings, whole: Whole) -> Adjust:
    """Ratio or shift: what a user asks for, or what "auto" comes down to on the overview."""
    first = chosen_adjust(settings.adjust, whole.low, whole.high, model.adjust)
    if first == "shift" or settings.adjust != "auto" or not bool(problem.valid.any()):
        return first  # a result of shift is never solved for again
    (solved,) = solve(problem, model, Solver(), "auto")
    if solved.adjust == "ratio" and not whole.low > 0:  # the overview's cells are means of several
        return "shift"
    assert solved.adjust is not None
    return solved.adjust


def filled_cells(cells: Cells) -> np.ndarray:
    """The source with smooth values in cells without a measurement."""
    values, valid = (torch.from_numpy(v)[None, None] for v in (cells.values, cells.valid))
    with torch.no_grad():
        return fill(values, valid)[0, 0].numpy()


def whole_of(cells: Cells, filled: np.ndarray, geometry: Geometry, sampling: Sampling) -> Whole:
    """Statistics of a whole source."""
    measured = cells.values[cells.valid].astype(np.float64)
    mean, deviation = float(measured.mean()), float(measured.std())
    rows, cols = map(_mean_weights, (geometry.rows, geometry.cols), share_of(sampling))
    return Whole(
        low=float(measured.min()),
        high=float(measured.max()),
        mean=mean,
        deviation=deviation if deviation > 1e-6 * abs(mean) else 0.0,
        mean_initial=float(rows @ filled.astype(np.float64) @ cols),
        factors=(geometry.rows.factor, geometry.cols.factor),
    )


def _mean_weights(axis: Axis, share: float | None) -> np.ndarray:
    """How much each cell counts in the mean of the interpolated source."""
    indices, weights = taps(axis.positions(0, axis.pixels, share), axis.cells)
    total: np.ndarray = np.bincount(indices.ravel(), weights.ravel(), minlength=axis.cells) / axis.pixels
    return total
