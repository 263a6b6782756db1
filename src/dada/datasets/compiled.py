"""The decorators of compiled loops of this room, typed: a compiled function is called as it is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

from dada.compiling import Kernel

Loop = TypeVar("Loop", bound=Callable[..., Any])


def compiled(function: Loop) -> Loop:
    """Compile a function of arrays when it is first called, with the arithmetic as it is written."""
    return cast(Loop, Kernel(function, fastmath=False))


def inlined(function: Loop) -> Loop:
    """Compile a function into the compiled functions that call it."""
    return cast(Loop, numba.njit(nogil=True, error_model="numpy")(function))
