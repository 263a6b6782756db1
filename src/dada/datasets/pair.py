"""A guide with its target, and the interface of data sets."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, Protocol, get_args, runtime_checkable

import numpy as np

from dada.errors import InputError

Split = Literal["train", "val", "test"]

DEPTH = "depth mm"
"""The quantity of data sets of lengths; their errors are reported in centimetres."""


@dataclass(frozen=True, eq=False)
class Pair:
    """One image of a data set at full size.

    Attributes:
        guide: (H, W, C) uint8, uint16, or float32 in 0..1.
        target: (H, W) float32 in the unit of the set's `quantity`; NaN where nothing is known.
        name: of the scene, with the view where it has two, and the place of a crop: "Aloe.view5@0,256".
    """

    guide: np.ndarray
    target: np.ndarray
    name: str

    def __post_init__(self) -> None:
        """Check that the shapes agree."""
        if self.guide.ndim != 3 or self.target.ndim != 2 or self.guide.shape[:2] != self.target.shape:
            raise InputError(
                f"{self.name}: the guide has shape {self.guide.shape} and the target {self.target.shape}; expected "
                "(height, width, bands) and the same (height, width)."
            )

    @property
    def size(self) -> tuple[int, int]:
        """H, W."""
        return self.target.shape[0], self.target.shape[1]

    @property
    def valid(self) -> np.ndarray:
        """(H, W) bool: where the target is known."""
        return np.asarray(np.isfinite(self.target))

    def cut(self, row: int, col: int, height: int, width: int) -> Pair:
        """The window that begins at (row, col), not copied and of the same name."""
        window = slice(row, row + height), slice(col, col + width)
        return Pair(self.guide[window], self.target[window], self.name)


@runtime_checkable
class Dataset(Protocol):
    """Pairs in a fixed order."""

    @property
    def name(self) -> str:
        """The name in tables."""
        ...

    @property
    def unit(self) -> float:
        """The value that is 1.0 for a network, in the unit of `quantity`: the standard deviation of the set."""
        ...

    @property
    def quantity(self) -> str:
        """What the targets are and their unit: "depth mm" (`DEPTH`), "disparity px", "height m", "grey levels"."""
        ...

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> Pair: ...


class Derived:
    """A data set that changes the pairs of another one and keeps its name, unit, quantity and length."""

    dataset: Dataset

    @property
    def name(self) -> str:
        """The same as of the wrapped data set."""
        return self.dataset.name

    @property
    def unit(self) -> float:
        """The same as of the wrapped data set."""
        return self.dataset.unit

    @property
    def quantity(self) -> str:
        """The same as of the wrapped data set."""
        return self.dataset.quantity

    def __len__(self) -> int:
        return len(self.dataset)


def check_split(split: str) -> Split:
    """Return the split, or raise InputError with the known ones."""
    if split not in get_args(Split):
        raise InputError(f"split {split!r} is unknown: use train, val or test.")
    return split  # type: ignore[return-value]


def check_index(index: int, length: int) -> int:
    """Return an index from the front; one past the end raises IndexError, which ends a `for` loop."""
    if not -length <= index < length:
        raise IndexError(f"there is no pair {index} among {length}")
    return index % length


def deviation(targets: Iterable[np.ndarray]) -> float:
    """Standard deviation of all valid values of some targets; 1 if they do not differ."""
    count, total, square = 0, 0.0, 0.0
    for target in targets:
        values = target[np.isfinite(target)].astype(np.float64)
        count, total, square = count + values.size, total + values.sum(), square + (values**2).sum()
    mean = total / max(count, 1)
    return float(np.sqrt(max(square / max(count, 1) - mean**2, 0))) or 1.0
