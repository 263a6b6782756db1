"""Guided super-resolution that never contradicts the measurement."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dada.errors import InputError
    from dada.model import load_model
    from dada.network import DADA
    from dada.result import Result
    from dada.upsampling import upsample

__version__ = "0.1.0"
__all__ = ["DADA", "InputError", "Result", "__version__", "load_model", "upsample"]

_HOME = {
    "DADA": "network",
    "InputError": "errors",
    "Result": "result",
    "load_model": "model",
    "upsample": "upsampling",
}


def __getattr__(name: str) -> Any:
    """Import a part when it is first used: `import dada` and `dada --help` do not wait for torch."""
    if name not in _HOME:
        raise AttributeError(f"module 'dada' has no attribute {name!r}")
    value = getattr(import_module(f"dada.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
