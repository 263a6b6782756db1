"""Objects of painted scenes: one or several parts, each a silhouette with a surface."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import cv2
import numpy as np

from dada.datasets.painted.outlines import (
    Box,
    Floats,
    Outline,
    Points,
    Rng,
    blob,
    ellipse,
    leaf,
    pierced,
    polygon,
    rectangle,
    ring,
    rotate,
    walk,
    window,
)


@dataclass(frozen=True, eq=False)
class Surface:
    """Depth over the image plane relative to the depth of its object, negative towards the camera.

    Attributes:
        anchor: x, y of the point to which `lift` refers.
        lift: towards the camera at the anchor, in pixels of the object (a pixel times its depth over the focal length).
        slope: depth per pixel along x and y, in the same unit: the tangent of the slant.
        form: what rises from the plane: "flat", "cylinder", "cap", "pillow" (rises from the silhouette) or "bumps".
        rise: height of the form.
        radius: reach of a cylinder or cap from the anchor, or wavelength of bumps, in pixels.
        angle: of the axis of a cylinder.
    """

    anchor: tuple[float, float]
    lift: float = 0.0
    slope: tuple[float, float] = (0.0, 0.0)
    form: str = "flat"
    rise: float = 0.0
    radius: float = 1.0
    angle: float = 0.0

    def depth(self, box: Box, coverage: Floats, rng: Rng) -> Floats:
        """Relative depth over a box, [height, width]."""
        x = np.arange(box.x, box.x + box.width, dtype=np.float32)[None] - np.float32(self.anchor[0])
        y = np.arange(box.y, box.y + box.height, dtype=np.float32)[:, None] - np.float32(self.anchor[1])
        plane = np.float32(self.slope[0]) * x + (np.float32(self.slope[1]) * y - np.float32(self.lift))
        if self.form == "flat":
            return plane
        return plane - np.float32(self.rise) * self._form(x, y, coverage, rng)

    def _form(self, x: Floats, y: Floats, coverage: Floats, rng: Rng) -> Floats:
        if self.form == "pillow":
            inside = cv2.distanceTransform((coverage >= 0.5).astype(np.uint8), cv2.DIST_L2, 3)
            return np.asarray(np.sqrt(np.minimum(inside * np.float32(1 / self.radius), 1)))
        if self.form == "bumps":
            shape = max(2, int(x.size / self.radius) + 2), max(2, int(y.size / self.radius) + 2)
            knots = rng.standard_normal(shape[::-1], np.float32)
            return cv2.resize(knots, (x.size, y.size), interpolation=cv2.INTER_CUBIC)
        if self.form == "cylinder":
            across = (np.float32(np.cos(self.angle)) * x + np.float32(np.sin(self.angle)) * y) / np.float32(self.radius)
            return np.sqrt(np.maximum(1 - across * across, np.float32(0.01)))
        cap = 1 - (x * x + y * y) * np.float32(1 / self.radius**2)
        return np.asarray(np.sqrt(np.maximum(cap, np.float32(0.01))))


@dataclass(frozen=True, eq=False)
class Part:
    """A silhouette, its surface, and its brightness relative to the other parts of its object."""

    outline: Outline
    surface: Surface
    gain: float = 1.0
    own_material: bool = False  # another material than the other parts


def _point(place: Points) -> tuple[float, float]:
    return float(place[0]), float(place[1])


def slant(rng: Rng) -> tuple[float, float]:
    """A slope of a surface: often facing the camera, sometimes steep."""
    if rng.random() < 0.35:
        return 0.0, 0.0
    tangent = np.tan(np.radians(min(abs(rng.normal(0, 35)), 78)))
    angle = rng.uniform(0, 2 * np.pi)
    return float(tangent * np.cos(angle)), float(tangent * np.sin(angle))


def solid(rng: Rng, centre: Points, size: float) -> list[Part]:
    """One silhouette of any kind with a flat or rounded surface."""
    make = (polygon, rectangle, ellipse, blob, blob, leaf)[rng.integers(6)]
    outline = Outline([p + centre for p in make(rng, size)])
    form = ("flat", "cylinder", "cap", "pillow", "pillow", "bumps")[rng.integers(6)]
    radius = size * rng.uniform(1.0, 1.6)
    if form == "pillow":
        radius = size * rng.uniform(0.15, 1)
    elif form == "bumps":
        radius = max(6.0, size * rng.uniform(0.2, 0.8))
    rise = radius * rng.uniform(0.2, 1.2) * (0.25 if form == "bumps" else 1)
    anchor = _point(centre)
    return [Part(outline, Surface(anchor, 0, slant(rng), form, rise, radius, rng.uniform(0, np.pi)))]


def sheet_with_holes(rng: Rng, centre: Points, size: float) -> list[Part]:
    """A ring, a pierced plate or a window frame."""
    make = (ring, ring, pierced, window, window)[rng.integers(5)]
    form = "pillow" if rng.random() < 0.4 else "flat"
    surface = Surface(_point(centre), 0, slant(rng), form, 0.1 * size, 0.15 * size + 1)
    return [Part(Outline([p + centre for p in make(rng, size)]), surface)]


def sticks(rng: Rng, centre: Points, size: float) -> list[Part]:
    """Pens, rods, chair legs: straight, thin, each at its own slant."""
    parts = []
    shared = rng.uniform(0, np.pi)
    spread = rng.choice([0.02, 0.3, 2.0])
    for _ in range(int(rng.choice([1, 1, 2, 4, 7]))):
        width = float(np.exp(rng.uniform(np.log(1.2), np.log(1.2 + 0.25 * min(size, 60)))))
        half = rotate(np.array([[size, 0.0]]), shared + rng.normal(0, spread))[0] * rng.uniform(0.5, 1)
        middle = centre + rng.normal(0, 0.3, 2) * size
        across = np.array([-half[1], half[0]]) / np.linalg.norm(half) * width / 2
        taper = rng.uniform(0.3, 1) if rng.random() < 0.4 else 1.0
        corners = [middle - half - across, middle - half + across, middle + half + across * taper,
                   middle + half - across * taper]  # fmt: skip
        along = half / np.linalg.norm(half) * rng.normal(0, 0.5)
        angle = float(np.arctan2(across[1], across[0]))
        surface = Surface(_point(middle), rng.uniform(0, 0.5) * size,
                          (float(along[0]), float(along[1])), "cylinder", width / 2, width * 0.55, angle)  # fmt: skip
        parts.append(Part(Outline([np.array(corners)]), surface, own_material=rng.random() < 0.6))
    return parts


def wires(rng: Rng, centre: Points, size: float) -> list[Part]:
    """Cables and twigs: bent thin strokes at one depth or slanted."""
    width = rng.uniform(1.1, 1.5 + min(0.06 * size, 5))
    strokes = [(walk(rng, size, rng.uniform(0.2, 4)) + centre + rng.normal(0, 0.2, 2) * size, float(width))
               for _ in range(int(rng.integers(1, 5)))]  # fmt: skip
    anchor = _point(centre)
    return [Part(Outline(strokes=strokes), Surface(anchor, 0, slant(rng)))]


def mesh(rng: Rng, centre: Points, size: float) -> list[Part]:
    """A net, a fence or a grille: two families of parallel strokes, or one."""
    spacing = float(np.exp(rng.uniform(np.log(5), np.log(6 + 0.5 * size))))
    width = max(1.1, spacing * rng.uniform(0.12, 0.45))
    first = rng.uniform(0, np.pi)
    strokes = []
    for angle in (first, first + np.pi / 2 + rng.normal(0, 0.2))[: int(rng.integers(1, 3))]:
        for offset in np.arange(-size, size + 1, spacing):
            ends = np.array([[-size, offset], [size, offset]]) * 0.8
            strokes.append((rotate(ends, angle) + centre, float(width)))
    anchor = _point(centre)
    return [Part(Outline(strokes=strokes), Surface(anchor, 0, slant(rng)))]


def letters(rng: Rng, centre: Points, size: float) -> list[Part]:
    """Cut-outs like letters: strokes at right angles and arcs, thick or thin."""
    width = float(max(1.2, size * rng.uniform(0.06, 0.3)))
    strokes = []
    for k in range(int(rng.integers(1, 5))):
        corners = rng.integers(-1, 2, (int(rng.integers(2, 6)), 2)) * 0.35 * size
        if rng.random() < 0.4:
            corners = ellipse(rng, 0.4 * size, 2.0)[0]
        strokes.append((corners + centre + np.array([k * 0.9 * size, 0]), width))
    anchor = _point(centre)
    return [Part(Outline(strokes=strokes), Surface(anchor, 0, slant(rng)))]


def carton(rng: Rng, centre: Points, size: float) -> list[Part]:
    """A box of two or three faces: depth is continuous across its edges, brightness is not."""
    right, down = size * rng.uniform(0.3, 0.9, 2)
    back = rotate(np.array([[size * rng.uniform(0.15, 0.6), 0.0]]), rng.uniform(0, 2 * np.pi))[0]
    angle = rng.normal(0, 0.2)
    front = rotate(np.array([[-right, -down], [right, -down], [right, down], [-right, down]]), angle) + centre
    steep = rng.uniform(0.6, 3)
    slope = slant(rng) if rng.random() < 0.5 else (0.0, 0.0)
    anchor = _point(centre)
    parts = []
    for k in range(4):
        a, b = front[k], front[(k + 1) % 4]
        outward = np.array([(b - a)[1], -(b - a)[0]]) / np.linalg.norm(b - a)
        reach = float(outward @ back)
        if reach <= 1:  # this side is hidden behind the front
            continue
        away = outward * steep * np.linalg.norm(back) / reach
        lift = -float(np.dot((a + b) / 2 - centre, slope))
        face = Surface(_point((a + b) / 2), lift, (float(away[0]), float(away[1])))
        parts.append(Part(Outline([np.array([a, b, b + back, a + back])]), face, rng.uniform(0.5, 1.2),
                          rng.random() < 0.3))  # fmt: skip
    return [*parts, Part(Outline([front]), Surface(anchor, 0, slope))]


def stack(rng: Rng, centre: Points, size: float) -> list[Part]:
    """Books on or beside each other: slabs that touch, each a little before or behind its neighbour."""
    angle = rng.choice([0, np.pi / 2]) + rng.normal(0, 0.08)
    count = int(rng.integers(3, 9))
    edges = np.cumsum(rng.uniform(0.4, 1.6, count + 1))
    edges = (edges - edges.mean()) * 2 * size / (edges[-1] - edges[0])
    slope = slant(rng)
    parts = []
    for low, high in pairwise(edges):
        left, right = -size * rng.uniform(0.5, 0.9), size * rng.uniform(0.5, 0.9)
        corners = rotate(np.array([[left, low], [right, low], [right, high], [left, high]]), angle) + centre
        across = rotate(np.array([[0.0, 1.0]]), angle)[0]
        rounded = rng.random() < 0.4
        middle = corners.mean(0)
        surface = Surface(_point(middle), float(rng.normal(0, 0.25) * size), slope,
                          "cylinder" if rounded else "flat", 0.3 * (high - low), 0.7 * (high - low),
                          float(np.arctan2(across[1], across[0])))  # fmt: skip
        parts.append(Part(Outline([corners]), surface, rng.uniform(0.8, 1.1), True))
    return parts


def plant(rng: Rng, centre: Points, size: float) -> list[Part]:
    """Leaves around a stem in a few layers, each with its own depth and slant, and gaps between them."""
    parts = []
    leaves = int(math.exp(rng.uniform(math.log(2), math.log(25))))
    largest = rng.uniform(0.8, 1.2) / math.sqrt(leaves)
    for lift in np.sort(rng.normal(0, 0.5, int(rng.integers(1, 5)))):
        polygons = []
        for _ in range(leaves):
            place = centre + rng.normal(0, 0.45, 2) * size
            polygons.append(leaf(rng, max(size * largest * rng.uniform(0.3, 1), 2))[0] + place)
        slope_x, slope_y = rng.normal(0, 0.6, 2).tolist()
        surface = Surface(_point(centre), float(lift) * size, (slope_x, slope_y), "bumps", 0.1 * size, 0.5 * size + 4)
        parts.append(Part(Outline(polygons), surface, rng.uniform(0.6, 1.2)))
    return parts


def heap(rng: Rng, centre: Points, size: float) -> list[Part]:
    """Many small objects of one kind: pebbles, toys, beads."""
    make = (ellipse, blob, polygon)[rng.integers(3)]
    small = max(size * rng.uniform(0.1, 0.3), 2)
    parts = []
    for layer in range(int(rng.integers(2, 6))):
        places = centre + rng.normal(0, 0.4, (int(rng.integers(1, 5)), 2)) * size
        outline = Outline([make(rng, small * rng.uniform(0.6, 1.3))[0] + place for place in places])
        surface = Surface(_point(centre), 0.6 * layer * small, (0.0, 0.0), "pillow", small, small)
        parts.append(Part(outline, surface, own_material=rng.random() < 0.5))
    return parts


Maker = Callable[[Rng, Points, float], list[Part]]
OBJECTS: list[tuple[Maker, float]] = [
    (solid, 5.0),
    (sheet_with_holes, 1.5),
    (sticks, 2.0),
    (wires, 0.8),
    (mesh, 0.6),
    (letters, 0.7),
    (carton, 1.6),
    (stack, 0.9),
    (plant, 0.7),
    (heap, 0.5),
]
