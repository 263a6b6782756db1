"""From computed floats back to the dtype of a file: rounded, never wrapped, invalid stays invalid."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from dada.errors import InputError


def cast(values: np.ndarray, valid: np.ndarray, dtype: DTypeLike, *, invalid: float | None) -> tuple[np.ndarray, int]:
    """Cast floats to the dtype of a file.

    Integers are rounded to nearest (halves to even). A valid value that would land on the invalid marker is
    moved to the nearest value beside it, on the side it came from (upwards if it equals the marker): depth of
    0.3 mm with 0 = invalid is stored as 1, for a user would rather have it off by a unit than lost. How many
    were moved is returned, for the caller to report.

    Args:
        values: (H, W) floats; what stands in invalid pixels is ignored.
        valid: (H, W) bool.
        dtype: an integer or float dtype.
        invalid: the marker for invalid pixels, NaN for floats; None if the file has none.

    Returns:
        The cast array and the number of valid pixels moved off the marker.

    Raises:
        InputError: a valid value is not finite or does not fit the dtype, or there are invalid pixels but no
            marker that the dtype can hold.
    """
    stored = _real_dtype(dtype)
    if values.shape != valid.shape:
        raise InputError(f"values of shape {values.shape} and a valid mask of shape {valid.shape} do not match")
    kept = np.where(valid, values, values.dtype.type(0))
    rounded = np.rint(kept) if stored.kind in "ui" else kept
    check_fits(rounded, valid, stored)
    with np.errstate(under="ignore"):
        result = rounded.astype(stored)
    if invalid is None or not holds(stored, invalid):
        if not valid.all():
            marker = "no invalid marker is set" if invalid is None else f"{stored} cannot hold {invalid:g}"
            raise InputError(
                f"{int((~valid).sum())} pixels are invalid, but {marker}. State a marker that {stored} "
                "holds, such as 0, or write float32 (for example to .tiff), where NaN marks them."
            )
        return result, 0
    moved = valid & (result == stored.type(invalid))
    if moved.any():
        above, below = _beside(stored.type(invalid))
        result[moved] = np.where(kept[moved] >= invalid, above, below)
    result[~valid] = stored.type(invalid)
    return result, int(moved.sum())


def _real_dtype(dtype: DTypeLike) -> Any:
    real = np.dtype(dtype)
    if real.kind not in "uif":
        raise InputError(f"cannot store values as {real}: name an integer or float type, such as uint16 or float32")
    return real


def check_fits(rounded: np.ndarray, valid: np.ndarray, dtype: Any, what: str = "the result") -> None:
    """Raise InputError if valid values, rounded if `dtype` is an integer, are not finite or leave its range."""
    if not np.isfinite(rounded).all():
        raise InputError(
            f"{int((~np.isfinite(rounded)).sum())} pixels marked valid are NaN or infinite. Mark them invalid."
        )
    if not valid.any():
        return
    low = float(rounded.min(where=valid, initial=np.inf))
    high = float(rounded.max(where=valid, initial=-np.inf))
    least, most = limits(dtype)
    # the end of a wide integer type is rounded up as a float, to a power of two that is no longer in it
    fits = low >= least and (high <= most if dtype.kind == "f" or float(most) == most else high < most)
    span = f"{least:g} to {most:g}" if dtype.kind == "f" else f"{least} to {most}"
    if not fits:
        wider = "uint16" if dtype.itemsize == 1 and low >= 0 and high <= 65535 else "float32"
        raise InputError(
            f"{what} ranges from {low:g} to {high:g}, which does not fit {dtype} ({span}). Store {wider} instead, "
            f"for example with -o out.tiff --dtype {wider}, or choose a coarser unit."
        )


def limits(dtype: Any) -> tuple[Any, Any]:
    """The least and the largest number of a dtype; of integers as int."""
    info = np.finfo(dtype) if dtype.kind == "f" else np.iinfo(dtype)
    return (float(info.min), float(info.max)) if dtype.kind == "f" else (int(info.min), int(info.max))


def holds(dtype: Any, value: float) -> bool:
    """Whether the dtype can hold the value."""
    if dtype.kind == "f":
        return not math.isfinite(value) or abs(value) <= float(np.finfo(dtype).max)
    info = np.iinfo(dtype)
    return math.isfinite(value) and float(value).is_integer() and info.min <= int(value) <= info.max


def _beside(marker: Any) -> tuple[Any, Any]:
    """Return the nearest values above and below, each the other one where the dtype ends."""
    dtype = marker.dtype
    if dtype.kind == "f":
        return np.nextafter(marker, dtype.type(np.inf)), np.nextafter(marker, dtype.type(-np.inf))
    info, at = np.iinfo(dtype), int(marker)
    above = at + 1 if at < info.max else at - 1
    below = at - 1 if at > info.min else at + 1
    return dtype.type(above), dtype.type(below)
