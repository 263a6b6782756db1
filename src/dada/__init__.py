"""Guided super-resolution that never contradicts the measurement."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dada import forking as _forking  # noqa: F401  registers what happens in a forked process
from dada.machine import wait_shortly as _wait_shortly

if TYPE_CHECKING:
    from dada.errors import InputError
    from dada.models.dada import DADA
    from dada.models.registry import load_model
    from dada.rasters import upsample_raster, upsample_xarray
    from dada.streams import Upsampler
    from dada.upsampling import Result, complete, upsample

_wait_shortly()

__version__ = "0.2.0"
__all__ = [
    "DADA",
    "InputError",
    "Result",
    "Upsampler",
    "__version__",
    "complete",
    "load_model",
    "upsample",
    "upsample_raster",
    "upsample_xarray",
]


def __getattr__(name: str) -> Any:
    """Import a part when it is first used: `import dada` and `dada --help` do not wait for torch."""
    match name:
        case "DADA":
            from dada.models.dada import DADA

            return DADA
        case "InputError":
            from dada.errors import InputError

            return InputError
        case "Result":
            from dada.upsampling import Result

            return Result
        case "Upsampler":
            from dada.streams import Upsampler

            return Upsampler
        case "complete":
            from dada.upsampling import complete

            return complete
        case "load_model":
            from dada.models.registry import load_model

            return load_model
        case "upsample":
            from dada.upsampling import upsample

            return upsample
        case "upsample_raster":
            from dada.rasters import upsample_raster

            return upsample_raster
        case "upsample_xarray":
            from dada.rasters import upsample_xarray

            return upsample_xarray
    raise AttributeError(f"module 'dada' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
