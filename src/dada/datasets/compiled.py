"""The decorator of compiled loops of this room, typed: a compiled function is called as it is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from dada.jit import jit

Loop = TypeVar("Loop", bound=Callable[..., Any])


def compiled(function: Loop) -> Loop:
    """Compile a function with numba when it is first called."""
    kernel: Loop = jit()(function)
    return kernel
