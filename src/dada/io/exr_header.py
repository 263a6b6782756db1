"""The header of an OpenEXR file, read and checked before the library opens it."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from pathlib import Path

from dada.errors import InputError
from dada.io.size import check_expansion, check_ratio, check_size, max_bytes

_TILED, _DEEP, _MULTIPART = 0x200, 0x800, 0x1000
_DTYPES = {0: "uint32", 1: "float16", 2: "float32"}
_SIZES = {"uint32": 4, "float16": 2, "float32": 4}
_MAX_HEADER = 1 << 20
_ROWS_A_CHUNK = {0: 1, 1: 1, 2: 1, 3: 16, 4: 32, 5: 16, 6: 32, 7: 32, 8: 32, 9: 256}
_BOUNDED = range(8)  # none to B44A; DWA can pack flat areas without limit, see dada.io.size
_RATIO = 2000
_MAX_CHUNK = 1 << 28  # bytes that are decoded at once, for which the library takes up to eight times as many


@dataclass(frozen=True)
class ExrHeader:
    """Size and channels: name to dtype, in the order of the file."""

    height: int
    width: int
    channels: dict[str, str]
    cropped: bool


def read_exr_header(path: Path) -> ExrHeader:
    """Return the header of a flat single-part file; raise InputError if it is damaged or of another kind."""
    with path.open("rb") as file:
        data = file.read(_MAX_HEADER)
    size = path.stat().st_size
    try:
        (flags,) = struct.unpack_from("<I", data, 4)
        if flags & (_DEEP | _MULTIPART):
            kind = "deep data" if flags & _DEEP else "several parts"
            raise InputError(f"{path}: this OpenEXR file holds {kind}. Export a flat image as a single part.")
        if flags & 0xFF != 2:
            raise InputError(f"{path}: OpenEXR version {flags & 0xFF} is unknown. Export the file again as version 2.")
        attributes, end = _attributes(data)
        x0, y0, x1, y1 = window = struct.unpack("<4i", attributes["dataWindow"])
        height, width = y1 - y0 + 1, x1 - x0 + 1
        channels = _channels(path, attributes["channels"])
        (compression,) = struct.unpack("<B", attributes["compression"])
        if compression not in _ROWS_A_CHUNK:
            # HTJ2K, for one, decodes truncated chunks without an error
            raise InputError(f"{path}: its OpenEXR compression is not read. Export it again with ZIP or PIZ.")
        pixel = sum(_SIZES[dtype] for dtype in channels.values())
        check_size(path, height, width, len(channels), pixel)
        if max(abs(side) for side in window) > 2**30:
            raise struct.error("data window out of range")
        rows = min(height, _ROWS_A_CHUNK[compression])
        chunks = math.ceil(height / rows)
        if flags & _TILED:
            chunks = _tiles(attributes["tiles"], height, width, pixel)
        elif rows * width * pixel > _MAX_CHUNK:
            raise struct.error(f"chunks of {rows} rows of {width} pixels")
        display = attributes["displayWindow"]
    except (struct.error, KeyError, IndexError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"{path}: its OpenEXR header is damaged or truncated ({error}). Copy or export it again."
        ) from None
    check_ratio(path, chunks * 16, size - end, 1)  # each has an entry in the table of offsets and a head of its own
    if compression in _BOUNDED:
        check_ratio(path, height * width * pixel, size - end, _RATIO)
    check_expansion(path, height * width * pixel, size)
    return ExrHeader(height, width, channels, cropped=display != attributes["dataWindow"])


def _attributes(data: bytes) -> tuple[dict[str, bytes], int]:
    """Return name to content of every attribute, and where the header ends."""
    found: dict[str, bytes] = {}
    at = 8
    while data[at] != 0:
        name, at = _text(data, at)
        _, at = _text(data, at)
        (length,) = struct.unpack_from("<i", data, at)
        at += 4
        if length < 0 or at + length >= len(data):
            raise struct.error(f"attribute {name!r} of {length} bytes")
        found[name] = data[at : at + length]
        at += length
    return found, at + 1


def _channels(path: Path, content: bytes) -> dict[str, str]:
    channels: dict[str, str] = {}
    at = 0
    while content[at] != 0:
        name, at = _text(content, at)
        pixel_type, _, x_step, y_step = struct.unpack_from("<iIii", content, at)
        at += 16
        if pixel_type not in _DTYPES or name in channels:
            raise struct.error(f"channel {name!r}")
        if (x_step, y_step) != (1, 1):
            raise InputError(f"{path}: its channel {name!r} is subsampled. Export all channels at full size, as RGB.")
        channels[name] = _DTYPES[pixel_type]
    if not channels:
        raise struct.error("no channels")
    return channels


def _tiles(content: bytes, height: int, width: int, pixel: int) -> int:
    """Return the least count of tiles; the library allocates whole tiles, so their size is bounded too."""
    tile_width, tile_height, _ = struct.unpack("<IIB", content)
    largest = min(max_bytes(), max(4 * height * width * pixel, 1 << 26))
    if not 0 < tile_width * tile_height * pixel <= largest:
        raise struct.error(f"tiles of {tile_width} x {tile_height} pixels")
    return int(math.ceil(height / tile_height) * math.ceil(width / tile_width))


def _text(data: bytes, at: int) -> tuple[str, int]:
    end = data.index(b"\0", at, at + 256)
    return data[at:end].decode(), end + 1
