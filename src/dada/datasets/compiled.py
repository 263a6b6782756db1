"""The decorators of compiled loops of this room, typed: a compiled function is called as it is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba

from dada.compiling import Kernel

Loop = TypeVar("Loop", bound=Callable[..., Any])


def compiled(function: Loop) -> Loop:
    """Compile a function of arrays when it is first called, with the arithmetic as it is written."""
    loop: Any = Kernel(function, fastmath=False)
    return loop  # type: ignore[no-any-return]


def inlined(function: Loop) -> Loop:
    """Compile a function into the compiled functions that call it."""
    part: Any = numba.njit(nogil=True, error_model="numpy")(function)
    return part  # type: ignore[no-any-return]
