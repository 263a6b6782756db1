"""Where the values of an image jump: the one detector that metrics, loss, registration and pictures share.

Two neighbours form a jump if both are valid and their values differ by more than a size. The size is absolute, in the
unit of the values. Two other places mean something else by the word, with sizes relative to the depth: the painter
counts pixels whose right neighbour is some percent nearer or farther (`painted.has_jump`), and the simulated sensor
hides what lies behind a nearer surface (`sensor.JUMP`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch import Tensor

Image = TypeVar("Image", "NDArray[Any]", "Tensor")
"""An array or a tensor: both are sliced, subtracted and compared in the same way."""


def jump_edges(values: Image, valid: Image, size: float) -> tuple[Image, Image]:
    """Find the edges of the pixel grid that cross a jump.

    Args:
        values: [..., H, W]; what stands in invalid pixels is ignored.
        valid: [..., H, W] bool.
        size: two neighbours that differ by more than this are the two sides of a jump, in the unit of the values.

    Returns:
        Bool, [..., H - 1, W] for vertical neighbours and [..., H, W - 1] for horizontal ones.
    """
    above, below, left, right = np.s_[..., :-1, :], np.s_[..., 1:, :], np.s_[..., :-1], np.s_[..., 1:]
    vertical = (abs(values[below] - values[above]) > size) & valid[below] & valid[above]
    horizontal = (abs(values[right] - values[left]) > size) & valid[right] & valid[left]
    return vertical, horizontal


def jumps(values: Image, valid: Image, size: float) -> Image:
    """Return the pixels on either side of a jump, [..., H, W] bool; for the arguments see `jump_edges`."""
    vertical, horizontal = jump_edges(values, valid, size)
    found = valid & False
    found[..., 1:, :] |= vertical
    found[..., :-1, :] |= vertical
    found[..., 1:] |= horizontal
    found[..., :-1] |= horizontal
    return found


def widen(mask: Tensor, reach: int) -> Tensor:
    """Return the pixels at most `reach` rows and columns away from a pixel of the mask, both [..., H, W] bool."""
    from torch.nn.functional import max_pool2d

    if reach < 1:
        return mask
    images = mask.float().reshape(-1, 1, *mask.shape[-2:])
    return (max_pool2d(images, 2 * reach + 1, stride=1, padding=reach) > 0).reshape(mask.shape)


def sides(values: Tensor, valid: Tensor, reach: int) -> tuple[Tensor, Tensor]:
    """Least and largest valid value at most `reach` rows and columns away from each pixel, all [..., H, W].

    Pixels without a valid one in reach get infinity and minus infinity.
    """
    import torch
    from torch.nn.functional import max_pool2d

    def largest(image: Tensor) -> Tensor:
        known = torch.where(valid, image, -torch.inf).reshape(-1, 1, *image.shape[-2:])
        return max_pool2d(known, 2 * reach + 1, stride=1, padding=reach).reshape(image.shape)

    return -largest(-values), largest(values)


def flying(values: Tensor, low: Tensor, high: Tensor, share: float) -> Tensor:
    """[..., H, W] bool: values between two sides that are farther than a share of their distance from both."""
    margin = share * (high - low)
    return (values > low + margin) & (values < high - margin)
