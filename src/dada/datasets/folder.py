"""A plain folder of pairs, in any format that `dada.io` reads."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

import numpy as np

from dada.datasets.files import read_guide
from dada.datasets.pair import DEPTH, Pair, check_index, check_split, deviation
from dada.errors import InputError
from dada.io import default_invalid, default_unit, parse_unit, read_image, valid_pixels
from dada.io.detect import SUFFIXES

SAMPLE = 200  # images that the standard deviation is measured on


class Folder:
    """Images that belong together by name, of any format that `dada.io` reads.

    Either in two subfolders (`guide/0001.jpg` and `depth/0001.png`) or side by side (`0001_guide.jpg` and
    `0001_depth.png`). A folder with subfolders train, val and test is split so; any other is the same for every split.
    """

    def __init__(
        self,
        path: str | Path,
        split: str = "test",
        *,
        guide: str = "guide",
        depth: str = "depth",
        unit: str = "",
        invalid: str = "",
    ) -> None:
        """Find the pairs; none is read yet.

        Args:
            path: the folder.
            split: "train", "val" or "test".
            guide: name of the guides' subfolder, or the ending of their file names after an underscore.
            depth: the same for the targets.
            unit: of the stored targets: mm, cm, m, tum, raw, or stored units in a metre. By default 16-bit integers
                are mm, floats m, all else raw.
            invalid: the stored value that means "not measured". By default 0 in integers, NaN in floats.

        Raises:
            InputError: there is no such folder, or no pair in it.
        """
        self.path = Path(path)
        inner = self.path / check_split(split)
        self.pairs = _find(inner if inner.is_dir() else self.path, guide, depth)
        self._unit = parse_unit(unit) if unit else default_unit(read_image(self.pairs[0][1]))
        self._invalid = _number(invalid) if invalid else None

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.path.resolve().name

    @property
    def quantity(self) -> str:
        """Depth in mm, or the values as stored if they are no lengths."""
        return "stored values" if self._unit.per_metre is None else DEPTH

    @cached_property
    def unit(self) -> float:
        """Standard deviation of the valid values of at most 200 images, spread evenly."""
        step = -(-len(self) // SAMPLE)
        return deviation(self._target(depth) for _, depth in self.pairs[::step])

    def __len__(self) -> int:
        return len(self.pairs)

    def __getitem__(self, index: int) -> Pair:
        guide, depth = self.pairs[check_index(index, len(self))]
        return Pair(read_guide(guide), self._target(depth), depth.stem)

    def _target(self, path: Path) -> np.ndarray:
        raster = read_image(path)
        valid = valid_pixels(raster.values, default_invalid(raster) if self._invalid is None else self._invalid)
        scale = 1.0 if self._unit.per_metre is None else 1000 / self._unit.per_metre
        return np.where(valid, raster.values * scale, np.nan).astype(np.float32)


def _find(folder: Path, guide: str, depth: str) -> list[tuple[Path, Path]]:
    if not folder.is_dir():
        raise InputError(f"{folder}: this is not a folder. Name one that holds pairs of guides and targets.")
    if (folder / guide).is_dir() and (folder / depth).is_dir():
        guides, depths = _images(folder / guide), _images(folder / depth)
    else:
        guides, depths = _images(folder, "_" + guide), _images(folder, "_" + depth)
    if not (shared := sorted(guides.keys() & depths.keys())):
        raise InputError(
            f"{folder}: there are no pairs in it. Looked for images of the same name in its subfolders {guide} and "
            f"{depth}, and for images side by side such as 0001_{guide}.png and 0001_{depth}.png; "
            f"folder:PATH?guide=rgb&depth=disp names other subfolders or endings."
        )
    if alone := sorted(guides.keys() ^ depths.keys()):
        raise InputError(
            f"{folder}: {len(alone)} images have no partner, such as {alone[0]!r}. Add it or move them away."
        )
    return [(guides[name], depths[name]) for name in shared]


def _images(folder: Path, ending: str = "") -> dict[str, Path]:
    files = [f for f in sorted(folder.iterdir()) if f.suffix.lower() in SUFFIXES and not f.name.startswith(".")]
    found: dict[str, Path] = {}
    for file in files:
        if not file.stem.endswith(ending):
            continue
        name = file.stem.removesuffix(ending)
        if name in found:
            raise InputError(f"{folder}: {found[name].name} and {file.name} have the same name. Keep one of them.")
        found[name] = file
    return found


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"invalid={text} is not a number.") from None
