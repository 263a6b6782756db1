"""DADA-free: the paper's method without learning, as the authors' released code runs it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from dada.diffusion import Coefficients, coefficients, equilibrium, iterate
from dada.diffusion.loop import STEPS
from dada.features.standardising import KAPPA, standardise
from dada.sample import BATCH, Sample

EPSILON = 1e-8  # which the released code adds to the divisor of Eq. 3


@dataclass(frozen=True)
class DadaFree:
    """Diffusion and adjustment with coefficients from the guide's colours and the bicubic source.

    Attributes:
        kappa: of Eq. 2.
        low: a source with a value at or below this, in the sample's unit, is lifted by it and lowered again
            afterwards, since Eq. 3 divides. An invalid cell is a 0, as in the released code.
        method: "equilibrium" is where the loop ends, solved directly; "iterate" is the released loop itself, which
            lifts all images of a batch if one of them has such a value.
        steps: of the loop, for "iterate"; the released code runs 8000 + 1024.
        name: what tables call it.
    """

    kappa: float = KAPPA
    low: float = 0.1
    method: Literal["equilibrium", "iterate"] = "equilibrium"
    steps: int = STEPS
    name: str = "DADA-free"

    def __post_init__(self) -> None:
        if self.method not in ("equilibrium", "iterate"):
            raise ValueError(f'method must be "equilibrium" or "iterate", got {self.method!r}')

    @property
    def together(self) -> int:
        """See `dada.sample.Method`."""
        return BATCH if self.method == "iterate" else 1

    def __call__(self, sample: Sample) -> Tensor:
        """Return [B, 1, H, W], see `dada.sample.Method`. Images that Eq. 3 cannot take are adjusted by addition."""
        source = torch.where(sample.source_mask, sample.source, 0)
        near_zero = (source <= self.low).flatten(1).any(dim=1)[:, None, None, None]
        lift = self.low * (near_zero | near_zero.any() if self.method == "iterate" else near_zero)
        lowest = torch.where(sample.source_mask, source + lift, torch.inf).flatten(1).amin(dim=1)
        c = coefficients(torch.cat([standardise(sample.guide), sample.initial], dim=1), self.kappa, "mean_absolute")
        values = torch.empty_like(sample.initial)
        for adjust, which in (("ratio", lowest > 0), ("shift", lowest <= 0)):
            if bool(which.any()):
                edges = Coefficients(*(edge[which] for edge in c))
                part = source[which] + lift[which], sample.initial[which] + lift[which], sample.source_mask[which]
                values[which] = self._solve(*part, edges, adjust) - lift[which]  # type: ignore[arg-type]
        return values

    def _solve(
        self, source: Tensor, initial: Tensor, mask: Tensor, c: Coefficients, adjust: Literal["ratio", "shift"]
    ) -> Tensor:
        if self.method == "equilibrium":
            return equilibrium(source, c, initial=initial, mask=mask, adjust=adjust).values
        return iterate(source, c, initial=initial, mask=mask, adjust=adjust, steps=self.steps, epsilon=EPSILON).values
