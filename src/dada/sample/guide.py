"""The guide as users have it, 8-bit, 16-bit or float, one to many bands, brought to float32 in 0..1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dada.errors import InputError

NARROW = 1 / 4  # of 16 bits: a guide whose values stay below is stretched
STRETCH = (0.1, 99.9)  # percentiles
SAMPLE = 1_000_000  # values looked at for percentiles
STRIDE = 8  # rows and columns between pixels that are looked at first, for whether the guide has any edge
EIGHT_BITS = ("uint8", "torch.uint8")
MAX_CHANNELS = 4  # an axis no longer than this, between longer ones, holds colours

Warn = Callable[[str], None]
Bands = np.ndarray | Tensor  # [C, H, W] of any real dtype


def bands_first(guide: Any) -> Bands:
    """Return the guide as [C, H, W] of its own kind and dtype, not copied.

    Args:
        guide: NumPy (H, W) or (H, W, C), masked where it has no value, or torch (H, W) or (C, H, W).

    Raises:
        InputError: no image of real numbers, or the bands stand where they do not belong.
    """
    torch_kind = isinstance(guide, Tensor)
    masked = isinstance(guide, np.ma.MaskedArray)
    image = guide.detach() if torch_kind else guide if masked else np.asarray(guide)
    shape = tuple(image.shape)
    if guide.dtype.is_complex if torch_kind else image.dtype.kind not in "buif":
        raise InputError(f"the guide holds values of type {image.dtype}, not real numbers.")
    if len(shape) not in (2, 3) or 0 in shape:
        bands = "(bands, height, width)" if torch_kind else "(height, width, bands)"
        raise InputError(f"the guide has shape {shape}; expected (height, width) or {bands}, no side of length 0.")
    if len(shape) == 2:
        return image[None]
    _check_band_axis(shape, torch_kind)
    return image if torch_kind else np.moveaxis(image, -1, 0)


def unit_range(bands: Bands, device: torch.device, warn: Warn) -> tuple[Tensor, tuple[float, float]]:
    """Bring a guide to 0..1.

    8 bits are divided by 255 and 16 bits by 65535; floats within 0..1 stay as they are. All else, and 16 bits
    of which only the lowest quarter is used (12-bit cameras, reflectances), is stretched: one range for all
    bands, from the 0.1th to the 99.9th percentile, and clipped. Pixels that are NaN, infinite or masked in some
    band take the bands of the nearest pixel that is not.

    Returns:
        [C, H, W] float32, and the values that became 0 and 1.

    Raises:
        InputError: no finite pixel, or a range that float32 cannot hold.
    """
    values = _float32(bands).to(device)
    bad = _without_value(values, bands)
    if bad is not None and bool(bad.any()):
        if bool(bad.all()):
            raise InputError("the guide holds nothing but NaN, infinities or nodata. Check how it was exported.")
        warn(
            f"{int(bad.sum())} guide pixels have no value (NaN, infinite or nodata) and take that of the nearest pixel"
        )
        values = fill_nearest(values, bad)
    low, high = value_range(values, bands)
    if low or str(bands.dtype) not in EIGHT_BITS:
        values.sub_(low).div_(_span(low, high)).clamp_(0, 1)
    else:  # all of them are between 0 and 255
        values.div_(high)
    if _uniform(values[:, ::STRIDE, ::STRIDE]) and _uniform(values):
        warn("the guide is one uniform colour: without edges to follow, the result is merely smooth")
    return values, (low, high)


def _uniform(values: Tensor) -> bool:
    return not bool((values != values[:, :1, :1]).any())


def _check_band_axis(shape: tuple[int, ...], torch_kind: bool) -> None:
    few = [n <= MAX_CHANNELS for n in shape]
    if torch_kind and few == [False, False, True]:
        raise InputError(
            f"the guide is a tensor of shape {shape}, which looks like (height, width, bands); tensors have "
            "their bands first. Pass guide.permute(2, 0, 1)."
        )
    if not torch_kind and few == [True, False, False]:
        raise InputError(
            f"the guide is an array of shape {shape}, which looks like (bands, height, width); NumPy images "
            "have their bands last. Pass numpy.moveaxis(guide, 0, -1)."
        )


def _float32(bands: Bands) -> Tensor:
    """A copy that may be changed."""
    if isinstance(bands, Tensor):
        return bands.to(torch.float32, copy=True, memory_format=torch.contiguous_format)
    if bands.dtype == np.uint8:  # of NumPy's bands last, torch brings the bands first in a fifth of the time
        return (
            torch.from_numpy(np.ascontiguousarray(np.moveaxis(np.asarray(bands), 0, -1)))
            .permute(2, 0, 1)
            .to(torch.float32, memory_format=torch.contiguous_format)
        )
    with np.errstate(over="ignore"):
        return torch.from_numpy(np.array(bands, np.float32, order="C"))


def _without_value(values: Tensor, bands: Bands) -> Tensor | None:
    """[H, W] bool; None: every pixel has a value."""
    bad = ~torch.isfinite(values).all(dim=0) if _is_float(bands) else None
    if isinstance(bands, np.ma.MaskedArray):
        masked = torch.from_numpy(np.ma.getmaskarray(bands).any(axis=0)).to(values.device)
        bad = masked if bad is None else bad | masked
    return bad


def _is_float(bands: Bands) -> bool:
    return bands.dtype.is_floating_point if isinstance(bands, Tensor) else bands.dtype.kind == "f"


def value_range(values: Tensor, bands: Bands) -> tuple[float, float]:
    """The values of `bands`, as float32 in `values`, that become 0 and 1."""
    name = str(bands.dtype).removeprefix("torch.")
    if name == "uint8":
        return 0.0, 255.0
    least, most = (float(v) for v in torch.aminmax(values))
    if name == "bool" or (_is_float(bands) and least >= 0 and most <= 1):
        return 0.0, 1.0
    if name == "uint16" and most > NARROW * 65535:
        return 0.0, 65535.0
    flat = values.flatten()
    sample = flat[:: max(1, len(flat) // SAMPLE)].cpu().numpy().astype(np.float64)
    low, high = (float(v) for v in np.percentile(sample, STRETCH))
    return (low, high) if high > low else (least, most)


def _span(low: float, high: float) -> float:
    """The difference, as float32 can hold it and divide by it."""
    limits = torch.finfo(torch.float32)
    if high - low > limits.max:
        raise InputError(
            f"the guide ranges from {low:g} to {high:g}, a span that float32 cannot hold. If such values mark missing "
            "pixels, declare them as nodata or store NaN instead; if not, scale the guide, for example to 0..1."
        )
    return max(high - low, limits.tiny)


def fill_nearest(values: Tensor, bad: Tensor) -> Tensor:
    """Give each bad pixel the bands of the nearest good one."""
    import cv2

    holes = bad.cpu().numpy()
    _, label = cv2.distanceTransformWithLabels(holes.astype(np.uint8), cv2.DIST_L2, 5, labelType=cv2.DIST_LABEL_PIXEL)
    pixel_of = np.zeros(int(label.max()) + 1, np.int64)  # each good pixel has a label of its own
    good = np.flatnonzero(~holes)
    pixel_of[label.ravel()[good]] = good
    nearest = torch.from_numpy(pixel_of[label[holes]]).to(values.device)
    values[:, bad] = values.flatten(1)[:, nearest]
    return values
