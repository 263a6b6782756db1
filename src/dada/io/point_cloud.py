"""Write a depth map as a coloured point cloud, in a PLY file."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dada.errors import InputError
from dada.io.atomic import write_bytes_atomically

REACH = 2  # pixels around one within which its two sides lie
JUMP = 0.05  # of the nearer side
BETWEEN = 0.2  # of the jump
STEP = 0.3  # of the jump
_POINT = np.dtype([("xyz", "<f4", 3), ("rgb", "u1", 3)])
_HEADER = """ply
format binary_little_endian 1.0
comment x right, y down, z forward, in metres
element vertex {count}
property float x
property float y
property float z
property uchar red
property uchar green
property uchar blue
end_header
"""


class Intrinsics(NamedTuple):
    """A pinhole camera in pixels of the depth map: focal lengths, principal point; centres are integers."""

    fx: float
    fy: float
    cx: float
    cy: float


def parse_intrinsics(text: str) -> Intrinsics:
    """Parse "fx,fy,cx,cy", such as "525,525,319.5,239.5"."""
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if len(numbers) != 4 or not all(math.isfinite(number) for number in numbers) or min(numbers[:2]) <= 0:
        raise InputError(
            f"intrinsics {text!r} are not four numbers fx,fy,cx,cy with positive focal lengths. Give them in "
            "pixels of the guide, separated by commas, such as 525,525,319.5,239.5."
        )
    return Intrinsics(*numbers)


def write_point_cloud(
    path: str | os.PathLike[str],
    depth_metres: np.ndarray,
    colours: np.ndarray,
    intrinsics: tuple[float, float, float, float],
    valid: np.ndarray,
    *,
    without_flying: bool = False,
) -> int:
    """Write the valid pixels as points of a binary little-endian PLY, whole or not at all.

    Args:
        path: a file that ends in .ply.
        depth_metres: (H, W) distance along the optical axis.
        colours: (H, W) or (H, W, 3) of uint8.
        intrinsics: (fx, fy, cx, cy) in pixels of the depth map.
        valid: (H, W) bool.
        without_flying: leave out pixels that float between two surfaces; see `flying_pixels`.

    Returns:
        The number of points.

    Raises:
        InputError: shapes or dtypes do not match, or the file cannot be written.
    """
    path = Path(path)
    if path.suffix.lower() != ".ply":
        raise InputError(f"{path}: a point cloud is written as PLY. Name a file that ends in .ply.")
    if colours.ndim == 2:
        colours = np.repeat(colours[..., None], 3, axis=2)
    if depth_metres.ndim != 2 or valid.shape != depth_metres.shape or colours.shape != (*depth_metres.shape, 3):
        raise InputError(
            f"{path}: depth {depth_metres.shape}, colours {colours.shape} and valid mask {valid.shape} must "
            "be of one size, colours with 1 or 3 channels. Pass the guide's first three bands as colours."
        )
    if colours.dtype != np.uint8 or valid.dtype != np.bool_:
        raise InputError(
            f"{path}: colours must be uint8 and the valid mask bool; got {colours.dtype} and {valid.dtype}."
        )
    if without_flying:
        valid = valid & ~flying_pixels(depth_metres, valid)
    fx, fy, cx, cy = intrinsics
    row, column = np.nonzero(valid)
    z = depth_metres[row, column].astype(np.float64)
    points = np.empty(len(z), _POINT)
    points["xyz"] = np.stack([(column - cx) * z / fx, (row - cy) * z / fy, z], axis=-1)
    points["rgb"] = colours[row, column]
    write_bytes_atomically(path, _HEADER.format(count=len(z)).encode(), points.tobytes())
    return len(z)


def flying_pixels(depth: np.ndarray, valid: np.ndarray) -> np.ndarray:
    """Find pixels (H, W) bool that float between a near and a far surface.

    The two sides are the nearest and the farthest depth within `REACH` pixels. They form a jump if they differ by more
    than `JUMP` of the nearer one. A pixel flies if it is farther than `BETWEEN` of the jump from both, and the depth
    rises or falls through it with a step of at least `STEP` of the jump: on a slope, the steps are smaller.
    """
    import cv2

    window = np.ones((2 * REACH + 1, 2 * REACH + 1), np.uint8)
    image = depth.astype(np.float32)
    far = cv2.dilate(np.where(valid, image, -np.inf).astype(np.float32), window)
    near = cv2.erode(np.where(valid, image, np.inf).astype(np.float32), window)
    padded = np.pad(np.where(valid, image, np.nan), 1, constant_values=np.nan)
    with np.errstate(invalid="ignore"):
        jump = far - near
        between = (image - near > BETWEEN * jump) & (far - image > BETWEEN * jump)
        through = np.zeros(image.shape, bool)
        for before, after in ((padded[:-2, 1:-1], padded[2:, 1:-1]), (padded[1:-1, :-2], padded[1:-1, 2:])):
            first, second = image - before, after - image
            steep = np.maximum(np.abs(first), np.abs(second)) >= STEP * jump
            through |= (first * second > 0) & steep
        return np.asarray(valid & (jump > JUMP * near) & between & through)
