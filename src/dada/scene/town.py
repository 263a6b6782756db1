"""A small town from the air with its heights: a height-like scene with what makes guided upsampling hard.

Height edges in shadow, roofs the colour of the street beside them, crowns of trees, parked cars; and colour edges
without a change of height: fields, markings of roads, the shadows themselves. Lengths are metres.
"""

from __future__ import annotations

from copy import copy
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dada.errors import InputError
from dada.scene.shapes import Array
from dada.scene.textures import smooth_noise

PIXEL = 0.5  # metres in a pixel of the 640 x 480 frame
WIDTH, HEIGHT = 320.0, 240.0  # metres of the frame
SUN = (-0.8, -0.6)  # towards the sun, in x (right) and y (down)
SUN_SLOPE = 0.9  # metres that its rays fall in a metre
SUPERSAMPLING = 2
ROADS = ((0.0, 92.0, 0.05, 8.0), (0.0, 186.0, -0.04, 6.0))  # begin x, y, slope, width
LANES = ((104.0, 7.0), (226.0, 6.0))  # x, width
SEED = 3  # of where things stand


class Town(NamedTuple):
    """A drawn town."""

    guide: NDArray[np.uint8]  # [H, W, 3] RGB
    height: NDArray[np.float32]  # [H, W] metres above the sea, exact at the centre of each pixel


class Ground:
    """Colours and heights at points (x, y) of a grid."""

    def __init__(self, x: Array, y: Array) -> None:
        self.x, self.y = x, y
        self.colour = np.zeros((*x.shape, 3), np.float32)
        hills = 9 * smooth_noise(x / 150 + 3, y / 150 + 8, 2)
        river = np.abs(y - 214 - 14 * np.sin(x / 60))
        self.water = river < 9
        self.level = np.where(self.water, 402.0, 404.0 + hills * np.clip((river - 9) / 25, 0.05, 1))
        self.height = self.level.astype(np.float32)

    def around(self, centre: tuple[float, float], radius: float) -> Ground:
        """The part within a square around a point: what is changed there is changed here."""
        columns, rows = (
            slice(*np.searchsorted(axis, (middle - radius, middle + radius)))
            for axis, middle in zip((self.x[0], self.y[:, 0]), centre, strict=True)
        )
        part = copy(self)
        for name, values in vars(self).items():
            setattr(part, name, values[rows, columns])
        return part

    def cover(self, where: NDArray[np.bool_], colour: tuple[float, float, float], shade: float | Array = 1.0) -> None:
        """Colour a region."""
        self.colour[where] = np.asarray(colour, np.float32) * np.broadcast_to(shade, where.shape)[where][:, None]

    def noise(self, size: float, octaves: int = 3) -> Array:
        """Smooth noise in 0..1 with features of a size in metres."""
        return smooth_noise(self.x / size + 11, self.y / size + 29, octaves)


def draw_town(height: int = 480, width: int = 640, *, seed: int = 0) -> Town:
    """Draw the town; the same arguments give the same arrays.

    Args:
        height: in pixels, at least 1. The 4:3 frame is scaled to cover height and width, then cropped.
        width: in pixels, at least 1.
        seed: of the noise of the guide; heights do not depend on it.

    Raises:
        InputError: a size below 1.
    """
    if height < 1 or width < 1:
        raise InputError(f"a scene of {height} x {width} pixels cannot be drawn: both sizes must be at least 1")
    n = SUPERSAMPLING
    fine = _drawn(height * n, width * n)
    light = _lit(fine, WIDTH / max(width * n, height * n * WIDTH / HEIGHT))
    colour = (fine.colour * light).reshape(height, n, width, n, 3).mean(axis=(1, 3))
    noise = np.random.default_rng(seed).standard_normal(colour.shape, np.float32)
    guide = np.rint(np.clip(colour + 1.8 * noise, 0, 255)).astype(np.uint8)
    return Town(guide, _drawn(height, width).height)


def _drawn(rows: int, columns: int) -> Ground:
    step = 1 / max(rows / HEIGHT, columns / WIDTH)
    x = (np.arange(columns, dtype=np.float32) + 0.5 - columns / 2) * step + WIDTH / 2
    y = (np.arange(rows, dtype=np.float32) + 0.5 - rows / 2) * step + HEIGHT / 2
    ground = Ground(*np.meshgrid(x, y))
    _land(ground)
    generator = np.random.default_rng(SEED)
    taken = _buildings(ground, generator)
    _trees(ground, generator, taken)
    _cars(ground, generator)
    return ground


