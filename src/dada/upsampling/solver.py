"""How the end of the diffusion is found: directly, or by the paper's loop; with its one option."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor

from dada.diffusion import Blocks, Coefficients, Solution, equilibrium, iterate
from dada.diffusion.equilibrium import TOLERANCE
from dada.diffusion.loop import STEPS
from dada.diffusion.measurement import Adjust
from dada.errors import InputError

PART = 1000  # steps of the loop at a time

FINE = 1e-6  # tolerance below which float32 does not suffice
VARIED = 1e-3  # of the largest value: `ratio` on a source that varies by less needs more digits than float32 has

SolverName = Literal["equilibrium", "iterate"]
Precision = Literal["float32", "float64"]


@dataclass(frozen=True)
class Solver:
    """A way to solve.

    Attributes:
        name: "equilibrium" or "iterate".
        tolerance: of the equilibrium.
        steps: of the loop.
        precision: in which it computes at least; see `dtype`.
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
        if precision not in ("float32", "float64"):
            raise InputError(f"precision {precision!r} is unknown. Use float32 or float64.")
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

    def solve(
        self,
        source: Tensor,
        c: Coefficients,
        initial: Tensor,
        adjust: Adjust,
        mask: Tensor,
        weight: Tensor | None,
        blocks: Blocks | None = None,
    ) -> Solution:
        """Diffuse and adjust; source, mask and weight are [B, 1, h, w], initial is [B, 1, H, W]."""
        how: dict[str, Any] = {"adjust": adjust, "mask": mask, "weight": weight, "blocks": blocks}
        if self.name == "iterate":
            return self._iterate(source, c, initial, how)
        return equilibrium(source, c, initial=initial, tolerance=self.tolerance, warn=False, **how)

    def _iterate(self, source: Tensor, c: Coefficients, initial: Tensor, how: dict[str, Any]) -> Solution:
        """Run the loop in parts: Python notices an interrupt between them."""
        for done in range(0, self.steps, PART):
            steps = min(PART, self.steps - done)
            part = iterate(source, c, initial=initial, steps=steps, **how)
            initial = part.values
        return replace(part, iterations=torch.full_like(part.iterations, self.steps))
