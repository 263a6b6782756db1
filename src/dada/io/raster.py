"""An image as read from a file: its values as stored, and the metadata needed to write it back."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

Format = Literal["png", "jpeg", "tiff", "pfm", "npy", "npz", "exr"]
Role = Literal["source", "guide"]


class ImageWarning(UserWarning):
    """A file was read or written, but its owner should know something about it."""


@dataclass(frozen=True)
class Georeference:
    """Where the pixels lie on the ground.

    Attributes:
        crs: coordinate reference system as WKT, or None if the file names none.
        transform: (a, b, c, d, e, f) with x = a column + b row + c and y = d column + e row + f,
            column and row counted from the outer corner of the first pixel.
    """

    crs: str | None
    transform: tuple[float, float, float, float, float, float]


@dataclass(frozen=True)
class Meaning:
    """What the stored numbers of a band mean, as its file declares it (TIFF only).

    Attributes:
        scale: a stored number times this,
        offset: plus this, is the value.
        unit: of the value, as the file spells it, or None.
        description: of the band, or None.
    """

    scale: float = 1.0
    offset: float = 0.0
    unit: str | None = None
    description: str | None = None

    @property
    def scaled(self) -> bool:
        """Whether values differ from what is stored."""
        return (self.scale, self.offset) != (1.0, 0.0)


PLAIN = Meaning()


@dataclass(frozen=True, eq=False)
class Raster:
    """One image as stored: no value is scaled, rounded or cast.

    Attributes:
        values: (H, W) or (H, W, C), colours in the order red, green, blue; the dtype of the file, native byte
            order.
        nodata: the value that the file itself declares invalid (TIFF only), else None.
        georeference: TIFF only, else None.
        path: the file it was read from.
        format: the format found in the file's content.
        meaning: of the stored numbers; of the first band that was read.
    """

    values: np.ndarray
    nodata: float | None
    georeference: Georeference | None
    path: Path
    format: Format
    meaning: Meaning = PLAIN
