"""PFM: a text header, then float32 rows from the bottom up."""

from __future__ import annotations

import math
import re
import warnings
from pathlib import Path

import numpy as np

from dada.errors import InputError
from dada.io.raster import ImageWarning, Raster
from dada.io.size import check_size

_HEADER = re.compile(rb"P([Ff])\s+(\d{1,9})\s+(\d{1,9})\s+([-+.0-9eE]{1,32})[ \t]*(\r\n|\n|\r| )")


def read_pfm(path: Path) -> Raster:
    """Read a grey or colour PFM of either byte order.

    The magnitude of the scale is not applied: writers disagree on whether to multiply, divide or ignore it
    (Middlebury's files state 1/255 and mean the plain values). A magnitude other than 1 gives a warning.
    """
    with path.open("rb") as file:
        header = _HEADER.match(file.read(512))
        if header is None:
            raise InputError(
                f"{path}: its PFM header is malformed; expected 'Pf' or 'PF', width, height and scale. Export it again."
            )
        kind, width, height, scale = header[1], int(header[2]), int(header[3]), _scale(path, header[4])
        channels = 3 if kind == b"F" else 1
        need, stored = height * width * channels * 4, path.stat().st_size - header.end()
        check_size(path, height, width, channels, 4 * channels)
        if stored != need:
            raise InputError(
                f"{path}: its header promises {width} x {height} pixels, {need} bytes, but {stored} follow. "
                "The file is truncated or its header wrong: copy or export it again."
            )
        file.seek(header.end())
        flat = np.fromfile(file, "<f4" if scale < 0 else ">f4", height * width * channels)
    if abs(scale) != 1:
        warnings.warn(
            f"{path}: its header states a scale of {abs(scale):g}, which is not applied: the values are "
            "taken as stored",
            ImageWarning,
            stacklevel=2,
        )
    shape = (height, width, 3) if channels == 3 else (height, width)
    values = np.ascontiguousarray(flat.reshape(shape)[::-1], dtype=np.float32)
    return Raster(values, None, None, path, "pfm")


def encode_pfm(path: Path, values: np.ndarray) -> bytes:
    """Encode (H, W) or RGB (H, W, 3) of float32, little-endian, scale 1."""
    if values.dtype != np.float32:
        raise InputError(
            f"{path}: PFM holds float32, not {values.dtype}. Write to .tiff, .npy or .npz, which hold "
            f"{values.dtype}, or convert to float32."
        )
    if values.ndim == 3 and values.shape[2] != 3:
        raise InputError(f"{path}: PFM holds 1 or 3 channels, not {values.shape[2]}. Write to .tiff or .npy.")
    kind = b"PF" if values.ndim == 3 else b"Pf"
    header = kind + b"\n%d %d\n-1.0\n" % (values.shape[1], values.shape[0])
    return header + np.ascontiguousarray(values[::-1], dtype="<f4").tobytes()


def _scale(path: Path, text: bytes) -> float:
    try:
        scale = float(text)
    except ValueError:
        scale = math.nan
    if not math.isfinite(scale) or scale == 0:
        raise InputError(f"{path}: the scale in its PFM header, {text!r}, is no number other than 0. Export it again.")
    return scale
