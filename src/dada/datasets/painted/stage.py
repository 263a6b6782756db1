"""Rendering of a painted scene: a backdrop, objects placed on it with a z-buffer, shading and shadows."""

from __future__ import annotations

import math
from dataclasses import dataclass

import cv2
import numpy as np

from dada.datasets.painted.kernels import compose, darken, hide, light_ground
from dada.datasets.painted.objects import Part
from dada.datasets.painted.outlines import Box, Bytes, Floats, Outline, Rng, blob, polygon
from dada.datasets.painted.textures import Material

NEAREST = 400.0  # mm: nothing comes closer to the camera
SHADOWS = 0.75  # share of parts that cast a shadow


@dataclass(frozen=True, eq=False)
class Light:
    """The lamp of a scene.

    Attributes:
        towards: unit vector to the lamp; x right, y down, z towards the camera.
        ambient: share of light that comes from everywhere, 0..1.
        softness: blur of a shadow for each pixel it is thrown.
        shadow: darkness of shadows, 0..1.
    """

    towards: tuple[float, float, float]
    ambient: float
    softness: float
    shadow: float

    @classmethod
    def draw(cls, rng: Rng) -> Light:
        angle, height = rng.uniform(0, 2 * math.pi), math.radians(rng.uniform(25, 85))
        level = math.cos(height)
        towards = math.cos(angle) * level, math.sin(angle) * level, math.sin(height)
        return cls(towards, rng.uniform(0.25, 0.8), rng.uniform(0.05, 0.6), rng.uniform(0.1, 0.7))

    def lamp(self, gloss: float) -> Floats:
        """The parameters of `kernels.shade`, [9]."""
        x, y, z = self.towards
        half = 1 / math.sqrt(2 + 2 * z)
        diffuse = (1 - self.ambient) / max(z, 0.35)  # a surface that faces the camera is as bright as its colour
        return np.array([x, y, z, half * x, half * y, half * (z + 1), self.ambient, diffuse, gloss], np.float32)


class Stage:
    """Image and depth of a scene while it is painted.

    Attributes:
        image: [H, W, 3] light in 0..1.
        depth: [H, W] mm.
        ground: [H, W] mm, the backdrop alone.
        distance: mm to its middle, about.
        pixel: mm in the scene covered by a pixel, at the depth of the backdrop.
        per_pixel: see `kernels.shade`.
    """

    def __init__(self, rng: Rng, size: tuple[int, int], distance: float, pixel: float, materials: list[Material]):
        self.light, self.distance = Light.draw(rng), distance
        self.pixel, self.per_pixel = np.float32(pixel), np.float32(0.5 / pixel)
        planes = _backdrop(rng, size, distance, pixel)
        self.depth = planes[0] if len(planes) == 1 else planes.min(0)
        full = Box(0, 0, size[1], size[0])
        picture = materials[0].paint(*full)
        for plane, material in zip(planes[1:], materials[1:], strict=False):
            cv2.copyTo(material.paint(*full), (plane <= self.depth).view(np.uint8), picture)
        self.image = picture.astype(np.float32) * np.float32(1 / 255)
        if rng.random() < 0.35:
            self.depth += _folds(rng, size) * self.pixel
        self.depth = np.clip(self.depth, np.float32(0.5 * distance), np.float32(2.2 * distance))
        self.ground = self.depth.copy()
        light_ground(self.image, self.depth, self.per_pixel, self.light.lamp(0.0))

    def paint(self, part: Part, rest: float, follow: bool, material: Material | None, gloss: float, rng: Rng) -> None:
        """Paint a part where it is nearer than the scene so far.

        Args:
            part: silhouette and surface.
            rest: depth of its object in mm, or, with `follow`, its height above the backdrop.
            follow: follow the depth of the backdrop.
            material: of the surface; None copies the image behind it.
            gloss: strength of the highlight.
            rng: draws bumps and the shadow.
        """
        height, width = self.depth.shape
        box = part.outline.box(height, width)
        if box.width < 1 or box.height < 1:
            return
        coverage = part.outline.coverage(box)
        relief = part.surface.depth(box, coverage, rng) * self.pixel
        depth = relief + (self.ground[box.window] - np.float32(rest) if follow else np.float32(rest))
        depth = np.maximum(depth, np.float32(NEAREST))
        image, behind = self.image[box.window], self.depth[box.window]
        largest, gap, nearest = hide(coverage, depth, behind)
        if largest < 0.5:
            return
        surface = self._behind(box, rng) if material is None else material.paint(*box)
        if rng.random() < SHADOWS:
            self._cast_shadow(box, coverage, gap / float(self.pixel), nearest, rng)
        lamp = self.light.lamp(gloss)
        compose(image, behind, coverage, depth, surface, np.float32(part.gain / 255), self.per_pixel, lamp)

    def _behind(self, box: Box, rng: Rng) -> Bytes:
        """The image near a box, as a texture: an object with it hardly differs from its background."""
        height, width = self.depth.shape
        x, y = (int(k) for k in rng.integers(-8, 9, 2))
        x, y = np.clip(box.x + x, 0, width - box.width), np.clip(box.y + y, 0, height - box.height)
        patch = self.image[Box(int(x), int(y), box.width, box.height).window]
        return cv2.convertScaleAbs(patch, alpha=255 * rng.uniform(0.85, 1.15))

    def _cast_shadow(self, box: Box, coverage: Floats, gap: float, nearest: np.float32, rng: Rng) -> None:
        """Darken the surface behind a part, `gap` pixels away, in the direction away from the lamp."""
        throw = min(max(gap, 0.0), rng.uniform(1, 30))
        blur = 1 + int(throw * self.light.softness + rng.uniform(0, 3))
        dx, dy = (round(-throw * c) for c in self.light.towards[:2])
        wide = box.grown(round(throw) + 2 * blur, *self.depth.shape)
        shadow: Floats = np.zeros((wide.height, wide.width), np.float32)
        left, top = box.x - wide.x + dx, box.y - wide.y + dy
        rows = slice(max(top, 0), max(top + box.height, 0))
        columns = slice(max(left, 0), max(left + box.width, 0))
        target = shadow[rows, columns]
        if target.size == 0:
            return
        first_row, first_column = max(-top, 0), max(-left, 0)
        target[...] = coverage[first_row : first_row + target.shape[0], first_column : first_column + target.shape[1]]
        shadow = cv2.stackBlur(shadow, (2 * blur + 1,) * 2)
        darken(self.image[wide.window], self.depth[wide.window], shadow, nearest, np.float32(self.light.shadow))

    def light_up(self, rng: Rng) -> None:
        """Apply light that is independent of depth: gradients, shadows of objects outside the image, vignetting."""
        height, width = self.depth.shape
        x, y = np.linspace(-1, 1, width, dtype=np.float32)[None], np.linspace(-1, 1, height, dtype=np.float32)[:, None]
        a, b, vignette = (np.float32(c) for c in (*rng.normal(0, 0.15, 2), rng.uniform(0, 0.15)))
        factor = np.maximum(1 + (a * x - vignette * x * x) + (b * y - vignette * y * y), np.float32(0.3))
        for _ in range(int(rng.choice([0, 0, 1, 2]))):
            factor *= _thrown(rng, height, width)
        self.image *= cv2.merge([factor, factor, factor])


