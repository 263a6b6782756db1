"""A furnished room with perfect depth, drawn by a small ray caster: data for the demo and for tests.

The room holds what makes guided upsampling hard: thin rods, leaves and a wire mesh with holes; texture
without a depth edge (poster, rug, wallpaper, shadows); depth edges without a change of colour (a sideboard
and a ball the colour of the wall behind them, a wooden box on a wooden table). Lengths are metres, x right,
y up, z into the room.

Each shape answers four questions: where a ray meets it (`hit`), its normal there, how far a shadow ray passes
from its silhouette (`gap`: negative inside, so that a penumbra needs no sampling of the lamp) and which box
bounds it (`corners`: a shape is cast only where it can be seen).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import permutations, product
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from dada.errors import InputError

Array = NDArray[np.floating]
Texture = Callable[[Array], Array]  # [3, n] points in the frame of the shape -> [3, n] linear RGB reflectance
Outline = Callable[[Array, Array], Array]  # u, v in the plane of a patch -> signed distance to its rim

EYE = np.array([0.0, 1.25, 0.0])
PITCH = np.radians(14.0)
FOCAL = 0.96  # focal length over the width of the 4:3 frame
CAMERA = np.array(  # rows: right, down, forward
    [[1, 0, 0], [0, -np.cos(PITCH), -np.sin(PITCH)], [0, -np.sin(PITCH), np.cos(PITCH)]]
)
BACK, LEFT = 4.75, -2.0  # z of the back wall, x of the left wall
SUPERSAMPLING = 2
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
    room = _room()
    depth = np.empty((height, width), np.float32)
    for rows, view in _bands(height, width, 1, np.float64):
        depth[rows] = _cast(room, view)[0]
    linear = np.empty((height, width, 3), np.float32)
    n = SUPERSAMPLING
    for rows, view in _bands(height, width, n, np.float32):
        linear[rows] = _shade(room, view).reshape(3, -1, n, width, n).mean((2, 4)).transpose(1, 2, 0)
    return Scene(_develop(linear, seed), depth)


class View(NamedTuple):
    """A grid of rays from the eye, of length 1 along the optical axis: a distance in rays is a depth."""

    x: Array  # [columns] in the image plane at distance 1, to the right
    y: Array  # [rows] downwards
    rays: Array  # [3, rows, columns] in the room


def _bands(height: int, width: int, n: int, dtype: DTypeLike) -> Iterator[tuple[slice, View]]:
    """Rows of pixels and the n x n rays through each of them, band by band."""
    focal = FOCAL * 640 * max(height / 480, width / 640)
    x = ((np.arange(width * n) + 0.5) / n - width / 2) / focal
    step = max(1, BAND_RAYS // (width * n * n))
    for first in range(0, height, step):
        last = min(first + step, height)
        y = ((np.arange(first * n, last * n) + 0.5) / n - height / 2) / focal
        directions = np.stack([*np.meshgrid(x, y), np.ones((len(y), len(x)))])
        yield slice(first, last), View(x, y, _rotate(CAMERA.T, directions).astype(dtype))


def _develop(linear: Array, seed: int) -> NDArray[np.uint8]:
    """Linear light to 8-bit sRGB-like values, with the noise of a decent sensor."""
    exposed = linear * (1 + linear / 4) / (1 + linear)  # shoulder: white is 4 times middle exposure
    noise = np.random.default_rng(seed).standard_normal(linear.shape, np.float32)
    exposed = exposed + noise * np.sqrt(2e-6 + 4e-5 * exposed)
    return np.rint(255 * np.clip(exposed, 0, 1) ** (1 / 2.2)).astype(np.uint8)


# ------------------------------------------------------------------------------------ shapes


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
        o = _into(self, points)
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
        o = _into(self, origin.reshape(3, *[1] * (rays.ndim - 1)).astype(rays.dtype))
        enter, leave = self._slabs(o, _turn(self, rays))
        near = enter.max(0)
        return np.where((near < leave.min(0)) & (near > 0), near, np.inf)

    def normal(self, local: Array) -> Array:
        side = np.abs(local) / self.half.astype(local.dtype)[:, None]
        return np.where(side == side.max(0), np.sign(local), 0)

    def gap(self, points: Array, rays: Array) -> tuple[Array, Array]:
        d = _turn(self, rays)
        enter, leave = self._slabs(_into(self, points), d)
        size = np.abs(d)
        # Seen along a third axis, the ray passes the corner of axes i and j at this distance.
        miss = [
            (enter[i] - leave[j]) * size[i] * size[j] / np.sqrt(size[i] ** 2 + size[j] ** 2 + 1e-12)
            for i, j in permutations(range(3), 2)
        ]
        t = np.where(leave.min(0) > 0, np.maximum(enter.max(0), 1e-4), -1)
        return np.max(miss, 0), t

    def corners(self) -> Array:
        return self.centre[:, None] + self.frame.T @ (self.half[:, None] * _CUBE)


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
        o = _into(self, origin)
        d = _turn(self, rays)
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
        o, d = _into(self, points), _turn(self, rays)
        flat = np.maximum(1 - d[2] ** 2, 1e-6)
        t = -(o[0] * d[0] + o[1] * d[1]) / flat  # where the ray is closest to the axis
        z = np.clip(o[2] + t * d[2], 0, self.height)  # nearest point of the axis, then of the ray to that point
        t = -(o[0] * d[0] + o[1] * d[1]) + (z - o[2]) * d[2]
        away = (o[0] + t * d[0]) ** 2 + (o[1] + t * d[1]) ** 2 + (o[2] + t * d[2] - z) ** 2
        return np.sqrt(away) - (self.base + (self.top - self.base) / self.height * z), t

    def corners(self) -> Array:
        r = self.thickness
        box = np.array([r, r, self.height / 2])[:, None] * _CUBE + np.array([0, 0, self.height / 2])[:, None]
        return self.centre[:, None] + self.frame.T @ box


@dataclass(frozen=True, eq=False)
class Patch:
    """A flat piece without thickness, cut out of the local xy plane by an outline."""

    centre: Array
    frame: Array
    half: tuple[float, float]  # of the bounding rectangle
    outline: Outline
    thickness: float = 0.05

    def hit(self, origin: Array, rays: Array) -> Array:
        o, d = _into(self, origin), _turn(self, rays)
        t = -o[2] / np.where(d[2] == 0, 1e-9, d[2])
        on = (t > 0) & (self.outline(o[0] + t * d[0], o[1] + t * d[1]) < 0)
        return np.where(on, t, np.inf)

    def normal(self, local: Array) -> Array:
        return np.broadcast_to(np.array([0, 0, 1], local.dtype)[:, None], local.shape)

    def gap(self, points: Array, rays: Array) -> tuple[Array, Array]:
        o, d = _into(self, points), _turn(self, rays)
        t = -o[2] / np.where(d[2] == 0, 1e-9, d[2])
        return self.outline(o[0] + t * d[0], o[1] + t * d[1]), t

    def corners(self) -> Array:
        return self.centre[:, None] + self.frame.T @ (np.array([*self.half, 0.0])[:, None] * _CUBE)


Shape = Sphere | Box | Cone | Patch

_CUBE = np.array(list(product((-1.0, 1.0), repeat=3))).T  # [3, 8]


def _into(shape: Shape, points: Array) -> Array:
    """[3, ...] points of the room in the frame of the shape (its axes are the rows of `frame`)."""
    centre = shape.centre.astype(points.dtype).reshape((3,) + (1,) * (points.ndim - 1))
    return _turn(shape, points - centre)


def _turn(shape: Shape, vectors: Array) -> Array:
    return _rotate(shape.frame, vectors)


def _rotate(frame: Array, vectors: Array) -> Array:
    """A 3 x 3 matrix times [3, ...] vectors, without BLAS, whose threads would only spin at this size."""
    return np.einsum("ij,j...->i...", frame.astype(vectors.dtype), vectors)


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
        return np.maximum(np.minimum(*to_wire) - wire / 2, rectangle(half_u, half_v)(u, v))

    return outline


# ---------------------------------------------------------------------------------- textures


@cache
def _lattice() -> Array:
    return np.random.default_rng(7).random((128, 128), np.float32)


def _noise(u: Array, v: Array, octaves: int = 3) -> Array:
    """Smooth random values in [0, 1], features of about unit size."""
    total, weight = np.zeros_like(u), 0.0
    for octave in range(octaves):
        x, y = u * 2**octave + 17.3 * octave, v * 2**octave + 9.1 * octave
        fx, fy = x - np.floor(x), y - np.floor(y)
        i, j = np.floor(x).astype(np.int32), np.floor(y).astype(np.int32)
        fx, fy = fx * fx * (3 - 2 * fx), fy * fy * (3 - 2 * fy)
        i0, i1, j0, j1 = i & 127, (i + 1) & 127, j & 127, (j + 1) & 127
        grid = _lattice()
        low = grid[j0, i0] * (1 - fx) + grid[j0, i1] * fx
        high = grid[j1, i0] * (1 - fx) + grid[j1, i1] * fx
        total += (low * (1 - fy) + high * fy) * 0.5**octave
        weight += 0.5**octave
    return total / weight


def _rgb(*colour: float) -> Array:
    """[3, 1] linear reflectance of an sRGB colour in 0..255."""
    return (np.array(colour, np.float32)[:, None] / 255) ** 2.2


def _mix(first: Array, second: Array, weight: Array) -> Array:
    return first + (second - first) * weight


def _step(low: float, high: float, x: Array) -> Array:
    t = np.clip((x - low) / (high - low), 0, 1)
    return t * t * (3 - 2 * t)


def plain(*colour: float) -> Texture:
    return lambda p: np.repeat(_rgb(*colour), p.shape[1], 1)


def wood(light: Array, dark: Array, grain: float = 60.0) -> Texture:
    """Solid wood, its fibres along the local x: rings around an axis beside the piece, and fine pores."""

    def texture(p: Array) -> Array:
        wobble = _noise(p[0] * 1.7 + 5, p[2] * 6, 2)
        rings = np.hypot(p[1] + 0.35, p[2] * 0.8 + 0.11) + 0.09 * wobble
        ring = 0.5 + 0.5 * np.sin(rings * grain * 2)
        pores = _noise(p[0] * 12, (p[2] + p[1]) * 260, 2)
        return _mix(light, dark, np.clip(0.15 + 0.45 * ring**2 + 0.5 * (pores - 0.5), 0, 1))

    return texture


def speckle(ground: Array, spots: Array, size: float) -> Texture:
    def texture(p: Array) -> Array:
        a, b = (p[0] + 0.3 * p[2]) / size, (p[1] - 0.4 * p[2]) / size
        return _mix(ground, spots, _step(0.66, 0.72, _noise(a + 40, b + 40, 2)))

    return texture


def coffee_cup(height: float, radius: float) -> Texture:
    """Glazed outside and on the rim, filled to the brim."""

    def texture(p: Array) -> Array:
        filled = (p[2] > height - 1e-3) & (np.hypot(p[0], p[1]) < 0.87 * radius)
        return np.where(filled, _rgb(70, 42, 26), _rgb(70, 110, 150))

    return texture


def panelled(p: Array) -> Array:
    """Front of the sideboard: three doors, the colour of the wall."""
    door = p[0] / 0.55 + 0.5
    line = np.minimum(np.abs(door % 1 - 0.0), np.abs(door % 1 - 1.0)) < 0.008
    frame = np.abs(np.maximum(np.abs(door % 1 - 0.5) - 0.4, (np.abs(p[1]) - 0.24) / 0.55)) < 0.006
    knob = np.hypot(door % 1 * 0.55 - 0.05, p[1] - 0.02) < 0.014
    ground = _mix(_rgb(206, 190, 164), _rgb(150, 134, 110), (line | frame).astype(p.dtype))
    return np.where(knob & (p[2] < 0), _rgb(70, 56, 40), ground)


def striped_pot(p: Array) -> Array:
    clay = np.where((p[2] / 0.09) % 2 < 1, _rgb(206, 196, 184), _rgb(150, 92, 66))
    return np.where((p[2] > 0.359) & (np.hypot(p[0], p[1]) < 0.175), _rgb(58, 42, 32), clay)


def leafy(light: Array, dark: Array) -> Texture:
    def texture(p: Array) -> Array:
        rib = _step(0.004, 0.001, np.abs(p[1])) + 0.35 * (np.abs(((p[0] + np.abs(p[1])) * 30) % 1 - 0.5) < 0.08)
        return _mix(dark, light, np.clip(0.35 * _noise(p[0] * 20, p[1] * 20, 2) + rib, 0, 1))

    return texture


def floorboards(p: Array) -> Array:
    """Oak boards along z under a checkered rug that is flat: edges in colour, none in depth."""
    x, z = p[0], p[1]
    board = np.floor(x / 0.14)
    tone = _noise(board * 3.7, np.floor(z / 1.1 + board * 0.37) * 5.3, 1)
    grain = _noise(x * 90, z * 5 + board * 13, 3)
    colour = _mix(_rgb(172, 132, 92), _rgb(128, 90, 58), np.clip(0.5 * tone + 0.6 * grain, 0, 1))
    joint = np.minimum(np.abs((x / 0.14) % 1 - 0.5) - 0.49, 0) > -0.002
    colour = np.where(joint, colour * 0.45, colour)
    u, v = x + 0.75, z - 2.75
    u, v = 0.94 * u + 0.34 * v, 0.94 * v - 0.34 * u
    to_rim = np.maximum(np.abs(u) - 0.8, np.abs(v) - 0.66)
    pile = 0.85 + 0.3 * _noise(u * 220, v * 220, 1)
    checker = ((np.floor(u / 0.16 + 0.5) + np.floor(v / 0.165)) % 2).astype(p.dtype)
    rug = _mix(_rgb(214, 204, 186), _rgb(58, 82, 108), checker)
    rug = np.where(to_rim > -0.05, _rgb(150, 62, 50), rug) * pile
    return np.where(to_rim < 0, rug, colour)


def back_wall(p: Array) -> Array:
    """Warm plaster with a poster: a bold picture in the plane of the wall."""
    x, y = p[0], p[1]
    tone = 0.95 + 0.1 * _noise(x * 3, y * 3, 2) + 0.04 * (_noise(x * 70, y * 70, 1) - 0.5)
    colour = np.where(y < 0.09, _rgb(236, 230, 220), _rgb(214, 198, 172) * tone)
    half_u, half_v, frame = 0.52, 0.33, 0.03
    at = np.flatnonzero((np.abs(x + 0.22) < half_u) & (np.abs(y - 1.43) < half_v))
    u, v = x[at] + 0.22, y[at] - 1.43
    picture = _landscape(u / (half_u - 0.085), v / (half_v - 0.075))
    to_rim = np.maximum(np.abs(u) - half_u, np.abs(v) - half_v)
    mount = np.maximum(np.abs(u) - half_u + 0.085, np.abs(v) - half_v + 0.075) > 0
    picture = np.where(mount, _rgb(238, 234, 224), picture)
    colour[:, at] = np.where(to_rim > -frame, _rgb(46, 36, 30), picture)
    return colour


def _landscape(u: Array, v: Array) -> Array:
    colour = _mix(_rgb(250, 196, 110), _rgb(44, 92, 140), _step(-0.4, 1.0, v + 0.1 * np.sin(9 * u)))
    sun = np.hypot(u - 0.35, (v - 0.35) * 0.62)
    colour = np.where((sun < 0.36) & ((sun * 14) % 1 < 0.6), _rgb(246, 226, 160), colour)
    colour = np.where(sun < 0.19, _rgb(226, 78, 48), colour)
    hills = [
        (-0.05, 2.6, 0.2, (94, 122, 150)),
        (-0.3, 4.1, 1.5, (50, 92, 104)),
        (-0.62, 3.2, 4.0, (24, 48, 60)),
    ]
    for level, frequency, phase, tint in hills:
        ridge = level + 0.22 * np.sin(frequency * u + phase) + 0.05 * np.sin(13 * u + 3 * phase)
        colour = np.where(v < ridge, _rgb(*tint) * (1 + 0.5 * ((v - ridge) * 16 % 1 < 0.3)), colour)
    return colour


def wallpaper(p: Array) -> Array:
    """Left wall, in its own frame x along the room and y up: broad and narrow stripes."""
    x, y = p[0], p[1]
    paper = np.where((x / 0.22) % 1 < 0.5, _rgb(150, 168, 164), _rgb(178, 190, 182))
    paper = np.where(np.abs((x / 0.22) % 1 - 0.75) < 0.04, _rgb(196, 166, 110), paper)
    return np.where(y < 0.09, _rgb(236, 230, 220), paper * (0.94 + 0.12 * _noise(x * 4, y * 4, 2)))


# ---------------------------------------------------------------------------------- the room


class Piece(NamedTuple):
    """A shape, its surface and whether it casts a shadow."""

    shape: Shape
    texture: Texture
    gloss: float = 0.0
    glow: float = 0.0
    casts: bool = True


def _yaw(degrees: float) -> Array:
    """Frame (rows: local axes) turned about the vertical."""
    c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    return np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]])


def _facing(normal: Array, up: Array) -> Array:
    """Frame whose z is `normal` and whose y leans towards `up`."""
    z = normal / np.linalg.norm(normal)
    x = np.cross(up, z)
    x = x / np.linalg.norm(x)
    return np.stack([x, np.cross(z, x), z])


def _cone(start: Array, end: Array, base: float, top: float | None = None) -> Cone:
    axis = end - start
    side = np.array([0.0, 0.0, 1.0]) if abs(axis[2]) < 0.9 * np.linalg.norm(axis) else np.array([1.0, 0.0, 0.0])
    return Cone(start, _facing(axis, side), float(np.linalg.norm(axis)), base, base if top is None else top)


def _at(*xyz: float) -> Array:
    return np.array(xyz)


OAK = wood(_rgb(190, 138, 88), _rgb(122, 76, 42))
WALNUT = wood(_rgb(112, 74, 50), _rgb(62, 38, 26))
METAL = plain(60, 60, 64)


class Room(NamedTuple):
    """All pieces, and the groups that stand together (their shadows are looked for together)."""

    pieces: list[Piece]
    groups: list[range]


@cache
def _room() -> Room:
    def wall(centre: Array, frame: Array, texture: Texture) -> Piece:
        return Piece(Patch(centre, frame, (9, 9), rectangle(9, 9)), texture, casts=False)

    floor = np.array([[1.0, 0, 0], [0, 0, 1], [0, 1, 0]])
    left = np.array([[0.0, 0, 1], [0, 1, 0], [1, 0, 0]])
    pieces = [
        wall(_at(0, 0, 0), floor, floorboards),
        wall(_at(0, 0, BACK), np.diag([1.0, 1, -1]), back_wall),
        wall(_at(LEFT, 0, 0), left, wallpaper),
    ]
    groups = []
    for furniture in (
        _table(),
        _tableware(),
        _basket(_at(0.14, 0.75, 1.5)),
        _chair(_at(-0.78, 0, 2.6), 28),
        _plant(_at(-1.5, 0, 3.85)),
        _lamp(_at(1.62, 0, 4.1)),
        _sideboard(),
    ):
        groups.append(range(len(pieces), len(pieces) + len(furniture)))
        pieces += furniture
    return Room(pieces, groups)


def _table() -> list[Piece]:
    turn = _yaw(-9)
    middle = _at(0.5, 0, 1.35)

    def place(x: float, y: float, z: float) -> Array:
        return middle + turn.T @ _at(x, y, z)

    legs = [
        Piece(_cone(place(x, 0, z), place(x, 0.71, z), 0.02, 0.035), OAK)
        for x, z in product((-0.72, 0.72), (-0.5, 0.5))
    ]
    return [Piece(Box(place(0, 0.73, 0), _at(0.8, 0.02, 0.58), turn), OAK, gloss=0.06), *legs]


def _tableware() -> list[Piece]:
    paper = wood(_rgb(230, 224, 208), _rgb(206, 196, 176), 20)
    cup = _at(0.33, 0.75, 1.03)
    glaze = plain(70, 110, 150)
    return [
        Piece(Box(_at(0.6, 0.772, 1.6), _at(0.15, 0.022, 0.11), _yaw(-4)), plain(40, 84, 92), gloss=0.05),
        Piece(Box(_at(0.61, 0.812, 1.6), _at(0.13, 0.018, 0.1), _yaw(-22)), plain(196, 72, 48), gloss=0.05),
        Piece(Box(_at(0.6, 0.844, 1.6), _at(0.11, 0.014, 0.085), _yaw(-10)), paper),
        Piece(Sphere(_at(0.6, 0.918, 1.6), 0.06), plain(225, 205, 120), gloss=0.5),
        Piece(_cone(cup, cup + _at(0, 0.1, 0), 0.04, 0.043), coffee_cup(0.1, 0.043), gloss=0.4),
        Piece(_cone(cup + _at(0.035, 0.08, 0), cup + _at(0.072, 0.075, 0), 0.006), glaze, gloss=0.4),
        Piece(_cone(cup + _at(0.035, 0.025, 0), cup + _at(0.068, 0.035, 0), 0.006), glaze, gloss=0.4),
        Piece(_cone(cup + _at(0.067, 0.033, 0), cup + _at(0.071, 0.078, 0), 0.006), glaze, gloss=0.4),
        Piece(Box(_at(-0.13, 0.795, 1.16), _at(0.08, 0.045, 0.055), _yaw(20)), OAK, gloss=0.06),
        Piece(Sphere(_at(0.11, 0.795, 1.08), 0.045), speckle(_rgb(226, 218, 204), _rgb(84, 78, 76), 0.007)),
    ]


def _basket(foot: Array) -> list[Piece]:
    """Oranges in a basket of wire mesh; most of its area is holes."""
    half, height, flare = 0.15, 0.13, 0.03
    pieces = []
    for angle in (-9, 81, 171, 261):
        out = _yaw(angle).T @ _at(0, 0, -1)
        centre = foot + out * (half + flare / 2) + _at(0, height / 2, 0)
        frame = _facing(out * height - _at(0, flare, 0), _at(0, 1, 0))
        panel = Patch(centre, frame, (half + 0.01, height / 2), mesh(half + 0.01, height / 2, 0.026, 0.004), 0.002)
        pieces.append(Piece(panel, METAL))
        along = _yaw(angle).T @ _at(half + flare, 0, 0)
        rim = foot + out * (half + flare) + _at(0, height, 0)
        pieces.append(Piece(_cone(rim - along, rim + along, 0.005), METAL))
    spots = [(-0.07, 0.05, -0.06), (0.06, 0.05, -0.07), (-0.06, 0.05, 0.07), (0.07, 0.05, 0.06), (0, 0.12, 0)]
    for number, spot in enumerate(spots):
        skin = speckle(_rgb(240, 140, 30), _rgb(222, 110, 20), 0.01) if number != 4 else plain(150, 176, 60)
        pieces.append(Piece(Sphere(foot + np.array(spot), 0.052), skin, gloss=0.25))
    return pieces


def _chair(foot: Array, degrees: float) -> list[Piece]:
    turn = _yaw(degrees)

    def place(x: float, y: float, z: float) -> Array:
        return foot + turn.T @ _at(x, y, z)

    def rod(start: Array, end: Array, radius: float) -> Piece:
        return Piece(_cone(start, end, radius), WALNUT, gloss=0.1)

    legs = [
        rod(place(x * 1.12, 0, z * 1.12), place(x, 0.44, z), 0.016) for x, z in product((-0.18, 0.18), (-0.18, 0.18))
    ]
    spindles = [rod(place(x, 0.46, 0.19), place(x * 1.1, 0.9, 0.27), 0.008) for x in np.linspace(-0.12, 0.12, 5)]
    posts = [rod(place(x, 0.46, 0.19), place(x * 1.1, 0.94, 0.277), 0.014) for x in (-0.19, 0.19)]
    return [
        Piece(Box(place(0, 0.455, 0), _at(0.225, 0.016, 0.22), turn), WALNUT, gloss=0.1),
        Piece(Box(place(0, 0.93, 0.275), _at(0.23, 0.035, 0.012), turn), WALNUT, gloss=0.1),
        rod(place(-0.19, 0.2, -0.19), place(-0.19, 0.2, 0.19), 0.009),
        rod(place(0.19, 0.2, -0.19), place(0.19, 0.2, 0.19), 0.009),
        *legs,
        *spindles,
        *posts,
    ]


def _plant(foot: Array) -> list[Piece]:
    random = np.random.default_rng(11)
    pot = _cone(foot, foot + _at(0, 0.36, 0), 0.14, 0.19)
    earth = foot + _at(0, 0.36, 0)
    pieces = [Piece(pot, striped_pot)]
    green = leafy(_rgb(126, 168, 84), _rgb(44, 92, 48))
    for number in range(15):
        azimuth = number * 2.4  # the golden angle, as real stems do
        lean = 0.12 + 0.5 * (number % 5) / 5
        length = 0.95 - 0.045 * number
        out = _at(np.cos(azimuth), 0, np.sin(azimuth))
        tip = earth + length * (lean * out + np.sqrt(1 - lean**2) * _at(0, 1, 0))
        pieces.append(Piece(_cone(earth, tip, 0.008, 0.005), plain(92, 120, 62)))
        along = out - _at(0, 0.25 + 0.5 * random.random(), 0)
        half_u, half_v = 0.15 + 0.04 * random.random(), 0.062
        u = along / np.linalg.norm(along)
        normal = np.cross(u, np.cross(_at(0, 1, 0), u)) + 0.5 * random.standard_normal(3)
        normal = normal - u * (normal @ u)
        normal /= np.linalg.norm(normal)
        frame = np.stack([u, np.cross(normal, u), normal])
        blade = Patch(tip + half_u * u, frame, (half_u, half_v), leaf(half_u, half_v))
        pieces.append(Piece(blade, green, gloss=0.15, glow=0.1))  # light shines through
    return pieces


def _lamp(foot: Array) -> list[Piece]:
    return [
        Piece(_cone(foot, foot + _at(0, 0.025, 0), 0.16), METAL),
        Piece(_cone(foot, foot + _at(0, 1.4, 0), 0.011), METAL),
        Piece(
            _cone(foot + _at(0, 1.32, 0), foot + _at(0, 1.62, 0), 0.21, 0.14),
            plain(240, 222, 180),
            0,
            0.9,
            False,
        ),
    ]


def _sideboard() -> list[Piece]:
    books = [(0.02, 0.13, (92, 44, 52)), (0.06, 0.11, (200, 168, 96)), (0.095, 0.125, (52, 78, 70))]
    return [
        Piece(Box(_at(-0.1, 0.46, 4.44), _at(0.82, 0.3, 0.22)), panelled),
        *(Piece(_cone(_at(x, 0, z), _at(x, 0.18, z), 0.018), OAK) for x, z in product((-0.8, 0.6), (4.3, 4.58))),
        Piece(Sphere(_at(0.3, 0.9, 4.42), 0.14), plain(212, 196, 170)),
        *(Piece(Box(_at(-0.72 + x, 0.76 + h, 4.45), _at(0.016, h, 0.09)), plain(*colour)) for x, h, colour in books),
    ]


# ----------------------------------------------------------------------- casting and shading


@cache
def _extent(shape: Shape) -> Array:
    """Least and greatest x and y, [2, 2], at which the shape can be seen in the image plane."""
    x, y, z = CAMERA @ (shape.corners() - EYE[:, None])
    if z.min() < 0.05:  # reaches behind the eye
        return np.array([[-np.inf, np.inf]] * 2)
    return np.array([[(c / z).min(), (c / z).max()] for c in (x, y)])


def _cast(room: Room, view: View) -> tuple[Array, NDArray[np.intp]]:
    """Depth of the nearest piece along each ray, [rows, columns], and the index of that piece."""
    shape, dtype = view.rays.shape[1:], view.rays.dtype
    nearest, which = np.full(shape, np.inf, dtype), np.zeros(shape, np.intp)
    for index, piece in enumerate(room.pieces):
        columns, rows = (np.searchsorted(c, e) for c, e in zip(view[:2], _extent(piece.shape), strict=True))
        window = slice(*rows), slice(*columns)
        if nearest[window].size:
            t = piece.shape.hit(EYE.astype(dtype), view.rays[:, *window])
            closer = t < nearest[window]
            np.copyto(nearest[window], t, where=closer)
            which[window][closer] = index
    return nearest, which


class Light(NamedTuple):
    """A lamp far enough to be a point, with an apparent radius (metres of penumbra a metre of distance)."""

    position: Array
    colour: Array
    softness: float


SUN = Light(_at(-1.6, 3.6, 0.2), np.array([1.0, 0.93, 0.82]) * 2.0, 0.07)
CEILING = Light(_at(0.6, 6.0, 2.2), np.array([0.85, 0.93, 1.0]) * 0.75, 0.35)
BULB = _at(1.62, 1.47, 4.1)


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
                shade = (1 - _step(-1, 1, gap / blur)) * np.minimum(1, shape.thickness / blur)
                visible[nearby[at]] *= 1 - shade * (t > 1e-4)
    return visible


@cache
def _ball(*shapes: Shape) -> tuple[Array, float]:
    """Centre and radius of a ball around the shapes."""
    corners = np.concatenate([shape.corners() for shape in shapes], 1)
    middle = (corners.min(1) + corners.max(1)) / 2
    return middle, float(np.linalg.norm(corners - middle[:, None], axis=0).max())


def _near(ball: tuple[Array, float], points: Array, rays: Array, softness: float) -> NDArray[np.intp]:
    """Indices of the shadow rays whose widening cones meet the ball."""
    middle, radius = ball
    to_middle = middle.astype(points.dtype)[:, None] - points
    ahead = _dot(to_middle, rays)
    reach = radius + softness * np.maximum(ahead, 0)
    return np.flatnonzero((_dot(to_middle, to_middle) < reach * reach + ahead * ahead) & (ahead > -radius))


def _dot(a: Array, b: Array) -> Array:
    return np.einsum("ij,ij->j", a, b)


def _unit(vectors: Array) -> Array:
    return vectors / np.sqrt(_dot(vectors, vectors))


def _representatives(which: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rays whose shadows are worked out, and for each ray the place of its own among them.

    Shadows are smooth: where the rays of a pixel all see one piece, the first of them stands for all.
    """
    n = SUPERSAMPLING
    rows, columns = which.shape
    first = np.arange(which.size).reshape(rows, columns)[::n, ::n].repeat(n, 0).repeat(n, 1)
    same = (which == which.ravel()[first]).reshape(rows // n, n, columns // n, n).all((1, 3))
    own = np.arange(which.size)
    owner = np.where(same.repeat(n, 0).repeat(n, 1).ravel(), first.ravel(), own)
    stands = owner == own
    return np.flatnonzero(stands), (np.cumsum(stands) - 1)[owner]


class Surface(NamedTuple):
    """What n rays see."""

    which: NDArray[np.intp]  # [n] index of the piece
    points: Array  # [3, n]
    normal: Array  # [3, n] on the side of the eye
    colour: Array  # [3, n] reflectance
    gloss: Array  # [n]
    glow: Array  # [n]


def _surface(room: Room, view: View, depth: Array, which: NDArray[np.intp]) -> Surface:
    points = (EYE.astype(np.float32)[:, None, None] + depth * view.rays).reshape(3, -1)
    colour, normal = np.empty_like(points), np.empty_like(points)
    gloss, glow = np.empty_like(points[0]), np.empty_like(points[0])
    which = which.ravel()
    for index in np.unique(which):
        piece, at = room.pieces[index], np.flatnonzero(which == index)
        local = _into(piece.shape, points.take(at, 1))
        colour[:, at] = piece.texture(local)
        normal[:, at] = _rotate(piece.shape.frame.T, piece.shape.normal(local))
        gloss[at], glow[at] = piece.gloss, piece.glow
    normal *= -np.sign(_dot(normal, view.rays.reshape(3, -1)))  # patches have two sides
    return Surface(which, points, normal, colour, gloss, glow)


def _shade(room: Room, view: View) -> Array:
    """Linear RGB [3, rows, columns] of what each ray sees."""
    depth, which_grid = _cast(room, view)
    which, points, normal, colour, gloss, glow = _surface(room, view, depth, which_grid)
    looking = -_unit(view.rays.reshape(3, -1))

    corners = [_step(-0.25, 0.5, d) for d in (points[1], BACK - points[2], points[0] - LEFT)]
    ambient = 0.19 * (1 + 0.35 * normal[1]) * corners[0] * corners[1] * corners[2]
    total = colour * ambient * np.array([0.95, 1.0, 1.08], np.float32)[:, None]
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
