"""Where a result is computed: the CPU, or a device of torch beside it."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import nn

from dada.errors import InputError


def usable_device(name: str | torch.device) -> torch.device:
    """Return a device on which the solver can run.

    Raises:
        InputError: torch does not know it, it is not there, or it cannot compute what is needed.
    """
    try:
        device = torch.device(name)
    except RuntimeError:
        raise InputError(f"device {str(name)!r} cannot be used: torch has none of this name. {_others()}") from None
    try:
        probe = torch.ones(1, dtype=torch.float64, device=device)  # in which sums are checked
        probe.sum().item()
    except (RuntimeError, AssertionError, NotImplementedError, TypeError, ValueError) as error:
        why = str(error).strip().splitlines()[0].split(". ")[0] if str(error).strip() else type(error).__name__
        raise InputError(f"device {str(name)!r} cannot be used: {why}. {_others()}") from None
    return probe.device  # with its number, as the weights of a network have it


def on_device(model: Any, device: torch.device) -> Any:
    """A model on a device: itself, or a copy of a network that is elsewhere. Models without weights are anywhere."""
    if not isinstance(model, nn.Module) or all(weight.device == device for weight in model.parameters()):
        return model
    return copy.deepcopy(model).to(device)


def _others() -> str:
    accelerator = torch.accelerator.current_accelerator() if hasattr(torch, "accelerator") else None
    names = ["cpu"] if accelerator is None else ["cpu", accelerator.type]
    return f"Use {' or '.join(names)}."
