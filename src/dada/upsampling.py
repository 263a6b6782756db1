"""Arrays in, a finer image out: the whole way from a user's source and guide to the result."""

from __future__ import annotations

import os
import time
import warnings
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import interpolate

from dada.default import Default
from dada.diffusion import Coefficients, Solution, down, equilibrium, iterate, up
from dada.diffusion.bounds import between
from dada.diffusion.equilibrium import TOLERANCE
from dada.diffusion.loop import STEPS
from dada.errors import InputError
from dada.guide import bands_first, unit_range
from dada.inputs import ArrayLike, Cells, check_sizes, read_confidence, read_source
from dada.memory import check_memory, kept_memory
from dada.model import Model, auto_adjust, bounds, load_model, preferred_adjust, reconsidered
from dada.registration import MIN_AGREEMENT, edge_agreement
from dada.result import Report, Result, UpsampleWarning, consistency
from dada.sample import Sample, fill, within

Adjust = Literal["auto", "ratio", "shift"]
Solver = Literal["equilibrium", "iterate"]


def upsample(
    source: ArrayLike,
    guide: ArrayLike,
    *,
    model: str | os.PathLike[str] | Model = "default",
    mask: ArrayLike | None = None,
    confidence: ArrayLike | None = None,
    invalid: float | None = None,
    adjust: Adjust = "auto",
    method: Solver = "equilibrium",
    tolerance: float | None = None,
    steps: int | None = None,
    fill: bool = False,
) -> Result:
    """Make the source as fine as the guide. Averaged back down, the result is the source.

    Gradients are not kept; `dada.diffusion.equilibrium` is the differentiable operator.

    Args:
        source: (h, w) NumPy array or torch tensor of any real dtype and unit. NaN and infinities are invalid.
        guide: NumPy (H, W) or (H, W, bands), torch (H, W) or (bands, H, W), with H >= h and W >= w, of the
            same area; 8-bit, 16-bit, or float; see `dada.guide.unit_range` for how its values are taken. NumPy
            masked arrays are masked where they have no value.
        model: "default", which is "learned" where that fits the guide; "dynamic" or "none", which need no weights; a
            file of weights; or a model; see `load_model`.
        mask: (h, w) bool, True where the source is valid.
        confidence: (h, w) in 0..1: 1 is exact, 0 is no measurement. Between them, a cell is held with the
            weight c / (1 - c): the diffusion may move its mean, the less the closer c is to 1. At 1/2 a cell
            weighs about as much as its ties to one neighbouring cell in a flat part of the guide.
        invalid: value that marks invalid cells in the source, beside NaN.
        adjust: "ratio" scales a cell to its measurement (positive values only), "shift" adds to it (any
            values); "auto" is what the model was trained with, "shift" for the learned default; for models that
            learned nothing "ratio" where all valid values are positive and within a factor of 100 of each other,
            unless its equilibrium is not reached or some pixel exceeds the largest value four times. With "auto",
            models that are solved for (not methods such as "gf") give no value below zero where the source has none,
            and none far beyond what was measured (`dada.model.bounds`); "ratio" and "shift" have no such bound.
        method: "equilibrium" solves directly for where the paper's loop ends, "iterate" runs the loop.
        tolerance: of the equilibrium; 2e-4 by default.
        steps: of the loop; 9024 by default, as in the paper.
        fill: also give values to the pixels of invalid cells; by default they stay invalid.

    Raises:
        InputError: the inputs cannot be used; the message says why and what to do.

    Warns:
        UpsampleWarning: something looks wrong, such as a pair that is not registered; also in
            `report.warnings`.
    """
    begin = time.perf_counter()
    said: list[str] = []
    cells = read_source(source, invalid, mask, said.append)
    trust = read_confidence(confidence, cells)
    bands = bands_first(guide)
    factors = check_sizes(cells.values.shape, bands.shape[1:], said.append)
    size = bands.shape[1], bands.shape[2]
    check_memory(size, bands.shape[0], cells.values.itemsize)
    network = load_model(model) if isinstance(model, str | os.PathLike) else model
    if isinstance(network, Default):
        network, why = network.suited(len(bands), size)
        if why:
            said.append(f"model dynamic was used, which learned nothing: {why}")
    low, high = (float(end(cells.values[trust > 0])) for end in (np.min, np.max))
    chosen = _choose_adjust(adjust, low, high, preferred_adjust(network))
    solve = _method(method, tolerance, steps)

    with torch.no_grad(), kept_memory():
        device = cells.device or (guide.device if isinstance(guide, Tensor) else torch.device("cpu"))
        fine, guide_range = unit_range(bands, device, said.append)
        agreement = _check_registration(cells, fine, said)
        problem = _Problem.of(cells, trust, chosen, size, device)
        if isinstance(network, Model):
            way = _diffuse(problem, network, fine, solve, chosen)
            least, most = (float(end) for end in problem.unscaled(way.values).aminmax())
            other = reconsidered(chosen, low, high, least, most, way.converged or method == "iterate")
            if adjust == "auto" and other != chosen:
                chosen = other
                problem = _Problem.of(cells, trust, chosen, size, device)
                way = _diffuse(problem, network, fine, solve, chosen)
        else:
            way = _Way.direct(network(problem.sample(fine, problem.initial())))
        del fine
        values = problem.unscaled(way.values)
        if method == "equilibrium" and not way.converged:
            said.append(f"equilibrium not reached: {way.reason}")
        valid = up(torch.from_numpy(trust > 0).to(device), size)
        kept = torch.ones_like(valid) if fill else valid
        bounded = torch.zeros_like(kept)
        if way.solved and adjust == "auto":
            least, most = bounds(low, high, size[0] * size[1] / cells.values.size)
            noise = (tolerance or TOLERANCE) * (high - low)
            bounded = kept & ((values < least - noise) | (values > most + noise))
            values = _bounded(values, cells, trust, least, most)
        result = cells.like_source(torch.where(kept, values, torch.nan))
    _check_finite(result, kept, cells)
    exact = consistency(result, cells.values, trust == 1)
    report = Report(
        source_size=cast(tuple[int, int], cells.values.shape), target_size=size, factors=factors,
        bands=len(bands), guide_range=guide_range, edge_agreement=agreement, model=network.name,
        adjust=chosen if way.solved else "none", method=method if way.solved else "direct", rounds=way.rounds,
        iterations=way.iterations, residual=way.residual,
        converged=way.converged, reason=way.reason, consistency_max=exact[0],
        consistency_mean=exact[1], invalid_cells=int((trust == 0).sum()), uncertain_cells=int(((trust > 0) &
        (trust < 1)).sum()), invalid_pixels=int((~kept).sum()), filled_pixels=int((kept & ~valid).sum()),
        bounded_pixels=int(bounded.sum()), seconds=time.perf_counter() - begin, warnings=said,
    )  # fmt: skip
    for text in said:
        warnings.warn(text, UpsampleWarning, stacklevel=2)
    return Result(result, kept if cells.device is not None else kept.cpu().numpy(), report)