def _thrown(rng: Rng, height: int, width: int) -> Floats:
    """The shadow of an object outside the image, soft or hard, as a factor of light, [height, width]."""
    reach = 0.5 * np.hypot(height, width) * rng.uniform(0.2, 0.9)
    place = rng.uniform(0, 1, 2) * (width, height)
    outline = Outline([p + place for p in (polygon, blob)[rng.integers(2)](rng, reach)])
    shadow = outline.coverage(Box(0, 0, width, height))
    side = 1 + 2 * int(np.exp(rng.uniform(0, np.log(30))))
    return 1 - np.float32(rng.uniform(0.1, 0.6)) * cv2.stackBlur(shadow, (side, side))


def _backdrop(rng: Rng, size: tuple[int, int], distance: float, pixel: float) -> Floats:
    """Depths of one to three planes, [n, H, W] mm: a wall or table, or the corner of a room."""
    height, width = size
    focal = distance / pixel
    x, y = np.arange(width, dtype=np.float32)[None], np.arange(height, dtype=np.float32)[:, None]
    planes = []
    count = int(rng.choice([1, 1, 2, 3]))
    for k in range(count):
        steep = 55 if count > 1 else 30
        tangent = np.tan(np.radians(min(abs(rng.normal(0, steep)), 80)))
        floor = k == 1 and rng.random() < 0.6  # further up is further away
        angle = -np.pi / 2 + rng.normal(0, 0.15) if floor else rng.uniform(0, 2 * np.pi)
        px, py = rng.uniform(0.1, 0.9) * width, rng.uniform(0.1, 0.9) * height
        slope_x, slope_y = tangent * np.cos(angle) / focal, tangent * np.sin(angle) / focal
        rise = np.float32(slope_x) * (x - np.float32(px)) + np.float32(slope_y) * (y - np.float32(py))
        planes.append(np.float32(distance) / np.clip(1 - rise, 0.33, 2.5))  # planes are linear in 1 / depth
    return np.stack(planes)


def _folds(rng: Rng, size: tuple[int, int]) -> Floats:
    """Smooth folds of cloth or a bulging wall, [H, W] in pixels."""
    height, width = size
    wavelength = np.exp(rng.uniform(np.log(12), np.log(max(height, width))))
    stretch = np.exp(rng.normal(0, 0.7))
    shape = (2 + int(height / wavelength * stretch), 2 + int(width / wavelength / stretch))
    knots = rng.standard_normal(shape, np.float32) * np.float32(wavelength * rng.uniform(0.03, 0.3))
    return cv2.resize(knots, (width, height), interpolation=cv2.INTER_CUBIC)
