"""The compiled loops of the painter: each replaces a dozen passes of numpy over the image."""

from __future__ import annotations

import numpy as np

from dada.datasets.compiled import compiled, inlined
from dada.datasets.painted.outlines import Bytes, Floats

# a literal 1 would change the arithmetic to float64
ZERO, ONE, BRIGHTEST = np.float32(0), np.float32(1), np.float32(1.8)


@inlined
def shade(depth: Floats, i: int, j: int, per_pixel: np.float32, lamp: Floats) -> np.float32:
    """Brightness of a surface at a pixel; one that faces the camera has about 1.

    Args:
        depth: [h, w] mm.
        i: row.
        j: column.
        per_pixel: 1/mm; slope per difference of depth between the two neighbours of a pixel.
        lamp: [9] direction to the lamp (3), half-way direction between lamp and camera (3), ambient light, light of the
            lamp, gloss.
    """
    up, down = max(i - 1, 0), min(i + 1, depth.shape[0] - 1)
    left, right = max(j - 1, 0), min(j + 1, depth.shape[1] - 1)
    slope_x = (depth[i, right] - depth[i, left]) * per_pixel
    slope_y = (depth[down, j] - depth[up, j]) * per_pixel
    shorter = ONE / np.sqrt(ONE + slope_x * slope_x + slope_y * slope_y)
    bright = lamp[6] + lamp[7] * max((lamp[0] * slope_x + lamp[1] * slope_y + lamp[2]) * shorter, ZERO)
    if lamp[8] > ZERO:
        facing = max((lamp[3] * slope_x + lamp[4] * slope_y + lamp[5]) * shorter, ZERO)
        facing *= facing
        facing *= facing
        facing *= facing
        facing *= facing
        bright += lamp[8] * facing * facing  # a highlight with exponent 32
    return min(bright, BRIGHTEST)


@compiled
def light_ground(image: Floats, depth: Floats, per_pixel: np.float32, lamp: Floats) -> None:
    """Multiply an image [H, W, 3] by the brightness of the surfaces in `depth`."""
    for i in range(image.shape[0]):
        for j in range(image.shape[1]):
            bright = shade(depth, i, j, per_pixel, lamp)
            for c in range(3):
                image[i, j, c] *= bright


@compiled
def hide(coverage: Floats, depth: Floats, behind: Floats) -> tuple[np.float32, float, np.float32]:
    """Set the coverage of a part to 0 where it is occluded.

    Returns:
        Its largest coverage, its mean distance from the surface behind it and its nearest depth, both in mm.
    """
    largest, nearest = ZERO, np.float32(np.inf)
    gap, count = 0.0, 0.0
    for i in range(coverage.shape[0]):
        for j in range(coverage.shape[1]):
            if depth[i, j] >= behind[i, j]:
                coverage[i, j] = 0
            elif coverage[i, j] > 0:
                largest = max(largest, coverage[i, j])
                nearest = min(nearest, depth[i, j])
                gap += behind[i, j] - depth[i, j]
                count += 1
    return largest, gap / max(count, 1.0), nearest


@compiled
def darken(image: Floats, depth: Floats, shadow: Floats, nearest: np.float32, strength: np.float32) -> None:
    """Lay a shadow [h, w] in 0..1 on what is further away than `nearest`."""
    for i in range(shadow.shape[0]):
        for j in range(shadow.shape[1]):
            if shadow[i, j] > 0 and depth[i, j] > nearest:
                factor = ONE - strength * shadow[i, j]
                for c in range(3):
                    image[i, j, c] *= factor


@compiled
def compose(
    image: Floats,
    behind: Floats,
    coverage: Floats,
    depth: Floats,
    surface: Bytes,
    gain: np.float32,
    per_pixel: np.float32,
    lamp: Floats,
) -> None:
    """Blend a lit surface over an image by coverage; a pixel covered by half takes the depth of the surface.

    Args:
        image: [h, w, 3] light in 0..1, changed.
        behind: [h, w] mm, changed.
        coverage: [h, w] in 0..1.
        depth: [h, w] mm of the surface.
        surface: [h, w, 3] uint8 reflectance.
        gain: brightness of the surface, for reflectances of 0 to 255.
        per_pixel: see `shade`.
        lamp: see `shade`.
    """
    for i in range(coverage.shape[0]):
        for j in range(coverage.shape[1]):
            covered = coverage[i, j]
            if covered > 0:
                bright = gain * shade(depth, i, j, per_pixel, lamp)
                for c in range(3):
                    image[i, j, c] += covered * (bright * surface[i, j, c] - image[i, j, c])
                if covered >= 0.5:
                    behind[i, j] = depth[i, j]


@compiled
def expose(
    image: Floats, grain: Floats, exposure: np.float32, dark: np.float32, bright: np.float32, picture: Bytes
) -> None:
    """Convert light times exposure to 8 bits, with noise of deviation dark + bright * light.

    Args:
        image: [H, W, 3] light.
        grain: [H, W, 3] normal numbers.
        exposure: factor of light.
        dark: noise where there is no light.
        bright: noise for each unit of exposed light.
        picture: [H, W, 3] uint8, written.
    """
    for i in range(image.shape[0]):
        for j in range(image.shape[1]):
            for c in range(3):
                light = image[i, j, c] * exposure
                light += grain[i, j, c] * (dark + bright * light)
                picture[i, j, c] = np.uint8(min(max(light, ZERO), ONE) * np.float32(255) + np.float32(0.5))


@compiled
def count_jumps(depth: Floats, step: np.float32) -> int:
    """Pixels of [H, W] that differ from their right neighbour by more than `step` times the nearer; no skies."""
    count = 0
    for i in range(depth.shape[0]):
        for j in range(depth.shape[1] - 1):
            a, b = depth[i, j], depth[i, j + 1]
            count += np.isfinite(a + b) and abs(a - b) > step * min(a, b)
    return count
