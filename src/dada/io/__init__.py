"""Files in and out: images of seven formats, their units and invalid pixels, point clouds."""

from dada.io.atomic import TEMPORARY_PREFIX, atomic_folder, atomic_path, check_writable, write_bytes_atomically
from dada.io.image import read_image, write_image
from dada.io.point_cloud import Intrinsics, parse_intrinsics, write_point_cloud
from dada.io.raster import Format, Georeference, ImageWarning, Meaning, Raster, Role
from dada.io.rounding import cast
from dada.io.size import MAX_BYTES
from dada.io.units import (
    UNITS,
    Unit,
    default_invalid,
    default_unit,
    parse_amount,
    parse_unit,
    scaled,
    valid_pixels,
)

__all__ = [
    "MAX_BYTES",
    "TEMPORARY_PREFIX",
    "UNITS",
    "Format",
    "Georeference",
    "ImageWarning",
    "Intrinsics",
    "Meaning",
    "Raster",
    "Role",
    "Unit",
    "atomic_folder",
    "atomic_path",
    "cast",
    "check_writable",
    "default_invalid",
    "default_unit",
    "parse_amount",
    "parse_intrinsics",
    "parse_unit",
    "read_image",
    "scaled",
    "valid_pixels",
    "write_bytes_atomically",
    "write_image",
    "write_point_cloud",
]
