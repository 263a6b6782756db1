"""Which layout a folder has."""

from __future__ import annotations

from pathlib import Path

from dada.errors import InputError
from dada.sensors.realsense import is_realsense, read_realsense
from dada.sensors.record3d import is_record3d, read_record3d
from dada.sensors.recording import Recording
from dada.sensors.stray import is_stray, read_stray
from dada.sensors.tum import is_tum, read_tum

LAYOUTS = (
    (is_stray, read_stray),
    (is_record3d, read_record3d),
    (is_tum, read_tum),
    (is_realsense, read_realsense),
)
KNOWN = """Known are:
  Stray Scanner, ARKit  rgb.mp4 or rgb/, depth/*.png in mm, confidence/*.png, camera_matrix.csv, odometry.csv
  Record3D              metadata.json, depth/*.exr in metres, rgb/*.jpg (exported as EXR + JPG)
  TUM RGB-D             rgb.txt, depth.txt
  RealSense, Open3D     depth/*.png, color/*, intrinsic.json or camera_intrinsic.json"""


def recognise(folder: Path) -> Recording:
    """Read the recording of a folder.

    Raises:
        InputError: the folder has no layout that is known, or lacks a part of the one it has.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: there is no such folder. Name that of a recording.")
    for fits, read in LAYOUTS:
        if fits(folder):
            return read(folder)
    raise InputError(
        f"{folder}: no layout of a phone or depth camera was recognised. For folders of images, name both: dada batch "
        f"SOURCES GUIDES OUTDIR. {KNOWN}"
    )
