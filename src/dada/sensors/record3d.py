"""Record3D, exported as EXR + JPG: metadata.json, depth in metres as EXR, colour as JPG, numbered alike."""

from __future__ import annotations

from pathlib import Path

from dada.errors import InputError
from dada.sensors.recording import Recording, Shot, camera, images, read_json

LAYOUT = "Record3D"
DEPTH, COLOUR = ("depth", "rgbd", "."), ("rgb", "rgbd", ".")
NO_DEPTH = 0.0  # metres


def is_record3d(folder: Path) -> bool:
    """Whether there is metadata as this app writes it."""
    path = folder / "metadata.json"
    if (folder / "rgbd").is_dir() and (folder / "metadata").is_file():
        return True
    return path.is_file() and "K" in read_json(path)


def read_record3d(folder: Path) -> Recording:
    """Pair depth and colour by their numbers.

    Raises:
        InputError: depth or colour is missing, or is compressed as in .r3d.
    """
    depth = next((found for name in DEPTH if (found := images(folder / name, [".exr"]))), {})
    rgb = next((found for name in COLOUR if (found := images(folder / name))), {})
    if not depth and any((folder / "rgbd").glob("*.depth")):
        raise InputError(
            f"{folder}: this is an unpacked .r3d file, whose depth is compressed (LZFSE), which is not read here. "
            'Export the recording from Record3D as "EXR + JPG".'
        )
    if not depth or not rgb:
        what = "no depth (.exr)" if not depth else "no colour (.jpg)"
        raise InputError(f'{folder}: it looks like {LAYOUT}, and holds {what}. Export it as "EXR + JPG" again.')
    names = sorted(depth, key=lambda name: (len(name), name))  # numbers without leading zeros
    shots = [Shot(depth[name], rgb[name]) for name in names if name in rgb]
    alone = [depth[name] for name in names if name not in rgb]
    path = folder / "metadata.json"
    intrinsics = camera(path, read_json(path)["K"]) if path.is_file() else None
    return Recording(LAYOUT, "m", shots, intrinsics=intrinsics, invalid=NO_DEPTH, alone=alone)
