"""Refuse images that do not fit into memory, before anything is allocated."""

from __future__ import annotations

from pathlib import Path

from dada.errors import InputError

MAX_BYTES = 4 * 2**30
"""The largest image read, in bytes once decoded: 32768 x 32768 uint32, or 37000 x 37000 RGB of 8 bits."""


def check_size(path: Path, height: int, width: int, channels: int, itemsize: int) -> None:
    """Raise InputError if an image of this size, as its header states it, is empty or above MAX_BYTES."""
    if height < 1 or width < 1 or channels < 1:
        raise InputError(
            f"{path}: its header states a size of {width} x {height} pixels with {channels} channel(s), so "
            "it holds no image. Export the file again."
        )
    need = height * width * channels * itemsize
    if need > MAX_BYTES:
        raise InputError(
            f"{path}: its header states {width} x {height} pixels with {channels} channel(s), which would "
            f"need {need / 2**30:.1f} GiB of memory once decoded; the limit is {MAX_BYTES / 2**30:.0f} GiB. "
            "If the size is right, cut the image into tiles; if not, the file is damaged: export it again."
        )


def check_ratio(path: Path, need: int, stored: int, ratio: int) -> None:
    """Raise InputError if `stored` bytes, each worth at most `ratio` bytes of pixels, cannot hold `need`."""
    if need > stored * ratio:
        raise InputError(
            f"{path}: its header promises {need} bytes of pixels, more than the {stored} bytes stored can "
            "hold. The file is damaged or truncated: copy or export it again."
        )
