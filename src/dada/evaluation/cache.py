"""Results that are already there: one small file each, complete or absent, so that an interrupted run goes on."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from dada.evaluation.metrics import Sums
from dada.io import atomic_path, write_bytes_atomically


@dataclass(frozen=True)
class Record:
    """What one method left of one problem.

    Attributes:
        name: of the problem, such as "Art@0,256".
        sums: of its errors.
        seconds: the call took, divided by the problems that it solved.
        memory: bytes by which the process grew at its peak in the call; None where the system does not tell.
        warnings: what the method warned of.
    """

    name: str
    sums: Sums
    seconds: float
    memory: int | None
    warnings: tuple[str, ...] = ()

    @property
    def scene(self) -> str:
        """The image that the problem was cut from."""
        return self.name.partition("@")[0]


class Cache:
    """A folder of records, by method and key.

    Args:
        folder: made when the first record is written.
        fresh: whether to take nothing from before; what is measured now replaces it.
    """

    def __init__(self, folder: Path, *, fresh: bool = False) -> None:
        self.folder, self.fresh = folder, fresh
        self._own: set[Path] = set()

    def get(self, method: str, key: str) -> Record | None:
        """The record, or None: not measured yet, not readable, or not wanted."""
        path = self._path(method, key, ".json")
        if self.fresh and path not in self._own:
            return None
        try:
            found = json.loads(path.read_bytes())
            return Record(**{**found, "sums": Sums(**found["sums"]), "warnings": tuple(found["warnings"])})
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def put(self, method: str, key: str, record: Record) -> None:
        """Keep a record."""
        path = self._path(method, key, ".json")
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes_atomically(path, json.dumps(asdict(record)).encode())
        self._own.add(path)

    def get_image(self, method: str, key: str) -> np.ndarray | None:
        """The result itself, [B, 1, H, W], if it was kept for a picture."""
        path = self._path(method, key, ".npy")
        if self.fresh and path not in self._own:
            return None
        try:
            image: np.ndarray = np.load(path, allow_pickle=False)
            return image
        except (OSError, ValueError, EOFError):
            return None

    def put_image(self, method: str, key: str, image: np.ndarray) -> None:
        """Keep a result for a picture."""
        path = self._path(method, key, ".npy")
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_path(path) as temporary, temporary.open("wb") as file:
            np.save(file, image.astype(np.float32), allow_pickle=False)
        self._own.add(path)

    def _path(self, method: str, key: str, suffix: str) -> Path:
        return self.folder / re.sub(r"[^\w.+-]+", "_", method) / f"{key}{suffix}"
