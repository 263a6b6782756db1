"""Simulate the errors of real depth cameras: thin objects lost, ragged, soft and shifted edges, holes, noise.

A network trained only on sharp scenes relies too much on the guide: on Kinect frames, whose depth edges are soft and
shifted against the photograph, it is worse than bicubic. Under protocol P1 the source is the average of the target, so
the target itself is softened, and a misregistered pair is simulated by moving the guide. The defaults follow the
training frames of NYUv2 (docs/reference/painted.md has the figures).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import cv2
import numpy as np
import torch

from dada.datasets.pair import Pair
from dada.errors import InputError
from dada.sample import Interpolation, Sample, initialise

Floats = np.ndarray  # of float32
Mask = np.ndarray  # of bool
Rng = np.random.Generator

OFTEN = 0.6  # probability of each effect in a degraded pair
SCATTERED, PATCHES = 0.8, 0.3  # largest shares of cells without a measurement
FEWEST = 8  # measured cells that remain
JUMP = 0.03  # relative step that hides part of the scene from a projector beside the camera; cf. `jumps`


@dataclass(frozen=True)
class Sensor:
    """A random degradation of pairs; the strength of each effect is drawn between 0 and the value given here.

    Args:
        share: probability that a pair is degraded, 0 to 1.
        lost: px; foreground objects thinner than this vanish.
        ragged: px, displacement of depth edges.
        soft: px, standard deviation of the blur across edges of depth.
        noise: 1/mm; standard deviation of the depth noise is noise * depth ** 2 (1.5e-6: 1.5 mm at 1 m, 13 mm at 3 m).
        holes: px, width of the blind strip beside a jump; 0 leaves none.
        shift: px, displacement of the guide against the target; small ones are more frequent than large ones.
        rotation: degrees, rotation of the guide.
        zoom: relative scaling of the guide: 0.005 is half a percent.

    Raises:
        InputError: a value below 0, or a share above 1.
    """

    share: float = 0.5
    lost: float = 4.0
    ragged: float = 1.0
    soft: float = 3.5
    noise: float = 1.5e-6
    holes: float = 0.0
    shift: float = 5.0
    rotation: float = 0.3
    zoom: float = 0.004

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not value >= 0 or (name == "share" and value > 1):
                expected = "between 0 and 1" if name == "share" else "0 or more"
                raise InputError(f"sensor: {name} is {value}; expected {expected}")

    def __call__(self, pair: Pair, rng: Rng) -> Pair:
        """Return the degraded pair, of the same size and name; the input is not changed."""
        if rng.random() >= self.share:
            return pair
        amounts = {name: value * rng.random() * (rng.random() < OFTEN) for name, value in vars(self).items()}
        amounts["soft"] = self.soft * rng.random()  # hardly any edge of a Kinect frame is sharp
        depth, valid = pair.target, pair.valid
        if not valid.any():
            return pair
        depth = np.where(valid, depth, depth[valid].max()).astype(np.float32)
        depth = _lose(depth, amounts["lost"])
        depth, valid = _fray(depth, valid, amounts["ragged"], rng)
        depth = _soften(depth, valid, amounts["soft"], rng)
        depth += np.float32(amounts["noise"]) * depth * depth * _blotches(rng, pair.size, rng.uniform(1.5, 6))
        valid = valid & ~_blind_strips(depth, amounts["holes"], rng)
        guide = _misregister(pair.guide, amounts["shift"] * rng.random(), amounts["rotation"], amounts["zoom"], rng)
        return Pair(guide, np.where(valid, depth, np.float32(np.nan)), pair.name)


RAGGED = Sensor(share=1.0, lost=0.0, soft=0.0, noise=0.0, shift=0.0, rotation=0.0, zoom=0.0)
"""Only ragged outlines, as in measured ground truth that is sharp otherwise."""


def _blotches(rng: Rng, size: tuple[int, int], side: float) -> Floats:
    """Smooth noise of deviation about 1 with a correlation length of `side` pixels, [H, W]."""
    height, width = size
    knots = rng.standard_normal((2 + int(height / side), 2 + int(width / side)), np.float32)
    return cv2.resize(knots, (width, height), interpolation=cv2.INTER_CUBIC)


def _lose(depth: Floats, thickness: float) -> Floats:
    """Foreground objects thinner than `thickness` take the depth of their background."""
    side = round(thickness)
    if side < 2:
        return depth
    return cv2.morphologyEx(depth, cv2.MORPH_CLOSE, np.ones((side, side), np.uint8))


def _fray(depth: Floats, valid: Mask, reach: float, rng: Rng) -> tuple[Floats, Mask]:
    """Displace edges by about `reach` pixels; every pixel takes an existing depth."""
    if reach < 0.25:
        return depth, valid
    height, width = depth.shape
    side = rng.uniform(2, 7)
    x = np.arange(width, dtype=np.float32)[None] + np.float32(reach) * _blotches(rng, depth.shape, side)
    y = np.arange(height, dtype=np.float32)[:, None] + np.float32(reach) * _blotches(rng, depth.shape, side)
    frayed = cv2.remap(depth, x, y, cv2.INTER_NEAREST, borderMode=cv2.BORDER_REPLICATE)
    kept = cv2.remap(valid.view(np.uint8), x, y, cv2.INTER_NEAREST, borderMode=cv2.BORDER_REPLICATE)
    return frayed, kept.astype(bool)


def _soften(depth: Floats, valid: Mask, sigma: float, rng: Rng) -> Floats:
    """Blur the valid values, with a strength that varies over the image."""
    if sigma < 0.2:
        return depth
    weight = valid.astype(np.float32)
    blurred = cv2.GaussianBlur(depth * weight, (0, 0), sigma) / np.maximum(
        cv2.GaussianBlur(weight, (0, 0), sigma), 1e-3
    )
    share = np.minimum(np.maximum(_blotches(rng, depth.shape, 24) + 1, 0), 1)
    return np.where(valid, depth + share * (blurred - depth), depth)


def _blind_strips(depth: Floats, width: float, rng: Rng) -> Mask:
    """Background pixels within `width` of a jump on one side: the foreground occludes them from the projector."""
    flip = 1 if rng.random() < 0.5 else -1
    depth = depth[:, ::flip]
    blind = np.zeros(depth.shape, bool)
    for step in range(1, min(round(width), depth.shape[1] - 1) + 1):
        blind[:, step:] |= depth[:, step:] > depth[:, :-step] * np.float32(1 + JUMP)
    return blind[:, ::flip]


def _misregister(guide: np.ndarray, shift: float, rotation: float, zoom: float, rng: Rng) -> np.ndarray:
    """Move the guide by `shift` pixels in a random direction; rotate and scale it about its centre."""
    height, width = guide.shape[:2]
    angle, scale = rng.uniform(-rotation, rotation), 1 + rng.uniform(-zoom, zoom)
    direction = rng.uniform(0, 2 * math.pi)
    move: np.ndarray = cv2.getRotationMatrix2D(((width - 1) / 2, (height - 1) / 2), angle, scale)
    move[0, 2] += shift * math.cos(direction)
    move[1, 2] += shift * math.sin(direction)
    moved = cv2.warpAffine(guide, move, (width, height), flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REFLECT_101)
    return moved.reshape(guide.shape)


def with_gaps(sample: Sample, rng: Rng, interpolation: Interpolation = "torch") -> Sample:
    """Return the sample with cells that were not measured: scattered ones, patches, or both. The target stays.

    Args:
        sample: a single problem.
        rng: draws which cells.
        interpolation: of the initial image; see `dada.sample.initialise`.
    """
    cells = sample.source.shape[-2], sample.source.shape[-1]
    kind = rng.integers(3)
    kept = rng.random(cells) >= (rng.uniform(0, SCATTERED) if kind != 1 else 0)
    if kind != 0:
        smooth = _blotches(rng, cells, rng.uniform(2, 6))
        kept &= smooth >= np.quantile(smooth, rng.uniform(0, PATCHES))
    mask = sample.source_mask & torch.from_numpy(kept)
    if int(mask.sum()) < FEWEST:
        return sample
    source = torch.where(mask, sample.source, 0)
    initial = initialise(source, mask, sample.size, interpolation, sample.sampling)
    return replace(sample, source=source, source_mask=mask, initial=initial)


def noisy_source(sample: Sample, amount: float, rng: Rng, interpolation: Interpolation = "torch") -> Sample:
    """Return the sample with noise in its source, but not in its target.

    Args:
        sample: a batch.
        amount: standard deviation of the noise at a source value of 1 unit; grows with the square of the source, as
            triangulation does. In units of the sample.
        rng: draws the noise.
        interpolation: of the initial image, computed from the noisy source; see `dada.sample.initialise`.
    """
    noise = torch.from_numpy(rng.standard_normal(tuple(sample.source.shape), np.float32)).to(sample.source)
    source = sample.source + amount * noise * sample.source.square() * sample.source_mask
    initial = initialise(source, sample.source_mask, sample.size, interpolation, sample.sampling)
    return replace(sample, source=source, initial=initial)
