"""Grey patterns for painted scenes: noise, wood, cloth, masonry, print and scribble, each an 8-bit tile."""

from __future__ import annotations

from collections.abc import Callable

import cv2
import numpy as np
from numpy.typing import NDArray

from dada.datasets.painted.outlines import Bytes, Rng

TILE = 256  # side of a tile


def _stretch(values: NDArray[np.floating]) -> Bytes:
    """To 0..255, a little clipped."""
    low, high = np.percentile(values, (0.5, 99.5))
    return np.asarray(np.rint(np.clip((values - low) * (255 / max(high - low, 1e-9)), 0, 255)), np.uint8)


def _field(rng: Rng, slope: float, stretch: float = 1.0) -> NDArray[np.float64]:
    """Periodic noise whose amplitude falls as frequency ** -slope, of deviation 1; stretched along x."""
    fy, fx = np.fft.fftfreq(TILE)[:, None], np.fft.rfftfreq(TILE)[None] * stretch
    amplitude = (fx**2 + fy**2 + 1e-4) ** (-slope / 2)
    amplitude[0, 0] = 0
    waves = rng.standard_normal(amplitude.shape) + 1j * rng.standard_normal(amplitude.shape)
    field = np.fft.irfft2(waves * amplitude, s=(TILE, TILE))
    return np.asarray(field / field.std())


def _grid() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    y, x = np.mgrid[0:TILE, 0:TILE] / TILE
    return x, y


def _noise(rng: Rng) -> Bytes:
    return _stretch(_field(rng, rng.uniform(0.3, 2.2)))


def _brushed(rng: Rng) -> Bytes:
    return _stretch(_field(rng, rng.uniform(0.6, 1.6), rng.uniform(4, 30)))


def _marble(rng: Rng) -> Bytes:
    x, y = _grid()
    return _stretch(np.sin(2 * np.pi * (x * rng.integers(0, 5) + y) + rng.uniform(0.5, 4) * _field(rng, 1.8)))


def _wood(rng: Rng) -> Bytes:
    x, y = _grid()
    rings = rng.uniform(6, 22) * (y + 0.03 * _field(rng, 2.5, 4)) + rng.uniform(0, 3) * (x - 0.5) ** 2
    return _stretch((rings % 1) ** 1.5 + 0.25 * _field(rng, 0.8, 20))


def _stripes(rng: Rng) -> Bytes:
    """Stripes of several widths, or a plaid of two sets."""
    widths = rng.uniform(2, 40, 60)
    lines = np.repeat(rng.uniform(0, 1, 60), widths.astype(int))[:TILE]
    lines = np.resize(lines, TILE)
    plaid = rng.random() < 0.5
    pattern = lines[None] + (np.roll(lines, 40)[:, None] if plaid else np.zeros((TILE, 1)))
    return _stretch(pattern + 0.03 * _field(rng, 0.3))


def _checks(rng: Rng) -> Bytes:
    x, y = _grid()
    n = rng.integers(3, 24)
    return _stretch(((np.floor(x * n) + np.floor(y * n)) % 2) + 0.15 * _field(rng, 1.2))


def _bricks(rng: Rng) -> Bytes:
    x, y = _grid()
    rows = int(rng.integers(3, 9)) * 2
    row = np.floor(y * rows)
    u = x * rows / rng.integers(1, 4) + 0.5 * (row % 2)
    joint = rng.uniform(0.05, 0.2)
    mortar = ((y * rows) % 1 < joint) | (u % 1 < joint / 2)
    shade = rng.uniform(0.5, 1, 4096)[(np.floor(u) * 37 + row * 101).astype(int) % 4096]
    return _stretch(np.where(mortar, 0.1, shade) + 0.08 * _field(rng, 0.8))


def _weave(rng: Rng) -> Bytes:
    x, y = _grid()
    n = 2 * np.pi * rng.integers(16, 60)
    threads = np.where(np.sin(n * x) * np.sin(n * y) > 0, np.abs(np.sin(n * x)), np.abs(np.sin(n * y)))
    return _stretch(threads + rng.uniform(0.1, 1) * _field(rng, 1.5))


