"""The camera of painted scenes, from light to 8-bit values: blur, colour filter, noise, tone, compression."""

from __future__ import annotations

import math
from functools import cache

import cv2
import numpy as np

from dada.datasets.painted.kernels import expose
from dada.datasets.painted.outlines import Bytes, Floats, Rng

NOISE = 2**21  # normal numbers drawn once: drawing them for each scene would take half of its time


@cache
def _noise_store() -> Floats:
    return np.random.default_rng(0xDADA).standard_normal(NOISE, np.float32)


def develop(image: Floats, rng: Rng) -> Bytes:
    """Simulate a photograph of a scene.

    Args:
        image: [H, W, 3] light, 0 to about 1; changed in place.
        rng: draws the camera's properties.

    Returns:
        [H, W, 3] uint8.
    """
    image = _focus(image, rng)
    if rng.random() < 0.15:
        _add_blotches(image, rng)
    picture = _expose(image, rng)
    if rng.random() < 0.25:
        picture = _demosaic(picture)
    picture = cv2.LUT(picture, _tone(rng))
    if rng.random() < 0.15:  # the sharpening of cheap cameras
        picture = cv2.addWeighted(picture, 1.6, cv2.GaussianBlur(picture, (0, 0), rng.uniform(0.8, 1.5)), -0.6, 0)
    if rng.random() < 0.3:
        quality = [cv2.IMWRITE_JPEG_QUALITY, int(rng.integers(45, 97))]
        return np.asarray(cv2.imdecode(cv2.imencode(".jpg", picture, quality)[1], cv2.IMREAD_COLOR))
    return picture


def _focus(image: Floats, rng: Rng) -> Floats:
    """Point spread of a lens, and in part of the scenes a shift of up to 0.3 px against the depth."""
    sigma = rng.uniform(0.3, 0.8) if rng.random() < 0.85 else rng.uniform(0.8, 1.8)
    image = cv2.GaussianBlur(image, (0, 0), sigma)
    if rng.random() < 0.3:
        shift = np.column_stack([np.eye(2), rng.uniform(-0.3, 0.3, 2)])
        image = cv2.warpAffine(image, shift, image.shape[1::-1], borderMode=cv2.BORDER_REPLICATE)
    return image


def _expose(image: Floats, rng: Rng) -> Bytes:
    """8-bit values at an exposure set by the mean, with noise that grows with light."""
    exposure = rng.uniform(0.22, 0.55) / max(sum(cv2.mean(image)[:3]) / 3, 1e-3)
    amount = math.exp(rng.uniform(math.log(0.001), math.log(0.02 if rng.random() < 0.8 else 0.06)))
    if image.size <= NOISE // 2:
        start = int(rng.integers(NOISE - image.size))
        grain = _noise_store()[start : start + image.size].reshape(image.shape)
    else:
        grain = rng.standard_normal(image.shape, np.float32)
    picture = np.empty(image.shape, np.uint8)
    expose(image, grain, np.float32(min(max(exposure, 0.6), 3)), np.float32(0.4 * amount), np.float32(amount), picture)
    return picture


def _add_blotches(image: Floats, rng: Rng) -> None:
    """Low-frequency colour noise, as of small sensors in the dark."""
    height, width = image.shape[:2]
    side = int(rng.integers(3, 12))
    blotches = rng.normal(0, 0.01, (height // side + 2, width // side + 2, 3)).astype(np.float32)
    image += cv2.resize(blotches, (width, height), interpolation=cv2.INTER_CUBIC)


def _demosaic(picture: Bytes) -> Bytes:
    """Keep one colour per pixel (Bayer pattern) and interpolate the others."""
    height, width = picture.shape[:2]
    mosaic = picture[..., 1].copy()
    mosaic[0::2, 0::2] = picture[0::2, 0::2, 0]
    mosaic[1::2, 1::2] = picture[1::2, 1::2, 2]
    padded = cv2.copyMakeBorder(mosaic, 2, 2, 2, 2, cv2.BORDER_REFLECT_101)  # keeps the order of the colours
    return cv2.demosaicing(padded, cv2.COLOR_BayerBG2RGB)[2 : 2 + height, 2 : 2 + width]


def _tone(rng: Rng) -> Bytes:
    """White balance, gamma and black level as one table, [1, 256, 3]."""
    light = np.linspace(0, 1, 256)[:, None]
    gain = np.exp(rng.normal(0, 0.06, 3))
    black = rng.uniform(0, 0.06)
    tone = black + (1 - black) * np.clip(light * gain, 0, 1) ** rng.uniform(0.7, 1.25)
    return np.rint(255 * np.clip(tone, 0, 1)).astype(np.uint8)[None]
