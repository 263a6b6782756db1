"""Painted scenes: procedural guides with exact depth, the same for the same seed.

A scene is a backdrop (wall, table, cloth, corner of a room) with objects before it: of all sizes, thin or pierced,
flat or round, lying, standing or floating. Guide and depth disagree on purpose: prints and shadows have edges without
depth, and some objects look like their background. docs/reference/painted.md shows some.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from dada.datasets.painted.camera import develop
from dada.datasets.painted.far import open_far
from dada.datasets.painted.kernels import count_jumps
from dada.datasets.painted.objects import OBJECTS, Part
from dada.datasets.painted.outlines import Floats, Rng
from dada.datasets.painted.stage import Stage
from dada.datasets.painted.textures import Material, Textures, texture_bank
from dada.datasets.pair import DEPTH, Pair, check_index
from dada.errors import InputError

MAKERS = [maker for maker, _ in OBJECTS]
ODDS = np.cumsum([weight for _, weight in OBJECTS]) / sum(weight for _, weight in OBJECTS)
SMALLEST = 16  # px, smallest side of a scene


@dataclass(frozen=True)
class Painted:
    """A data set of painted scenes; `painted[i]` depends on the settings, the seed and i, never on the order of access.

    Args:
        seed: of the set, 0 or more.
        size: height and width of a scene in pixels, both at least 16.
        count: number of scenes.
        textures: a folder of photographs to cut textures from, beside the procedural ones; None: procedural alone.
        photograph_share: of the materials, the share cut from photographs when there are some.
        camouflage: share of objects that look like their background.
        staircase: share of scenes whose depth has the steps of integer disparities.
        far: share of scenes that open to the distance: hills up to 300 times as far, and skies, which have no depth
            (NaN).

    Raises:
        InputError: a setting out of its range, or a folder without photographs.
    """

    seed: int = 0
    size: tuple[int, int] = (256, 256)
    count: int = 10_000
    textures: Path | None = None
    photograph_share: float = 0.4
    camouflage: float = 0.1
    staircase: float = 0.1
    far: float = 0.0
    name: str = field(default="painted", init=False)
    unit: float = field(default=1122.7, init=False)
    quantity: str = field(default=DEPTH, init=False)

    def __post_init__(self) -> None:
        if min(self.size) < SMALLEST:
            raise InputError(
                f"a painted scene of {self.size[0]} x {self.size[1]} pixels is too small: at least 16 x 16"
            )
        if self.seed < 0 or self.count < 1:
            raise InputError(
                f"painted scenes need seed >= 0 and count >= 1; given seed {self.seed}, count {self.count}"
            )
        if self.textures is not None and not Path(self.textures).is_dir():
            raise InputError(f"textures: {self.textures} is not a folder; give a folder of photographs, or none at all")
        for setting in ("photograph_share", "camouflage", "staircase", "far"):
            if not 0 <= getattr(self, setting) <= 1:
                raise InputError(f"{setting} is a share between 0 and 1; given {getattr(self, setting)}")

    @property
    def _bank(self) -> Textures:
        return texture_bank(self.seed, self.textures, self.photograph_share)

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Pair:
        index = check_index(index, self.count)
        rng = np.random.default_rng([self.seed, index])
        known = [self._bank.draw(rng) for _ in range(3)]
        stage = self._set(rng, known)
        if self.far and rng.random() < self.far:
            open_far(stage.image, stage.depth, stage.distance, self._bank, rng)
        for closeness in np.sort(rng.random(_crowd(rng))):
            self._add(stage, known, rng, float(closeness))
        while not has_jump(stage.depth):
            self._add(stage, known, rng, 1.0)
        stage.light_up(rng)
        depth = _staircase(stage.depth, rng) if rng.random() < self.staircase else stage.depth
        depth = np.where(np.isfinite(depth), depth, np.float32(np.nan))
        return Pair(develop(stage.image, rng), depth, f"painted-{self.seed}-{index}")

    def _set(self, rng: Rng, materials: list[Material]) -> Stage:
        """An empty stage with a random distance and focal length."""
        distance = math.exp(rng.uniform(math.log(900), math.log(3500)))
        focal = math.exp(rng.uniform(math.log(350), math.log(4000)))
        return Stage(rng, self.size, distance, distance / focal, materials)

    def _add(self, stage: Stage, known: list[Material], rng: Rng, closeness: float) -> None:
        """Draw an object and place it in the scene."""
        height, width = self.size
        whole = math.sqrt(height * width)
        smallest, largest = (0.15, 0.6) if rng.random() < 0.45 else (4 / whole, 0.35)
        size = whole * math.exp(rng.uniform(math.log(min(smallest, 0.3)), math.log(largest)))
        centre = rng.uniform(-0.05, 1.05, 2) * (width, height)
        parts = MAKERS[int(np.searchsorted(ODDS, rng.random()))](rng, centre, size)
        rest, follow = _placement(stage, rng, parts, centre, closeness)
        gloss = float(rng.uniform(0.1, 0.8)) if rng.random() < 0.25 else 0.0
        material = self._material(rng, known)
        for part in parts:
            own = self._material(rng, known) if part.own_material and material is not None else material
            stage.paint(part, rest, follow, own, gloss, rng)

    def _material(self, rng: Rng, known: list[Material]) -> Material | None:
        """A material for an object: new, one of the scene, or None for that of the background."""
        kind = rng.random()
        if kind < self.camouflage:
            return None
        if kind < 2 * self.camouflage:
            material = known[rng.integers(len(known))]
            return material if rng.random() < 0.5 else material.moved(rng)
        known.append(self._bank.draw(rng))
        return known[-1]


def has_jump(depth: Floats, step: float = 0.015, share: float = 0.001) -> bool:
    """Whether at least a share of the pixels differ from their right neighbour by this step, relative to the nearer.

    Another question than `dada.sample.jumps` answers, where the size of a jump is absolute.
    """
    return bool(count_jumps(depth, np.float32(step)) >= share * depth.size)


def _crowd(rng: Rng) -> int:
    """Number of objects, 3 to 28."""
    return int(math.exp(rng.uniform(math.log(3), math.log(28))))


def _placement(stage: Stage, rng: Rng, parts: list[Part], centre: np.ndarray, closeness: float) -> tuple[float, bool]:
    """The depth of an object in mm and False, or its height above the backdrop in mm and True."""
    height, width = stage.depth.shape
    column, row = (min(max(int(c), 0), last - 1) for c, last in zip(centre, (width, height), strict=True))
    here = float(stage.ground[row, column])
    mode = rng.random()
    if mode < 0.3:  # lies on the backdrop: a book, a tile, a relief
        return here * math.exp(rng.uniform(math.log(0.006), math.log(0.12))), True
    if mode < 0.5:  # stands on the backdrop: no jump at its foot, a growing one above
        foot = max(path[:, 1].max() for part in parts for path in part.outline.paths)
        return float(stage.ground[int(min(max(foot, 0), height - 1)), column]), False
    spread = math.exp(rng.uniform(math.log(0.025), math.log(0.5)))
    return here * (1 - spread * (0.15 + 0.85 * closeness)), False


def _staircase(depth: Floats, rng: Rng) -> Floats:
    """Depth quantised to integer disparities, with steps of 0.15 to 0.6 percent."""
    step = math.exp(rng.uniform(math.log(0.0015), math.log(0.006)))
    known = np.isfinite(depth)
    product = np.float32(np.median(depth[known]) / step)
    return np.where(known, product / np.maximum(np.rint(product / depth), 1), depth)
