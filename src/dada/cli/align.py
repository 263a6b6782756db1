"""`dada align DEPTH GUIDE`: depth of one camera as points on the grid of another."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg


@dataclass(frozen=True, kw_only=True)
class Align:
    """Bring depth to the pixels of a colour camera: sparse points, without those that a nearer surface hides.

    For example: `dada align depth.png rgb.png --depth-camera depth.json --color-camera color.json --extrinsics
    0.015,0,0`

    Then `dada complete depth_aligned.png rgb.png` makes them dense; `dada upsample` with the same options does both.
    """

    depth: Annotated[Positional[Path], arg(metavar="DEPTH", help_behavior_hint="")]
    """The depth image."""
    guide: Annotated[Positional[Path], arg(metavar="GUIDE", help_behavior_hint="")]
    """The image of the colour camera, whose size the result has."""
    depth_camera: Annotated[str, arg(metavar="FX,FY,CX,CY[,K1,...]|FILE", help_behavior_hint="")]
    """Camera of the depth image: numbers, JSON, or YAML of OpenCV or ROS."""
    color_camera: Annotated[str, arg(metavar="FX,FY,CX,CY[,K1,...]|FILE", help_behavior_hint="")]
    """The same of the guide."""
    extrinsics: Annotated[str, arg(metavar="TX,TY,TZ|12 NUMBERS|FILE", help_behavior_hint="")]
    """From the depth camera to the colour camera: rotation and translation in metres."""
    output: Annotated[
        Path | None, arg(aliases=["-o"], metavar="FILE", help_behavior_hint="(default: DEPTH_aligned, beside it)")
    ] = None
    """Where to write the points, in the format of its suffix."""
    unit: Annotated[
        str | None, arg(metavar="UNIT", help_behavior_hint="(default: mm for 16-bit integers, m for floats)")
    ] = None
    """Unit of the depth: mm, cm, m, tum, kitti, or stored units in a metre."""

    def run(self) -> int:
        """Run the command; return its exit code."""
        from dada.pairs.aligning import align_file, aligned_words

        output = self.output or self.depth.with_name(f"{self.depth.stem}_aligned{self.depth.suffix}")
        cameras = self.depth_camera, self.color_camera, self.extrinsics
        found = align_file(self.depth, self.guide, output, cameras, self.unit)
        height, width = found.image.shape
        print(f"{self.depth.name} -> {output} {width} x {height}: {aligned_words(found)}")
        return 0