def bicubic(source: Tensor, valid: Tensor, size: tuple[int, int], weight: Tensor | None = None) -> Tensor:
    """Upsample [h, w] to (H, W) by bicubic interpolation, pixel centres aligned, within the source's range.

    Invalid cells are first filled smoothly, and uncertain ones drawn to their neighbours: by the equilibrium of the
    source grid with all coefficients 1. What models see of the source shall not have an edge around an outlier.

    Args:
        source: [h, w].
        valid: [h, w] bool.
        size: H, W.
        weight: [h, w], how firmly each valid cell is held; exactly where not given.
    """
    cells, mask = source[None, None], valid[None, None]
    filled = fill(cells, mask, None if weight is None else weight.to(source.dtype)[None, None])
    return within(interpolate(filled, size=size, mode="bicubic", align_corners=False), cells, mask)[0, 0]


# ---- beneath -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Problem:
    """The source in numbers near 1, whatever its unit: (source - offset) / unit, both exact to undo."""

    source: Tensor  # [h, w]
    valid: Tensor  # [h, w] bool
    weight: Tensor | None  # [h, w]; None: every valid cell is exact
    size: tuple[int, int]  # H, W
    offset: float
    unit: float

    @classmethod
    def of(cls, cells: Cells, trust: np.ndarray, adjust: str, size: tuple[int, int], device: torch.device) -> _Problem:
        used = trust > 0
        measured = cells.values[used].astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            offset = float(cells.values.dtype.type(measured.mean())) if adjust == "shift" else 0.0
            largest = float(np.abs(measured - offset).max())
        if not np.isfinite(largest):
            raise InputError(_too_extreme(measured))
        unit = float(2.0 ** np.floor(np.log2(largest))) if largest > 0 else 1.0
        source = np.where(used, (cells.values - offset) / unit, 0).astype(cells.values.dtype)
        weight = None
        if ((trust > 0) & (trust < 1)).any():
            with np.errstate(divide="ignore"):
                weight = torch.from_numpy(trust / (1 - trust)).to(device)
        return cls(torch.from_numpy(source).to(device), torch.from_numpy(used).to(device), weight, size, offset, unit)

    def initial(self) -> Tensor:
        """[1, 1, H, W]."""
        return bicubic(self.source, self.valid, self.size, self.weight)[None, None]

    def sample(self, guide: Tensor, initial: Tensor) -> Sample:
        """What models and methods see; guide [C, H, W], initial [1, 1, H, W]."""
        return Sample(guide[None], self.source.float()[None, None], self.valid[None, None], initial.float())

    def settled(self, values: Tensor) -> _Problem:
        """The same with uncertain cells held to the mean that a first solution [1, 1, H, W] gave them.

        Coefficients that see a result would take the misfit of such a cell for an edge, and keep it.
        """
        if self.weight is None:
            return self
        mean = down(values, cast(tuple[int, int], tuple(self.source.shape)))[0, 0]
        uncertain = self.valid & torch.isfinite(self.weight)
        return replace(self, source=torch.where(uncertain, mean, self.source), weight=None)

    def solve(self, run: Any, c: Coefficients, initial: Tensor, adjust: str) -> Solution:
        weight = None
        if self.weight is not None:
            weight = self.weight.to(self.source.dtype)[None, None]
        return cast(
            Solution,
            run(
                self.source[None, None],
                c,
                initial=initial,
                adjust=adjust,
                mask=self.valid[None, None],
                weight=weight,
            ),
        )

    def unscaled(self, values: Tensor) -> Tensor:
        """[1, 1, H, W] in numbers near 1 to [H, W] in the source's unit."""
        return values[0, 0] * self.unit + self.offset


