"""Augment a pair: flip, rotate and scale both images; change light, colour, noise and blur of the guide."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from statistics import NormalDist

import cv2
import numpy as np

from dada.datasets.crops import SIZE, draw_place, resize_guide, resize_target, unit_guide, validity
from dada.datasets.pair import Pair
from dada.datasets.snap import snap
from dada.errors import InputError

LUMA = np.array([0.299, 0.587, 0.114])  # weights of red, green and blue in brightness (ITU-R BT.601)
SHARES = {"flip", "contrast", "saturation"}
MARGIN = 2  # pixels around a window, for interpolation


@dataclass(frozen=True)
class Augmentation:
    """Strengths of random changes; the defaults are the paper's amounts. 0 switches a change off.

    `published.py` draws crops as the paper's code does.

    The target takes the value of the nearest pixel or of one beside it, so that no value between two surfaces arises;
    outside the image it is NaN. The guide is interpolated, and reflected at the border. All random choices come from
    the generator that is passed.

    Attributes:
        flip: probability of a horizontal flip.
        rotation: largest angle in degrees, in both directions.
        zoom: smallest and largest scale; its logarithm is drawn uniformly.
        smooth: whether outlines of scaled and rotated targets are smooth instead of staircases; see `snap.py`.
        brightness: largest offset, for a guide in 0..1.
        contrast: largest relative change of the distance from the mean.
        saturation: largest relative change of the distance from grey (guides of 3 bands).
        hue: largest rotation of the colours in degrees, in both directions (guides of 3 bands).
        gamma: natural logarithm of the largest exponent.
        noise: largest standard deviation, for a guide in 0..1.
        blur: largest standard deviation, in pixels.
    """

    flip: float = 0.5
    rotation: float = 15.0
    zoom: tuple[float, float] = (1.0, 1.0)
    smooth: bool = False
    brightness: float = 0.0
    contrast: float = 0.0
    saturation: float = 0.0
    hue: float = 0.0
    gamma: float = 0.0
    noise: float = 0.0
    blur: float = 0.0

    def __post_init__(self) -> None:
        """Check the ranges."""
        low, high = self.zoom
        if not 0 < low <= high:
            raise InputError(f"zoom {low}, {high} is not a range of scales: give the least, above 0, and the greatest.")
        for name in (f.name for f in fields(self) if f.name != "zoom"):
            most = 1 if name in SHARES else math.inf
            if not 0 <= getattr(self, name) <= most:
                raise InputError(f"{name} {getattr(self, name)} is out of its range, 0 to {most}.")

    def __call__(self, pair: Pair, rng: np.random.Generator) -> Pair:
        """Change a whole pair; only the zoom changes its size."""
        motion = self._draw_motion(rng)
        return self.photometric(replace(pair, guide=motion.whole(pair.guide), target=motion.whole(pair.target)), rng)

    def crop(self, pair: Pair, rng: np.random.Generator, size: int = SIZE, factor: int = 8) -> Pair:
        """Cut a random crop and augment it: like `random_crop` of the augmented pair, but many times faster.

        Crops with many holes are drawn anew by the rule of `random_crop`. Pairs smaller than the crop are enlarged.

        Args:
            pair: any size.
            rng: source of all random choices.
            size: height and width of the crop in pixels; a multiple of `factor`.
            factor: target pixels per source cell, along each axis.
        """
        motion = self._draw_motion(rng)
        motion = replace(motion, scale=max(motion.scale, size / min(pair.size)))
        side = min(math.ceil(size / motion.scale), *pair.size)
        row, col = draw_place(
            pair.size, side, rng, lambda r, c: validity(np.isfinite(motion.crop(pair.target, r, c, size)), factor)
        )
        guide, target = (motion.crop(image, row, col, size) for image in (pair.guide, pair.target))
        return self.photometric(Pair(guide, target, f"{pair.name}@{row},{col}"), rng)

    def photometric(self, pair: Pair, rng: np.random.Generator) -> Pair:
        """Change light, colour, sharpness and noise of the guide, which becomes float32 if any of them is on."""
        colour = self.brightness, self.contrast, self.saturation, self.hue, self.gamma
        if not any((*colour, self.noise, self.blur)):
            return pair
        guide = unit_guide(pair.guide)
        if self.gamma:
            guide = _like(cv2.pow(guide, math.exp(rng.uniform(-self.gamma, self.gamma))), guide)
        guide = self._recoloured(guide, rng)
        if self.blur and (sigma := rng.uniform(0, self.blur)) > 0.1:  # less does nothing
            guide = _like(cv2.GaussianBlur(guide, (0, 0), sigma), guide)
        if self.noise:
            guide = guide + _normal(guide.shape, rng.uniform(0, self.noise), rng)
        return replace(pair, guide=np.clip(guide, 0, 1, out=guide))

    def _recoloured(self, guide: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Brightness, contrast, saturation and hue, which are one affine map of the bands."""
        gain = 1 + rng.uniform(-self.contrast, self.contrast)
        added = rng.uniform(-self.brightness, self.brightness)
        saturation = 1 + rng.uniform(-self.saturation, self.saturation)
        degrees = rng.uniform(-self.hue, self.hue)
        offset = added + (1 - gain) * float(guide.mean())
        if guide.shape[2] != 3:
            return guide * np.float32(gain) + np.float32(offset)
        grey = np.tile(LUMA, (3, 1))
        colour = _hue_rotation(degrees) @ (grey + saturation * (np.eye(3) - grey))
        return cv2.transform(guide, np.c_[gain * colour, np.full(3, offset)])

    def _draw_motion(self, rng: np.random.Generator) -> Motion:
        flip = rng.random() < self.flip
        degrees = rng.uniform(-self.rotation, self.rotation)
        low, high = self.zoom
        return Motion(bool(flip), degrees, math.exp(rng.uniform(math.log(low), math.log(high))), self.smooth)


