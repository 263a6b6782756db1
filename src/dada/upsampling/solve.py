"""The one way a model's result is computed: by `dada.upsample`, and by the bench.

Choose ratio or shift, start from the interpolated source, solve round by round, think again, keep within bounds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from dada.diffusion import Coefficients, Solution
from dada.diffusion.measurement import Adjust
from dada.models.model import LIFT, Model, Round, data_unit_of
from dada.sample import DataUnit, Interpolation, Method, Sampling
from dada.upsampling.adjust import Choice, chosen_adjust, reconsidered
from dada.upsampling.bounds import bounded, bounds
from dada.upsampling.half import chosen, computing
from dada.upsampling.problem import Problem, Scaled
from dada.upsampling.solver import Solver

FLAT = 0.9  # quantile of the coefficients that those of flat parts have


@dataclass(frozen=True)
class Solved:
    """The result of one problem and how it was reached; see `dada.upsampling.result.Report`.

    Attributes:
        values: [H, W] in the unit of the source.
        adjust: "ratio" or "shift"; None: by a method that solves for nothing.
        rounds: how many solutions there were.
        iterations: in all of them.
        residual: of the last one, as are the two that follow.
        converged: whether it came to its end.
        reason: why it stopped.
        bounded: [H, W] bool, pixels that were brought back within bounds; None: no pixel was.
        coefficients: of the last round, [H - 1, W] and [H, W - 1]; None: by a method that solves for nothing.
    """

    values: Tensor
    adjust: Adjust | None
    rounds: int
    iterations: int
    residual: float
    converged: bool
    reason: str
    bounded: Tensor | None = None
    coefficients: Coefficients | None = None


def solve(problem: Problem, model: Model, solver: Solver, wanted: Choice = "auto") -> list[Solved]:
    """Compute the result of each problem of a batch. Images do not depend on those beside them.

    Args:
        problem: the batch.
        model: gives the coefficients.
        solver: finds the end of the diffusion.
        wanted: adjustment; with "auto", also think again once a result is there, and keep it within bounds.

    Raises:
        InputError: ratio was asked for, and cannot be; or the source's values range too far.
    """
    ranges = problem.ranges()
    first = [chosen_adjust(wanted, *ends, model.adjust) for ends in ranges]
    with torch.no_grad():
        found = _by_adjust(problem, model, solver, dict(enumerate(first)))
        if wanted == "auto":
            others = {i: _other(one, ranges[i][1], solver) for i, one in found.items()}
            changed = {i: other for i, other in others.items() if other != found[i].adjust}
            found |= _by_adjust(problem, model, solver, changed)
            found = {i: within_bounds(one, problem[[i]], ranges[i], solver.tolerance) for i, one in found.items()}
    return [found[i] for i in range(len(problem))]


def direct(problem: Problem, method: Method, wanted: Choice = "auto") -> list[Solved]:
    """Compute the result of each problem by a method that solves for nothing, such as another network."""
    (low, high), *_ = problem.ranges()
    adjust, unit = chosen_adjust(wanted, low, high, "auto"), data_unit_of(method)
    scaled = Scaled.of(problem, adjust) if unit is None else Scaled.of_data_set(problem, unit)
    with torch.no_grad():
        start = scaled.problem.initial(_interpolation(unit))
        values = scaled.unscaled(method(scaled.problem.sample(start)))
    reason = "computed by a method that solves for nothing"
    return [Solved(image[0], None, 1, 0, 0.0, True, reason) for image in values]


def _by_adjust(problem: Problem, model: Model, solver: Solver, wanted: dict[int, Adjust]) -> dict[int, Solved]:
    """Solve images by number, those of the same adjustment together."""
    found: dict[int, Solved] = {}
    for adjust in dict.fromkeys(wanted.values()):
        images = [i for i, kind in wanted.items() if kind == adjust]
        each = _solved(solve_rounds(problem[images], model, solver, adjust), adjust)
        found |= zip(images, each, strict=True)
    return found


@dataclass(frozen=True)
class Rounds:
    """All solutions of a batch by one adjustment.

    Attributes:
        scaled: the problem in numbers near 1.
        values: [B, 1, H, W], the last solution in the same.
        coefficients: of the last solution.
        solutions: each.
    """

    scaled: Scaled
    values: Tensor
    coefficients: Coefficients
    solutions: list[Solution]


def solve_rounds(problem: Problem, model: Model, solver: Solver, adjust: Adjust) -> Rounds:
    """Ask the model for coefficients, solve, and ask again with what was found."""
    unit = data_unit_of(model)
    if unit is None:
        scaled = Scaled.of(problem, adjust)
    else:  # a network of the paper gets what it was trained on
        scaled = Scaled.of_data_set(problem, unit, LIFT if adjust == "ratio" else 0.0)
    now = scaled.problem.to(solver.dtype(scaled.problem.source, problem.valid, adjust))
    start = now.initial(_interpolation(unit))
    half = chosen(solver.precision, model, start.device)
    with computing(half, start.device):
        guidance = model.prepare(now.sample(start))
    solutions: list[Solution] = []
    before: Round | None = None
    for number in range(model.rounds):
        with computing(half, start.device):
            c = guidance.coefficients(before)
        solutions.append(_solution(now, c, start, solver, adjust))
        start = solutions[-1].values
        if not bool(torch.isfinite(start).all()):  # nothing to look at; whoever returns it says so
            break
        before = Round(number, c, start.float())
        now = now.settled(start)  # after the first round nothing is uncertain any more
    found = scaled.problem.met(solver.with_rest(now, _matching(now, c), start), adjust)
    return Rounds(scaled, found, c, solutions)


def _interpolation(unit: DataUnit | None) -> Interpolation:
    """What a model or method begins from: the paper's where it was trained in the unit of a data set."""
    return "torch" if unit is None else "clough-tocher"


