"""Read the weights of a Caffe model (.caffemodel) without Caffe: as much of protobuf as that needs, checked throughout.

A message is a row of fields: a number (field * 8 + kind), then a varint (kind 0), 8 bytes (1), a length and as many
bytes (2), or 4 bytes (5). Numbers of fields are those of Caffe's `caffe.proto`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from pathlib import Path

import numpy as np

from dada.errors import InputError

VARINT, EIGHT_BYTES, BYTES, FOUR_BYTES = 0, 1, 2, 5
NET_LAYER = 100
LAYER_NAME, LAYER_TYPE, LAYER_BLOB = 1, 2, 7
BLOB_LEGACY_SHAPE, BLOB_DATA, BLOB_SHAPE = (1, 2, 3, 4), 5, 7
SHAPE_SIZES = 1
MAX_BYTES = 1 << 30
MAX_DIMENSIONS = 8

Field = tuple[int, int | memoryview]
"""Number of a field; its value, or its bytes."""


class DamagedError(ValueError):
    """The bytes are no message."""


@dataclass(frozen=True)
class CaffeLayer:
    """One layer with its weights.

    Attributes:
        name: what the network calls it.
        kind: Convolution, PReLU, ...
        blobs: float32 arrays; of a convolution weights (out, in, k, k) and biases (out), of a deconvolution
            (in, out, k, k) and (out), of a PReLU slopes (channels).
    """

    name: str
    kind: str
    blobs: tuple[np.ndarray, ...]


def read_caffemodel(path: Path) -> dict[str, CaffeLayer]:
    """Read the layers of a .caffemodel that have weights, by name.

    Raises:
        InputError: the file cannot be read, is damaged or is no Caffe model.
    """
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise InputError(f"weights {path}: {size} bytes are more than a model has. Name a .caffemodel file.")
        data = path.read_bytes()
    except OSError as error:
        raise InputError(
            f"weights {path}: the file cannot be read ({error.strerror}). Name a .caffemodel file."
        ) from None
    try:
        found = [_layer(_bytes(value)) for number, value in _fields(memoryview(data)) if number == NET_LAYER]
    except (DamagedError, UnicodeDecodeError) as error:
        raise InputError(f"weights {path}: damaged or no Caffe model ({error}). Get the file anew.") from None
    layers = {layer.name: layer for layer in found if layer.blobs}
    if not layers:
        raise InputError(f"weights {path}: no layer in it has weights. Name a .caffemodel file.")
    return layers


def _layer(message: memoryview) -> CaffeLayer:
    name = kind = ""
    blobs = []
    for number, value in _fields(message):
        if number == LAYER_NAME:
            name = bytes(_bytes(value)).decode()
        elif number == LAYER_TYPE:
            kind = bytes(_bytes(value)).decode()
        elif number == LAYER_BLOB:
            blobs.append(_blob(_bytes(value)))
    return CaffeLayer(name, kind, tuple(blobs))


def _blob(message: memoryview) -> np.ndarray:
    data, shape, legacy = memoryview(b""), None, {}
    for number, value in _fields(message):
        if number == BLOB_DATA:
            data = _bytes(value)
        elif number == BLOB_SHAPE:
            shape = _shape(_bytes(value))
        elif number in BLOB_LEGACY_SHAPE and isinstance(value, int):
            legacy[number] = value
    if shape is None:
        shape = [legacy.get(number, 1) for number in BLOB_LEGACY_SHAPE]
    if len(data) % 4 or prod(shape) != len(data) // 4:
        raise DamagedError(f"{len(data)} bytes for an array of shape {shape}")
    return np.frombuffer(data, "<f4").reshape(shape).astype(np.float32)


def _shape(message: memoryview) -> list[int]:
    sizes: list[int] = []
    for number, value in _fields(message):
        if number == SHAPE_SIZES:
            sizes += [value] if isinstance(value, int) else _varints(value)
    if len(sizes) > MAX_DIMENSIONS:
        raise DamagedError(f"an array of {len(sizes)} dimensions")
    return sizes


def _fields(message: memoryview) -> Iterator[Field]:
    """Go through the fields of a message."""
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        number, kind = tag >> 3, tag & 7
        if kind == VARINT:
            value, at = _varint(message, at)
            yield number, value
            continue
        if kind == BYTES:
            length, at = _varint(message, at)
        elif kind in (FOUR_BYTES, EIGHT_BYTES):
            length = 4 if kind == FOUR_BYTES else 8
        else:
            raise DamagedError(f"unknown kind {kind} of field {number}")
        if length > len(message) - at:
            raise DamagedError(f"field {number} should have {length} bytes, {len(message) - at} are left")
        yield number, message[at : at + length]
        at += length


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    """Return the number that begins at a place, seven bits a byte, and the place after it."""
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(message):
            raise DamagedError("it ends within a number")
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise DamagedError("a number has more than ten bytes")


def _varints(message: memoryview) -> list[int]:
    values, at = [], 0
    while at < len(message):
        value, at = _varint(message, at)
        values.append(value)
    return values


def _bytes(value: int | memoryview) -> memoryview:
    if isinstance(value, int):
        raise DamagedError("a number where a message should be")
    return value
