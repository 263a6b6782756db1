"""JPEG guides by way of OpenCV, the markers checked first: libjpeg fills what is missing with grey."""

from __future__ import annotations

import re
import struct
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dada.errors import InputError
from dada.io.quiet import captured_output, one_line
from dada.io.raster import ImageWarning, Raster, Role
from dada.io.size import check_ratio, check_size

_FRAMES = {0xC0, 0xC1, 0xC2}  # baseline, extended, progressive; all with Huffman coding
_OTHER_FRAMES = {0xC3, 0xC5, 0xC6, 0xC7, 0xC9, 0xCA, 0xCB, 0xCD, 0xCE, 0xCF}
_AFTER_SCAN = re.compile(rb"\xff[^\x00\xd0-\xd7\xff]")  # a marker that is neither stuffing nor a restart
_PIXELS_A_BYTE = 512  # each block of 8 x 8 takes at least one bit
_FATAL = ("premature end", "bad Huffman", "Invalid", "Unsupported", "Inconsistent")


@dataclass
class _Frame:
    height: int
    width: int
    components: int
    orientation: int


def read_jpeg(path: Path, role: Role) -> Raster:
    """Read a JPEG guide as uint8 grey or RGB, unrotated; a source is refused, for JPEG alters values."""
    if role == "source":
        raise InputError(
            f"{path}: JPEG cannot carry measurements: its compression alters values and smears edges. Export "
            "the source without loss, as 16-bit PNG, TIFF, PFM, NPY or OpenEXR; JPEG is fine as guide."
        )
    data = path.read_bytes()
    frame = _walk(path, data)
    if frame.components not in (1, 3):
        raise InputError(f"{path}: this is a CMYK JPEG ({frame.components} channels). Convert it to RGB first.")
    check_size(path, frame.height, frame.width, frame.components, frame.components)
    check_ratio(path, frame.height * frame.width, len(data), _PIXELS_A_BYTE)
    values = _decode(path, data)
    if values.shape[:2] != (frame.height, frame.width):
        raise InputError(f"{path}: the JPEG decodes to another size than its header states. Export it again.")
    if frame.orientation != 1:
        warnings.warn(
            f"{path}: the EXIF orientation ({frame.orientation}) is not applied: the guide must have the "
            "orientation of the sensor, like the source. If the source was rotated, rotate the guide's pixels too",
            ImageWarning,
            stacklevel=2,
        )
    if values.ndim == 3:
        values = values[..., ::-1]
    return Raster(np.ascontiguousarray(values), None, None, path, "jpeg")


def _decode(path: Path, data: bytes) -> np.ndarray:
    import cv2

    with captured_output() as messages:
        try:
            values = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED | cv2.IMREAD_IGNORE_ORIENTATION)
        except cv2.error as error:
            raise InputError(
                f"{path}: OpenCV cannot decode this JPEG ({one_line(error.err)}). If it opens elsewhere, "
                "save it as PNG."
            ) from None
    if values is None or any(word in line for word in _FATAL for line in messages):
        reason = f" ({one_line(messages[0])})" if messages else ""
        raise InputError(f"{path}: the JPEG is damaged or truncated{reason}. Copy or export it again.")
    return values


def _walk(path: Path, data: bytes) -> _Frame:
    """Follow the markers from start to end of image; return what the frame header and EXIF say."""
    frame: _Frame | None = None
    orientation, scans, at = 1, 0, 2
    while True:
        while data[at : at + 2] == b"\xff\xff":
            at += 1
        if at + 4 > len(data) and data[at : at + 2] != b"\xff\xd9":
            raise InputError(f"{path}: the JPEG is truncated: its end mark is missing. Copy or export it again.")
        mark, kind = data[at], data[at + 1]
        if mark != 0xFF:
            raise InputError(f"{path}: the JPEG is damaged: no marker at byte {at}. Copy or export it again.")
        if kind == 0xD9:
            break
        length = int(struct.unpack_from(">H", data, at + 2)[0])
        body = data[at + 4 : at + 2 + length]
        at += 2 + length
        if kind in _OTHER_FRAMES:
            raise InputError(f"{path}: this kind of JPEG (lossless or arithmetic) is not read. Save it as PNG.")
        if kind in _FRAMES:
            if len(body) < 6 or body[0] != 8:
                raise InputError(f"{path}: only JPEG of 8 bits a channel is read. Save it as 16-bit PNG.")
            height, width = struct.unpack_from(">HH", body, 1)
            frame = _Frame(height, width, body[5], 1)
        elif kind == 0xE1 and body.startswith(b"Exif\0\0"):
            orientation = _orientation(body[6:])
        elif kind == 0xDA:
            scans += 1
            following = _AFTER_SCAN.search(data, at)
            at = following.start() if following else len(data)
    if frame is None or scans == 0:
        raise InputError(f"{path}: the JPEG holds no image. Export it again.")
    frame.orientation = orientation
    return frame


def _orientation(exif: bytes) -> int:
    """Return the orientation tag (1 = upright) of an EXIF block, 1 if it has none or is malformed."""
    try:
        order = {b"II": "<", b"MM": ">"}[exif[:2]]
        (start,) = struct.unpack_from(order + "I", exif, 4)
        (count,) = struct.unpack_from(order + "H", exif, start)
        for entry in range(min(count, 500)):
            tag, _, _, value = struct.unpack_from(order + "HHIH", exif, start + 2 + 12 * entry)
            if tag == 0x0112:
                return value if 1 <= value <= 8 else 1
    except (KeyError, struct.error):
        pass
    return 1
