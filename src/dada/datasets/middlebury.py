"""Middlebury stereo 2005, 2006 and 2014 at full size, as the paper splits and converts them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dada.datasets.files import find_root, read_guide, read_target
from dada.datasets.pair import DEPTH, Pair, Split, check_index, check_split
from dada.errors import InputError
from dada.sample.data_unit import MIDDLEBURY

UNIT = MIDDLEBURY.deviation
"""Standard deviation of the depths, in mm (PROTOCOL P1)."""

FOCAL_TIMES_BASELINE = 3740 * 160  # px mm, the same for all of 2005 and 2006 at full size

TEST = {
    ("2005", "Reindeer"),
    ("2006", "Bowling1"),
    ("2006", "Bowling2"),
    ("2014", "Adirondack-perfect"),
    ("2014", "Motorcycle-perfect"),
}
VAL = {
    ("2005", "Moebius"),
    ("2006", "Lampshade1"),
    ("2006", "Lampshade2"),
    ("2014", "Shelves-perfect"),
    ("2014", "Playtable-perfect"),
}

REMEDY = (
    "Get the full-size sets of 2005 and 2006 and the -perfect ones of 2014 from "
    "https://vision.middlebury.edu/stereo/data/ and lay them out as ROOT/Middlebury/2005/Art/{view1,view5,disp1,disp5}"
    ".png and dmin.txt, and ROOT/Middlebury/2014/Adirondack-perfect/{im0,im1}.png, {disp0,disp1}.pfm and calib.txt."
)


class View(NamedTuple):
    """One of the two views of a scene."""

    guide: Path
    disparity: Path
    name: str


class Middlebury:
    """Both views of each scene; depth in mm."""

    name = "Middlebury"
    unit = UNIT
    quantity = DEPTH

    def __init__(self, root: str | Path, split: str = "test") -> None:
        """Find the scenes below ROOT/Middlebury; none is read yet.

        Args:
            root: the folder that holds `Middlebury`, or that folder.
            split: "test" is five scenes, "val" five, "train" all others.

        Raises:
            InputError: a folder or file is not there; the message says which and where to get it.
        """
        self.root = find_root(Path(root), "Middlebury", REMEDY)
        self.views = [view for scene in self._scenes(check_split(split)) for view in _views(scene)]

    def __len__(self) -> int:
        return len(self.views)

    def __getitem__(self, index: int) -> Pair:
        view = self.views[check_index(index, len(self))]
        disparity = read_target(view.disparity)
        folder = view.disparity.parent
        if view.disparity.suffix == ".pfm":
            depth = depth_2014(disparity, *read_calibration(folder / "calib.txt"))
        else:
            depth = depth_2006(disparity, read_dmin(folder / "dmin.txt"))
        return Pair(read_guide(view.guide), depth, view.name)

    def _scenes(self, split: Split) -> list[Path]:
        if split != "train":
            scenes = [self.root / year / name for year, name in sorted(TEST if split == "test" else VAL)]
            if missing := [str(s) for s in scenes if not s.is_dir()]:
                raise InputError(f"Middlebury, split {split}: there is no folder {', '.join(missing)}. {REMEDY}")
            return scenes
        scenes = [
            scene
            for year in ("2005", "2006", "2014")
            for scene in sorted((self.root / year).glob("*-perfect" if year == "2014" else "*"))
            if (year, scene.name) not in TEST | VAL and any(scene.glob("disp?.*"))  # some are published without truth
        ]
        if not scenes:
            raise InputError(f"{self.root}: there is no training scene in its folders 2005, 2006 and 2014. {REMEDY}")
        return scenes


def depth_2006(disparity: np.ndarray, dmin: float) -> np.ndarray:
    """Depth in mm of 8-bit disparities of 2005 and 2006 (any size); 0 is a hole and becomes NaN."""
    hole = disparity == 0
    return np.where(hole, np.float32(np.nan), FOCAL_TIMES_BASELINE / (disparity + np.float32(dmin))).astype(np.float32)


def depth_2014(disparity: np.ndarray, focal: float, baseline: float, doffs: float) -> np.ndarray:
    """Depth in mm of float disparities of 2014; what is not finite is a hole and stays NaN."""
    return (focal * baseline / (disparity + np.float32(doffs))).astype(np.float32)


def read_dmin(path: Path) -> float:
    """The disparity that was subtracted before storing, from dmin.txt."""
    try:
        return float(path.read_text())
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: expected a text file with a single number, dmin ({error}).") from None


def read_calibration(path: Path) -> tuple[float, float, float]:
    """Focal length in pixels, baseline in mm and disparity offset in pixels, from calib.txt of 2014."""
    try:
        text = path.read_text()
    except OSError as error:
        raise InputError(f"{path}: this cannot be read ({error}). {REMEDY}") from None
    wanted = {"cam0": r"cam0=\[\s*([\d.]+)", "baseline": r"baseline=([\d.]+)", "doffs": r"doffs=([-\d.]+)"}
    found = {key: re.search(pattern, text) for key, pattern in wanted.items()}
    if missing := [key for key, match in found.items() if match is None]:
        raise InputError(f"{path}: there is no line {', '.join(f'{key}=...' for key in missing)}. {REMEDY}")
    focal, baseline, doffs = (float(match[1]) for match in found.values() if match)
    return focal, baseline, doffs


def _views(scene: Path) -> list[View]:
    if scene.parent.name == "2014":
        files = [("im0.png", "disp0.pfm", ""), ("im1.png", "disp1.pfm", ".im1")]
    else:
        files = [("view1.png", "disp1.png", ""), ("view5.png", "disp5.png", ".view5")]
    views = [View(scene / guide, scene / disparity, scene.name + label) for guide, disparity, label in files]
    if missing := [str(file) for view in views for file in view[:2] if not file.exists()]:
        raise InputError(f"{scene}: {', '.join(missing)} is missing. {REMEDY}")
    return views
