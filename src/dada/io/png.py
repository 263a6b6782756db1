"""PNG by way of OpenCV, every chunk checked first: its decoder says only that it failed, or drops alpha."""

from __future__ import annotations

import struct
import warnings
import zlib
from pathlib import Path

import numpy as np

from dada.errors import InputError
from dada.io.quiet import captured_output, one_line
from dada.io.raster import ImageWarning, Raster, Role
from dada.io.size import check_ratio, check_size

_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
_PALETTE = 3
_DEFLATE_RATIO = 1032  # one byte of a deflate stream never yields more


def read_png(path: Path, role: Role) -> Raster:
    """Read a PNG of 8 or 16 bits; a guide loses its alpha with a warning, a source must have none.

    Grey of 1, 2 or 4 bits comes as stored (0 to 1, 3 or 15) for a source, stretched to 0 to 255 for a guide.
    A palette is resolved to RGB; a source may have one only if all its colours are grey.
    """
    data = path.read_bytes()
    chunks = _checked_chunks(path, data)
    width, height, bits, colour, *_ = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    if colour not in _CHANNELS or bits not in (1, 2, 4, 8, 16):
        raise InputError(f"{path}: its PNG header is invalid. The file is damaged: export it again.")
    decoded = 3 if colour == _PALETTE else _CHANNELS[colour]
    check_size(path, height, width, _CHANNELS[colour], decoded * max(1, bits // 8))
    check_ratio(path, height * (width * bits * _CHANNELS[colour] // 8), len(data), _DEFLATE_RATIO)
    if b"acTL" in chunks:
        raise InputError(f"{path}: this is an animated PNG. Export the one frame to use as a plain PNG.")
    transparent = colour in (4, 6) or b"tRNS" in chunks
    if transparent and role == "source":
        raise InputError(
            f"{path}: the source has transparency (an alpha channel), so what its pixels hold is not clear. "
            "Save it as grey without alpha, and mark invalid pixels by a value (0 by default)."
        )
    values = _decode(path, data)
    if values.ndim == 3:
        if colour == 4 or (role == "source" and colour == _PALETTE and _is_grey(chunks.get(b"PLTE", b""))):
            values = values[..., 0]
        else:
            values = values[..., 2::-1]
    if role == "source" and colour == _PALETTE and values.ndim == 3:
        raise InputError(
            f"{path}: the source is a colour-mapped (palette) PNG: its colours are a picture of the values, "
            "not the values. Export the measurements themselves, for example as 16-bit grey PNG."
        )
    if transparent:
        warnings.warn(f"{path}: the alpha channel of the guide is ignored", ImageWarning, stacklevel=2)
    if role == "source" and colour == 0 and bits < 8:
        values = values // (255 // (2**bits - 1))  # OpenCV stretches to 0..255
    return Raster(np.ascontiguousarray(values), None, None, path, "png")


def encode_png(path: Path, values: np.ndarray) -> bytes:
    """Encode (H, W) or RGB (H, W, 3) of uint8 or uint16."""
    import cv2

    if values.dtype not in (np.uint8, np.uint16):
        raise InputError(
            f"{path}: PNG holds uint8 and uint16, not {values.dtype}. Write to .tiff, .npy or .npz, which "
            f"hold {values.dtype}, or convert to uint16 in a smaller unit, such as millimetres."
        )
    if values.ndim == 3 and values.shape[2] != 3:
        raise InputError(f"{path}: PNG holds 1 or 3 channels, not {values.shape[2]}. Write to .tiff or .npy.")
    if values.ndim == 3:
        values = values[..., ::-1]
    with captured_output():
        done, data = cv2.imencode(".png", np.ascontiguousarray(values), [cv2.IMWRITE_PNG_COMPRESSION, 4])
    if not done:
        raise InputError(f"{path}: OpenCV cannot encode {values.shape} pixels as PNG. Write to .tiff or .npy.")
    return data.tobytes()


def _decode(path: Path, data: bytes) -> np.ndarray:
    import cv2

    with captured_output():
        try:
            values = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED)
        except cv2.error as error:
            raise InputError(
                f"{path}: OpenCV cannot decode this PNG ({one_line(error.err)}). If it opens elsewhere, save "
                "it as TIFF."
            ) from None
    if values is None:
        raise InputError(f"{path}: the PNG is damaged: its pixels cannot be decoded. Copy or export it again.")
    return values


def _checked_chunks(path: Path, data: bytes) -> dict[bytes, bytes]:
    """Return the chunks before IEND, the first of each kind, after checking every length and checksum."""
    chunks: dict[bytes, bytes] = {}
    at = 8
    while True:
        if at + 12 > len(data):
            raise InputError(f"{path}: the PNG is truncated: it ends before its end mark. Copy or export it again.")
        (length,) = struct.unpack_from(">I", data, at)
        kind, end = data[at + 4 : at + 8], at + 8 + length
        part = kind.decode() if kind.isalpha() else repr(kind)  # damaged names may hold control characters
        if end + 4 > len(data):
            raise InputError(
                f"{path}: the PNG is truncated within its {part} part: {end + 4 - len(data)} bytes are "
                "missing. Copy or export it again."
            )
        if zlib.crc32(data[at + 4 : end]) != struct.unpack_from(">I", data, end)[0]:
            raise InputError(
                f"{path}: the PNG is damaged: the checksum of its {part} part is wrong. Copy or export it again."
            )
        if kind == b"IEND":
            break
        if not chunks and (kind != b"IHDR" or length != 13):
            raise InputError(f"{path}: its PNG header is missing. The file is damaged: export it again.")
        chunks.setdefault(kind, b"" if kind == b"IDAT" else data[at + 8 : end])
        at = end + 4
    if b"IDAT" not in chunks:
        raise InputError(f"{path}: the PNG holds no pixels. Export it again.")
    return chunks


def _is_grey(palette: bytes) -> bool:
    return palette[0::3] == palette[1::3] == palette[2::3]
