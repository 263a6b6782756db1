"""Small data sets and methods for the tests of the bench."""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from torch import Tensor

from dada.datasets import DEPTH, Pair
from dada.io import write_image
from dada.sample import Sample


def pair(name: str, size: tuple[int, int] = (64, 96), seed: int = 0, holes: bool = True) -> Pair:
    """A box in front of a slanted wall, in millimetres, with a guide that shows its outline."""
    rng = np.random.default_rng(seed)
    rows, cols = np.mgrid[: size[0], : size[1]]
    top, left = rng.integers(4, 20, 2)
    box = (rows >= top) & (rows < top + 30) & (cols >= left) & (cols < left + 40)
    target = np.where(box, 1500.0, 2500 + 2.0 * cols).astype(np.float32)
    if holes:
        target[5:9, 50:60] = np.nan
    guide = np.where(box[..., None], (200, 60, 40), (70, 120, 160)) + rng.integers(-6, 7, (*size, 3))
    return Pair(guide.astype(np.uint8), target, name)


@dataclass(frozen=True)
class Few:
    """A data set of pairs at hand."""

    pairs: tuple[Pair, ...]
    name: str = "middlebury_like"
    unit: float = 1000.0
    quantity: str = DEPTH

    def __len__(self) -> int:
        return len(self.pairs)

    def __getitem__(self, index: int) -> Pair:
        return self.pairs[index]


CALLS: list[tuple[str, int]] = []
"""Problems that an `Offset` was run on, and their factors."""


@dataclass(frozen=True)
class Offset:
    """Bicubic plus a constant in the sample's unit; fails at one problem or warns, if told to."""

    amount: float = 0.0
    fails_at: str = ""
    warning: str = ""
    name: str = "offset"

    def __call__(self, sample: Sample) -> Tensor:
        if sample.names[0] == self.fails_at:
            raise RuntimeError("no idea")
        if self.warning:
            warnings.warn(self.warning, stacklevel=2)
        CALLS.append((sample.names[0], round(sample.factor)))
        return sample.initial + self.amount


def write_folder(folder: Path, names: tuple[str, ...] = ("one", "two"), size: tuple[int, int] = (64, 96)) -> Path:
    """Scenes as `scenes:PATH` reads them: NYU-like depth in millimetres."""
    for number, name in enumerate(names):
        found = pair(name, size, seed=number)
        (folder / name).mkdir(parents=True)
        write_image(folder / name / "rgb.png", found.guide)
        millimetres = np.nan_to_num(found.target, nan=0).round().astype(np.uint16)
        write_image(folder / name / "depth_mm.png", millimetres)
        (folder / name / "meta.json").write_text(json.dumps({"dataset": "NYU Depth v2", "dada_split": "test"}))
    return folder
