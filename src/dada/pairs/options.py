"""How files are understood, computed and stored: the options that commands and page share."""

from __future__ import annotations

from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Annotated, Literal

from tyro.conf import arg

from dada.errors import InputError

UNIT_NAMES = ("--unit", "--depth-scale", "--depth_scale")
StoredType = Literal["uint8", "uint16", "int16", "int32", "float32", "float64"]


@dataclass(frozen=True, kw_only=True)
class FileOptions:
    """How files are to be understood, computed and stored."""

    unit: Annotated[
        str | None,
        arg(
            aliases=["--depth-scale"],
            metavar="UNIT",
            help_behavior_hint="(default: what the file names; mm for 16-bit integers, m for floats and maps)",
        ),
    ] = None
    """Unit of the source: mm, cm, m, tum (5000 a metre), kitti (256 a metre), K, C, raw, or stored units in a metre.
    Weights that were trained in the unit of a data set rely on it; other models take any."""
    output_unit: Annotated[str | None, arg(metavar="UNIT", help_behavior_hint="(default: that of the source)")] = None
    """Unit of the result."""
    dtype: Annotated[StoredType | None, arg(metavar="TYPE", help_behavior_hint="(default: that of the source)")] = None
    """Type of the stored result: uint8, uint16, int16, int32, float32 or float64."""
    invalid: Annotated[
        float | None,
        arg(metavar="VALUE", help_behavior_hint="(default: the file's nodata; NaN for floats, 0 for integers)"),
    ] = None
    """Value that marks pixels without a measurement."""
    model: Annotated[str, arg(metavar="NAME|PATH")] = "default"
    """Which model: default (learned, or dynamic where that does not fit), learned, fast (two of its three rounds),
    dynamic or none (both without weights), a file or folder of weights, a JSON file of settings, or another method with
    its weights, as msg:FILE.
    FILE?unit=middlebury (nyuv2, diml, a deviation in mm) states the data set of weights that do not tell theirs."""
    adjust: Literal["auto", "ratio", "shift"] = "auto"
    """How cells are held to their measurement: ratio (positive values), shift (any), auto (what the model was trained
    with)."""
    solver: Literal["equilibrium", "iterate"] = "equilibrium"
    """Solve for the equilibrium, or run the paper's loop."""
    tolerance: Annotated[float | None, arg(metavar="NUMBER", help_behavior_hint="(default: 2e-4)")] = None
    """Of the equilibrium."""
    steps: Annotated[int | None, arg(metavar="NUMBER", help_behavior_hint="(default: 9024)")] = None
    """Of the loop."""
    precision: Literal["auto", "float32", "bfloat16", "float64"] = "auto"
    """In which it is computed. In each, averages of the result agree with the source in all its digits. bfloat16 is for
    networks alone; auto takes it for the package's own where the processor has it. float32 gives nearly the same digits
    on every machine."""
    device: Annotated[str | None, arg(metavar="DEVICE", help_behavior_hint="(default: cpu)")] = None
    """Device of torch on which models are computed: cpu, cuda, cuda:1, xpu."""
    source_key: Annotated[str | None, arg(metavar="KEY", help_behavior_hint="")] = None
    """Array (NPZ), channel (OpenEXR) or band from 1 (TIFF) of the source file."""
    guide_key: Annotated[str | None, arg(metavar="KEY", help_behavior_hint="")] = None
    """The same for the guide."""
    depth_camera: Annotated[str | None, arg(metavar="FX,FY,CX,CY[,K1,...]|FILE", help_behavior_hint="")] = None
    """Camera of the source where it is not the guide's: its depth is aligned to the guide, with occlusion."""
    color_camera: Annotated[str | None, arg(metavar="FX,FY,CX,CY[,K1,...]|FILE", help_behavior_hint="")] = None
    """Camera of the guide: numbers, JSON, or YAML of OpenCV or ROS."""
    extrinsics: Annotated[str | None, arg(metavar="TX,TY,TZ|12 NUMBERS|FILE", help_behavior_hint="")] = None
    """From the depth camera to the colour camera: rotation and translation in metres."""

    @property
    def aligned(self) -> bool:
        """Whether the source is to be aligned to the guide."""
        given = [self.depth_camera, self.color_camera, self.extrinsics]
        if any(given) and not all(given):
            raise InputError("aligning needs all three of --depth-camera, --color-camera and --extrinsics.")
        return all(given)

    def shared(self) -> Options:
        """The options of a command that are declared here."""
        names = [field.name for field in fields(Options) if hasattr(self, field.name)]
        return Options(**{name: getattr(self, name) for name in names})


@dataclass(frozen=True, kw_only=True)
class Options(FileOptions):
    """The same, and what only coarse images have."""

    fill: Annotated[bool, arg(help_behavior_hint="")] = False
    """Also give values to pixels without a measurement; by default they stay invalid."""
    noise: Annotated[str | None, arg(metavar="AMOUNT", help_behavior_hint="")] = None
    """Standard deviation of the measurements, as 20mm or 0.5K; a number alone is in the unit of the source. Cells may
    then differ from their measurement by about as much."""
    sampling: Annotated[str, arg(metavar="mean|point|point:ROWS,COLUMNS|bicubic|auto")] = "mean"
    """How the source was made: mean over each block, one pixel of it (the centre, or its place as shares of the cell),
    a bicubic resize; auto decides between mean and point where it is clear."""


def check_unit_once(arguments: list[str]) -> None:
    """Refuse two contradictory units for the source: the option has two names, and only the last would count."""
    given = [after for name, after in pairwise(arguments) if name in UNIT_NAMES]
    given += [
        rest for name, equals, rest in (text.partition("=") for text in arguments) if equals and name in UNIT_NAMES
    ]
    if len(given) < 2:
        return
    from dada.io.units import parse_unit

    if len({parse_unit(text).per_metre for text in given}) > 1:
        raise InputError(
            f"the unit of the source is stated as {' and as '.join(given)}; --unit and --depth-scale are the "
            "same option. Give one of them."
        )