def _land(ground: Ground) -> None:
    x, y = ground.x, ground.y
    ground.cover(np.ones(x.shape, bool), (112, 126, 76), 0.72 + 0.5 * ground.noise(9) + 0.12 * ground.noise(1.2))
    furrows = 0.9 + 0.16 * (np.mod((x + 0.4 * y) / 3.2, 1) < 0.5)
    ground.cover((x > 236) & (y < 84), (176, 158, 98), furrows * (0.9 + 0.2 * ground.noise(14)))
    ground.cover((x > 236) & (y > 44) & (y < 84), (120, 140, 66), 0.85 + 0.3 * ground.noise(3))
    for begin_x, begin_y, slope, width in ROADS:
        off = np.abs(y - begin_y - slope * (x - begin_x))
        ground.cover(off < width / 2 + 1.8, (164, 160, 152), 0.95 + 0.1 * ground.noise(0.8))
        ground.cover(off < width / 2, (104, 104, 108), 0.93 + 0.14 * ground.noise(1.0))
        ground.cover((off < 0.2) & (np.mod(x, 8) < 4), (232, 230, 222))
    for lane, width in LANES:
        across = (np.abs(x - lane) < width / 2) & (y < 200)
        ground.cover(across, (112, 112, 114), 0.93 + 0.14 * ground.noise(1.0))
    ground.cover(ground.water, (52, 82, 92), 0.92 + 0.16 * ground.noise(5))


def _buildings(ground: Ground, generator: np.random.Generator) -> list[tuple[float, float, float]]:
    """Rows of houses along the streets, some of them large; returns centres and radii."""
    taken = []
    spots = [(x, row) for row in (22, 64, 118, 160) for x in range(20, 300, 29)]
    for x, row in spots:
        kind, turn, jitter = generator.random(), generator.normal(0, 0.1), generator.uniform(-3, 3, 2)
        size = generator.uniform((9, 7), (12, 9)) if kind < 0.75 else generator.uniform((11, 9), (13, 12))
        walls, pitch, hue = generator.uniform(4, 8), generator.uniform(0.4, 0.8), generator.random()
        if (x > 220 and row < 90) or min(abs(x - lane) for lane, _ in LANES) < 14:
            continue
        centre = x + jitter[0], row + jitter[1]
        _house(ground, centre, size, turn, flat=kind > 0.75, walls=walls, pitch=pitch, hue=hue)
        taken.append((*centre, float(max(size))))
    _tower(ground, (165.0, 78.0))
    return [*taken, (165.0, 78.0, 12.0)]


def _house(
    ground: Ground,
    centre: tuple[float, float],
    size: Array,
    turn: float,
    *,
    flat: bool,
    walls: float,
    pitch: float,
    hue: float,
) -> None:
    """A block with a flat or a gabled roof; it stands level, on the ground below its centre."""
    ground = ground.around(centre, float(np.hypot(*size)))
    c, s = np.cos(turn), np.sin(turn)
    u = c * (ground.x - centre[0]) + s * (ground.y - centre[1])
    v = c * (ground.y - centre[1]) - s * (ground.x - centre[0])
    inside = (np.abs(u) < size[0]) & (np.abs(v) < size[1])
    if not inside.any():
        return
    base = float(ground.level[inside].mean())
    if flat:
        ground.height[inside] = base + 2 * walls
        ground.cover(inside, (128, 126, 124), 0.95 + 0.12 * ground.noise(2.5))  # as grey as the street
        rim = inside & ((np.abs(u) > size[0] - 0.7) | (np.abs(v) > size[1] - 0.7))
        ground.height[rim] += 0.9
        for side in (-0.4, 0.35):
            unit = inside & (np.abs(u - side * size[0]) < 1.8) & (np.abs(v - side) < 1.5)
            ground.height[unit] = base + 2 * walls + 1.8
            ground.cover(unit, (198, 200, 202))
        return
    ground.height[inside] = (base + walls + pitch * (size[1] - np.abs(v)))[inside]
    tiles = 0.9 + 0.16 * (np.mod(v / 0.9, 1) < 0.5) + 0.12 * (ground.noise(1.5) - 0.5)
    colour = ((158, 80, 58), (132, 70, 56), (98, 92, 92), (116, 88, 70))[int(4 * hue)]
    ground.cover(inside, colour, tiles)
    chimney = (np.abs(u - 0.4 * size[0]) < 0.8) & (np.abs(v - 1.5) < 0.8)
    ground.height[chimney] = base + walls + pitch * size[1] + 1.2
    ground.cover(chimney, (120, 76, 62))
    panels = (np.abs(u + 0.25 * size[0]) < 0.45 * size[0]) & (v > 0.15 * size[1]) & (v < 0.8 * size[1]) & (hue > 0.6)
    ground.cover(panels, (34, 42, 66), 0.9 + 0.3 * (np.mod(u / 1.6, 1) < 0.1))  # a colour edge, and no height


