"""Shapes of the room: ray intersection, normal, silhouette and bounding box of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import permutations, product

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]
Outline = Callable[[Array, Array], Array]  # u, v in the plane of a patch -> signed distance to its rim


@dataclass(frozen=True, eq=False)
class Sphere:
    centre: Array
    radius: float
    frame: Array = field(default_factory=lambda: np.eye(3))

    @property
    def thickness(self) -> float:
        """Half of the smallest silhouette: what is thinner than a penumbra casts a paler shadow."""
        return self.radius

    def hit(self, origin: Array, rays: Array) -> Array:
        o = origin - self.centre
        a, b = (rays * rays).sum(0), np.einsum("i,i...->...", o.astype(rays.dtype), rays)
        root = b * b - a * rays.dtype.type(o @ o - self.radius**2)
        return np.where(root > 0, (-b - np.sqrt(np.maximum(root, 0))) / a, np.inf)

    def normal(self, local: Array) -> Array:
        return local / local.dtype.type(self.radius)

    def gap(self, points: Array, rays: Array) -> tuple[Array, Array]:
        o = into(self, points)
        t = -(o * rays).sum(0)
        return np.sqrt(np.maximum((o * o).sum(0) - t * t, 0)) - self.radius, t

    def corners(self) -> Array:
        return self.centre[:, None] + self.radius * _CUBE


@dataclass(frozen=True, eq=False)
class Box:
    centre: Array
    half: Array  # [3] half of each side
    frame: Array = field(default_factory=lambda: np.eye(3))

    @property
    def thickness(self) -> float:
        return float(np.sort(self.half)[1])

    def _slabs(self, o: Array, d: Array) -> tuple[Array, Array]:
        inverse = 1 / np.where(np.abs(d) < 1e-9, 1e-9, d).astype(d.dtype)
        reach = np.abs(inverse) * self.half.astype(d.dtype).reshape((3,) + (1,) * (d.ndim - 1))
        return -o * inverse - reach, -o * inverse + reach

    def hit(self, origin: Array, rays: Array) -> Array:
        o = into(self, origin.reshape(3, *[1] * (rays.ndim - 1)).astype(rays.dtype))
        enter, leave = self._slabs(o, rotated(self, rays))
        near = enter.max(0)
        return np.where((near < leave.min(0)) & (near > 0), near, np.inf)

    def normal(self, local: Array) -> Array:
        side = np.abs(local) / self.half.astype(local.dtype)[:, None]
        return np.where(side == side.max(0), np.sign(local), 0)

    def gap(self, points: Array, rays: Array) -> tuple[Array, Array]:
        d = rotated(self, rays)
        enter, leave = self._slabs(into(self, points), d)
        size = np.abs(d)
        # In the projection along a third axis, the ray passes the corner of axes i and j at this distance.
        miss = [
            (enter[i] - leave[j]) * size[i] * size[j] / np.sqrt(size[i] ** 2 + size[j] ** 2 + 1e-12)
            for i, j in permutations(range(3), 2)
        ]
        t = np.where(leave.min(0) > 0, np.maximum(enter.max(0), 1e-4), -1)
        return np.max(miss, 0), t

    def corners(self) -> Array:
        return self.centre[:, None] + rotate(self.frame.T, self.half[:, None] * _CUBE)


@dataclass(frozen=True, eq=False)
class Cone:
    """A capped, truncated cone: also cylinders, rods, pots and lamp shades. Its axis is the local z."""

    centre: Array  # of the base
    frame: Array
    height: float
    base: float  # radius
    top: float  # radius

    @property
    def thickness(self) -> float:
        return max(self.base, self.top)

    def hit(self, origin: Array, rays: Array) -> Array:
        o = into(self, origin)
        d = rotated(self, rays)
        slope = (self.top - self.base) / self.height
        radius = self.base + slope * o[2]
        a = d[0] ** 2 + d[1] ** 2 - slope**2 * d[2] ** 2
        b = o[0] * d[0] + o[1] * d[1] - slope * radius * d[2]
        root = b * b - a * (o[0] ** 2 + o[1] ** 2 - radius**2)
        nearest = np.full(d.shape[1:], np.inf, rays.dtype)
        for sign in (-1, 1):
            t = (-b + sign * np.sqrt(np.maximum(root, 0))) / a
            z = o[2] + t * d[2]
            on = (root > 0) & (z > 0) & (z < self.height) & (t > 0)
            nearest = np.where(on & (t < nearest), t, nearest)
        for z, radius in ((0.0, self.base), (self.height, self.top)):
            t = (z - o[2]) / np.where(d[2] == 0, 1e-9, d[2])
            on = ((o[0] + t * d[0]) ** 2 + (o[1] + t * d[1]) ** 2 < radius**2) & (t > 0)
            nearest = np.where(on & (t < nearest), t, nearest)
        return nearest

    def normal(self, local: Array) -> Array:
        slope = (self.top - self.base) / self.height
        across = np.hypot(local[0], local[1]) + 1e-9
        side = np.stack([local[0] / across, local[1] / across, np.full_like(across, -slope)]) / np.hypot(1, slope)
        up = np.array([0, 0, 1], local.dtype)[:, None]
        inside = across < self.base + slope * local[2] - 1e-4
        cap = np.where(local[2] > self.height / 2, up, -up)
        return np.where(inside, cap, side).astype(local.dtype)

    def gap(self, points: Array, rays: Array) -> tuple[Array, Array]:
        o, d = into(self, points), rotated(self, rays)
        flat = np.maximum(1 - d[2] ** 2, 1e-6)
        t = -(o[0] * d[0] + o[1] * d[1]) / flat  # where the ray is closest to the axis
        z = np.clip(o[2] + t * d[2], 0, self.height)  # nearest point of the axis, then of the ray to that point
        t = -(o[0] * d[0] + o[1] * d[1]) + (z - o[2]) * d[2]
        away = (o[0] + t * d[0]) ** 2 + (o[1] + t * d[1]) ** 2 + (o[2] + t * d[2] - z) ** 2
        return np.sqrt(away) - (self.base + (self.top - self.base) / self.height * z), t

    def corners(self) -> Array:
        r = self.thickness
        box = np.array([r, r, self.height / 2])[:, None] * _CUBE + np.array([0, 0, self.height / 2])[:, None]
        return self.centre[:, None] + rotate(self.frame.T, box)


@dataclass(frozen=True, eq=False)
class Patch:
    """A flat piece without thickness, cut out of the local xy plane by an outline."""

    centre: Array
    frame: Array
    half: tuple[float, float]  # of the bounding rectangle
    outline: Outline
    thickness: float = 0.05

    def hit(self, origin: Array, rays: Array) -> Array:
        o, d = into(self, origin), rotated(self, rays)
        t = -o[2] / np.where(d[2] == 0, 1e-9, d[2])
        on = (t > 0) & (self.outline(o[0] + t * d[0], o[1] + t * d[1]) < 0)
        return np.where(on, t, np.inf)

    def normal(self, local: Array) -> Array:
        return np.broadcast_to(np.array([0, 0, 1], local.dtype)[:, None], local.shape)

    def gap(self, points: Array, rays: Array) -> tuple[Array, Array]:
        o, d = into(self, points), rotated(self, rays)
        t = -o[2] / np.where(d[2] == 0, 1e-9, d[2])
        return self.outline(o[0] + t * d[0], o[1] + t * d[1]), t

    def corners(self) -> Array:
        return self.centre[:, None] + rotate(self.frame.T, np.array([*self.half, 0.0])[:, None] * _CUBE)


Shape = Sphere | Box | Cone | Patch

_CUBE = np.array(list(product((-1.0, 1.0), repeat=3))).T  # [3, 8]


def into(shape: Shape, points: Array) -> Array:
    """[3, ...] points of the room in the frame of the shape (its axes are the rows of `frame`)."""
    centre = shape.centre.astype(points.dtype).reshape((3,) + (1,) * (points.ndim - 1))
    return rotated(shape, points - centre)


def rotated(shape: Shape, vectors: Array) -> Array:
    return rotate(shape.frame, vectors)


def rotate(frame: Array, vectors: Array) -> Array:
    """A 3 x 3 matrix times [3, ...] vectors, without BLAS, whose threads cost more than they save at this size."""
    rotated: Array = np.einsum("ij,j...->i...", frame.astype(vectors.dtype), vectors)
    return rotated


def rectangle(half_u: float, half_v: float) -> Outline:
    return lambda u, v: np.maximum(np.abs(u) - half_u, np.abs(v) - half_v)


def leaf(half_u: float, half_v: float) -> Outline:
    """Pointed at its end u = half_u, rounded at its stem."""

    def outline(u: Array, v: Array) -> Array:
        along = np.clip((u / half_u + 1) / 2, 0, 1)
        return np.abs(v) - half_v * 2.1 * np.sqrt(along) * (1 - along) ** 0.9 / 0.8

    return outline


def mesh(half_u: float, half_v: float, spacing: float, wire: float) -> Outline:
    """Wires of a given width, one every `spacing` in both directions, and holes between them."""

    def outline(u: Array, v: Array) -> Array:
        to_wire = [np.abs((w / spacing + 0.5) % 1 - 0.5) * spacing for w in (u, v)]
        distance: Array = np.maximum(np.minimum(*to_wire) - wire / 2, rectangle(half_u, half_v)(u, v))
        return distance

    return outline
