"""Far background of painted scenes: a plain, hills and a sky, many times as far as the scene itself.

Outdoors, a few pixels between two branches may be a hundred times as far as the branches, and the sky has no depth. The
background is painted before the objects, which therefore occlude it.
"""

from __future__ import annotations

import math

import cv2
import numpy as np

from dada.datasets.painted.outlines import Box, Floats, Outline, Points, Rng, blob, polygon, rectangle, window
from dada.datasets.painted.textures import Material, Textures, colour

SKY = np.float32(np.inf)  # depth of the sky while a scene is painted; NaN in the result
FARTHEST = 300.0  # largest distance of a hill, relative to the backdrop
SKIES = 0.6  # share of the far backgrounds with a sky


def open_far(image: Floats, depth: Floats, distance: float, bank: Textures, rng: Rng) -> None:
    """Replace part of an empty stage by a far background.

    Args:
        image: [H, W, 3] light in 0..1, changed.
        depth: [H, W] mm, changed; `SKY` where nothing is hit.
        distance: mm to the backdrop.
        bank: of textures.
        rng: source of all random choices.
    """
    height, width = depth.shape
    opening = _opening(rng, height, width).coverage(Box(0, 0, width, height))
    far_image, far_depth = _landscape(rng, height, width, distance, bank)
    image += opening[..., None] * (far_image - image)
    np.copyto(depth, far_depth, where=opening >= 0.5)


def _opening(rng: Rng, height: int, width: int) -> Outline:
    """Where the background is visible: everywhere, above a roof or a wall, or through a few gaps and windows."""
    kind = rng.random()
    if kind < 0.2:
        return Outline([np.array([[-9.0, -9], [width + 9, -9], [width + 9, height + 9], [-9, height + 9]])])
    if kind < 0.6:
        line = _skyline(rng, height, width, rng.uniform(0.1, 0.9) * height)
        return Outline([np.concatenate([line, [[width + 9.0, -height], [-9.0, -height]]])])
    whole, paths = math.sqrt(height * width), []
    for _ in range(int(rng.integers(1, 6))):
        make = (blob, polygon, rectangle, window)[rng.integers(4)]
        place = rng.uniform(0, 1, 2) * (width, height)
        size = whole * math.exp(rng.uniform(math.log(0.03), math.log(0.5)))
        paths += [path + place for path in make(rng, size)]
    return Outline(paths)


def _skyline(rng: Rng, height: int, width: int, level: float) -> Points:
    """A line from left to right about `level`: straight (roofs), wavy (hills) or rough (trees)."""
    x = np.linspace(-9, width + 9, 2 + width // 2)
    y = level + rng.normal(0, 0.3) * (x - width / 2) * (rng.random() < 0.6)
    if rng.random() < 0.75:
        orders = np.arange(1, 8 if rng.random() < 0.5 else 90)
        strength = (
            rng.uniform(0.01, 0.12) * height * rng.standard_normal(len(orders)) * orders ** -rng.uniform(0.6, 1.6)
        )
        y = y + np.cos(x[:, None] * orders * (math.pi / width) + rng.uniform(0, 2 * math.pi, len(orders))) @ strength
    return np.column_stack([x, y])


def _landscape(rng: Rng, height: int, width: int, distance: float, bank: Textures) -> tuple[Floats, Floats]:
    """Image and depth of the background: a sky, and before it one to five hills or plains, the farthest first."""
    sky = rng.random() < SKIES
    air = np.array(colour(rng), np.float32) * 0.4 + 0.6 * rng.uniform(0.3, 1)  # colour of haze
    zenith = np.array(colour(rng), np.float32) * 0.5 + 0.5 * rng.uniform(0.1, 1)
    up = np.linspace(0, 1, height, dtype=np.float32)[:, None, None]
    image = (zenith + up * (air - zenith)) * np.ones((1, width, 1), np.float32)
    if rng.random() < 0.5:
        image += np.float32(rng.uniform(0.1, 0.6)) * (_painted(bank.draw(rng), height, width) - image)  # clouds
    depth = np.full((height, width), SKY, np.float32)
    clear = math.exp(rng.uniform(math.log(5), math.log(1000))) * distance  # length scale of haze
    count = int(rng.integers(1, 6))
    times = np.sort(np.exp(rng.uniform(math.log(2), math.log(FARTHEST), count)))[::-1]
    levels = np.sort(rng.uniform(-0.1, 0.95, count)) * height
    if not sky:
        levels[0] = -4 * height  # the first hill covers the sky
    full = Box(0, 0, width, height)
    rows = np.arange(height, dtype=np.float32)[:, None]
    for far, level in zip(times * distance, levels, strict=True):
        line = _skyline(rng, height, width, level)
        covered = Outline([np.concatenate([line, [[width + 9.0, 6.0 * height], [-9.0, 6.0 * height]]])]).coverage(full)
        # planes are linear in 1 / depth: nearly vertical, or a plain that is near at the lower border
        near = far / rng.uniform(1, 1.5) if rng.random() < 0.5 else distance * rng.uniform(0.8, 2)
        share = np.clip((rows - max(level, 0)) / max(height - max(level, 0), 1), 0, 1)
        plane = np.broadcast_to(np.float32(1) / (1 / far + share * (1 / min(near, far) - 1 / far)), depth.shape)
        ground = _painted(bank.draw(rng), height, width) * np.float32(rng.uniform(0.3, 1.1))
        haze = (1 - np.exp(-plane / np.float32(clear)))[..., None]
        image += covered[..., None] * (ground + haze * (air - ground) - image)
        np.copyto(depth, plane, where=covered >= 0.5)
    return image, depth


def _painted(material: Material, height: int, width: int) -> Floats:
    return cv2.GaussianBlur(material.paint(0, 0, width, height), (3, 3), 0).astype(np.float32) * np.float32(1 / 255)
