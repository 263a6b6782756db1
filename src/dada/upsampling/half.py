"""Networks in bfloat16, where that is asked for and the processor has it; coefficients and solver stay in float32."""

from __future__ import annotations

from contextlib import AbstractContextManager

import torch

from dada.errors import InputError
from dada.models.model import half_precision_of


def native() -> bool:
    """Whether this processor computes in bfloat16 as such (AVX-512 BF16 or AMX), so that it is faster than float32."""
    known = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")  # of torch.cpu, in recent versions
    return _possible() and any(bool(getattr(torch.cpu, name, bool)()) for name in known)


def chosen(precision: str, model: object, device: torch.device) -> bool:
    """Whether a model's networks compute in bfloat16.

    Args:
        precision: "auto" asks for it on a CPU that has it, for models measured with it; "bfloat16" does anywhere.
        model: see `dada.models.model.half_precision_of`.
        device: on which it computes.

    Raises:
        InputError: "bfloat16" was asked for, and the processor cannot.
    """
    may = half_precision_of(model)
    if precision not in ("auto", "bfloat16") or may == "no":
        return False
    if precision == "auto":
        return may == "usual" and device.type == "cpu" and native()
    if device.type == "cpu" and not _possible():
        raise InputError("precision bfloat16 was given, but this processor does not have it. Use auto or float32.")
    return True


def computing(half: bool, device: torch.device) -> AbstractContextManager[object]:
    """In which networks are run."""
    return torch.autocast(device.type, torch.bfloat16, enabled=half)


def _possible() -> bool:
    found: bool = torch.backends.mkldnn.is_available() and torch.ops.mkldnn._is_mkldnn_bf16_supported()  # type: ignore[no-untyped-call]
    return found