def _matching(problem: Problem, c: Coefficients) -> Coefficients:
    """The coefficients in the source's precision."""
    return Coefficients(*(part.to(problem.source.dtype) for part in c))


def _solution(problem: Problem, c: Coefficients, start: Tensor, solver: Solver, adjust: Adjust) -> Solution:
    c = _matching(problem, c)
    if problem.weight is not None:  # whatever a model's scale is, confidence means the same
        c = _flat_is_one(c)
    return solver.solve(problem, c, start, adjust)


def _flat_is_one(c: Coefficients) -> Coefficients:
    """Scale the coefficients of each image so that those of flat parts are 1.

    Exact cells do not notice, uncertain ones weigh against them. A network may speed diffusion up as it likes.
    """
    both = torch.cat([part.flatten(1) for part in c], dim=1).cpu().numpy()
    flat = c.vertical.new_tensor(np.quantile(both, FLAT, axis=1))[:, None, None]
    return Coefficients(*(part / torch.where(flat > 0, flat, 1) for part in c))


def _solved(found: Rounds, adjust: Adjust) -> list[Solved]:
    values, solutions, last = found.scaled.unscaled(found.values), found.solutions, found.solutions[-1]
    c = found.coefficients
    spent = torch.stack([one.iterations for one in solutions]).sum(dim=0).flatten().tolist()
    ends = zip(spent, last.residual.flatten(), last.converged.flatten(), last.reason, strict=True)
    return [
        Solved(image[0], adjust, len(solutions), int(iterations), float(residual), bool(converged), reason, None, edges)
        for image, (iterations, residual, converged, reason), edges in zip(
            values, ends, map(Coefficients, *c), strict=True
        )
    ]


def _other(found: Solved, high: float, solver: Solver) -> Adjust:
    """What "auto" comes down to, now that a result is there."""
    assert found.adjust is not None
    return reconsidered(found.adjust, high, float(found.values.max()), found.converged or solver.name == "iterate")


def within_bounds(found: Solved, problem: Problem, ends: tuple[float, float], tolerance: float) -> Solved:
    """The same with values kept as near to the measurements as "auto" promises, if some are not."""
    (height, width), (h, w) = problem.size, problem.cells
    least, most = bounds(*ends, height * width / (h * w))
    smallest, largest = found.values.aminmax()
    if smallest >= least and largest <= most:
        return found
    noise = tolerance * (ends[1] - ends[0])
    far = (found.values < least - noise) | (found.values > most + noise)
    cells = problem.source[0, 0], problem.valid[0, 0], problem.exact[0, 0]
    how = problem.sampling if problem.points is None else Sampling("point")
    return replace(found, values=bounded(found.values, *cells, (least, most), how), bounded=far)
