"""Textures for painted scenes: grey patterns coloured by drawn palettes, flat pictures, and cuttings of photographs.

A bank of tiles is made once for a seed. A `Material` is one tile with a random affine map and a random palette. It is
defined over the whole image plane, so that neighbouring objects can share a material without a visible seam.
"""

from __future__ import annotations

import colorsys
import math
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from dada.datasets.painted.outlines import Bytes, Rng
from dada.datasets.painted.patterns import MAKERS, TILE
from dada.errors import InputError

PATTERNS = 72
PICTURES = 28
PHOTOGRAPH_SIDE = 768  # photographs are shrunk to this: crops of a few hundred pixels keep their detail
PHOTOGRAPH_FILES = 300  # bounds the memory at about 0.5 GB
SUFFIXES = {".png", ".jpg", ".jpeg", ".webp", ".bmp", ".tif", ".tiff"}


@dataclass(frozen=True, eq=False)
class Material:
    """A tile, where it lies and how it is coloured."""

    tile: Bytes  # [h, w] pattern or [h, w, 3] picture
    inverse_map: NDArray[np.float64]  # [2, 3]: image pixel (x, y) -> tile pixel
    colours: NDArray[Any]  # pattern: [256, 1, 3] uint8 palette; picture: [3, 4] mixing of its channels

    def paint(self, x: int, y: int, width: int, height: int) -> Bytes:
        """The material over a box of the image, [height, width, 3]."""
        inverse = self.inverse_map.copy()
        inverse[:, 2] += self.inverse_map[:, :2] @ (x, y)
        flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
        patch = cv2.warpAffine(self.tile, inverse, (width, height), flags=flags, borderMode=cv2.BORDER_REFLECT_101)
        return cv2.applyColorMap(patch, self.colours) if self.tile.ndim == 2 else cv2.transform(patch, self.colours)

    def moved(self, rng: Rng) -> Material:
        """The same material at another position of its tile."""
        inverse = self.inverse_map.copy()
        inverse[:, 2] = rng.uniform(0, TILE, 2)
        return replace(self, inverse_map=inverse)


@lru_cache(maxsize=4)
def texture_bank(seed: int, photographs: Path | None, photograph_share: float) -> Textures:
    """The bank of these settings, made once in a process; for the arguments see `Textures`."""
    return Textures(seed, photographs, photograph_share)


class Textures:
    """A bank of tiles to draw materials from.

    Args:
        seed: of the bank; the same seed gives the same tiles.
        photographs: a folder of photographs (searched below it too; grey and 16-bit files are passed over), or None for
            procedural tiles alone.
        photograph_share: of the materials drawn, the share cut from photographs, 0 to 1.

    Raises:
        InputError: the folder holds no readable photograph.
    """

    def __init__(self, seed: int, photographs: Path | None, photograph_share: float) -> None:
        rng = np.random.default_rng([seed, 0x7E87])
        makers = [maker for maker, weight in MAKERS for _ in range(weight)]
        self.patterns = [makers[k % len(makers)](rng) for k in range(PATTERNS)]
        self.pictures = [_picture(rng, self.patterns) for _ in range(PICTURES)]
        self.photographs = [] if photographs is None else _read_photographs(photographs)
        self.photograph_share = photograph_share if self.photographs else 0.0

    def draw(self, rng: Rng) -> Material:
        """A material: pattern, picture or photograph under a drawn map."""
        zoom = math.exp(rng.uniform(math.log(0.25), math.log(1.4)))  # tile pixels for each image pixel
        kind = rng.random()
        if kind < self.photograph_share:
            return self._cut(rng, self.photographs, zoom)
        if kind > 0.8:
            return self._cut(rng, self.pictures, zoom)
        angle = (
            rng.uniform(0, 2 * math.pi) if rng.random() < 0.6 else rng.integers(4) * math.pi / 2 + rng.normal(0, 0.05)
        )
        cos, sin, stretch = zoom * math.cos(angle), zoom * math.sin(angle), math.exp(rng.normal(0, 0.2))
        x, y = rng.uniform(0, TILE, 2)
        inverse = np.array([[cos * stretch, -sin, x], [sin * stretch, cos, y]])
        return Material(self.patterns[rng.integers(len(self.patterns))], inverse, palette(rng))

    def _cut(self, rng: Rng, tiles: list[Bytes], zoom: float) -> Material:
        """A piece of a picture, nearly upright, with slightly changed colours."""
        tile = tiles[rng.integers(len(tiles))]
        angle = rng.normal(0, 0.2) + (np.pi if rng.random() < 0.1 else 0)
        flip = rng.choice([-1.0, 1.0])
        linear = zoom * np.array([[flip * np.cos(angle), -np.sin(angle)], [flip * np.sin(angle), np.cos(angle)]])
        inverse = np.column_stack([linear, rng.uniform(0, 1, 2) * tile.shape[1::-1]])
        contrast = rng.uniform(0.4, 1.2)
        mixing = contrast * (np.eye(3) + rng.normal(0, 0.12, (3, 3)))
        offset = rng.uniform(0.0, 1.0) * 128 * (1 - contrast) + rng.normal(0, 12, 3)
        return Material(tile, inverse, np.column_stack([mixing, offset]))


