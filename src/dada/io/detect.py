"""Tell a file's format by its content, and check that its suffix says the same."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from dada.errors import InputError
from dada.io.raster import Format

SUFFIXES: dict[str, Format] = {
    ".png": "png",
    ".jpg": "jpeg",
    ".jpeg": "jpeg",
    ".tif": "tiff",
    ".tiff": "tiff",
    ".pfm": "pfm",
    ".npy": "npy",
    ".npz": "npz",
    ".exr": "exr",
}
READABLE = "PNG, JPEG (guide only), TIFF, PFM, NPY, NPZ and OpenEXR"
_MAGIC: dict[bytes, Format] = {
    b"\x89PNG\r\n\x1a\n": "png",
    b"\xff\xd8\xff": "jpeg",
    b"II*\x00": "tiff",
    b"MM\x00*": "tiff",
    b"II+\x00": "tiff",
    b"MM\x00+": "tiff",
    b"\x93NUMPY": "npy",
    b"PK\x03\x04": "npz",
    b"PK\x05\x06": "npz",
    b"v/1\x01": "exr",
}
_FOREIGN = {
    b"GIF8": "a GIF image (palette of 256 colours, may be animated)",
    b"BM": "a BMP image",
    b"P4": "a PBM image",
    b"P5": "a PGM image",
    b"P6": "a PPM image",
    b"PF4": "a four-channel PFM image",
    b"#?RADIANCE": "a Radiance HDR image",
    b"\x89HDF": "an HDF5 (or MATLAB 7.3) file",
    b"MATLAB": "a MATLAB file",
    b"\x00\x00\x00\x0cjP": "a JPEG 2000 image",
    b"\xff\x4f\xff\x51": "a JPEG 2000 image",
    b"8BPS": "a Photoshop file",
    b"%PDF": "a PDF file",
    b"\x1f\x8b": "a gzip archive",
    b"\x80\x04\x95": "a Python pickle",
}


def detect_format(path: Path) -> Format:
    """Return the format of a readable regular file, or raise InputError saying what is there instead."""
    _check_regular_file(path)
    with path.open("rb") as file:
        head = file.read(512)
    found = _format_of(head)
    expected = SUFFIXES.get(path.suffix.lower())
    if found is None:
        if expected is not None and not _foreign_name(head):
            raise InputError(
                f"{path}: this is no {expected.upper()} file though its name says so: its first bytes are "
                f"{head[:8]!r}. It is damaged or named wrongly: export it again; readable are {READABLE}."
            )
        raise InputError(
            f"{path}: this is {_foreign_name(head) or 'of an unknown format'}, which dada does not read. "
            f"Convert it to one of {READABLE}."
        )
    if expected is not None and found != expected:
        raise InputError(
            f"{path}: its name says {expected.upper()} but its content is {found.upper()}. Rename it to "
            f"{path.with_suffix('.' + found).name}, or check that it is the file you meant."
        )
    return found


def _check_regular_file(path: Path) -> None:
    try:
        mode, size = (status := os.stat(path)).st_mode, status.st_size
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file. Check the path, also for a typing mistake.") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: the file cannot be reached ({error}). Check the path and its permissions.") from None
    if stat.S_ISDIR(mode):
        raise InputError(f"{path}: this is a folder, not an image. Name one file in it.")
    if not stat.S_ISREG(mode):
        raise InputError(f"{path}: this is a pipe or a device, not a file. Save the image to a file and name that.")
    if size == 0:
        raise InputError(f"{path}: the file is empty. Copy or export it again.")
    try:
        path.open("rb").close()
    except OSError as error:
        raise InputError(
            f"{path}: the file cannot be opened ({error.strerror}). Check its permissions, for example with ls -l."
        ) from None


def _format_of(head: bytes) -> Format | None:
    for magic, name in _MAGIC.items():
        if head.startswith(magic):
            return name
    if head[:2] in (b"PF", b"Pf") and head[2:3].isspace():
        return "pfm"
    return None


def _foreign_name(head: bytes) -> str | None:
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "a WebP image (may be animated)"
    if head[4:8] == b"ftyp":
        return "a HEIF, AVIF or video file"
    for magic, name in _FOREIGN.items():
        if head.startswith(magic):
            return name
    if all(byte in b"\t\n\r\f" or 32 <= byte < 127 for byte in head):
        return "a text file"
    return None
