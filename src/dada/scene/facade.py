"""A street front at dusk with its temperatures: a thermal-like scene with what makes guided upsampling hard.

Colour edges without a change of temperature (bricks, shutters, a poster), temperature without a change of colour (a
radiator behind the wall, the edge of a floor slab, a warm bonnet), thin things (a downpipe, a railing, gaps of a door).
Lengths are metres, x right, y up; temperatures are degrees Celsius.
"""

from __future__ import annotations

from copy import copy
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dada.errors import InputError
from dada.scene.shapes import Array
from dada.scene.textures import smooth_noise

Mask = NDArray[np.bool_]
Colour = tuple[float, float, float]  # sRGB, 0..255

WIDTH, HEIGHT = 8.0, 6.0  # of the 4:3 frame
PAVEMENT, EAVES, RIDGE = 0.75, 4.9, 5.65  # y where wall, roof and sky begin
WINDOWS = ((1.0, 3.3), (3.3, 3.3), (5.6, 3.3), (1.0, 1.45), (5.6, 1.45))  # lower left corners
LIT = (1, 3)  # indices of windows with a lamp behind them
PANE = (1.05, 1.2)  # width and height of a window
SUPERSAMPLING = 2


class Facade(NamedTuple):
    """A drawn street front."""

    guide: NDArray[np.uint8]  # [H, W, 3] RGB
    temperature: NDArray[np.float32]  # [H, W] degrees Celsius, exact at the centre of each pixel


class Canvas:
    """Colours and temperatures at points (x, y), painted from back to front."""

    def __init__(self, x: Array, y: Array) -> None:
        self.x, self.y = x, y
        self.colour = np.zeros((*x.shape, 3), np.float32)
        self.temperature = np.zeros(x.shape, np.float32)

    def part(self, left: float, bottom: float, width: float, height: float) -> Canvas:
        """The part within a rectangle: what is painted there is painted here."""
        columns = slice(*np.searchsorted(self.x[0], (left, left + width)))
        rows = slice(*np.searchsorted(-self.y[:, 0], (-bottom - height, -bottom)))
        part = copy(self)
        for name, values in vars(self).items():
            setattr(part, name, values[rows, columns])
        return part

    def paint(self, where: Mask, colour: Colour, temperature: float | Array, shade: float | Array = 1.0) -> None:
        """Cover a region with a colour, brightened or darkened by `shade`, and a temperature."""
        shaded = np.asarray(colour, np.float32) * np.broadcast_to(shade, where.shape)[where][:, None]
        self.colour[where] = shaded
        self.temperature[where] = np.broadcast_to(temperature, where.shape)[where]

    def box(self, left: float, bottom: float, width: float, height: float) -> Mask:
        """Points within a rectangle."""
        across = (self.x >= left) & (self.x < left + width)
        return np.asarray(across & (self.y >= bottom) & (self.y < bottom + height))

    def ellipse(self, x: float, y: float, across: float, up: float) -> Mask:
        """Points within an ellipse of two half axes."""
        return np.asarray(((self.x - x) / across) ** 2 + ((self.y - y) / up) ** 2 < 1)

    def noise(self, size: float, octaves: int = 3) -> Array:
        """Smooth noise in 0..1 with features of a size in metres."""
        return smooth_noise(self.x / size + 31, self.y / size + 57, octaves)


def draw_facade(height: int = 480, width: int = 640, *, seed: int = 0) -> Facade:
    """Draw the street front; the same arguments give the same arrays.

    Args:
        height: in pixels, at least 1. The 4:3 frame is scaled to cover height and width, then cropped.
        width: in pixels, at least 1.
        seed: of the noise of the guide; temperatures do not depend on it.

    Raises:
        InputError: a size below 1.
    """
    if height < 1 or width < 1:
        raise InputError(f"a scene of {height} x {width} pixels cannot be drawn: both sizes must be at least 1")
    n = SUPERSAMPLING
    fine = _drawn(height * n, width * n).colour.reshape(height, n, width, n, 3).mean(axis=(1, 3))
    noise = np.random.default_rng(seed).standard_normal(fine.shape, np.float32)
    guide = np.rint(np.clip(fine + 1.6 * noise, 0, 255)).astype(np.uint8)
    return Facade(guide, _drawn(height, width).temperature)