def raised(pair: Pair, power: float) -> Pair:
    """Return the pair with its target over the median raised to a power: the same edges in another quantity.

    The pair is returned unchanged if a value is not positive, or if a result exceeds the range of float32.
    """
    known = pair.target[pair.valid].astype(np.float64)
    if not known.size or known.min() <= 0:
        return pair
    median = np.median(known)
    changed = np.full_like(pair.target, np.nan)  # the power 0 of a hole would be 1
    with np.errstate(over="ignore", under="ignore"):
        changed[pair.valid] = median * (known / median) ** power
    made = changed[pair.valid]
    return replace(pair, target=changed) if np.isfinite(made).all() and made.min() > 0 else pair


@dataclass(frozen=True)
class Motion:
    """A zoom, then a rotation, then a flip; the same for guide (H, W, C) and target (H, W)."""

    flip: bool
    degrees: float
    scale: float
    smooth: bool = False

    def whole(self, image: np.ndarray) -> np.ndarray:
        """Move an image about its centre."""
        return self._moved(image, np.array(image.shape[:2]) / 2, _scaled(image, self.scale))

    def crop(self, image: np.ndarray, row: int, col: int, size: int) -> np.ndarray:
        """Return the crop of size x size around the centre of a window at (row, col); reads only needed pixels."""
        angle = math.radians(abs(self.degrees))
        reach = size * (math.cos(angle) + math.sin(angle)) / self.scale / 2 + MARGIN
        y, x = (p + size / self.scale / 2 for p in (row, col))
        top, left = (max(0, math.floor(p - reach)) for p in (y, x))
        window = image[top : math.ceil(y + reach), left : math.ceil(x + reach)]
        return self._moved(window, np.array([y - top, x - left]), (size, size))

    def _moved(self, image: np.ndarray, centre: np.ndarray, size: tuple[int, int]) -> np.ndarray:
        """Return the window of `size` around `centre` (row and column, 0 at the border of the image)."""
        fine = _scaled(image, self.scale)
        ratio = np.array(fine) / image.shape[:2]
        if self.degrees == 0:
            moved = _window(_resized(image, fine, self.smooth), centre * ratio, size)
        elif image.ndim == 2:  # scaled and rotated in one step: nearest-neighbour sampling twice would add errors
            moved = (snap if self.smooth else _warped)(image, self._matrix(centre, size, 1 / ratio), size)
        else:
            moved = _warped(_resized(image, fine), self._matrix(centre * ratio, size, np.ones(2)), size)
        return np.ascontiguousarray(moved[:, ::-1] if self.flip else moved)

    def _matrix(self, centre: np.ndarray, size: tuple[int, int], step: np.ndarray) -> np.ndarray:
        """(2, 3) from places (x, y, 1) of the result to those of the image, `step` (row, column) apart."""
        cos, sin = math.cos(math.radians(self.degrees)), math.sin(math.radians(self.degrees))
        linear = step[::-1, None] * np.array([[cos, sin], [-sin, cos]])
        middle = np.array([size[1] - 1, size[0] - 1]) / 2
        return np.column_stack([linear, centre[::-1] - 0.5 - linear @ middle])


