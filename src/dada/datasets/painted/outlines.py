"""Silhouettes of painted objects: polygons with holes and strokes, rasterised to a coverage in 0..1."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import cv2
import numpy as np

Points = np.ndarray  # [n, 2] x, y in pixels; the centre of the first pixel is (0, 0)
Floats = np.ndarray  # of float32; OpenCV's functions are typed no finer than this
Bytes = np.ndarray  # of uint8
Rng = np.random.Generator

ALONG = np.linspace(-0.5, 0.5, 16)  # along a leaf
ARC = np.cos(np.pi * ALONG).clip(0)
FIXED = 4  # bits after the point in the coordinates given to OpenCV


class Box(NamedTuple):
    """A rectangle of pixels."""

    x: int
    y: int
    width: int
    height: int

    @property
    def window(self) -> tuple[slice, slice]:
        """Rows and columns, to cut the box out of an image."""
        return slice(self.y, self.y + self.height), slice(self.x, self.x + self.width)

    def grown(self, margin: int, height: int, width: int) -> Box:
        """The box with a margin, clipped to an image."""
        x, y = max(self.x - margin, 0), max(self.y - margin, 0)
        right, bottom = min(self.x + self.width + margin, width), min(self.y + self.height + margin, height)
        return Box(x, y, max(right - x, 0), max(bottom - y, 0))


@dataclass(frozen=True, eq=False)
class Outline:
    """A silhouette: the inside of polygons by the even-odd rule (a polygon in a polygon is a hole), and strokes."""

    polygons: list[Points] = field(default_factory=list)
    strokes: list[tuple[Points, float]] = field(default_factory=list)  # path and width in pixels

    @property
    def paths(self) -> list[Points]:
        """Polygons and strokes alike."""
        return [*self.polygons, *(path for path, _ in self.strokes)]

    def box(self, height: int, width: int) -> Box:
        """The pixels of a height x width image that the silhouette can touch; may be empty."""
        paths = self.paths
        points = paths[0] if len(paths) == 1 else np.concatenate(paths)
        margin = 1 + math.ceil(max((stroke_width for _, stroke_width in self.strokes), default=0) / 2)
        left, top, across, down = cv2.boundingRect(points.astype(np.float32))
        x, y = min(max(left - margin, 0), width), min(max(top - margin, 0), height)
        right = min(max(left + across + margin, x), width)
        bottom = min(max(top + down + margin, y), height)
        return Box(x, y, right - x, bottom - y)

    def coverage(self, box: Box) -> Floats:
        """The share of each pixel of the box that is covered, [height, width] in 0..1."""
        n = 4 if self.strokes or box.width * box.height < 16_000 else 2  # subpixels along each side
        fine = np.zeros((box.height * n, box.width * n), np.uint8)
        if self.polygons:
            cv2.fillPoly(fine, [_fixed(polygon, box, n) for polygon in self.polygons], 255, cv2.LINE_8, FIXED)
        for path, width in self.strokes:
            cv2.polylines(fine, [_fixed(path, box, n)], False, 255, max(round(width * n), 1), cv2.LINE_8, FIXED)
        return cv2.resize(fine, (box.width, box.height), interpolation=cv2.INTER_AREA) * np.float32(1 / 255)


def _fixed(points: Points, box: Box, n: int) -> np.ndarray:
    places = ((points - (box.x, box.y) + 0.5) * n - 0.5) * 2**FIXED
    return np.asarray(np.rint(places), np.int32)


def rotate(points: Points, angle: float) -> Points:
    cos, sin = math.cos(angle), math.sin(angle)
    return np.asarray(points @ np.array([[cos, sin], [-sin, cos]]))


# Every outline below is centred at (0, 0) and reaches about `size` pixels from there.


def polygon(rng: Rng, size: float) -> list[Points]:
    """Three to eight corners, convex or not."""
    corners = int(rng.integers(3, 9))
    angles = np.sort(rng.uniform(0, 2 * np.pi, corners))
    radii = size * rng.uniform(rng.uniform(0.25, 0.95), 1, (corners, 1))
    return [radii * np.column_stack([np.cos(angles), np.sin(angles)])]


def rectangle(rng: Rng, size: float) -> list[Points]:
    """A rectangle with slightly displaced corners, as in perspective."""
    aspect = np.exp(rng.normal(0, 0.6))
    sides = size * np.array([min(1, aspect), min(1, 1 / aspect)]) * 0.8
    corners = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) * sides
    corners += rng.normal(0, 0.06, (4, 2)) * sides * (rng.random() < 0.6)
    return [rotate(corners, rng.uniform(0, np.pi) if rng.random() < 0.5 else rng.normal(0, 0.08))]


def ellipse(rng: Rng, size: float, roundness: float | None = None) -> list[Points]:
    """An ellipse, or a rounded box: |x|^p + |y|^p = 1."""
    angles = np.linspace(0, 2 * np.pi, 12 + int(min(size, 120)), endpoint=False)
    power = 2 / (roundness or (2.0 if rng.random() < 0.6 else rng.uniform(2.5, 8)))
    unit = np.column_stack([np.cos(angles), np.sin(angles)])
    unit = np.sign(unit) * np.abs(unit) ** power
    return [rotate(unit * size * (1, rng.uniform(0.3, 1)), rng.uniform(0, np.pi))]


def blob(rng: Rng, size: float) -> list[Points]:
    """A closed wavy line, from smooth to rough by the decay of its harmonics."""
    angles = np.linspace(0, 2 * np.pi, 24 + int(min(3 * size, 400)), endpoint=False)
    orders = np.arange(1, 6 if rng.random() < 0.5 else 40)
    amplitudes = rng.normal(0, rng.uniform(0.1, 0.45), len(orders)) * orders ** -rng.uniform(0.9, 1.8)
    radii = np.exp(np.cos(angles[:, None] * orders + rng.uniform(0, 2 * np.pi, len(orders))) @ amplitudes)
    radii = size * radii / radii.max()
    stretched = radii[:, None] * np.column_stack([np.cos(angles), rng.uniform(0.4, 1) * np.sin(angles)])
    return [rotate(stretched, rng.uniform(0, np.pi))]


def ring(rng: Rng, size: float) -> list[Points]:
    """A ring: an outline with an off-centre hole of the same shape."""
    outer = (ellipse, rectangle, blob, polygon)[rng.integers(4)](rng, size)[0]
    hole = rng.uniform(0.4, 0.88)
    return [outer, outer * hole + rng.normal(0, 0.15 * (1 - hole), 2) * size]


def pierced(rng: Rng, size: float) -> list[Points]:
    """A plate with several holes of any shape."""
    outer = (ellipse, rectangle, blob)[rng.integers(3)](rng, size)[0]
    holes = []
    for _ in range(int(rng.integers(2, 7))):
        make = (ellipse, polygon, rectangle)[rng.integers(3)]
        holes.append(make(rng, size * rng.uniform(0.08, 0.25))[0] + rng.uniform(-0.45, 0.45, 2) * size)
    return [outer, *holes]


def leaf(rng: Rng, size: float) -> list[Points]:
    """Pointed at both ends, bent."""
    half = rng.uniform(0.08, 0.35) * size * ARC ** rng.uniform(0.7, 1.5)
    bend = rng.normal(0, 0.3) * size * ARC
    points = np.empty((2 * len(ARC), 2))
    points[: len(ARC), 0] = 2 * size * ALONG
    points[len(ARC) :, 0] = points[: len(ARC), 0][::-1]
    points[: len(ARC), 1] = bend + half
    points[len(ARC) :, 1] = (bend - half)[::-1]
    return [rotate(points, rng.uniform(0, 2 * math.pi))]


def window(rng: Rng, size: float) -> list[Points]:
    """A frame with rows and columns of panes."""
    rows, columns = rng.integers(1, 6, 2)
    angle, aspect = rng.normal(0, 0.15), rng.uniform(0.6, 1)
    bar = rng.uniform(0.08, 0.35)  # share of a pane taken by its bars
    polygons = [np.array([[-1.0, -1], [1, -1], [1, 1], [-1, 1]])]
    for row in range(rows):
        for column in range(columns):
            low = 2 * (np.array([column, row]) + bar) / (columns, rows) - 1
            high = 2 * (np.array([column + 1, row + 1]) - bar) / (columns, rows) - 1
            polygons.append(np.array([low, [high[0], low[1]], high, [low[0], high[1]]]))
    return [rotate(p * size * (1, aspect), angle) for p in polygons]


def walk(rng: Rng, size: float, bend: float) -> Points:
    """A path of length about 2 x size that bends by about `bend` radians."""
    steps = 24
    heading = rng.uniform(0, 2 * np.pi) + np.cumsum(rng.normal(0, bend / np.sqrt(steps), steps))
    path = np.cumsum(np.column_stack([np.cos(heading), np.sin(heading)]) * (2 * size / steps), 0)
    return np.asarray(path - path.mean(0))