def _drawn(rows: int, columns: int) -> Canvas:
    scale = max(rows / HEIGHT, columns / WIDTH)  # pixels in a metre
    x = (np.arange(columns, dtype=np.float32) + 0.5 - columns / 2) / scale + WIDTH / 2
    y = HEIGHT / 2 - (np.arange(rows, dtype=np.float32) + 0.5 - rows / 2) / scale
    canvas = Canvas(*np.meshgrid(x, y))
    _sky_and_roof(canvas.part(0, EAVES - 0.1, WIDTH, HEIGHT - EAVES + 0.1))
    _wall(canvas)
    for number, corner in enumerate(WINDOWS):
        _window(canvas.part(corner[0] - 0.5, corner[1] - 0.1, PANE[0] + 1, PANE[1] + 0.2), corner, lit=number in LIT)
    _door(canvas.part(3.4, PAVEMENT, 1.1, 2.1))
    _street(canvas.part(0, 0, WIDTH, 1.3))
    _bush(canvas.part(0, 0.3, 1.3, 1.7))
    _person(canvas.part(4.3, 0.4, 0.9, 2.1), 4.75)
    _car(canvas.part(5.2, 0, 2.8, 1.6))
    return canvas


def _sky_and_roof(canvas: Canvas) -> None:
    everywhere = np.ones(canvas.x.shape, bool)
    canvas.paint(everywhere, (96, 118, 158), 1.5 - 2 * (canvas.y - RIDGE), 1.25 - 0.25 * (canvas.y - RIDGE))
    rows = np.floor(canvas.y / 0.11)
    tile = np.mod(canvas.x / 0.16 + 0.5 * rows, 1)
    shade = 0.8 + 0.25 * np.mod(canvas.y / 0.11, 1) + 0.12 * (tile > 0.15) + 0.15 * (canvas.noise(0.3) - 0.5)
    slope = 6.5 + 1.5 * (canvas.noise(2.5, 2) - 0.5)
    canvas.paint((canvas.y >= EAVES) & (canvas.y < RIDGE), (112, 62, 52), slope, shade)
    chimney = canvas.box(6.35, 5.2, 0.5, 0.75)
    canvas.paint(chimney, (124, 78, 64), 17 + 6 * np.clip(canvas.y - 5.2, 0, 1), 0.8 + 0.3 * canvas.noise(0.1))
    canvas.paint(canvas.box(0, EAVES - 0.09, WIDTH, 0.09), (74, 72, 74), 5.0)


def _wall(canvas: Canvas) -> None:
    course = np.floor(canvas.y / 0.085)
    along = np.mod(canvas.x / 0.26 + 0.5 * np.mod(course, 2), 1)
    mortar = (np.mod(canvas.y / 0.085, 1) < 0.14) | (along < 0.05)
    each = smooth_noise(np.floor(canvas.x / 0.26 + 0.5 * np.mod(course, 2)) * 3.7, course * 5.3, 1)
    shade = np.where(mortar, 1.18, 0.78 + 0.4 * each) * (0.92 + 0.16 * canvas.noise(1.5))
    warm = 10.5 + 0.8 * (canvas.noise(2.2, 2) - 0.5)
    for x in (1.52, 6.12):  # radiators below the lower windows
        warm = warm + 5.5 * np.exp(-(((canvas.x - x) / 0.5) ** 2) - ((canvas.y - 1.15) / 0.22) ** 2)
    warm = warm + 2.6 * (np.abs(canvas.y - 2.95) < 0.11)  # the edge of a floor slab, hidden behind the bricks
    canvas.paint((canvas.y >= PAVEMENT) & (canvas.y < EAVES - 0.09), (150, 92, 74), warm, shade)
    canvas.paint(canvas.box(7.05, PAVEMENT, 0.09, EAVES - PAVEMENT - 0.09), (92, 96, 98), 6.5)  # a downpipe
    poster = canvas.box(2.55, 1.5, 0.62, 0.88)
    inside = canvas.box(2.59, 1.54, 0.54, 0.8)
    canvas.paint(poster, (236, 232, 222), canvas.temperature)
    canvas.paint(inside, (214, 84, 52), canvas.temperature, 0.8 + 0.35 * (np.mod(canvas.x + canvas.y, 0.27) < 0.12))
    canvas.paint(inside & canvas.ellipse(2.86, 2.02, 0.17, 0.17), (246, 206, 92), canvas.temperature)


