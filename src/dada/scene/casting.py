"""The camera: which piece each ray hits, and the light that is reflected along it."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dada.scene.room import BACK, LEFT, Room, xyz
from dada.scene.shapes import Array, Shape, into, rotate
from dada.scene.textures import smooth_step

EYE = np.array([0.0, 1.25, 0.0])
PITCH = np.radians(14.0)
FOCAL = 0.96  # focal length over the width of the 4:3 frame
CAMERA = np.array(  # rows: right, down, forward
    [[1, 0, 0], [0, -np.cos(PITCH), -np.sin(PITCH)], [0, -np.sin(PITCH), np.cos(PITCH)]]
)
SUPERSAMPLING = 2


class View(NamedTuple):
    """A grid of rays from the eye, of length 1 along the optical axis: a distance in rays is a depth."""

    x: Array  # [columns] in the image plane at distance 1, to the right
    y: Array  # [rows] downwards
    rays: Array  # [3, rows, columns] in the room
    eye: tuple[float, float, float] = (float(EYE[0]), float(EYE[1]), float(EYE[2]))


@cache
def _extent(shape: Shape, eye: tuple[float, float, float]) -> Array:
    """Smallest and largest x and y, [2, 2], of the shape's projection onto the image plane."""
    x, y, z = CAMERA @ (shape.corners() - np.array(eye)[:, None])
    if z.min() < 0.05:  # reaches behind the eye
        return np.array([[-np.inf, np.inf]] * 2)
    return np.array([[(c / z).min(), (c / z).max()] for c in (x, y)])


def cast(room: Room, view: View) -> tuple[Array, NDArray[np.intp]]:
    """Depth of the nearest piece along each ray, [rows, columns], and the index of that piece."""
    shape, dtype = view.rays.shape[1:], view.rays.dtype
    nearest, which = np.full(shape, np.inf, dtype), np.zeros(shape, np.intp)
    for index, piece in enumerate(room.pieces):
        columns, rows = (
            np.searchsorted(c, e) for c, e in zip((view.x, view.y), _extent(piece.shape, view.eye), strict=True)
        )
        window = slice(*rows), slice(*columns)
        if nearest[window].size:
            t = piece.shape.hit(np.array(view.eye, dtype), view.rays[:, *window])
            closer = t < nearest[window]
            np.copyto(nearest[window], t, where=closer)
            which[window][closer] = index
    return nearest, which


class Light(NamedTuple):
    """A lamp far enough to be a point, with an apparent radius (metres of penumbra a metre of distance)."""

    position: Array
    colour: Array
    softness: float


SUN = Light(xyz(-1.6, 3.6, 0.2), np.array([1.0, 0.93, 0.82]) * 2.0, 0.07)
CEILING = Light(xyz(0.6, 6.0, 2.2), np.array([0.85, 0.93, 1.0]) * 0.75, 0.35)
BULB = xyz(1.62, 1.47, 4.1)


def _visibility(room: Room, points: Array, which: NDArray[np.intp], light: Light) -> Array:
    """Share of the light that reaches each of [3, n] points of the pieces `which`."""
    rays = _unit(light.position.astype(points.dtype)[:, None] - points)
    visible = np.ones(points.shape[1], points.dtype)
    for group in room.groups:
        casters = [index for index in group if room.pieces[index].casts]
        nearby = _near(_ball(*(room.pieces[index].shape for index in casters)), points, rays, light.softness)
        some_points, some_rays = points.take(nearby, 1), rays.take(nearby, 1)
        for index in casters:
            shape = room.pieces[index].shape
            at = _near(_ball(shape), some_points, some_rays, light.softness)
            at = at[which[nearby[at]] != index]  # all shapes are convex: none shades itself
            if at.size:
                gap, t = shape.gap(some_points.take(at, 1), some_rays.take(at, 1))
                blur = light.softness * np.maximum(t, 0) + 1e-3
                shade = (1 - smooth_step(-1, 1, gap / blur)) * np.minimum(1, shape.thickness / blur)
                visible[nearby[at]] *= 1 - shade * (t > 1e-4)
    return visible


@cache
def _ball(*shapes: Shape) -> tuple[Array, float]:
    """Centre and radius of a ball around the shapes."""
    corners = np.concatenate([shape.corners() for shape in shapes], 1)
    middle = (corners.min(1) + corners.max(1)) / 2
    return middle, float(np.linalg.norm(corners - middle[:, None], axis=0).max())


