"""The furniture of the room and its positions."""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import NamedTuple

import numpy as np

from dada.scene.shapes import Array, Box, Cone, Patch, Shape, Sphere, leaf, mesh, rectangle
from dada.scene.textures import (
    Texture,
    back_wall,
    coffee_cup,
    floorboards,
    leafy,
    panelled,
    plain,
    rgb,
    speckle,
    striped_pot,
    wallpaper,
    wood,
)

BACK, LEFT = 4.75, -2.0  # z of the back wall, x of the left wall


class Piece(NamedTuple):
    """A shape, its surface and whether it casts a shadow."""

    shape: Shape
    texture: Texture
    gloss: float = 0.0
    glow: float = 0.0
    casts: bool = True


def _yaw(degrees: float) -> Array:
    """Frame (rows: local axes) rotated about the vertical."""
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


def xyz(*numbers: float) -> Array:
    return np.array(numbers)


OAK = wood(rgb(190, 138, 88), rgb(122, 76, 42))
WALNUT = wood(rgb(112, 74, 50), rgb(62, 38, 26))
METAL = plain(60, 60, 64)


class Room(NamedTuple):
    """All pieces, and the groups of neighbouring ones, whose shadows are computed together."""

    pieces: list[Piece]
    groups: list[range]


@cache
def furnish() -> Room:
    def wall(centre: Array, frame: Array, texture: Texture) -> Piece:
        return Piece(Patch(centre, frame, (9, 9), rectangle(9, 9)), texture, casts=False)

    floor = np.array([[1.0, 0, 0], [0, 0, 1], [0, 1, 0]])
    left = np.array([[0.0, 0, 1], [0, 1, 0], [1, 0, 0]])
    pieces = [
        wall(xyz(0, 0, 0), floor, floorboards),
        wall(xyz(0, 0, BACK), np.diag([1.0, 1, -1]), back_wall),
        wall(xyz(LEFT, 0, 0), left, wallpaper),
    ]
    groups = []
    for furniture in (
        _table(),
        _tableware(),
        _basket(xyz(0.14, 0.75, 1.5)),
        _chair(xyz(-0.78, 0, 2.6), 28),
        _plant(xyz(-1.5, 0, 3.85)),
        _lamp(xyz(1.62, 0, 4.1)),
        _sideboard(),
    ):
        groups.append(range(len(pieces), len(pieces) + len(furniture)))
        pieces += furniture
    return Room(pieces, groups)


def _table() -> list[Piece]:
    frame = _yaw(-9)
    middle = xyz(0.5, 0, 1.35)

    def place(x: float, y: float, z: float) -> Array:
        return middle + frame.T @ xyz(x, y, z)

    legs = [
        Piece(_cone(place(x, 0, z), place(x, 0.71, z), 0.02, 0.035), OAK)
        for x, z in product((-0.72, 0.72), (-0.5, 0.5))
    ]
    return [Piece(Box(place(0, 0.73, 0), xyz(0.8, 0.02, 0.58), frame), OAK, gloss=0.06), *legs]


def _tableware() -> list[Piece]:
    paper = wood(rgb(230, 224, 208), rgb(206, 196, 176), 20)
    cup = xyz(0.33, 0.75, 1.03)
    glaze = plain(70, 110, 150)
    return [
        Piece(Box(xyz(0.6, 0.772, 1.6), xyz(0.15, 0.022, 0.11), _yaw(-4)), plain(40, 84, 92), gloss=0.05),
        Piece(Box(xyz(0.61, 0.812, 1.6), xyz(0.13, 0.018, 0.1), _yaw(-22)), plain(196, 72, 48), gloss=0.05),
        Piece(Box(xyz(0.6, 0.844, 1.6), xyz(0.11, 0.014, 0.085), _yaw(-10)), paper),
        Piece(Sphere(xyz(0.6, 0.918, 1.6), 0.06), plain(225, 205, 120), gloss=0.5),
        Piece(_cone(cup, cup + xyz(0, 0.1, 0), 0.04, 0.043), coffee_cup(0.1, 0.043), gloss=0.4),
        Piece(_cone(cup + xyz(0.035, 0.08, 0), cup + xyz(0.072, 0.075, 0), 0.006), glaze, gloss=0.4),
        Piece(_cone(cup + xyz(0.035, 0.025, 0), cup + xyz(0.068, 0.035, 0), 0.006), glaze, gloss=0.4),
        Piece(_cone(cup + xyz(0.067, 0.033, 0), cup + xyz(0.071, 0.078, 0), 0.006), glaze, gloss=0.4),
        Piece(Box(xyz(-0.13, 0.795, 1.16), xyz(0.08, 0.045, 0.055), _yaw(20)), OAK, gloss=0.06),
        Piece(Sphere(xyz(0.11, 0.795, 1.08), 0.045), speckle(rgb(226, 218, 204), rgb(84, 78, 76), 0.007)),
    ]