def _tower(ground: Ground, centre: tuple[float, float]) -> None:
    """A round tower with a conical roof."""
    ground = ground.around(centre, 8)
    radius = np.hypot(ground.x - centre[0], ground.y - centre[1])
    base = 408.0
    ground.height[radius < 8] = base + 16
    ground.cover(radius < 8, (172, 164, 148))
    ground.height[radius < 6.5] = (base + 17 + 1.4 * (6.5 - radius))[radius < 6.5]
    ground.cover(radius < 6.5, (84, 104, 98), 0.92 + 0.12 * ground.noise(1.4))


def _trees(ground: Ground, generator: np.random.Generator, taken: list[tuple[float, float, float]]) -> None:
    for _ in range(190):
        x, y = generator.uniform((0, 0), (WIDTH, HEIGHT))
        radius, tone = generator.uniform(2.2, 5.2), generator.uniform(0.75, 1.15)
        near_water = abs(y - 214 - 14 * np.sin(x / 60)) < 13
        on_road = any(abs(y - b - slope * (x - a)) < width / 2 + 3 for a, b, slope, width in ROADS)
        on_lane = any(abs(x - lane) < width / 2 + 3 for lane, width in LANES) and y < 200
        on_field = x > 232 and y < 88
        if near_water or on_road or on_lane or on_field:
            continue
        if any(np.hypot(x - a, y - b) < size + radius for a, b, size in taken):
            continue
        _tree(ground.around((x, y), radius / 0.82), (x, y), radius, tone)


def _tree(ground: Ground, centre: tuple[float, float], radius: float, tone: float) -> None:
    bumps = ground.noise(1.6, 2)
    distance = np.hypot(ground.x - centre[0], ground.y - centre[1]) * (0.82 + 0.4 * bumps)
    crown = distance < radius
    if crown.any():
        base = float(ground.level[crown].mean())
        dome = base + 1.1 * radius + 1.3 * np.sqrt(np.clip(radius**2 - distance**2, 0, None)) + 1.2 * (bumps - 0.5)
        ground.height[crown] = dome[crown]
        ground.cover(crown, (62, 92, 46), tone * (0.7 + 0.6 * bumps))


def _cars(ground: Ground, generator: np.random.Generator) -> None:
    for _ in range(26):
        road = ROADS[int(generator.integers(2))]
        x, side = generator.uniform(5, WIDTH - 5), generator.choice((-1, 1))
        colour = tuple(float(c) for c in generator.uniform(40, 235, 3))
        y = road[1] + road[2] * (x - road[0]) + side * (road[3] / 2 - 1.2)
        part = ground.around((x, y), 3)
        car = (np.abs(part.x - x) < 2.2) & (np.abs(part.y - y - road[2] * (part.x - x)) < 0.95)
        part.height[car] = (part.level + 1.5)[car]
        part.cover(car, (colour[0], colour[1], colour[2]))


def _lit(ground: Ground, step: float) -> Array:
    """Light on each point, [rows, columns, 1]: slopes towards the sun are brighter, and heights throw shadows."""
    height = ground.height
    down, right = np.gradient(height, step)
    toward = np.clip(-(SUN[0] * right + SUN[1] * down), -0.8, 0.8)
    shadow = np.zeros(height.shape, bool)
    reach = int(36 / SUN_SLOPE / step)
    for distance in range(1, reach):
        across, along = round(SUN[0] * distance), round(SUN[1] * distance)
        if abs(along) >= height.shape[0] or abs(across) >= height.shape[1]:
            break
        rows, columns = height.shape
        here = (slice(-along, rows), slice(-across, columns))
        there = (slice(0, rows + along), slice(0, columns + across))
        shadow[here] |= height[there] - SUN_SLOPE * distance * step > height[here] + 0.2
    lit: Array = np.where(shadow, 0.42, 1 + 0.33 * toward)[..., None].astype(np.float32)
    return lit