@dataclass(frozen=True)
class _Way:
    """How values [1, 1, H, W] were reached; see `Report`."""

    values: Tensor
    rounds: int
    iterations: int
    residual: float
    converged: bool
    reason: str
    solved: bool = True  # by the diffusion

    @classmethod
    def direct(cls, values: Tensor) -> _Way:
        return cls(values, 1, 0, 0.0, True, "computed by a method that solves for nothing", solved=False)


def _diffuse(problem: _Problem, model: Model, guide: Tensor, run: Any, adjust: str) -> _Way:
    """Solve with the model's coefficients, as often as it wants to see the result; guide is [C, H, W]."""
    solutions: list[Solution] = []

    def solve(c: Coefficients, start: Tensor) -> Tensor:
        c = Coefficients(*(part.to(problem.source.dtype) for part in c))
        if problem.weight is not None and not solutions:  # whatever a model's scale is, confidence means the same
            c = _flat_is_one(c)
        # from the last solution itself, which may be finer than what the model saw of it
        begin = solutions[-1].values if solutions else initial if start is sample.initial else start.to(initial.dtype)
        now = problem.settled(solutions[0].values) if solutions else problem
        solutions.append(now.solve(run, c, begin, adjust))
        return solutions[-1].values.float()

    initial = problem.initial()
    sample = problem.sample(guide, initial)
    model.diffuse(sample, solve)
    last = solutions[-1]
    spent = sum(int(one.iterations) for one in solutions)
    return _Way(last.values, len(solutions), spent, float(last.residual), bool(last.converged), last.reason[0])


