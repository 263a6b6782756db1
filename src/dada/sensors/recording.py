"""What a recording holds: which depth belongs to which colour image, and in which unit."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dada.errors import InputError

IMAGES = (".png", ".jpg", ".jpeg")


@dataclass(frozen=True)
class Shot:
    """One depth image and what belongs to it.

    Attributes:
        source: the depth image.
        guide: the colour image, or its number in the recording's video.
        confidence: in levels 0, 1 and 2.
    """

    source: Path
    guide: Path | int
    confidence: Path | None = None


@dataclass(frozen=True)
class Recording:
    """A folder whose layout is known.

    Attributes:
        layout: what writes such folders.
        unit: of the depth, as `--unit` takes it.
        shots: in their order.
        video: whose frames are the colour images; None: these are files.
        intrinsics: of the colour camera as fx,fy,cx,cy; None: the folder tells nothing of it.
        invalid: stored value that stands for no measurement; None: the usual one of such files.
        alone: depth images without a colour image.
    """

    layout: str
    unit: str
    shots: list[Shot]
    video: Path | None = None
    intrinsics: str | None = None
    invalid: float | None = None
    alone: list[Path] = field(default_factory=list)


def images(folder: Path, suffixes: Iterable[str] = IMAGES) -> dict[str, Path]:
    """The images of a folder by their stem, in the order of their names."""
    if not folder.is_dir():
        return {}
    wanted = tuple(suffixes)
    return {path.stem: path for path in sorted(folder.iterdir()) if path.suffix.lower() in wanted}


def read_json(path: Path) -> dict[str, Any]:
    """Read an object.

    Raises:
        InputError: it is none.
    """
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: this is no JSON that can be read ({error}). Export the recording again.") from None
    if not isinstance(content, dict):
        raise InputError(f"{path}: a JSON object was expected. Export the recording again.")
    return content


def camera(path: Path, matrix: Any) -> str:
    """fx,fy,cx,cy of nine numbers by columns, as Apple's and Open3D's matrices are stored.

    Raises:
        InputError: they are no camera.
    """
    try:
        numbers = [float(number) for number in matrix]
        fx, fy, cx, cy = (numbers[i] for i in (0, 4, 6, 7))
    except (TypeError, ValueError, IndexError):
        raise InputError(f"{path}: its camera matrix is not nine numbers. Export the recording again.") from None
    return f"{fx:.10g},{fy:.10g},{cx:.10g},{cy:.10g}"
