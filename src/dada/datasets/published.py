"""Training crops as the paper's released code draws them; `augment.py` holds what this package does by default.

The whole image is flipped and rotated, then a window is cut from it. Guide and depth are both interpolated bilinearly.
Only the pixels of the window are computed, at the places where the rotation of the whole image would put them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dada.datasets.crops import SIZE, validity
from dada.datasets.pair import Pair
from dada.errors import InputError

FLIP, ROTATION = 0.5, 15.0  # probability; degrees
DRAWS = 32  # without a crop that is valid enough, after which the released code stops
TOLERANCE = 1e-4  # pixels by which the size of a rotated image may be exceeded before it grows


@dataclass(frozen=True)
class PublishedCrops:
    """Draws random crops.

    Attributes:
        interior: as for NYUv2 and DIML: crops lie within the rotated image, and none is drawn again. Holes are zeros
            while depth is interpolated. If false, as for Middlebury: crops may reach beyond the border, where the guide
            is black and depth is unknown; holes spread to every pixel that is interpolated from one; and a crop is
            drawn again, with a new flip and rotation, where too little of it is valid.
    """

    interior: bool = False

    def crop(self, pair: Pair, rng: np.random.Generator, size: int = SIZE, factor: int = 8) -> Pair:
        """Draw a crop of size x size.

        Args:
            pair: no smaller than the crop.
            rng: source of all random choices.
            size: height and width of the crop in pixels.
            factor: target pixels per source cell, along each axis; must divide `size`.

        Raises:
            InputError: the pair is smaller than the crop, or `DRAWS` crops had too many holes.
        """
        if min(pair.size) < size:
            raise InputError(
                f"{pair.name} has {pair.size[0]} x {pair.size[1]} pixels, too few for crops of {size} x {size}. Take "
                "smaller crops."
            )
        for _ in range(1 if self.interior else DRAWS):
            found = self._draw(pair, rng, size)
            if self.interior or validity(found.valid, factor) >= 1:
                return found
        raise InputError(
            f"{pair.name}: none of {DRAWS} random crops had 0.9 of its source and 0.8 of its target valid. The "
            'released code stops here, too. Leave the image out (exclude), or use augmentation "rigid", which takes '
            "the best of them."
        )

    def _draw(self, pair: Pair, rng: np.random.Generator, size: int) -> Pair:
        flip = bool(rng.random() < FLIP)
        largest = largest_rotation(pair.size, size) if self.interior else ROTATION
        degrees = rng.uniform(-largest, largest)
        rows, cols = rotated = expanded_size(pair.size, degrees) if self.interior else pair.size
        top, left = 0, 0
        if self.interior:
            rows, cols = interior_size(pair.size, degrees)
            top, left = (round((whole - inner) / 2) for whole, inner in zip(rotated, (rows, cols), strict=True))
        row, col = top + int(rng.integers(rows - size + 1)), left + int(rng.integers(cols - size + 1))
        guide, target = pair.guide, pair.target
        if self.interior:
            target = np.where(np.isfinite(target), target, np.float32(0))
        if flip:
            guide, target = guide[:, ::-1], target[:, ::-1]
        places = _places(pair.size, rotated, degrees, (row, col), size)
        target = _bilinear(target[..., None], *places)[..., 0]
        target[target == 0] = np.nan  # what lies beyond the border, and holes stored as zeros
        white = np.float32(1 if guide.dtype.kind == "f" else np.iinfo(guide.dtype).max)
        return Pair(_bilinear(guide, *places) / white, target, f"{pair.name}@{row},{col}")


def largest_rotation(image: tuple[int, int], size: int) -> float:
    """The largest angle in whole degrees, at most `ROTATION`, whose interior still holds a crop of size x size."""
    height, width = image
    diagonal = math.sqrt(height**2 + width**2 - size**2)
    angles = (2 * math.atan((diagonal - other) / (size + own)) for own, other in ((height, width), (width, height)))
    return min(ROTATION, float(math.floor(math.degrees(min(angles)))))


def expanded_size(image: tuple[int, int], degrees: float) -> tuple[int, int]:
    """Rows and columns of the smallest whole-pixel image that holds the rotated one."""
    height, width = image
    cos, sin = abs(math.cos(math.radians(degrees))), abs(math.sin(math.radians(degrees)))
    sizes = []
    for own, half in ((height, (width * sin + height * cos) / 2), (width, (width * cos + height * sin) / 2)):
        low, high = (math.trunc((own / 2 + end) / TOLERANCE) * TOLERANCE for end in (-half, half))
        sizes.append(math.ceil(high) - math.floor(low))
    return sizes[0], sizes[1]


def interior_size(image: tuple[int, int], degrees: float) -> tuple[int, int]:
    """Rows and columns of the centred window of the rotated image that the released code crops from."""
    sin = math.sin(math.radians(abs(degrees)))
    expanded = expanded_size(image, degrees)
    rows, cols = (math.floor(n - 2 * sin * other) for n, other in zip(expanded, image[::-1], strict=True))
    return rows, cols


def _places(
    image: tuple[int, int], rotated: tuple[int, int], degrees: float, corner: tuple[int, int], size: int
) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of the image, counted from the centre of its first pixel, at which each crop pixel lies."""
    cos, sin = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    y = corner[0] + np.arange(size)[:, None] + 0.5 - rotated[0] / 2
    x = corner[1] + np.arange(size)[None, :] + 0.5 - rotated[1] / 2
    return sin * x + cos * y + image[0] / 2 - 0.5, cos * x - sin * y + image[1] / 2 - 0.5


def _bilinear(image: np.ndarray, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
    """Interpolate (H, W, C) at the places; what lies beyond the border is 0, and NaN spreads.

    A pixel that is interpolated from both sides of the border is multiplied by the share that lies within the image
    once more, as the released code's library does.
    """
    height, width = image.shape[:2]
    top, left = np.floor(rows).astype(int), np.floor(cols).astype(int)
    down, right = rows - top, cols - left
    total = np.zeros((*rows.shape, image.shape[2]), np.float64)
    share = np.zeros(rows.shape)
    for i, by_row in ((top, 1 - down), (top + 1, down)):
        for j, by_col in ((left, 1 - right), (left + 1, right)):
            weight = by_row * by_col
            inside = (i >= 0) & (i < height) & (j >= 0) & (j < width)
            total[inside] += weight[inside, None] * image[i[inside], j[inside]]
            share += np.where(inside, weight, 0)
    return np.asarray((total * share[..., None]).astype(np.float32))
