"""Stray Scanner, and ARKit recordings of the same layout: rgb.mp4 (or rgb/), depth/*.png in mm, confidence/*.png."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dada.errors import InputError
from dada.sensors.recording import Recording, Shot, images

LAYOUT = "Stray Scanner"


def is_stray(folder: Path) -> bool:
    """Whether the folder has what only this layout has beside its depth."""
    return (folder / "depth").is_dir() and any(
        (folder / name).exists() for name in ("confidence", "odometry.csv", "camera_matrix.csv")
    )


def read_stray(folder: Path) -> Recording:
    """Pair depth image N with frame N of the video, by the number that is its name.

    Raises:
        InputError: colour or depth is missing, or the camera matrix cannot be read.
    """
    depth, confidence = images(folder / "depth", [".png"]), images(folder / "confidence", [".png"])
    rgb, video = images(folder / "rgb"), folder / "rgb.mp4"
    if not depth:
        raise InputError(f"{folder}: it looks like {LAYOUT}, and depth/ holds no PNG. Export the recording again.")
    if not rgb and not video.is_file():
        raise InputError(
            f"{folder}: it looks like {LAYOUT}, and has neither rgb.mp4 nor images in rgb/. Copy the whole folder from "
            "the phone."
        )
    if confidence and set(depth) - set(confidence):
        missing = sorted(set(depth) - set(confidence))[0]
        raise InputError(f"{folder}: confidence/{missing}.png is missing. Copy it too, or remove confidence/.")
    shots, alone = [], []
    for name, path in depth.items():
        guide = rgb.get(name) if rgb else int(name) if name.isdigit() else None
        if guide is None:
            alone.append(path)
        else:
            shots.append(Shot(path, guide, confidence.get(name)))
    return Recording(LAYOUT, "mm", shots, None if rgb else video, _camera(folder), alone=alone)


def _camera(folder: Path) -> str | None:
    path = folder / "camera_matrix.csv"
    if not path.is_file():
        return None
    try:
        matrix = np.loadtxt(path, delimiter=",")
    except ValueError:
        matrix = np.zeros(0)
    if matrix.shape != (3, 3):
        raise InputError(f"{path}: three rows of three numbers were expected. Export the recording again.")
    return ",".join(f"{number:.10g}" for number in (matrix[0, 0], matrix[1, 1], matrix[0, 2], matrix[1, 2]))