def _window(canvas: Canvas, corner: tuple[float, float], lit: bool) -> None:
    left, bottom = corner
    wide, high = PANE
    for side in (left - 0.4, left + wide + 0.05):  # shutters, as warm as the wall
        slats = 0.78 + 0.3 * (np.mod(canvas.y / 0.07, 1) > 0.3)
        canvas.paint(canvas.box(side, bottom, 0.35, high), (58, 92, 84), canvas.temperature, slats)
    canvas.paint(canvas.box(left - 0.07, bottom - 0.09, wide + 0.14, 0.09), (196, 190, 180), 9.0)  # the sill
    canvas.paint(canvas.box(left, bottom, wide, high), (232, 228, 220), 11.5)
    for column in range(2):
        for row in range(2):
            pane = canvas.box(left + 0.06 + column * 0.5, bottom + 0.06 + row * 0.58, 0.43, 0.5)
            dusk = 0.75 + 0.5 * (np.mod(canvas.x - 0.6 * canvas.y, 1.4) < 0.35)
            glow = 0.82 + 0.3 * np.exp(
                -(((canvas.x - left - 0.6) / 0.45) ** 2) - ((canvas.y - bottom - 0.8) / 0.5) ** 2
            )
            colour = (250, 214, 130) if lit else (52, 64, 84)
            canvas.paint(pane, colour, 17.5 if lit else 14.0, glow if lit else dusk)
    if lit:
        slit = canvas.box(left + 0.49, bottom + 0.64, 0.035, 0.5)  # ajar
        canvas.paint(slit, (40, 36, 34), 22.0)


def _door(canvas: Canvas) -> None:
    canvas.paint(canvas.box(3.45, PAVEMENT, 1.0, 2.0), (206, 198, 184), 11.0)
    canvas.paint(canvas.box(3.52, PAVEMENT, 0.86, 1.93), (30, 24, 20), 19.0)  # the gap around the leaf
    grain = 0.85 + 0.3 * smooth_noise(canvas.x * 14, canvas.y * 1.3, 3)
    canvas.paint(canvas.box(3.545, PAVEMENT + 0.03, 0.81, 1.875), (104, 62, 36), 13.0, grain)
    for bottom in (0.95, 1.55):
        canvas.paint(canvas.box(3.65, bottom, 0.6, 0.45), (84, 48, 28), 12.6, grain)
    canvas.paint(canvas.box(3.65, 2.15, 0.6, 0.4), (246, 206, 124), 17.0)
    canvas.paint(canvas.ellipse(4.27, 1.7, 0.04, 0.04), (214, 186, 96), 14.5)