def _near(ball: tuple[Array, float], points: Array, rays: Array, softness: float) -> NDArray[np.intp]:
    """Indices of the shadow rays whose widening cones intersect the ball."""
    middle, radius = ball
    to_middle = middle.astype(points.dtype)[:, None] - points
    ahead = _dot(to_middle, rays)
    reach = radius + softness * np.maximum(ahead, 0)
    return np.flatnonzero((_dot(to_middle, to_middle) < reach * reach + ahead * ahead) & (ahead > -radius))


def _dot(a: Array, b: Array) -> Array:
    product: Array = np.einsum("ij,ij->j", a, b)
    return product


def _unit(vectors: Array) -> Array:
    return vectors / np.sqrt(_dot(vectors, vectors))


def _representatives(which: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the rays whose shadows are computed, and for each ray the index of its representative among them.

    Shadows are smooth: where all rays of a pixel hit one piece, the first of them represents all.
    """
    n = SUPERSAMPLING
    rows, columns = which.shape
    first = np.arange(which.size).reshape(rows, columns)[::n, ::n].repeat(n, 0).repeat(n, 1)
    same = (which == which.ravel()[first]).reshape(rows // n, n, columns // n, n).all((1, 3))
    own = np.arange(which.size)
    owner = np.where(same.repeat(n, 0).repeat(n, 1).ravel(), first.ravel(), own)
    chosen = owner == own
    return np.flatnonzero(chosen), (np.cumsum(chosen) - 1)[owner]


class Surface(NamedTuple):
    """The surface points that n rays hit."""

    which: NDArray[np.intp]  # [n] index of the piece
    points: Array  # [3, n]
    normal: Array  # [3, n] on the side of the eye
    colour: Array  # [3, n] reflectance
    gloss: Array  # [n]
    glow: Array  # [n]


def _surface(room: Room, view: View, depth: Array, which: NDArray[np.intp]) -> Surface:
    points = (np.array(view.eye, np.float32)[:, None, None] + depth * view.rays).reshape(3, -1)
    colour, normal = np.empty_like(points), np.empty_like(points)
    gloss, glow = np.empty_like(points[0]), np.empty_like(points[0])
    which = which.ravel()
    for index in np.unique(which):
        piece, at = room.pieces[index], np.flatnonzero(which == index)
        local = into(piece.shape, points.take(at, 1))
        colour[:, at] = piece.texture(local)
        normal[:, at] = rotate(piece.shape.frame.T, piece.shape.normal(local))
        gloss[at], glow[at] = piece.gloss, piece.glow
    normal *= -np.sign(_dot(normal, view.rays.reshape(3, -1)))  # patches have two sides
    return Surface(which, points, normal, colour, gloss, glow)


def shade(room: Room, view: View) -> Array:
    """Linear RGB along each ray, [3, rows, columns]."""
    depth, which_grid = cast(room, view)
    which, points, normal, colour, gloss, glow = _surface(room, view, depth, which_grid)
    looking = -_unit(view.rays.reshape(3, -1))

    corners = [smooth_step(-0.25, 0.5, d) for d in (points[1], BACK - points[2], points[0] - LEFT)]
    ambient = 0.19 * (1 + 0.35 * normal[1]) * corners[0] * corners[1] * corners[2]
    total: Array = colour * ambient * np.array([0.95, 1.0, 1.08], np.float32)[:, None]
    chosen, place = _representatives(which_grid)
    glossy = np.flatnonzero(gloss)
    for light in (SUN, CEILING):
        visible = _visibility(room, points.take(chosen, 1), which[chosen], light)[place]
        towards = _unit(light.position.astype(np.float32)[:, None] - points)
        tint = light.colour.astype(np.float32)[:, None]
        total += colour * tint * (visible * np.maximum(_dot(normal, towards), 0))
        halfway = _unit(towards.take(glossy, 1) + looking.take(glossy, 1))
        shine = np.maximum(_dot(normal.take(glossy, 1), halfway), 0) ** 60
        total[:, glossy] += tint * (gloss[glossy] * visible[glossy] * shine)
    to_bulb = BULB.astype(np.float32)[:, None] - points
    square = _dot(to_bulb, to_bulb)
    facing = 0.25 + 0.75 * np.maximum(_dot(normal, to_bulb) / np.sqrt(square), 0)
    warm = np.array([1.0, 0.72, 0.42], np.float32)[:, None]
    total += colour * warm * (0.16 * facing / (0.12 + square))
    total += colour * warm**0.5 * glow
    return total.reshape(view.rays.shape)
