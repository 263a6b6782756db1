"""A furnished room with perfect depth, drawn by a small ray caster: data for the demo and for tests.

The room holds what makes guided upsampling hard: thin rods, leaves and a wire mesh with holes; texture
without a depth edge (poster, rug, wallpaper, shadows); depth edges without a change of colour (a sideboard
and a ball the colour of the wall behind them, a wooden box on a wooden table). Lengths are metres, x right,
y up, z into the room.

Each shape has four methods: the intersection with a ray (`hit`), its `normal` there, the distance of a shadow ray
from its silhouette (`gap`: negative inside, so that a penumbra needs no sampling of the lamp) and the corners of
its bounding box (`corners`: a shape is cast only within its projection).

Two more scenes are drawn flat: `facade`, a street front with its temperatures, and `town`, seen from the air with its
heights.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from dada.errors import InputError
from dada.scene.casting import CAMERA, EYE, FOCAL, SUPERSAMPLING, View, cast, shade
from dada.scene.room import furnish
from dada.scene.shapes import Array, rotate

__all__ = ["Scene", "focal_length", "render", "render_depth"]

BAND_RAYS = 100_000  # rays shaded at once: small enough to stay in the cache


class Scene(NamedTuple):
    """A rendered scene."""

    guide: NDArray[np.uint8]  # [H, W, 3] RGB
    depth: NDArray[np.float32]  # [H, W] metres along the optical axis, exact at the centre of each pixel


def render(height: int = 480, width: int = 640, *, seed: int = 0) -> Scene:
    """Render the room; the same arguments give the same arrays.

    Args:
        height: in pixels, at least 1. The 4:3 frame is scaled to cover height and width, then cropped.
        width: in pixels, at least 1.
        seed: of the sensor noise of the guide; depth does not depend on it.

    Returns:
        The guide, anti-aliased and slightly noisy, and the depth, one ray a pixel and free of noise.

    Raises:
        InputError: a size below 1.
    """
    if height < 1 or width < 1:
        raise InputError(f"a scene of {height} x {width} pixels cannot be rendered: both sizes must be at least 1")
    room = furnish()
    depth = np.empty((height, width), np.float32)
    for rows, view in _bands(height, width, 1, np.float64):
        depth[rows] = cast(room, view)[0]
    linear = np.empty((height, width, 3), np.float32)
    n = SUPERSAMPLING
    for rows, view in _bands(height, width, n, np.float32):
        linear[rows] = shade(room, view).reshape(3, -1, n, width, n).mean((2, 4)).transpose(1, 2, 0)
    return Scene(_develop(linear, seed), depth)


def render_depth(height: int, width: int, place: tuple[float, float, float]) -> NDArray[np.float64]:
    """Depth [H, W] of a camera beside that of `render`, which looks in the same direction: one ray a pixel.

    Args:
        height: in pixels, as for `render`.
        width: in pixels.
        place: of the camera in metres to the right of the other, below it and in front of it.
    """
    room, depth = furnish(), np.empty((height, width))
    eye = EYE + CAMERA.T @ np.array(place)
    for rows, view in _bands(height, width, 1, np.float64):
        depth[rows] = cast(room, view._replace(eye=(float(eye[0]), float(eye[1]), float(eye[2]))))[0]
    return depth


def focal_length(height: int, width: int) -> float:
    """Of the cameras of `render` and `render_depth`, in pixels; their axis goes through the middle of the image."""
    return FOCAL * 640 * max(height / 480, width / 640)


def _bands(height: int, width: int, n: int, dtype: DTypeLike) -> Iterator[tuple[slice, View]]:
    """Rows of pixels and the n x n rays through each of them, band by band."""
    focal = focal_length(height, width)
    x = ((np.arange(width * n) + 0.5) / n - width / 2) / focal
    step = max(1, BAND_RAYS // (width * n * n))
    for first in range(0, height, step):
        last = min(first + step, height)
        y = ((np.arange(first * n, last * n) + 0.5) / n - height / 2) / focal
        directions = np.stack([*np.meshgrid(x, y), np.ones((len(y), len(x)))])
        yield slice(first, last), View(x, y, rotate(CAMERA.T, directions).astype(dtype))


def _develop(linear: Array, seed: int) -> NDArray[np.uint8]:
    """Linear light to 8-bit sRGB-like values, with the noise of a decent sensor."""
    exposed = linear * (1 + linear / 4) / (1 + linear)  # shoulder: white is 4 times middle exposure
    noise = np.random.default_rng(seed).standard_normal(linear.shape, np.float32)
    exposed = exposed + noise * np.sqrt(2e-6 + 4e-5 * exposed)
    return np.rint(255 * np.clip(exposed, 0, 1) ** (1 / 2.2)).astype(np.uint8)
