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

SolverName = Literal["equilibrium", "iterate"]


@dataclass(frozen=True)
class Solver:
    """A way to solve.

    Attributes:
        name: "equilibrium" or "iterate".
        tolerance: of the equilibrium.
        steps: of the loop.
    """

    name: SolverName = "equilibrium"
    tolerance: float = TOLERANCE
    steps: int = STEPS

    @classmethod
    def of(cls, name: SolverName, tolerance: float | None, steps: int | None) -> Solver:
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
        return cls(name, tolerance or TOLERANCE, steps or STEPS)

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
        reason = [text.replace(f"{steps} steps", f"{self.steps} steps") for text in part.reason]
        return replace(part, iterations=torch.full_like(part.iterations, self.steps), reason=reason)
