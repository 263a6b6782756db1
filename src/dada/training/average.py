"""The exponential moving average of the weights (EMA), which is validated and saved."""

from __future__ import annotations

import copy

import torch
from torch import nn


class Average:
    """A copy of a network whose weights follow those of the original.

    Attributes:
        network: the copy, in evaluation mode.
    """

    def __init__(self, network: nn.Module, decay: float) -> None:
        """Begin as a copy of `network`; with decay 0 it stays an exact copy."""
        self.network = copy.deepcopy(network).eval().requires_grad_(False)
        self.decay = decay

    @torch.no_grad()
    def follow(self, network: nn.Module, step: int) -> None:
        """Move towards the weights after a step, counted from 0; faster in the first steps."""
        decay = min(self.decay, (1 + step) / (10 + step))
        for mine, theirs in zip(self.network.state_dict().values(), network.state_dict().values(), strict=True):
            if mine.dtype.is_floating_point:
                mine.lerp_(theirs, 1 - decay)
            else:  # counters of batch normalisation
                mine.copy_(theirs)