def _warped(image: np.ndarray, matrix: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Sample an image at matrix (2, 3) times each place (x, y, 1) of the new one."""
    if image.ndim == 2:
        flags, border = cv2.INTER_NEAREST | cv2.WARP_INVERSE_MAP, cv2.BORDER_CONSTANT
        return cv2.warpAffine(image, matrix, size[::-1], flags=flags, borderMode=border, borderValue=math.nan)
    flags, border = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP, cv2.BORDER_REFLECT_101
    return _like(cv2.warpAffine(image, matrix, size[::-1], flags=flags, borderMode=border), image)


def _window(image: np.ndarray, centre: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """The window of whole pixels whose centre is nearest."""
    top, left = (min(max(0, round(c - n / 2)), have - n) for c, n, have in zip(centre, size, image.shape, strict=False))
    return image[top : top + size[0], left : left + size[1]]


def _scaled(image: np.ndarray, scale: float) -> tuple[int, int]:
    return max(1, round(image.shape[0] * scale)), max(1, round(image.shape[1] * scale))


def _resized(image: np.ndarray, size: tuple[int, int], smooth: bool = False) -> np.ndarray:
    if size == image.shape[:2]:
        return image
    if smooth and image.ndim == 2:
        (y, x), (rows, cols) = np.array(image.shape) / size, size
        return snap(image, np.array([[x, 0, (x - 1) / 2], [0, y, (y - 1) / 2]]), (rows, cols))
    return resize_target(image, size) if image.ndim == 2 else resize_guide(image, size)


def _normal(shape: tuple[int, ...], sigma: float, rng: np.random.Generator) -> np.ndarray:
    """Normal noise quantised to 256 levels, which takes a tenth of the time of exact normal numbers."""
    levels = np.array([NormalDist(0, max(sigma, 1e-9)).inv_cdf((i + 0.5) / 256) for i in range(256)], np.float32)
    return np.asarray(levels[rng.integers(0, 256, shape, np.uint8)])


def _hue_rotation(degrees: float) -> np.ndarray:
    """(3, 3) rotation of colours about the grey axis."""
    angle = math.radians(degrees)
    axis = np.full((3, 3), 1 / 3)
    cross = np.array([[0, -1, 1], [1, 0, -1], [-1, 1, 0]]) / math.sqrt(3)
    return math.cos(angle) * np.eye(3) + (1 - math.cos(angle)) * axis + math.sin(angle) * cross


def _like(image: np.ndarray, original: np.ndarray) -> np.ndarray:
    """Restore the band axis, which OpenCV drops if there is one band."""
    return image.reshape(*image.shape[:2], original.shape[2])


STRONG = Augmentation(
    zoom=(0.75, 1.5), brightness=0.15, contrast=0.3, saturation=0.5, hue=15, gamma=0.3, noise=0.03, blur=1.0
)
"""For models that must generalise to other cameras and other light."""
