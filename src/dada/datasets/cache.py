"""Keep decoded pairs as memory-mapped arrays, so that a training reads only the pages of its crops."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path

import numpy as np

from dada.datasets.pair import Dataset, Derived, Pair, check_index
from dada.io import write_bytes_atomically


class Cached(Derived):
    """A data set whose pairs are decoded once, then read from a folder.

    Several processes may share the folder: files are written atomically. Changes of the data set's own files are not
    detected; delete the folder after such a change.
    """

    def __init__(self, dataset: Dataset, folder: Path, key: str) -> None:
        """Wrap a data set; files are written when a pair is first asked for.

        Args:
            dataset: the data set to decode.
            folder: created if missing. A pair takes 7 bytes per pixel (8-bit colours).
            key: text that distinguishes this data set, split and options from others in the same folder.
        """
        self.dataset = dataset
        self.folder = folder / hashlib.sha256(key.encode()).hexdigest()[:16]

    def __getitem__(self, index: int) -> Pair:
        index = check_index(index, len(self))
        guide, target, name = (self.folder / f"{index:06d}.{end}" for end in ("guide.npy", "target.npy", "name.txt"))
        if not name.exists():
            pair = self.dataset[index]
            self.folder.mkdir(parents=True, exist_ok=True)
            write_bytes_atomically(guide, _encode(pair.guide))
            write_bytes_atomically(target, _encode(pair.target))
            write_bytes_atomically(name, pair.name.encode())  # last: its presence marks a complete pair
        return Pair(_map(guide), _map(target), name.read_text(encoding="utf-8"))


def _encode(values: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.ascontiguousarray(values), allow_pickle=False)
    return buffer.getvalue()


def _map(path: Path) -> np.ndarray:
    return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
