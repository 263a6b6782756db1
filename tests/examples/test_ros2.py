"""The conversion of the ROS 2 example: the fields of sensor_msgs/Image to arrays and back."""

import importlib.util
import py_compile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parents[2] / "examples" / "ros2"


def load():
    spec = importlib.util.spec_from_file_location("messages", FOLDER / "messages.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


messages = load()


@dataclass
class Image:
    """The fields of sensor_msgs/Image."""

    height: int = 0
    width: int = 0
    encoding: str = ""
    is_bigendian: int = 0
    step: int = 0
    data: bytes = b""


def message(values: np.ndarray, encoding: str, big: bool = False, padding: int = 0) -> Image:
    """As a driver sends it, rows padded by some bytes."""
    stored = values.astype(values.dtype.newbyteorder(">" if big else "<"))
    rows = [line.tobytes() + bytes(padding) for line in stored]
    return Image(len(values), values.shape[1], encoding, int(big), len(rows[0]), b"".join(rows))


@pytest.mark.parametrize("big", [False, True])
@pytest.mark.parametrize("padding", [0, 6])
@pytest.mark.parametrize(("encoding", "dtype"), [("16UC1", np.uint16), ("32FC1", np.float32), ("mono8", np.uint8)])
def test_one_band_is_read_as_it_was_sent(encoding, dtype, big, padding):
    values = np.arange(1, 36).reshape(5, 7).astype(dtype)
    found = messages.array_of(message(values, encoding, big, padding))
    assert found.dtype == dtype
    assert np.array_equal(found, values)


@pytest.mark.parametrize("encoding", ["rgb8", "bgr8", "rgba8", "bgra8"])
def test_colours_come_as_red_green_blue(encoding):
    rgb = np.random.default_rng(0).integers(0, 255, (4, 6, 3), np.uint8)
    sent = rgb[..., ::-1] if encoding.startswith("bgr") else rgb
    if encoding.endswith("a8"):
        sent = np.concatenate([sent, np.full((4, 6, 1), 255, np.uint8)], axis=2)
    assert np.array_equal(messages.array_of(message(sent, encoding, padding=3)), rgb)


def test_what_was_not_measured_is_no_depth():
    depth = np.array([[1.5, np.nan, np.inf], [0, -1, 2]], np.float32)
    found = messages.depth_of(message(depth, "32FC1"))
    assert np.array_equal(np.isnan(found), [[False, True, True], [True, True, False]])


@pytest.mark.parametrize(("encoding", "dtype"), [("16UC1", np.uint16), ("32FC1", np.float32)])
def test_depth_goes_there_and_back(encoding, dtype):
    values = np.array([[1000.4, 2000.6, np.nan], [3, 70000, 5]])
    sent = messages.fill(Image(), values, encoding)
    assert (sent.height, sent.width, sent.step) == (2, 3, 3 * np.dtype(dtype).itemsize)
    found = messages.array_of(sent)
    if encoding == "16UC1":
        assert found.tolist() == [[1000, 2001, 0], [3, 65535, 5]]
    else:
        assert np.array_equal(found, values.astype(np.float32), equal_nan=True)


@pytest.mark.parametrize(
    ("broken", "text"),
    [
        (Image(2, 2, "yuv422", 0, 4, bytes(8)), "unknown"),
        (Image(2, 2, "16UC1", 0, 4, bytes(7)), "7 bytes"),
        (Image(2, 2, "16UC1", 0, 3, bytes(8)), "step of 3"),
    ],
)
def test_broken_messages_are_refused(broken, text):
    with pytest.raises(ValueError, match=text):
        messages.array_of(broken)


def test_a_colour_image_is_no_depth():
    with pytest.raises(ValueError, match="no depth"):
        messages.depth_of(message(np.zeros((2, 2, 3), np.uint8), "rgb8"))


def test_the_node_is_python(tmp_path):
    py_compile.compile(str(FOLDER / "upsample_node.py"), cfile=str(tmp_path / "node.pyc"), doraise=True)
