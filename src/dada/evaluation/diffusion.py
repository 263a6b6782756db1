"""A model of `dada.upsample` as a method of the bench: computed in the same way, by the same function."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dada.diffusion.equilibrium import TOLERANCE
from dada.errors import InputError
from dada.models.default import suited_to
from dada.models.model import Model
from dada.sample import Sample
from dada.upsampling.problem import Problem
from dada.upsampling.solve import solve
from dada.upsampling.solver import Solver


@dataclass(frozen=True)
class Diffusion:
    """A model as a method.

    Attributes:
        model: gives the coefficients.
        tolerance: of the equilibrium.
    """

    model: Model
    tolerance: float = TOLERANCE

    @property
    def name(self) -> str:
        """What tables call it."""
        return f"model {self.model.name}"

    def __call__(self, sample: Sample) -> Tensor:
        """Return [B, 1, H, W], each image as `dada.upsample` computes it.

        Raises:
            InputError: an image has no valid source cell.
        """
        if not bool(sample.source_mask.flatten(1).any(dim=1).all()):
            raise InputError(f"{', '.join(sample.names) or 'the sample'}: there is no valid source cell to begin from.")
        problem = Problem(sample.guide, sample.source, sample.source_mask, sampling=sample.sampling)
        model, _ = suited_to(self.model, sample.guide.shape[1], sample.size)
        found = solve(problem, model, Solver(tolerance=self.tolerance))
        return torch.stack([one.values[None] for one in found])
