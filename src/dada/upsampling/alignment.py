"""Depth of one camera brought to the pixels of another: points with occlusion, not a resampled image."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dada.errors import InputError
from dada.io.cameras import Camera, Transform

BEHIND = 0.02  # of a depth: how much farther than the surface before it a point must be to be hidden
REACH = 0.5  # of the distance between neighbouring depth pixels in the colour image: how far each hides others
MOST_REACH = 8  # pixels


@dataclass(frozen=True)
class Aligned:
    """Depth on the grid of the colour camera.

    Attributes:
        points: (n, 3) x, y in pixels of the colour image (centres are whole numbers) and depth along its axis.
        image: (H, W) the same on the nearest pixels, the nearest to the camera where there are several; NaN elsewhere.
        hidden: how many points were left out because a nearer surface hides them.
        outside: how many fall outside the image.
    """

    points: np.ndarray
    image: np.ndarray
    hidden: int
    outside: int


def align(
    depth: np.ndarray,
    depth_camera: Camera,
    color_camera: Camera,
    transform: Transform,
    size: tuple[int, int],
    valid: np.ndarray | None = None,
) -> Aligned:
    """Lift depth pixels, move them to the colour camera, project them, and leave out what it cannot see.

    Args:
        depth: (h, w) distance along the optical axis in metres.
        depth_camera: of the depth image.
        color_camera: of the colour image.
        transform: from the depth camera to the colour camera.
        size: (H, W) of the colour image.
        valid: (h, w) bool; by default where depth is finite and positive.

    Raises:
        InputError: a camera is of another size than its image, or nothing falls into the colour image.
    """
    import cv2

    for name, camera, given in (("depth", depth_camera, depth.shape), ("color", color_camera, size)):
        if camera.size is not None and camera.size != tuple(given):
            raise InputError(
                f"the {name} camera is of {camera.size[1]} x {camera.size[0]} pixels, its image has {given[1]} x "
                f"{given[0]}. Scale the camera to the image, or take the camera of this resolution."
            )
    with np.errstate(invalid="ignore"):
        known = np.isfinite(depth) & (depth > 0) if valid is None else valid & np.isfinite(depth) & (depth > 0)
    row, col = np.nonzero(known)
    pixels = np.stack([col, row], axis=-1).astype(np.float64)[:, None]
    rays = (
        cv2.undistortPoints(pixels, depth_camera.matrix, np.array(depth_camera.distortion))[:, 0]
        if len(row)
        else pixels[:, 0]
    )
    z = depth[known].astype(np.float64)
    there = np.column_stack([rays * z[:, None], z]) @ transform.rotation.T + transform.translation
    front = there[there[:, 2] > 0]
    if len(front):
        lens = np.array(color_camera.distortion)
        places = cv2.projectPoints(front, np.zeros(3), np.zeros(3), color_camera.matrix, lens)[0][:, 0]
    else:
        places = np.zeros((0, 2))
    points = np.column_stack([places, front[:, 2]])
    at = np.floor(places + 0.5)
    inside = (at[:, 0] >= 0) & (at[:, 1] >= 0) & (at[:, 0] < size[1]) & (at[:, 1] < size[0])
    if not inside.any():
        raise InputError(
            "no depth pixel falls into the colour image. Check the extrinsics (from the depth camera to the colour "
            "camera, in metres), the unit of the depth, and the cameras."
        )
    points = points[inside]
    spacing = max(color_camera.fx / depth_camera.fx, color_camera.fy / depth_camera.fy)
    nearest = _surface(points, size, spacing)
    col, row = (np.floor(points[:, i] + 0.5).astype(np.int64) for i in (0, 1))
    seen = points[:, 2] <= nearest[row, col] * (1 + BEHIND)
    image = np.full(size, np.inf)
    np.minimum.at(image, (row[seen], col[seen]), points[seen, 2])
    return Aligned(
        points[seen], np.where(np.isfinite(image), image, np.nan), int((~seen).sum()), len(z) - int(inside.sum())
    )


def _surface(points: np.ndarray, size: tuple[int, int], spacing: float) -> np.ndarray:
    """(H, W) least depth of the points within reach of each pixel: each covers what its depth pixel does."""
    reach = min(REACH * max(spacing, 1.0), MOST_REACH)
    nearest = np.full(size, np.inf)
    steps = np.arange(-np.ceil(reach), np.ceil(reach) + 1)
    base = np.floor(points[:, :2] + 0.5)
    for down in steps:
        for across in steps:
            col, row = base[:, 0] + across, base[:, 1] + down
            near = (np.abs(col - points[:, 0]) <= reach) & (np.abs(row - points[:, 1]) <= reach)
            near &= (col >= 0) & (row >= 0) & (col < size[1]) & (row < size[0])
            np.minimum.at(nearest, (row[near].astype(np.int64), col[near].astype(np.int64)), points[near, 2])
    return nearest
