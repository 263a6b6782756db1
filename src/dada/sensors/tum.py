"""TUM RGB-D: rgb.txt and depth.txt list images by their time, and depth has 5000 units a metre."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dada.errors import InputError
from dada.sensors.recording import Recording, Shot

LAYOUT = "TUM RGB-D"
APART = 0.02  # seconds between a depth image and its colour image, at most


def is_tum(folder: Path) -> bool:
    """Whether there is one of its two lists."""
    return (folder / "depth.txt").is_file() or (folder / "rgb.txt").is_file()


def read_tum(folder: Path) -> Recording:
    """Pair depth and colour by their times: nearest ones first, each once.

    Raises:
        InputError: a list is missing or cannot be read, or nothing lies near enough in time.
    """
    depth, rgb = (_listed(folder / name) for name in ("depth.txt", "rgb.txt"))
    pairs = associated([time for time, _ in depth], [time for time, _ in rgb])
    if not pairs:
        raise InputError(
            f"{folder}: no depth image lies within {APART:g} s of a colour image. Are both lists of one recording?"
        )
    shots = [Shot(depth[i][1], rgb[j][1]) for i, j in sorted(pairs.items())]
    return Recording(LAYOUT, "tum", shots, alone=[path for i, (_, path) in enumerate(depth) if i not in pairs])


def associated(first: list[float], second: list[float], apart: float = APART) -> dict[int, int]:
    """Which time of the second list belongs to one of the first: the nearest pairs first, each time once."""
    order = np.argsort(second)
    times = np.asarray(second)[order]
    near = []
    for i, time in enumerate(first):
        low, high = np.searchsorted(times, [time - apart, time + apart], side="left")
        near += [(abs(times[k] - time), i, int(order[k])) for k in range(low, high) if abs(times[k] - time) < apart]
    found: dict[int, int] = {}
    taken: set[int] = set()
    for _, i, j in sorted(near):
        if i not in found and j not in taken:
            found[i] = j
            taken.add(j)
    return found


def _listed(path: Path) -> list[tuple[float, Path]]:
    """Times and files of a list: a time and a name in each line, and comments after #."""
    if not path.is_file():
        raise InputError(
            f"{path.parent}: it looks like {LAYOUT}, and {path.name} is missing. Copy it beside the other."
        )
    found = []
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        words = line.replace(",", " ").split("#")[0].split()
        if not words:
            continue
        try:
            found.append((float(words[0]), path.parent / words[1]))
        except (ValueError, IndexError):
            raise InputError(f"{path}, line {number}: a time and a file were expected, not {line.strip()!r}.") from None
    return found