def _dots(rng: Rng) -> Bytes:
    tile = np.full((TILE, TILE), 40, np.uint8)
    n = int(rng.integers(4, 16))
    radius = rng.uniform(0.15, 0.45) * TILE / n
    for row in range(n + 1):
        for column in range(n + 1):
            centre = ((column + 0.5 * (row % 2)) * TILE / n, row * TILE / n)
            cv2.circle(tile, tuple(round(16 * c) for c in centre), round(16 * radius), 220, -1, cv2.LINE_AA, 4)
    return tile


def _cells(rng: Rng) -> Bytes:
    """Stones or scales: the nearest of scattered points, with dark joints."""
    seeds = np.full((TILE, TILE), 255, np.uint8)
    points = rng.integers(0, TILE, (int(rng.integers(20, 400)), 2))
    seeds[points[:, 0], points[:, 1]] = 0
    distance, labels = cv2.distanceTransformWithLabels(seeds, cv2.DIST_L2, 5, labelType=cv2.DIST_LABEL_PIXEL)
    shade = rng.uniform(0.3, 1, int(labels.max()) + 1)[labels]
    return _stretch(shade * (1 - rng.uniform(0, 1.5) * distance / distance.max()) + 0.05 * _field(rng, 0.8))


def _dead_leaves(rng: Rng) -> Bytes:
    """Overlapping discs with radius ** -3 (dead leaves model): the statistics of natural images."""
    tile = np.zeros((TILE, TILE), np.uint8)
    smallest = rng.uniform(1.5, 6)
    for radius in np.sort(smallest * rng.uniform(0.0005, 1, 900) ** -0.5)[::-1]:
        axes = (round(16 * radius), round(16 * radius * rng.uniform(0.3, 1)))
        centre = tuple(int(c) for c in rng.integers(0, 16 * TILE, 2))
        angle, grey = rng.uniform(0, 180), int(rng.integers(0, 256))
        outline = np.asarray(cv2.ellipse2Poly((0, 0), axes, int(angle), 0, 360, 30)) + centre
        cv2.fillPoly(tile, [outline.astype(np.int32)], grey, cv2.LINE_AA, 4)
    return tile


def _text(rng: Rng) -> Bytes:
    """Lines of print."""
    tile = np.full((TILE, TILE), 235, np.uint8)
    size = rng.uniform(0.3, 1.6)
    letters = "ETAOINSHRDLUetaoinshrdlucmfwyp0123456789     "
    for line in np.arange(10, TILE + 20, 28 * size):
        words = "".join(letters[k] for k in rng.integers(0, len(letters), 40))
        place, thickness = (int(rng.integers(-20, 20)), int(line)), max(1, round(1.6 * size))
        cv2.putText(tile, words, place, int(rng.integers(0, 8)), size, int(rng.integers(0, 90)), thickness, cv2.LINE_AA)
    return tile


def _scribble(rng: Rng) -> Bytes:
    tile = _stretch(200 + 10 * _field(rng, 0.8)) // 4 + 150
    for _ in range(int(rng.integers(3, 25))):
        path = np.cumsum(rng.normal(0, 18, (12, 2)), 0) + rng.uniform(0, TILE, 2)
        ink, thickness = int(rng.integers(0, 140)), int(rng.integers(1, 4))
        cv2.polylines(tile, [np.rint(16 * path).astype(np.int32)], False, ink, thickness, cv2.LINE_AA, 4)
    return tile


MAKERS: list[tuple[Callable[[Rng], Bytes], int]] = [
    (_noise, 4),
    (_brushed, 2),
    (_marble, 1),
    (_wood, 2),
    (_stripes, 2),
    (_checks, 1),
    (_bricks, 1),
    (_weave, 2),
    (_dots, 1),
    (_cells, 1),
    (_dead_leaves, 3),
    (_text, 2),
    (_scribble, 1),
]
