"""The source as users have it: which cells are measured, how firmly, and whether its size can be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from dada.errors import InputError
from dada.io.units import valid_pixels

SKEW = 0.01  # relative difference of the two factors above which a pair looks suspicious
FLOAT32_MAX = float(np.finfo(np.float32).max)
APART = 0.1  # of the range of all other values: nearer to them, a well-known marker may be a measurement
FAR = 1000.0  # times the largest other magnitude, and at least
LARGE = 10_000.0  # in size: values that nobody measures beside the others

ArrayLike = Any  # np.ndarray or torch.Tensor, the same kind in and out
Marker = float | Literal["auto"] | None
Warn = Callable[[str], None]


@dataclass(frozen=True)
class Cells:
    """The source: h x w cells, each with a measurement or without."""

    values: np.ndarray  # [h, w] float32 or float64, 0 where invalid
    valid: np.ndarray  # [h, w] bool
    dtype: Any  # of the result: np.dtype, or torch.dtype of a tensor
    device: torch.device | None  # of a tensor; None: the source is a NumPy array

    def like_source(self, values: Tensor) -> ArrayLike:
        """Return an image as the kind, dtype and device of the source."""
        if self.device is not None:
            return values.to(self.device, self.dtype)
        with np.errstate(over="ignore"):  # the caller looks for infinities
            return values.cpu().numpy().astype(self.dtype, copy=False)


def read_source(source: ArrayLike, invalid: Marker, mask: ArrayLike | None, warn: Warn) -> Cells:
    """Check the source and tell valid from invalid cells. A marker "auto" is 0 for integers, none for floats.

    Raises:
        InputError: no image of real numbers, a mask that does not fit, values that span more
            than their type can hold, or not a single valid cell.
    """
    array = _numpy(source)
    _check_source_shape(array)
    _check_invalid(invalid)
    marker = (0.0 if array.dtype.kind in "ui" else None) if isinstance(invalid, str) else invalid
    valid = valid_pixels(array, marker)
    if isinstance(invalid, str) and array.dtype.kind == "i" and (array < 0).any() and not valid.all():
        warn(
            f"{int((~valid).sum())} source cells are 0 and taken as invalid, though others are negative; if 0 is "
            "measured, state invalid=None (--invalid nan)"
        )
    infinite = int(np.isinf(array).sum()) if array.dtype.kind == "f" else 0
    if infinite:
        warn(f"{infinite} source cells are infinite and taken as invalid")
    if isinstance(source, np.ma.MaskedArray):
        valid &= ~np.ma.getmaskarray(source)
    if mask is not None:
        valid &= _read_mask(mask, array.shape)
    if not valid.any():
        raise InputError(_nothing_measured(array, marker, mask is not None))
    if array.dtype in (np.uint8, np.int8):
        warn(
            "the source has 8 bits: at most 256 levels, whose steps will show in the result; use the 16-bit "
            "or float original if there is one"
        )
    _warn_of_markers(array[valid], warn)
    working = np.float32 if array.dtype.itemsize <= (2 if array.dtype.kind in "ui" else 4) else np.float64
    values = np.where(valid, array, 0).astype(working)
    _check_span(values[valid])
    device = source.device if isinstance(source, Tensor) else None
    dtype = source.dtype if isinstance(source, Tensor) else array.dtype
    if array.dtype.kind in "ui":
        dtype = torch.from_numpy(values).dtype if isinstance(source, Tensor) else values.dtype
    return Cells(values, valid, dtype, device)


def check_sizes(
    source: tuple[int, ...], target: tuple[int, ...], warn: Warn, bands: int = 1, soft: int = 0
) -> tuple[float, float]:
    """Return the factors (rows, columns) from the source's (h, w) to the target's (H, W).

    Args:
        source: h, w.
        target: H, W.
        warn: takes what the user should know.
        bands: of the guide.
        soft: source cells whose mean may move.

    Raises:
        InputError: the guide is smaller than the source in some direction.
    """
    (h, w), (H, W) = source, target
    if h > H or w > W:
        remedy = "Rotate or crop one of them so that both show the same area."
        if h >= H and w >= W:
            remedy = "Swap the two." if bands == 1 else "Use an image of the scene with more pixels than the source."
        raise InputError(
            f"the guide ({W} x {H} pixels, width x height) is smaller than the source ({w} x {h}): the "
            f"guide is the fine image, the source the coarse one. {remedy}"
        )
    factors = H / h, W / w
    if (h, w) == (H, W):
        moved = f"; {soft} uncertain pixels are smoothed along the guide" if soft else ""
        warn(f"guide and source have the same size: there is nothing to upsample{moved}")
    elif max(factors) > (1 + SKEW) * min(factors):
        turned = H / w, W / h
        hint = (
            "; the source looks rotated by 90 degrees"
            if min(turned) >= 1 and max(turned) <= (1 + SKEW) * min(turned)
            else ""
        )
        warn(
            f"the factors differ: x{factors[1]:.4g} across and x{factors[0]:.4g} down (source {w} x {h}, "
            f"guide {W} x {H}). Do both images show exactly the same area?{hint}"
        )
    return factors


# ---- shapes and kinds --------------------------------------------------------------------------------------


def _numpy(array: ArrayLike) -> np.ndarray:
    """Any array as NumPy with native byte order, not copied where it need not be."""
    if isinstance(array, Tensor):
        array = array.detach().cpu()
        array = (array.float() if array.dtype == torch.bfloat16 else array).numpy()
    native: np.ndarray = np.asarray(array)
    return native if native.dtype.isnative else native.astype(native.dtype.newbyteorder("="))


def _check_source_shape(array: np.ndarray) -> None:
    if array.dtype.kind not in "uif":
        raise InputError(
            f"the source holds values of type {array.dtype}, not measurements. Convert it to integers or floats."
        )
    if array.ndim == 3 and min(array.shape) in (3, 4):
        raise InputError(
            f"the source has shape {array.shape}: a colour image has no measurements. If it is the guide, "
            "swap the two; a colour-mapped picture of depth is not depth."
        )
    if array.ndim != 2 or 0 in array.shape:
        raise InputError(
            f"the source has shape {array.shape}; expected (height, width), no side of length 0. Pass one "
            "image at a time, for example source[0] of a batch."
        )


def _check_invalid(invalid: object) -> None:
    if invalid is None or invalid == "auto":
        return
    if not isinstance(invalid, Real) or isinstance(invalid, bool | np.bool_):
        raise InputError(
            f"invalid {invalid!r} is no number. Give the one value that marks invalid cells, or None if no value does; "
            "several are marked with mask=."
        )


def _read_mask(mask: ArrayLike, shape: tuple[int, ...]) -> np.ndarray:
    given = per_cell("mask", mask, shape)
    unknown = int(np.isnan(given).sum()) if given.dtype.kind == "f" else 0
    if unknown:
        raise InputError(
            f"mask has {unknown} values that are NaN, neither valid nor invalid. Give bools, True where the "
            "source is valid."
        )
    return given.astype(bool)


# ---- markers that nobody stated ----------------------------------------------------------------------------


def _warn_of_markers(measured: np.ndarray, warn: Warn) -> None:
    """Warn of valid values that are likely to mean no measurement."""
    marker = _well_known_marker(measured)
    if marker is not None:
        warn(
            f"{int((measured == marker).sum())} source cells are {marker:g}, which often means no measurement, and "
            f"are taken as measured; if they are not, state it with invalid={marker!r} (--invalid)"
        )
        return
    alien = _far_values(measured)
    if alien.size:
        warn(
            f"{alien.size} source cells, such as {float(alien[0]):g}, are {FAR:g} times larger than all others and are "
            "taken as measured; if they mean no measurement, state their value with invalid= (--invalid)"
        )


def _well_known_marker(measured: np.ndarray) -> float | None:
    """The marker, if any, that is the least or largest value and stands apart from the rest."""
    if measured.dtype.kind == "u":
        markers = [65535.0] if measured.dtype == np.uint16 else []
    else:
        markers = [-9999.0, -32768.0, -FLOAT32_MAX, FLOAT32_MAX]
    for end in (float(measured.min()), float(measured.max())):
        if end not in markers:
            continue
        rest = measured[measured != end]
        if not rest.size:
            return end
        low, high = float(rest.min()), float(rest.max())
        if min(abs(end - low), abs(end - high)) > APART * (high - low):
            return end
    return None


def _far_values(measured: np.ndarray) -> np.ndarray:
    """Values of a minority beyond a wide gap in magnitude; 16 bits are too few to have any."""
    none = measured[:0]
    if measured.dtype.itemsize <= 2:
        return none
    size = np.abs(measured.astype(np.float64))
    if size.max() < LARGE:
        return none
    levels = np.unique(size[size > 0])
    with np.errstate(over="ignore"):
        gaps = np.flatnonzero((levels[1:] >= LARGE) & (levels[1:] / FAR > levels[:-1]))
    if not gaps.size:
        return none
    alien = measured[size >= levels[gaps[0] + 1]]
    return alien if 2 * alien.size <= measured.size else none


def _check_span(measured: np.ndarray) -> None:
    """Refuse values whose differences leave their type, as unstated markers of both signs do."""
    low, high = measured.min(), measured.max()
    with np.errstate(over="ignore"):
        if not np.isfinite(high - low):
            raise InputError(
                f"the source ranges from {low:g} to {high:g}, a span that {measured.dtype} cannot hold. If such values "
                "mean no measurement, mark them as NaN, with a mask, or with invalid= (--invalid)."
            )


# ---- messages ----------------------------------------------------------------------------------------------


def _nothing_measured(array: np.ndarray, invalid: float | None, masked: bool) -> str:
    if not np.isfinite(array).any():
        return "the source holds nothing but NaN or infinities. Check how it was exported."
    if invalid == 0 and not array.any():
        return (
            "the source is all zeros, and 0 means no measurement in whole numbers. Check the file; if 0 is a true "
            "value, state that there is no marker with invalid=None (--invalid nan)."
        )
    if masked:
        return "the mask leaves no valid source cell; True must mark the valid ones. Is it inverted?"
    return f"every source cell equals the invalid marker {invalid:g}. Check the file, or state another marker."


def per_cell(name: str, given: ArrayLike, shape: tuple[int, ...]) -> np.ndarray:
    """An array with one number for each source cell.

    Raises:
        InputError: it has another size, or holds no numbers.
    """
    array = _numpy(given)
    if array.shape != shape:
        raise InputError(
            f"{name} has shape {array.shape}; expected {shape}, one value for each source cell. Resample it "
            "to the source."
        )
    if array.dtype.kind not in "buif":
        raise InputError(f"{name} holds values of type {array.dtype}, not numbers.")
    return array
