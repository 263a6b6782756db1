"""Read and write an image of any format: the two functions most callers need."""

from __future__ import annotations

import os
import warnings
from dataclasses import replace
from pathlib import Path
from typing import assert_never

import numpy as np

from dada.errors import InputError
from dada.io.atomic import atomic_path, write_bytes_atomically
from dada.io.detect import SUFFIXES, detect_format
from dada.io.exr import read_exr, write_exr
from dada.io.jpeg import read_jpeg
from dada.io.npy import encode_npy, encode_npz, read_npy, read_npz
from dada.io.pfm import encode_pfm, read_pfm
from dada.io.png import encode_png, read_png
from dada.io.raster import PLAIN, Format, Georeference, ImageWarning, Meaning, Raster, Role
from dada.io.tiff import encode_tiff, read_tiff


def read_image(path: str | os.PathLike[str], *, key: str | None = None, role: Role = "source") -> Raster:
    """Read an image with its values exactly as stored.

    Args:
        path: a PNG, JPEG (guide only), TIFF, PFM, NPY, NPZ or OpenEXR file; content and suffix must agree.
        key: which array of an NPZ, channel (or, for a guide, layer) of an OpenEXR file, band from 1 of a
            TIFF.
        role: a "source" comes as (H, W) measurements, else it is refused (three equal channels count as one,
            with a warning); a "guide" as (H, W) or (H, W, C), without alpha.

    Returns:
        The raster; see `Raster`. What its owner should know is warned of as `ImageWarning`.

    Raises:
        InputError: the file is missing, damaged, truncated, of another format, too large for memory, or unfit
            for its role; the message names the file, the problem and the remedy.
    """
    path = Path(path)
    try:
        kind = detect_format(path)
        if key is not None and kind not in ("npz", "exr", "tiff"):
            raise InputError(
                f"{path}: key {key!r} was given, but a {kind.upper()} file holds a single image. Leave the "
                "key out; it is for arrays of NPZ, channels of OpenEXR and bands of TIFF."
            )
        raster = _read(path, kind, role, key)
    except MemoryError:
        raise InputError(f"{path}: there is not enough memory for this image. Cut it into tiles.") from None
    except OSError as error:
        raise InputError(f"{path}: the file cannot be read ({error}). Check the disk and its permissions.") from None
    values = raster.values
    if values.ndim == 3 and values.shape[2] == 1:
        values = values[..., 0]
    if values.ndim == 3 and role == "source":
        values = _single_channel(path, values)
    return replace(raster, values=values)


def write_image(
    path: str | os.PathLike[str],
    values: np.ndarray,
    *,
    nodata: float | None = None,
    georeference: Georeference | None = None,
    meaning: Meaning = PLAIN,
) -> None:
    """Write an image in the format of the suffix, whole or not at all; equal input gives equal bytes.

    Args:
        path: .png (uint8, uint16), .tif or .tiff (any real dtype but float16), .pfm (float32), .exr (float16,
            float32), .npy or .npz (any real dtype; in NPZ under the key "values").
        values: (H, W) or (H, W, C), colours in the order red, green, blue.
        nodata: stored in TIFF; other formats have no place for it.
        georeference: stored in TIFF; other formats drop it with an `ImageWarning`.
        meaning: stored in TIFF for every band; values are written as they are, neither scaled nor moved.

    Raises:
        InputError: the format cannot hold the values, or the file cannot be written; then nothing is left
            behind.
    """
    path = Path(path)
    kind = SUFFIXES.get(path.suffix.lower())
    if kind is None or kind == "jpeg":
        raise InputError(
            f"{path}: results are not written as {path.suffix or 'a file without suffix'}. Name a file that "
            "ends in .png, .tiff, .pfm, .exr, .npy or .npz."
        )
    values = np.asarray(values)
    if values.ndim == 3 and values.shape[2] == 1:
        values = values[..., 0]
    if values.ndim not in (2, 3) or values.size == 0 or values.dtype.kind not in "buif" or values.dtype.itemsize > 8:
        raise InputError(
            f"{path}: an image to write has shape (height, width) or (height, width, channels), no side of "
            f"length 0, and real numbers; got shape {values.shape} of {values.dtype}."
        )
    if georeference is not None and kind != "tiff":
        warnings.warn(
            f"{path}: {kind.upper()} cannot hold the georeference, so it is dropped; write to .tiff to keep it",
            ImageWarning,
            stacklevel=2,
        )
    if kind == "exr":
        with atomic_path(path) as temporary:
            write_exr(path, temporary, values)
    elif kind == "tiff":
        write_bytes_atomically(path, encode_tiff(path, values, nodata, georeference, meaning))
    else:
        encode = {"png": encode_png, "pfm": encode_pfm, "npy": encode_npy, "npz": encode_npz}[kind]
        write_bytes_atomically(path, encode(path, values))


def _read(path: Path, kind: Format, role: Role, key: str | None) -> Raster:
    match kind:
        case "png":
            return read_png(path, role)
        case "jpeg":
            return read_jpeg(path, role)
        case "tiff":
            return read_tiff(path, role, key)
        case "pfm":
            return read_pfm(path)
        case "npy":
            return read_npy(path)
        case "npz":
            return read_npz(path, key)
        case "exr":
            return read_exr(path, role, key)
        case _:
            assert_never(kind)


def _single_channel(path: Path, values: np.ndarray) -> np.ndarray:
    first = values[..., 0]
    same = values.shape[2] == 3 and all(
        np.array_equal(first, values[..., other], equal_nan=values.dtype.kind == "f") for other in (1, 2)
    )
    if not same:
        raise InputError(
            f"{path}: the source has {values.shape[2]} channels, but measurements (depth, height, "
            "temperature) have one. If this is the guide, swap the two files; a colour-mapped picture of the "
            "values is not the values."
        )
    warnings.warn(f"{path}: the three channels of the source are equal; one is used", ImageWarning, stacklevel=3)
    return np.ascontiguousarray(first)
