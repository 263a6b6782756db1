"""What surfaces look like: points in the frame of a shape to linear reflectance."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from dada.scene.shapes import Array

Texture = Callable[[Array], Array]  # [3, n] points in the frame of the shape -> [3, n] linear RGB reflectance


@cache
def _lattice() -> Array:
    return np.random.default_rng(7).random((128, 128), np.float32)


def smooth_noise(u: Array, v: Array, octaves: int = 3) -> Array:
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


def rgb(*colour: float) -> Array:
    """[3, 1] linear reflectance of an sRGB colour in 0..255."""
    return (np.array(colour, np.float32)[:, None] / 255) ** 2.2


def _mix(first: Array, second: Array, weight: Array) -> Array:
    return first + (second - first) * weight


def smooth_step(low: float, high: float, x: Array) -> Array:
    t = np.clip((x - low) / (high - low), 0, 1)
    smooth: Array = t * t * (3 - 2 * t)
    return smooth


def plain(*colour: float) -> Texture:
    return lambda p: np.repeat(rgb(*colour), p.shape[1], 1)


def wood(light: Array, dark: Array, grain: float = 60.0) -> Texture:
    """Solid wood, its fibres along the local x: rings around an axis beside the piece, and fine pores."""

    def texture(p: Array) -> Array:
        wobble = smooth_noise(p[0] * 1.7 + 5, p[2] * 6, 2)
        rings = np.hypot(p[1] + 0.35, p[2] * 0.8 + 0.11) + 0.09 * wobble
        ring = 0.5 + 0.5 * np.sin(rings * grain * 2)
        pores = smooth_noise(p[0] * 12, (p[2] + p[1]) * 260, 2)
        return _mix(light, dark, np.clip(0.15 + 0.45 * ring**2 + 0.5 * (pores - 0.5), 0, 1))

    return texture


def speckle(ground: Array, spots: Array, size: float) -> Texture:
    def texture(p: Array) -> Array:
        a, b = (p[0] + 0.3 * p[2]) / size, (p[1] - 0.4 * p[2]) / size
        return _mix(ground, spots, smooth_step(0.66, 0.72, smooth_noise(a + 40, b + 40, 2)))

    return texture


def coffee_cup(height: float, radius: float) -> Texture:
    """Glazed outside and on the rim, filled to the brim."""

    def texture(p: Array) -> Array:
        filled = (p[2] > height - 1e-3) & (np.hypot(p[0], p[1]) < 0.87 * radius)
        return np.where(filled, rgb(70, 42, 26), rgb(70, 110, 150))

    return texture


def panelled(p: Array) -> Array:
    """Front of the sideboard: three doors, the colour of the wall."""
    door = p[0] / 0.55 + 0.5
    line = np.minimum(np.abs(door % 1 - 0.0), np.abs(door % 1 - 1.0)) < 0.008
    frame = np.abs(np.maximum(np.abs(door % 1 - 0.5) - 0.4, (np.abs(p[1]) - 0.24) / 0.55)) < 0.006
    knob = np.hypot(door % 1 * 0.55 - 0.05, p[1] - 0.02) < 0.014
    ground = _mix(rgb(206, 190, 164), rgb(150, 134, 110), (line | frame).astype(p.dtype))
    return np.where(knob & (p[2] < 0), rgb(70, 56, 40), ground)


def striped_pot(p: Array) -> Array:
    clay = np.where((p[2] / 0.09) % 2 < 1, rgb(206, 196, 184), rgb(150, 92, 66))
    return np.where((p[2] > 0.359) & (np.hypot(p[0], p[1]) < 0.175), rgb(58, 42, 32), clay)


def leafy(light: Array, dark: Array) -> Texture:
    def texture(p: Array) -> Array:
        rib = smooth_step(0.004, 0.001, np.abs(p[1])) + 0.35 * (np.abs(((p[0] + np.abs(p[1])) * 30) % 1 - 0.5) < 0.08)
        return _mix(dark, light, np.clip(0.35 * smooth_noise(p[0] * 20, p[1] * 20, 2) + rib, 0, 1))

    return texture


def floorboards(p: Array) -> Array:
    """Oak boards along z under a checkered rug that is flat: edges in colour, none in depth."""
    x, z = p[0], p[1]
    board = np.floor(x / 0.14)
    tone = smooth_noise(board * 3.7, np.floor(z / 1.1 + board * 0.37) * 5.3, 1)
    grain = smooth_noise(x * 90, z * 5 + board * 13, 3)
    colour = _mix(rgb(172, 132, 92), rgb(128, 90, 58), np.clip(0.5 * tone + 0.6 * grain, 0, 1))
    joint = np.minimum(np.abs((x / 0.14) % 1 - 0.5) - 0.49, 0) > -0.002
    colour = np.where(joint, colour * 0.45, colour)
    u, v = x + 0.75, z - 2.75
    u, v = 0.94 * u + 0.34 * v, 0.94 * v - 0.34 * u
    to_rim = np.maximum(np.abs(u) - 0.8, np.abs(v) - 0.66)
    pile = 0.85 + 0.3 * smooth_noise(u * 220, v * 220, 1)
    checker = ((np.floor(u / 0.16 + 0.5) + np.floor(v / 0.165)) % 2).astype(p.dtype)
    rug = _mix(rgb(214, 204, 186), rgb(58, 82, 108), checker)
    rug = np.where(to_rim > -0.05, rgb(150, 62, 50), rug) * pile
    return np.where(to_rim < 0, rug, colour)


def back_wall(p: Array) -> Array:
    """Warm plaster with a poster: a bold picture in the plane of the wall."""
    x, y = p[0], p[1]
    tone = 0.95 + 0.1 * smooth_noise(x * 3, y * 3, 2) + 0.04 * (smooth_noise(x * 70, y * 70, 1) - 0.5)
    colour = np.where(y < 0.09, rgb(236, 230, 220), rgb(214, 198, 172) * tone)
    half_u, half_v, frame = 0.52, 0.33, 0.03
    at = np.flatnonzero((np.abs(x + 0.22) < half_u) & (np.abs(y - 1.43) < half_v))
    u, v = x[at] + 0.22, y[at] - 1.43
    picture = _landscape(u / (half_u - 0.085), v / (half_v - 0.075))
    to_rim = np.maximum(np.abs(u) - half_u, np.abs(v) - half_v)
    mount = np.maximum(np.abs(u) - half_u + 0.085, np.abs(v) - half_v + 0.075) > 0
    picture = np.where(mount, rgb(238, 234, 224), picture)
    colour[:, at] = np.where(to_rim > -frame, rgb(46, 36, 30), picture)
    return colour


def _landscape(u: Array, v: Array) -> Array:
    colour = _mix(rgb(250, 196, 110), rgb(44, 92, 140), smooth_step(-0.4, 1.0, v + 0.1 * np.sin(9 * u)))
    sun = np.hypot(u - 0.35, (v - 0.35) * 0.62)
    colour = np.where((sun < 0.36) & ((sun * 14) % 1 < 0.6), rgb(246, 226, 160), colour)
    colour = np.where(sun < 0.19, rgb(226, 78, 48), colour)
    hills = [
        (-0.05, 2.6, 0.2, (94, 122, 150)),
        (-0.3, 4.1, 1.5, (50, 92, 104)),
        (-0.62, 3.2, 4.0, (24, 48, 60)),
    ]
    for level, frequency, phase, tint in hills:
        ridge = level + 0.22 * np.sin(frequency * u + phase) + 0.05 * np.sin(13 * u + 3 * phase)
        colour = np.where(v < ridge, rgb(*tint) * (1 + 0.5 * ((v - ridge) * 16 % 1 < 0.3)), colour)
    return colour


def wallpaper(p: Array) -> Array:
    """Left wall, in its own frame x along the room and y up: broad and narrow stripes."""
    x, y = p[0], p[1]
    paper = np.where((x / 0.22) % 1 < 0.5, rgb(150, 168, 164), rgb(178, 190, 182))
    paper = np.where(np.abs((x / 0.22) % 1 - 0.75) < 0.04, rgb(196, 166, 110), paper)
    return np.where(y < 0.09, rgb(236, 230, 220), paper * (0.94 + 0.12 * smooth_noise(x * 4, y * 4, 2)))
