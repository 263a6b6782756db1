"""Refuse images that do not fit into memory, before anything is allocated.

What counts is what an image takes once decoded. A header may state any size, and some compressions (DWA, LERC, fax)
pack flat areas without limit, so that a file of 300 bytes can stand for gigabytes.
"""

from __future__ import annotations

import math
import os
from pathlib import Path

from dada.errors import InputError

VARIABLE = "DADA_MAX_IMAGE_GIB"
"""The environment variable that sets the limit for decoded images, in GiB."""
MAX_BYTES = 4 * 2**30
"""The largest image read, in bytes once decoded: 32768 x 32768 uint32, or 37000 x 37000 RGB of 8 bits."""
UNBACKED_BYTES = 2**26
"""The largest image read of which the file holds less than one byte in EXPANSION."""
EXPANSION = 2000


def max_bytes() -> int:
    """Return the largest image read: MAX_BYTES, or what the environment says.

    Raises:
        InputError: the environment variable is no number above 0.
    """
    return _stated_limit() or MAX_BYTES


def check_size(path: Path, height: int, width: int, channels: int, pixel: int) -> None:
    """Raise InputError if an image of this size, as its header states it, is empty or above the limit.

    `pixel` is what a pixel takes once decoded: bytes of all channels together.
    """
    if height < 1 or width < 1 or channels < 1:
        raise InputError(
            f"{path}: its header states a size of {width} x {height} pixels with {channels} channel(s), so "
            "it holds no image. Export the file again."
        )
    need, limit = height * width * pixel, max_bytes()
    if need > limit:
        raise InputError(
            f"{path}: its header states {width} x {height} pixels with {channels} channel(s), which would "
            f"need {need / 2**30:.3g} GiB of memory once decoded; the limit is {limit / 2**30:.3g} GiB. "
            "If the size is right, cut the image into tiles, or raise the limit by the environment variable "
            f"{VARIABLE}={math.ceil(need / 2**30)}; if not, the file is damaged: export it again."
        )


def check_ratio(path: Path, need: int, stored: int, ratio: int) -> None:
    """Raise InputError if `stored` bytes, each worth at most `ratio` bytes of pixels, cannot hold `need`."""
    if need > stored * ratio:
        raise InputError(
            f"{path}: its header promises {need} bytes of pixels, more than the {stored} bytes stored can "
            "hold. The file is damaged or truncated: copy or export it again."
        )


def check_expansion(path: Path, need: int, stored: int) -> None:
    """Raise InputError if a file would be decoded to far more than it stores, unless the environment states a limit.

    This is for compressions that have no bound which `check_ratio` could use, or a very high one.
    """
    if need > max(UNBACKED_BYTES, stored * EXPANSION) and _stated_limit() is None:
        raise InputError(
            f"{path}: its {stored} bytes would be decoded to {need / 2**30:.3g} GiB, more than {EXPANSION} times as "
            "much. The file is damaged or almost empty: export it again, or allow its size by the environment "
            f"variable {VARIABLE}={math.ceil(need / 2**30)}."
        )


def _stated_limit() -> int | None:
    """What the environment states, in bytes; None where it states nothing."""
    text = os.environ.get(VARIABLE, "").strip()
    if not text:
        return None
    try:
        gibibytes = float(text)
    except ValueError:
        gibibytes = math.nan
    if not 0 < gibibytes < math.inf:
        raise InputError(f"the environment variable {VARIABLE} is {text!r}, not a number of GiB above 0. Set it to 8.")
    return max(int(gibibytes * 2**30), 1)
