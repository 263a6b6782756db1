"""NPY and NPZ, never unpickling: the header is read and bounded before the values."""

from __future__ import annotations

import io
import math
import warnings
import zipfile
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

from dada.errors import InputError
from dada.io.quiet import one_line
from dada.io.raster import ImageWarning, Raster
from dada.io.size import check_expansion, check_size

_MAX_HEADER = 10_000  # characters, numpy's own bound
NPZ_KEY = "values"


def read_npy(path: Path) -> Raster:
    """Read the array of an NPY file."""
    with path.open("rb") as file:
        size = path.stat().st_size
        values = _read_array(path, file, size, size)
    return Raster(values, None, None, path, "npy")


def read_npz(path: Path, key: str | None) -> Raster:
    """Read the array called `key`, or the only one, of an NPZ file."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = {i.filename[:-4]: i for i in archive.infolist() if i.filename.endswith(".npy")}
            member = members[_pick(path, key, list(members))]
            with archive.open(member) as file:
                values = _read_array(path, cast(BinaryIO, file), member.file_size, member.compress_size)
    except InputError:
        raise
    except Exception as error:  # zipfile lets errors of many kinds through: zlib's, struct's, its own
        raise InputError(
            f"{path}: the NPZ archive is damaged, truncated or encrypted ({one_line(error)}). Copy it again "
            "or write it anew with numpy.savez."
        ) from None
    return Raster(values, None, None, path, "npz")


def encode_npy(path: Path, values: np.ndarray) -> bytes:
    """Encode any array of numbers."""
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.ascontiguousarray(values), allow_pickle=False)
    return buffer.getvalue()


def encode_npz(path: Path, values: np.ndarray) -> bytes:
    """Encode any array of numbers as NPZ_KEY, with a fixed date so that equal values give equal files."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        member = zipfile.ZipInfo(NPZ_KEY + ".npy", date_time=(1980, 1, 1, 0, 0, 0))
        member.compress_type = zipfile.ZIP_DEFLATED
        archive.writestr(member, encode_npy(path, values))
    return buffer.getvalue()


def _pick(path: Path, key: str | None, names: list[str]) -> str:
    if not names:
        raise InputError(f"{path}: this ZIP archive holds no NumPy array. Write it with numpy.savez.")
    listed = ", ".join(repr(name) for name in names[:20])
    if key is None and len(names) > 1:
        raise InputError(f"{path}: it holds {len(names)} arrays. Name one of them as key: {listed}.")
    if key is not None and key not in names:
        raise InputError(f"{path}: it holds no array {key!r}. Name one of these as key: {listed}.")
    return names[0] if key is None else key


def _read_array(path: Path, file: BinaryIO, size: int, stored: int) -> np.ndarray:
    """Read an array of `size` bytes with its header, of which `stored` are in the file."""
    shape, fortran, dtype, header = _read_header(path, file)
    if dtype.kind not in "buif" or dtype.itemsize > 8:
        raise InputError(f"{path}: it holds values of type {dtype}, not numbers. Save a plain numeric array.")
    if len(shape) not in (2, 3):
        raise InputError(
            f"{path}: it holds an array of shape {shape}; an image has shape (height, width) or (height, "
            "width, channels). Save the array in that shape."
        )
    channels = math.prod(shape[2:])
    check_size(path, shape[0], shape[1], channels, channels * dtype.itemsize)
    need = math.prod(shape) * dtype.itemsize
    if size - header != need:
        raise InputError(
            f"{path}: its header promises {need} bytes for shape {shape}, but {size - header} follow. The "
            "file is truncated or its header wrong: copy it again or write it anew with numpy.save."
        )
    check_expansion(path, need, stored)
    data = file.read(need)
    if file.read(1) or len(data) != need:
        raise InputError(f"{path}: the array is truncated. Copy the file again or write it anew with numpy.save.")
    flat = np.frombuffer(data, dtype)
    values = flat.reshape(shape[::-1]).T if fortran else flat.reshape(shape)
    return np.array(_channels_last(path, values), dtype=dtype.newbyteorder("="), order="C")


def _read_header(path: Path, file: BinaryIO) -> tuple[tuple[int, ...], bool, np.dtype, int]:
    """Return shape, Fortran order, dtype and the length of the header in bytes."""
    read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    try:
        version = np.lib.format.read_magic(file)
        shape, fortran, dtype = read[version](file, max_header_size=_MAX_HEADER)
        header = file.tell()
        if any(side < 0 for side in shape):
            raise ValueError(f"negative size {shape}")
    except Exception as error:  # the header is a Python literal: a damaged one fails in every way a parser can
        raise InputError(
            f"{path}: its NPY header is damaged ({one_line(error) or type(error).__name__}). Copy it again "
            "or write it anew with numpy.save."
        ) from None
    return tuple(int(side) for side in shape), bool(fortran), dtype, header


def _channels_last(path: Path, values: np.ndarray) -> np.ndarray:
    """Take the smallest axis of three as the channels: (4, 256, 256) is as common as (256, 256, 4)."""
    if values.ndim == 2 or values.shape[2] <= values.shape[0] or values.shape[0] > values.shape[1]:
        return values
    if values.shape[0] > 1:
        warnings.warn(f"{path}: shape {values.shape} is read as (channels, height, width)", ImageWarning, stacklevel=2)
    return np.moveaxis(values, 0, -1)