def _street(canvas: Canvas) -> None:
    slabs = 0.92 + 0.12 * canvas.noise(0.15) - 0.14 * (np.mod(canvas.x / 0.7, 1) < 0.03)
    canvas.paint(canvas.y < PAVEMENT, (142, 138, 132), 8.5 + 0.6 * canvas.noise(1.4), slabs)
    canvas.paint(canvas.y < 0.36, (78, 78, 84), 9.8 + 0.6 * canvas.noise(1.1), 0.88 + 0.24 * canvas.noise(0.05))
    canvas.paint((canvas.y < 0.4) & (canvas.y >= 0.34), (176, 172, 166), 8.2)
    for x in np.arange(0.2, 3.2, 0.3):  # a railing
        canvas.paint(canvas.box(float(x), 0.6, 0.03, 0.62), (34, 36, 40), 6.0)
    canvas.paint(canvas.box(0.1, 1.19, 2.95, 0.045), (34, 36, 40), 6.0)


def _bush(canvas: Canvas) -> None:
    leaves = canvas.noise(0.09, 3)
    for x, y, size in ((0.25, 1.0, 0.55), (0.75, 0.85, 0.42), (0.05, 1.5, 0.4)):
        ragged = canvas.ellipse(x, y, size * 1.0, size) & (leaves + 0.35 * canvas.noise(0.04, 1) > 0.42)
        canvas.paint(ragged, (62, 88, 44), 7.5 + leaves, 0.55 + 0.9 * leaves)


def _person(canvas: Canvas, x: float) -> None:
    for side in (-0.1, 0.1):
        canvas.paint(canvas.box(x + side - 0.08, 0.55, 0.16, 0.85), (44, 48, 66), 19.0 + canvas.noise(0.2))
        canvas.paint(canvas.ellipse(x + side * 1.2, 0.55, 0.13, 0.06), (30, 28, 28), 13.0)
    torso = canvas.ellipse(x, 1.62, 0.27, 0.42) | canvas.box(x - 0.24, 1.25, 0.48, 0.4)
    folds = 0.85 + 0.3 * canvas.noise(0.12)
    canvas.paint(torso, (148, 52, 48), 22.0 + 2 * canvas.noise(0.25), folds)
    for side in (-1, 1):
        canvas.paint(canvas.ellipse(x + side * 0.29, 1.5, 0.08, 0.36), (132, 44, 42), 21.0, folds)
        canvas.paint(canvas.ellipse(x + side * 0.3, 1.13, 0.055, 0.075), (206, 154, 126), 29.5)
    canvas.paint(canvas.box(x - 0.06, 1.96, 0.12, 0.14), (198, 146, 118), 33.0)
    canvas.paint(canvas.ellipse(x, 2.2, 0.125, 0.165), (210, 158, 130), 33.5)
    canvas.paint(canvas.ellipse(x, 2.29, 0.135, 0.1), (52, 38, 30), 26.0)


def _car(canvas: Canvas) -> None:
    x, y = canvas.x, canvas.y
    body = canvas.box(5.35, 0.42, 2.6, 0.55) | canvas.ellipse(6.75, 0.95, 1.0, 0.55)
    bonnet = 19.0 * np.exp(-(((x - 5.65) / 0.42) ** 2) - ((y - 0.92) / 0.3) ** 2)
    reflection = 0.86 + 0.3 * np.exp(-(((y - 0.93) / 0.07) ** 2))
    canvas.paint(body, (60, 84, 120), 9.0 + bonnet, reflection)
    cabin = canvas.ellipse(6.75, 0.98, 0.86, 0.43) & (y > 1.0) & (np.abs(x - 6.75) > 0.03)
    canvas.paint(cabin, (34, 40, 50), 7.0, 0.8 + 0.6 * (np.mod(x - y, 0.9) < 0.2))
    for wheel in (5.95, 7.35):
        canvas.paint(canvas.ellipse(wheel, 0.42, 0.3, 0.3), (26, 26, 28), 16.0)
        canvas.paint(canvas.ellipse(wheel, 0.42, 0.17, 0.17), (158, 160, 164), 24.0)
    canvas.paint(canvas.ellipse(5.42, 0.8, 0.07, 0.06), (250, 240, 200), 21.0)
    canvas.paint(canvas.box(5.3, 0.45, 0.12, 0.12), (52, 54, 58), 15.0)
