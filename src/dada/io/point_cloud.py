"""Write a depth map as a coloured point cloud, in a PLY file."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dada.errors import InputError
from dada.io.atomic import write_bytes_atomically

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
) -> int:
    """Write the valid pixels as points of a binary little-endian PLY, whole or not at all.

    Args:
        path: a file that ends in .ply.
        depth_metres: (H, W) distance along the optical axis.
        colours: (H, W) or (H, W, 3) of uint8.
        intrinsics: (fx, fy, cx, cy) in pixels of the depth map.
        valid: (H, W) bool.

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
    fx, fy, cx, cy = intrinsics
    row, column = np.nonzero(valid)
    z = depth_metres[row, column].astype(np.float64)
    points = np.empty(len(z), _POINT)
    points["xyz"] = np.stack([(column - cx) * z / fx, (row - cy) * z / fy, z], axis=-1)
    points["rgb"] = colours[row, column]
    write_bytes_atomically(path, _HEADER.format(count=len(z)).encode(), points.tobytes())
    return len(z)
