"""RealSense frames as PNG of 16 bits (Open3D's recorder and reader): color/, depth/, and JSON that tells the scale."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from dada.errors import InputError
from dada.sensors.recording import Recording, Shot, camera, images, read_json

LAYOUT = "RealSense"
COLOUR = ("color", "rgb")
METADATA = ("camera_intrinsic.json", "intrinsic.json", "camera_intrinsics.json", "metadata.json")
MILLIMETRES = 1000.0  # what Open3D's recorder stores, whose JSON does not say so


def is_realsense(folder: Path) -> bool:
    """Whether depth and colour stand beside a JSON of this kind."""
    both = (folder / "depth").is_dir() and any((folder / name).is_dir() for name in COLOUR)
    return both and any((folder / name).is_file() for name in METADATA)


def read_realsense(folder: Path) -> Recording:
    """Pair depth and colour by name.

    Raises:
        InputError: depth or colour is missing, or the scale is no scale.
    """
    depth = images(folder / "depth", [".png"])
    rgb = next((found for name in COLOUR if (found := images(folder / name))), {})
    if not depth or not rgb:
        raise InputError(f"{folder}: it looks like {LAYOUT}, and {'depth/' if not depth else 'color/'} holds no image.")
    path = next(folder / name for name in METADATA if (folder / name).is_file())
    content = read_json(path)
    shots = [Shot(file, rgb[name]) for name, file in depth.items() if name in rgb]
    alone = [file for name, file in depth.items() if name not in rgb]
    matrix = content.get("intrinsic_matrix")
    intrinsics = None if matrix is None else camera(path, matrix)
    return Recording(LAYOUT, f"{units_per_metre(path, content):.10g}", shots, intrinsics=intrinsics, alone=alone)


def units_per_metre(path: Path, content: dict[str, Any]) -> float:
    """What `depth_scale` says: librealsense's is metres in a unit (0.001), Open3D's units in a metre (1000).

    Raises:
        InputError: it is no scale.
    """
    scale = content.get("depth_scale", MILLIMETRES)
    if isinstance(scale, bool) or not isinstance(scale, int | float) or not math.isfinite(scale) or scale <= 0:
        raise InputError(f"{path}: depth_scale {scale!r} is no scale. Write 0.001 for depth in millimetres.")
    per_metre = float(f"{1 / scale:.6g}") if scale < 1 else float(scale)
    return float(round(per_metre)) if abs(per_metre - round(per_metre)) < 1e-3 else per_metre
