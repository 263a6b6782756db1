"""Lists of measured points as text: x, y, value in each line."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dada.errors import InputError
from dada.io.raster import Raster

POINT_SUFFIXES = (".csv", ".txt", ".xyz")


def read_points(path: Path, size: tuple[int, int]) -> Raster:
    """Read points into an image (H, W), NaN where there is none.

    Args:
        path: a text of lines x, y, value, separated by commas or spaces; x to the right and y down, in pixels of the
            image from 0. Lines that begin with # and one line of headings are passed over.
        size: H, W.

    Raises:
        InputError: it is no such list, or a point lies outside the image.
    """
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: the list of points cannot be read ({error}). Check the path.") from None
    rows: list[list[float]] = []
    for number, line in enumerate(lines, 1):
        parts = line.split("#")[0].replace(",", " ").replace(";", " ").split()
        if not parts:
            continue
        try:
            rows.append([float(part) for part in parts])
        except ValueError:
            if rows or number > 1:
                raise InputError(f"{path}: line {number} is not x, y, value: {line.strip()[:60]!r}.") from None
            continue
        if len(rows[-1]) != 3:
            raise InputError(f"{path}: line {number} has {len(rows[-1])} numbers; expected three: x, y, value.")
    if not rows:
        raise InputError(f"{path}: there is no point in it. Write x, y, value in each line.")
    return Raster(points_image(np.array(rows), size, str(path)), None, None, path, "npy")


def points_image(points: np.ndarray, size: tuple[int, int], name: str = "points") -> np.ndarray:
    """Bring points (n, 3) of x, y, value to an image (H, W), NaN where there is none, means where there are several.

    Raises:
        InputError: some lie outside the image.
    """
    col, row = (np.floor(points[:, i] + 0.5) for i in (0, 1))
    outside = ~((row >= 0) & (col >= 0) & (row < size[0]) & (col < size[1]))
    if outside.any():
        raise InputError(
            f"{name}: {int(outside.sum())} of {len(points)} points lie outside the guide of {size[1]} x {size[0]} "
            "pixels (width x height). Give x, y, value in pixels of the guide, x to the right and y down, from 0."
        )
    place = (row * size[1] + col).astype(np.int64)
    count = np.bincount(place, minlength=size[0] * size[1])
    with np.errstate(invalid="ignore"):
        mean: np.ndarray = np.bincount(place, points[:, 2], minlength=len(count)) / count
    return mean.reshape(size)
