"""The reader of Caffe files: what it reads, and that damage is named rather than believed."""

import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dada.baselines.caffe import read_caffemodel
from dada.errors import InputError

WEIGHTS = np.arange(12, dtype=np.float32).reshape(2, 6)


def varint(value: int) -> bytes:
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def field(number: int, payload: bytes | int) -> bytes:
    if isinstance(payload, int):
        return varint(number << 3) + varint(payload)
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def blob(array: np.ndarray, shape: tuple[int, ...] | None = None) -> bytes:
    sizes = b"".join(varint(n) for n in (array.shape if shape is None else shape))
    return field(5, array.astype("<f4").tobytes()) + field(7, field(1, sizes))


def layer(*blobs: bytes, name: bytes = b"conv1") -> bytes:
    parts = [field(1, name), field(2, b"Convolution"), *(field(7, part) for part in blobs)]
    return field(100, b"".join(parts))


def model(tmp_path: Path, data: bytes) -> Path:
    path = tmp_path / "net.caffemodel"
    path.write_bytes(data)
    return path


def test_layers_come_with_their_arrays(tmp_path):
    other_fields = field(1, b"a net") + varint(5 << 3 | 5) + b"four" + varint(6 << 3 | 1) + b"and eight"[:8]
    layers = read_caffemodel(model(tmp_path, other_fields + layer(blob(WEIGHTS)) + layer(name=b"relu")))
    assert list(layers) == ["conv1"]
    assert layers["conv1"].kind == "Convolution"
    np.testing.assert_array_equal(layers["conv1"].blobs[0], WEIGHTS)


def test_old_files_give_the_shape_as_four_numbers(tmp_path):
    old = field(1, 1) + field(2, 1) + field(3, 2) + field(4, 6) + field(5, WEIGHTS.tobytes())
    (array,) = read_caffemodel(model(tmp_path, layer(old)))["conv1"].blobs
    np.testing.assert_array_equal(array, WEIGHTS[None, None])


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "no layer"),
        (field(1, b"empty net"), "no layer"),
        (layer(blob(WEIGHTS))[:-3], "are left"),
        (layer(blob(WEIGHTS, (2, 7))), "shape"),
        (layer(blob(WEIGHTS, (1 << 40, 1 << 40))), "shape"),
        (layer(blob(WEIGHTS, (1,) * 9)), "9 dimensions"),
        (layer(blob(WEIGHTS), name=b"\xff\xfe"), "decode"),
        (varint(100 << 3) + varint(7), "a number where"),
        (b"\xff" * 20, "more than ten bytes"),
        (b"\xa2", "ends within"),
        (bytes([3]), "unknown kind 3"),
        (varint(100 << 3 | 2) + varint(1 << 60), "are left"),
    ],
)
def test_damage_is_named(tmp_path, data, reason):
    with pytest.raises(InputError, match=reason):
        read_caffemodel(model(tmp_path, data))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        read_caffemodel(tmp_path / "absent")


@given(st.binary(max_size=200), st.integers(0, 60), st.integers(0, 255))
def test_no_bytes_lead_to_anything_but_layers_or_an_input_error(tmp_path_factory, noise, place, byte):
    good = bytearray(layer(blob(WEIGHTS), blob(np.float32([struct.unpack("<f", b"abcd")[0]]))))
    good[place % len(good)] = byte
    folder = tmp_path_factory.mktemp("noise")
    for data in (noise, bytes(good), bytes(good) + noise):
        try:
            layers = read_caffemodel(model(folder, data))
        except InputError:
            continue
        assert all(array.dtype == np.float32 for found in layers.values() for array in found.blobs)
