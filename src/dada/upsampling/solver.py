"""How the end of the diffusion is found: directly, or by the paper's loop; with its one option."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from dada.diffusion import Coefficients, Solution, down, equilibrium, iterate
from dada.diffusion.equilibrium import TOLERANCE
from dada.diffusion.loop import STEPS
from dada.diffusion.measurement import Adjust
from dada.errors import InputError
from dada.sample.sampling import smoothed
from dada.upsampling.problem import Points, Problem

LOOSER = 10  # how much less exactly a small remainder is solved for than the image it is added to
LEAST = 0.1  # of the least point
PART = 1000  # steps of the loop at a time

FINE = 1e-6  # tolerance below which float32 does not suffice
VARIED = 1e-3  # of the largest value: `ratio` on a source that varies by less needs more digits than float32 has

SolverName = Literal["equilibrium", "iterate"]
Precision = Literal["auto", "float32", "bfloat16", "float64"]


@dataclass(frozen=True)
class Solver:
    """A way to solve.

    Attributes:
        name: "equilibrium" or "iterate".
        tolerance: of the equilibrium.
        steps: of the loop.
        precision: in which it computes at least, see `dtype`; "auto" and "bfloat16" are those of a model's networks,
            see `dada.upsampling.half`, and "float32" for what is solved.
    """

    name: SolverName = "equilibrium"
    tolerance: float = TOLERANCE
    steps: int = STEPS
    precision: Precision = "float32"

    @classmethod
    def of(
        cls, name: SolverName, tolerance: float | None, steps: int | None, precision: Precision = "float32"
    ) -> Solver:
        """Return the solver that a user asks for.

        Raises:
            InputError: there is none such, or it has no such option.
        """
        if name not in ("equilibrium", "iterate"):
            raise InputError(f"solver {name!r} is unknown. Use equilibrium or iterate.")
        other, given = ("steps", steps) if name == "equilibrium" else ("tolerance", tolerance)
        if given is not None:
            raise InputError(f"{other} {given:g} was given, but solver {name} has no {other}. Leave it out.")
        if steps is not None and steps < 1:
            raise InputError(f"steps {steps} is not a number of steps. Use 1 or more; the paper uses {STEPS}.")
        if tolerance is not None and not 0 < tolerance < 1:
            raise InputError(f"tolerance {tolerance:g} must lie between 0 and 1; the default is {TOLERANCE:g}.")
        if precision not in get_args(Precision):
            raise InputError(f"precision {precision!r} is unknown. Use auto, bfloat16, float32 or float64.")
        return cls(name, tolerance or TOLERANCE, steps or STEPS, precision)

    def dtype(self, source: Tensor, valid: Tensor, adjust: Adjust) -> torch.dtype:
        """In which type a source in numbers near 1 is solved for: float32 where its digits suffice."""
        if self.precision == "float64" or (source.dtype == torch.float64 and self.tolerance < FINE):
            return torch.float64
        if source.dtype == torch.float64 and adjust == "ratio":
            high = torch.where(valid, source, -torch.inf).flatten(1).amax(1)
            low = torch.where(valid, source, torch.inf).flatten(1).amin(1)
            if bool(((low < high) & (high - low < VARIED * high)).any()):
                return torch.float64
        return torch.float32

    def solve(self, problem: Problem, c: Coefficients, initial: Tensor, adjust: Adjust) -> Solution:
        """Diffuse and adjust from an initial image [B, 1, H, W], as the sampling of the source asks for."""
        if problem.points is not None:
            found = self._solve_points(problem, problem.points, c, initial, adjust)
            return _positive(found, problem) if adjust == "ratio" else found

        def run(source: Tensor, start: Tensor, coverage: Tensor | None, exactly: bool) -> Solution:
            given: dict[str, Any] = {"mask": problem.valid, "coverage": coverage, "blocks": problem.blocks}
            given |= {"adjust": "shift"} if exactly else {"adjust": adjust, "weight": problem.weight}
            return self._run(source, c, start, given, LOOSER if exactly and coverage is not None else 1)

        found = problem.sampling.solved(run, problem.source, problem.valid, initial)
        return _positive(found, problem) if adjust == "ratio" and problem.sampling.kind == "point" else found

    def _solve_points(
        self, problem: Problem, points: Points, c: Coefficients, initial: Tensor, adjust: Adjust
    ) -> Solution:
        """The same for single pixels; cells serve to smooth what lies between them.

        Small cells with one point each are solved for faster than pixels; those with several keep only their mean,
        until `with_rest` brings each point to its value.
        """
        small = points.small_cells

        def run(source: Tensor, start: Tensor, exactly: bool) -> Solution:
            if small is not None:
                mean, known = replace(points, values=source).gathered(small)
                given = self._of_points({"mask": known, "coverage": points.measured}, points)
                given["adjust"] = "shift" if exactly else adjust
                return self._run(mean, c, start, given, LOOSER if exactly else 1)
            given = self._of_points({"mask": points.measured}, points)
            given |= {"adjust": "shift"} if exactly else {"adjust": adjust, "weight": points.weight}
            return self._run(torch.where(points.measured, source, 0), c, start, given, LOOSER if exactly else 1)

        def smooth(image: Tensor) -> Solution:
            return self._run(down(image, problem.cells), c, image, {"adjust": "shift"}, 1)

        return smoothed(run, smooth, lambda image: image, points.values, initial, problem.cells)

    def with_rest(self, problem: Problem, c: Coefficients, values: Tensor) -> Tensor:
        """An image [B, 1, H, W] with what it still leaves at points added as one more solution."""
        points = problem.points
        if points is None or points.small_cells is None:
            return values
        left = torch.where(points.measured, points.values - values, 0)
        given = self._of_points({"mask": points.measured, "adjust": "shift"}, points)
        return values + self._run(left, c, torch.zeros_like(left), given, LOOSER).values

    def _of_points(self, given: dict[str, Any], points: Points) -> dict[str, Any]:
        """What a solve is given, and for the equilibrium whether it needs coarser grids."""
        return given if self.name == "iterate" else given | {"coarse": points.sparse}

    def _run(self, source: Tensor, c: Coefficients, start: Tensor, given: dict[str, Any], looser: float) -> Solution:
        if self.name == "iterate":
            return self._iterate(source, c, start, given)
        return equilibrium(source, c, initial=start, tolerance=looser * self.tolerance, warn=False, **given)

    def _iterate(self, source: Tensor, c: Coefficients, initial: Tensor, given: dict[str, Any]) -> Solution:
        """Run the loop in parts: Python notices an interrupt between them."""
        for done in range(0, self.steps, PART):
            steps = min(PART, self.steps - done)
            part = iterate(source, c, initial=initial, steps=steps, **given)
            initial = part.values
        return replace(part, iterations=torch.full_like(part.iterations, self.steps))


def _positive(found: Solution, problem: Problem) -> Solution:
    """Keep what lies between points above a share of the least of them: smoothing adds, and ratio promises to scale."""
    least = found.values.new_tensor([low for low, _ in problem.ranges()])[:, None, None, None]
    return replace(found, values=torch.maximum(found.values, LEAST * least))
