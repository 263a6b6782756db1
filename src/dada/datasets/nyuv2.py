"""NYU Depth v2, the labelled set: 1449 Kinect frames with filled depth in one .mat file, which is HDF5."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from dada.datasets.files import find_root, read_json
from dada.datasets.pair import DEPTH, Pair, Split, check_index, check_split
from dada.errors import InputError
from dada.sample.data_unit import NYUV2

UNIT = NYUV2.deviation
"""Standard deviation of the depths, in mm (PROTOCOL P1)."""

FILE = "nyu_depth_v2_labeled.mat"

REMEDY = (
    f"Get {FILE} (2.8 GB) from https://cs.nyu.edu/~fergus/datasets/nyu_depth_v2.html and put it into "
    "'ROOT/NYU Depth v2/'."
)
INDEX_REMEDY = (
    'The index file is JSON, {"train": [...], "val": [...], "test": [...]}, frames counted from 0. That of the paper '
    "is data/split_idc_nyuv2.json of https://github.com/prs-eth/Diffusion-Super-Resolution; put it beside the .mat "
    "file or name it as nyuv2:ROOT?index=FILE."
)


class Nyuv2:
    """Frames of 480 x 640 in the order of the index file, named by their number from 0; depth in mm."""

    name = "NYUv2"
    unit = UNIT
    quantity = DEPTH

    def __init__(self, root: str | Path, split: str = "test", *, index: str | Path | None = None) -> None:
        """Find the files below ROOT and check that they agree.

        Args:
            root: the folder that holds `NYU Depth v2`, or that folder.
            split: "train", "val" or "test" of the index file.
            index: the index file; by default the only split*.json beside the .mat file or in `root`.

        Raises:
            InputError: a file is not there or not what it should be; the message says where to get it.
        """
        folder = find_root(Path(root), "NYU Depth v2", REMEDY)
        self.path = folder / FILE
        self._file: Any = None
        self._owner = -1
        if not self.path.is_file():
            raise InputError(f"{self.path}: there is no such file. {REMEDY}")
        self.index = Path(index) if index is not None else _find_index([folder, Path(root)])
        self.frames = _read_frames(self.index, check_split(split), len(self._open()["depths"]))

    def __len__(self) -> int:
        return len(self.frames)

    def __getitem__(self, index: int) -> Pair:
        frame = self.frames[check_index(index, len(self))]
        file = self._open()
        # MATLAB stores the last axis slowest: (frame, channel, column, row)
        guide = np.ascontiguousarray(file["images"][frame].transpose(2, 1, 0))
        metres = np.ascontiguousarray(file["depths"][frame].T)
        depth = np.where(metres > 0, metres * np.float32(1000), np.float32(np.nan))
        return Pair(guide, depth, f"{frame:04d}")

    def __getstate__(self) -> dict[str, Any]:
        """An open HDF5 file cannot be sent to another process."""
        return {**self.__dict__, "_file": None, "_owner": -1}

    def _open(self) -> Any:
        """The file, opened once in each process: HDF5 handles do not survive a fork."""
        if self._owner != os.getpid():
            self._file, self._owner = _open_mat(self.path), os.getpid()
        return self._file


def _open_mat(path: Path) -> Any:
    try:
        import h5py
    except ImportError:
        raise InputError("reading NYUv2 needs h5py: pip install 'dada-sr[train]'.") from None
    try:
        file = h5py.File(path, "r")
    except OSError as error:
        raise InputError(f"{path}: this is not an HDF5 file, or it is damaged ({error}). {REMEDY}") from None
    images, depths = file.get("images"), file.get("depths")
    whole = images is not None and depths is not None and images.ndim == 4 and depths.ndim == 3
    if not whole or images.shape != (depths.shape[0], 3, *depths.shape[1:]):
        raise InputError(
            f"{path}: expected 'images' of shape (frames, 3, 640, 480) and 'depths' of (frames, 640, 480); got "
            f"{getattr(images, 'shape', None)} and {getattr(depths, 'shape', None)}. {REMEDY}"
        )
    return file


def _find_index(folders: list[Path]) -> Path:
    found = sorted({file.resolve() for folder in folders for file in folder.glob("split*.json")})
    if len(found) == 1:
        return found[0]
    what = "several files" if found else "no file"
    listed = f" ({', '.join(map(str, found))})" if found else ""
    raise InputError(f"{folders[0]}: there is {what} split*.json beside the .mat file{listed}. {INDEX_REMEDY}")


def _read_frames(path: Path, split: Split, count: int) -> list[int]:
    content = read_json(path)
    frames = content.get(split) if isinstance(content, dict) else None
    if not isinstance(frames, list) or not frames or not all(type(f) is int for f in frames):
        raise InputError(f"{path}: there is no list of frames {split!r} in it. {INDEX_REMEDY}")
    if outside := [f for f in frames if not 0 <= f < count]:
        raise InputError(f"{path}: frame {outside[0]} is not among the {count} of the .mat file. {INDEX_REMEDY}")
    return frames
