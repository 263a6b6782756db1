"""Rows of an image in bands, so that what is made on the way takes little memory, whatever the image's size.

Each band is computed from some rows beyond it, whose own surroundings are missing, and cut to its rows.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from dada.features.convolution import gradient_free

NUMBERS = 1 << 20  # that a band may hold on the way
LEAST = 32  # rows of a band


def bands(height: int, numbers: int) -> Iterator[tuple[int, int]]:
    """Cut an image into bands of rows, from an even row to an even row or the end; one where gradients are kept.

    Args:
        height: of the image.
        numbers: that a row needs on the way.
    """
    if not gradient_free():
        yield 0, height
        return
    rows = max(NUMBERS // numbers // 2 * 2, LEAST)
    for start in range(0, height, rows):
        yield start, min(start + rows, height)


def around(start: int, stop: int, halo: int, height: int) -> tuple[int, int]:
    """The rows of a band and so many beyond it on each side, as far as there are any, from and to even rows."""
    return max(start - halo, 0) // 2 * 2, min((stop + halo + 1) // 2 * 2, height)


def placed(whole: Tensor | None, part: Tensor, start: int, height: int) -> Tensor:
    """Put rows [..., rows, W] of an image where they belong; a part of all rows is the image.

    Args:
        whole: the image so far; None: this is its first part.
        part: the rows.
        start: number of the first.
        height: of the image.
    """
    if part.shape[-2] == height:
        return part
    if whole is None:
        nested = part.ndim == 4 and part.is_contiguous(memory_format=torch.channels_last)
        order = torch.channels_last if nested else torch.contiguous_format
        shape = (*part.shape[:-2], height, part.shape[-1])
        whole = torch.empty(shape, dtype=part.dtype, device=part.device, memory_format=order)
    whole[..., start : start + part.shape[-2], :] = part
    return whole