def palette(rng: Rng) -> Bytes:
    """Colours for the 256 levels of a pattern, [256, 1, 3], of low to high contrast."""
    spread = math.exp(rng.uniform(math.log(0.02), math.log(0.9)))
    count = int(rng.integers(2, 7))
    shades = colour(rng) + spread * rng.uniform(-0.6, 0.6, (count, 1))  # light and dark of one hue
    if rng.random() < 0.5:
        shades = shades + spread * rng.normal(0, 0.2, (count, 3))
    # a print has few inks with hard edges between them
    steps = cv2.INTER_NEAREST if rng.random() < 0.25 else cv2.INTER_LINEAR
    table = cv2.resize(255 * shades.reshape(count, 1, 3), (1, 256), interpolation=steps)
    return np.minimum(np.maximum(table, 0), 255).astype(np.uint8)


def colour(rng: Rng) -> tuple[float, float, float]:
    """One colour as of indoor objects: mostly greys, browns and pale tints, sometimes vivid. RGB in 0..1."""
    hue = rng.uniform() if rng.random() < 0.5 else rng.normal(0.08, 0.04) % 1
    return colorsys.hsv_to_rgb(hue, rng.beta(1.0, 2.8), 0.05 + 0.95 * rng.beta(1.6, 1.3))


def _picture(rng: Rng, patterns: list[Bytes]) -> Bytes:
    """A poster: overlapping coloured shapes with shading and outlines, all of it flat, [TILE, TILE, 3]."""
    picture = cv2.applyColorMap(patterns[rng.integers(len(patterns))], palette(rng))
    for size in np.sort(np.exp(rng.uniform(np.log(8), np.log(150), int(rng.integers(6, 60)))))[::-1]:
        corners = int(rng.choice([3, 4, 4, 5, 24]))
        angles = np.sort(rng.uniform(0, 2 * np.pi, corners))
        radii = size * rng.uniform(0.4, 1, (corners, 1)) if corners < 24 else size / 2
        outline = radii * np.column_stack([np.cos(angles), np.sin(angles)]) + rng.uniform(0, TILE, 2)
        mask = np.zeros((TILE, TILE), np.uint8)
        cv2.fillPoly(mask, [np.rint(16 * outline).astype(np.int32)], 255, cv2.LINE_8, 4)
        if rng.random() < 0.3:  # a painted shadow
            light = cv2.blur(255 - np.roll(mask, 4, (0, 1)) // 2, (9, 9))
            picture = cv2.multiply(picture, cv2.merge([light, light, light]), scale=1 / 255)
        cv2.copyTo(cv2.applyColorMap(np.roll(patterns[rng.integers(len(patterns))], 91), palette(rng)), mask, picture)
    return cv2.GaussianBlur(picture, (3, 3), 0.6)


def _read_photographs(folder: Path) -> list[Bytes]:
    """The photographs below a folder as RGB, in the order of their names."""
    files = sorted(file for file in Path(folder).rglob("*") if file.suffix.lower() in SUFFIXES)
    photographs = []
    for file in files[:PHOTOGRAPH_FILES]:
        photograph = cv2.imread(str(file), cv2.IMREAD_UNCHANGED)
        if photograph is None or photograph.ndim != 3 or photograph.dtype != np.uint8:
            continue  # a depth map beside the photographs, or no image at all
        ratio = PHOTOGRAPH_SIDE / max(photograph.shape)
        if ratio < 1:
            photograph = cv2.resize(photograph, None, fx=ratio, fy=ratio, interpolation=cv2.INTER_AREA)
        photographs.append(np.ascontiguousarray(photograph[..., 2::-1]))
    if not photographs:
        raise InputError(f"{folder} holds no readable photograph: give a folder with PNG or JPEG files, or none at all")
    return photographs