def _flat_is_one(c: Coefficients) -> Coefficients:
    """Scale coefficients so that those of flat parts, their 90th percentile, are 1.

    Exact cells do not notice, uncertain ones weigh against them. A network may speed diffusion up as it likes.
    """
    flat = float(np.quantile(np.concatenate([part.detach().cpu().numpy().ravel() for part in c]), 0.9))
    return Coefficients(*(part / flat for part in c)) if flat > 0 else c


def _bounded(values: Tensor, cells: Cells, trust: np.ndarray, least: float, most: float) -> Tensor:
    """The nearest image [H, W] between two values, with the means of exact cells.

    Uncertain ones keep their own, as far as these lie between them too.
    """
    own = down(values.double(), cast(tuple[int, int], cells.values.shape)).clamp(least, most)
    measured = torch.from_numpy(np.where(trust == 1, cells.values, np.nan)).to(own)
    means = torch.where(torch.isfinite(measured), measured, own)
    return between(values, torch.where(torch.from_numpy(trust > 0).to(own.device), means, torch.nan), least, most)


def _check_finite(result: ArrayLike, kept: Tensor, cells: Cells) -> None:
    """Refuse values that left the range of their dtype."""
    finite = torch.isfinite(result) if isinstance(result, Tensor) else torch.from_numpy(np.isfinite(result))
    if not bool((finite.to(kept.device) | ~kept).all()):
        raise InputError(_too_extreme(cells.values[cells.valid]))


def _too_extreme(measured: np.ndarray) -> str:
    return (
        f"the source ranges from {measured.min():g} to {measured.max():g}, too far to be computed with in its "
        "type. If such a value means no measurement, state it with invalid= (--invalid); if not, rescale the source."
    )


def _choose_adjust(adjust: Adjust, low: float, high: float, trained: str) -> Literal["ratio", "shift"]:
    if adjust == "auto":
        return auto_adjust(low, high, trained)
    if adjust not in ("ratio", "shift"):
        raise InputError(f"adjust {adjust!r} is unknown. Use auto, ratio or shift.")
    if adjust == "ratio" and not low > 0:
        raise InputError(
            f"adjust ratio needs positive values, and the least valid source value is {low:g}. Use adjust "
            "shift, which takes any value, or auto; or mark cells whose value means no measurement as "
            "invalid."
        )
    return adjust


def _method(method: Solver, tolerance: float | None, steps: int | None) -> Any:
    """`equilibrium` or `iterate` with its own option."""
    if method not in ("equilibrium", "iterate"):
        raise InputError(f"method {method!r} is unknown. Use equilibrium or iterate.")
    other, given = ("steps", steps) if method == "equilibrium" else ("tolerance", tolerance)
    if given is not None:
        raise InputError(f"{other} {given:g} was given, but method {method} has no {other}. Leave it out.")
    if method == "iterate":
        if steps is not None and steps < 1:
            raise InputError(f"steps {steps} is not a number of steps. Use 1 or more; the paper uses {STEPS}.")
        return lambda *args, **options: iterate(*args, steps=steps or STEPS, **options)
    if tolerance is not None and not 0 < tolerance < 1:
        raise InputError(f"tolerance {tolerance:g} must lie between 0 and 1; the default is {TOLERANCE:g}.")
    return lambda *args, **options: equilibrium(*args, tolerance=tolerance or TOLERANCE, warn=False, **options)


def _check_registration(cells: Cells, guide: Tensor, said: list[str]) -> float | None:
    source, valid = (torch.from_numpy(v).to(guide.device) for v in (cells.values, cells.valid))
    agreement = edge_agreement(source, valid, guide)
    if agreement is not None and agreement < MIN_AGREEMENT:
        said.append(
            "the edges of source and guide do not lie in the same places: do both show the same scene, from "
            "the same viewpoint, without a shift or a flip? If they do, the guide has little to say about "
            "this source"
        )
    return agreement
