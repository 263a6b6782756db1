"""DIML indoor: Kinect v2 frames in folders, a folder for each scene."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dada.datasets.crops import resize_guide, resize_target
from dada.datasets.files import find_root, read_guide, read_target
from dada.datasets.pair import DEPTH, Pair, Split, check_index, check_split
from dada.errors import InputError
from dada.sample.data_unit import DIML

UNIT = DIML.deviation
"""Standard deviation of the depths, in mm (PROTOCOL P1)."""

SIZE = (756, 1344)  # rows, columns
TRAIN_SHARE = 0.9  # of each training scene, from its beginning; the rest is validation

REMEDY = (
    "Get the sample set of the DIML/CVL RGB-D data (indoor, high resolution) from https://dimlrgbd.github.io and lay "
    "it out as ROOT/DIML/{train,test}/HR/SCENE/color/*.png and depth_filled/*_depth_filled.png."
)


class Diml:
    """Frames of 756 x 1344 in order of scene and name; depth in mm."""

    name = "DIML"
    unit = UNIT
    quantity = DEPTH

    def __init__(self, root: str | Path, split: str = "test", *, zeros: str = "auto") -> None:
        """Find the frames below ROOT/DIML; none is read yet.

        Decoding and resizing takes some 100 ms a frame: train with `cache=FOLDER` (see `load_dataset`).

        Args:
            root: the folder that holds `DIML`, or that folder.
            split: "test" is the folder test; "val" the last tenth of each scene in train; "train" the others.
            zeros: "holes" are pixels without a value; "valid" ones are a depth of 0. "auto" is what the authors'
                code does: they are valid in the split "test", and holes where images are rotated for training.

        Raises:
            InputError: a folder or file is not there; the message says which and where to get it.
        """
        if zeros not in ("auto", "holes", "valid"):
            raise InputError(f"zeros={zeros} is not understood: use auto, holes or valid.")
        self.holes = zeros == "holes" or (zeros == "auto" and split != "test")
        self.root = find_root(Path(root), "DIML", REMEDY)
        self.frames = self._find(check_split(split))

    def __len__(self) -> int:
        return len(self.frames)

    def __getitem__(self, index: int) -> Pair:
        color, depth = self.frames[check_index(index, len(self))]
        guide, stored = read_guide(color), read_target(depth)
        if stored.shape != SIZE:
            stored = resize_target(stored, SIZE)
        if guide.shape[:2] != SIZE:
            guide = resize_guide(guide, SIZE)
        millimetres = np.where(stored == 0, np.float32(np.nan), stored) if self.holes else stored
        return Pair(guide, millimetres, f"{color.parents[1].name}/{_frame(color, '_c')}")

    def _find(self, split: Split) -> list[tuple[Path, Path]]:
        folder = self.root / ("test" if split == "test" else "train") / "HR"
        scenes = sorted(f for f in folder.glob("*") if f.is_dir())
        frames = [pair for scene in scenes for pair in _part(_frames(scene), split)]
        if not frames:
            raise InputError(f"{folder}: there are no frames for the split {split!r} in it. {REMEDY}")
        return frames


def _part(frames: list[tuple[Path, Path]], split: Split) -> list[tuple[Path, Path]]:
    end = int(TRAIN_SHARE * len(frames))
    return {"train": frames[:end], "val": frames[end:], "test": frames}[split]


def _frames(scene: Path) -> list[tuple[Path, Path]]:
    """Colour and depth files of a scene, which have the same name but for its ending."""
    color = {_frame(file, "_c"): file for file in sorted((scene / "color").glob("*.png"))}
    depth = {_frame(file, "_depth_filled"): file for file in (scene / "depth_filled").glob("*_depth_filled.png")}
    if alone := sorted(color.keys() ^ depth.keys()):
        raise InputError(
            f"{scene}: {len(alone)} frames, such as {alone[0]}, are in only one of its folders color and depth_filled. "
            f"{REMEDY}"
        )
    return [(file, depth[name]) for name, file in color.items()]


def _frame(file: Path, ending: str) -> str:
    return file.stem.removesuffix(ending)