def _basket(foot: Array) -> list[Piece]:
    """Oranges in a basket of wire mesh; most of its area is holes."""
    half, height, flare = 0.15, 0.13, 0.03
    pieces = []
    for angle in (-9, 81, 171, 261):
        out = _yaw(angle).T @ xyz(0, 0, -1)
        centre = foot + out * (half + flare / 2) + xyz(0, height / 2, 0)
        frame = _facing(out * height - xyz(0, flare, 0), xyz(0, 1, 0))
        panel = Patch(centre, frame, (half + 0.01, height / 2), mesh(half + 0.01, height / 2, 0.026, 0.004), 0.002)
        pieces.append(Piece(panel, METAL))
        along = _yaw(angle).T @ xyz(half + flare, 0, 0)
        rim = foot + out * (half + flare) + xyz(0, height, 0)
        pieces.append(Piece(_cone(rim - along, rim + along, 0.005), METAL))
    spots = [(-0.07, 0.05, -0.06), (0.06, 0.05, -0.07), (-0.06, 0.05, 0.07), (0.07, 0.05, 0.06), (0, 0.12, 0)]
    for number, spot in enumerate(spots):
        skin = speckle(rgb(240, 140, 30), rgb(222, 110, 20), 0.01) if number != 4 else plain(150, 176, 60)
        pieces.append(Piece(Sphere(foot + np.array(spot), 0.052), skin, gloss=0.25))
    return pieces


def _chair(foot: Array, degrees: float) -> list[Piece]:
    frame = _yaw(degrees)

    def place(x: float, y: float, z: float) -> Array:
        return foot + frame.T @ xyz(x, y, z)

    def rod(start: Array, end: Array, radius: float) -> Piece:
        return Piece(_cone(start, end, radius), WALNUT, gloss=0.1)

    legs = [
        rod(place(x * 1.12, 0, z * 1.12), place(x, 0.44, z), 0.016) for x, z in product((-0.18, 0.18), (-0.18, 0.18))
    ]
    spindles = [rod(place(x, 0.46, 0.19), place(x * 1.1, 0.9, 0.27), 0.008) for x in np.linspace(-0.12, 0.12, 5)]
    posts = [rod(place(x, 0.46, 0.19), place(x * 1.1, 0.94, 0.277), 0.014) for x in (-0.19, 0.19)]
    return [
        Piece(Box(place(0, 0.455, 0), xyz(0.225, 0.016, 0.22), frame), WALNUT, gloss=0.1),
        Piece(Box(place(0, 0.93, 0.275), xyz(0.23, 0.035, 0.012), frame), WALNUT, gloss=0.1),
        rod(place(-0.19, 0.2, -0.19), place(-0.19, 0.2, 0.19), 0.009),
        rod(place(0.19, 0.2, -0.19), place(0.19, 0.2, 0.19), 0.009),
        *legs,
        *spindles,
        *posts,
    ]


def _plant(foot: Array) -> list[Piece]:
    random = np.random.default_rng(11)
    pot = _cone(foot, foot + xyz(0, 0.36, 0), 0.14, 0.19)
    earth = foot + xyz(0, 0.36, 0)
    pieces = [Piece(pot, striped_pot)]
    green = leafy(rgb(126, 168, 84), rgb(44, 92, 48))
    for number in range(15):
        azimuth = number * 2.4  # the golden angle, as real stems do
        lean = 0.12 + 0.5 * (number % 5) / 5
        length = 0.95 - 0.045 * number
        out = xyz(np.cos(azimuth), 0, np.sin(azimuth))
        tip = earth + length * (lean * out + np.sqrt(1 - lean**2) * xyz(0, 1, 0))
        pieces.append(Piece(_cone(earth, tip, 0.008, 0.005), plain(92, 120, 62)))
        along = out - xyz(0, 0.25 + 0.5 * random.random(), 0)
        half_u, half_v = 0.15 + 0.04 * random.random(), 0.062
        u = along / np.linalg.norm(along)
        normal = np.cross(u, np.cross(xyz(0, 1, 0), u)) + 0.5 * random.standard_normal(3)
        normal = normal - u * (normal @ u)
        normal /= np.linalg.norm(normal)
        frame = np.stack([u, np.cross(normal, u), normal])
        blade = Patch(tip + half_u * u, frame, (half_u, half_v), leaf(half_u, half_v))
        pieces.append(Piece(blade, green, gloss=0.15, glow=0.1))  # light shines through
    return pieces


def _lamp(foot: Array) -> list[Piece]:
    return [
        Piece(_cone(foot, foot + xyz(0, 0.025, 0), 0.16), METAL),
        Piece(_cone(foot, foot + xyz(0, 1.4, 0), 0.011), METAL),
        Piece(
            _cone(foot + xyz(0, 1.32, 0), foot + xyz(0, 1.62, 0), 0.21, 0.14),
            plain(240, 222, 180),
            0,
            0.9,
            False,
        ),
    ]


def _sideboard() -> list[Piece]:
    books = [(0.02, 0.13, (92, 44, 52)), (0.06, 0.11, (200, 168, 96)), (0.095, 0.125, (52, 78, 70))]
    return [
        Piece(Box(xyz(-0.1, 0.46, 4.44), xyz(0.82, 0.3, 0.22)), panelled),
        *(Piece(_cone(xyz(x, 0, z), xyz(x, 0.18, z), 0.018), OAK) for x, z in product((-0.8, 0.6), (4.3, 4.58))),
        Piece(Sphere(xyz(0.3, 0.9, 4.42), 0.14), plain(212, 196, 170)),
        *(Piece(Box(xyz(-0.72 + x, 0.76 + h, 4.45), xyz(0.016, h, 0.09)), plain(*colour)) for x, h, colour in books),
    ]
