"""sensor_msgs/Image to arrays and back, without ROS: it needs only the fields of the message.

Encodings are those of REP 118 and of depth_image_proc: depth is 16UC1 in millimetres, where 0 is no measurement, or
32FC1 in metres, where NaN is.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

KINDS = {
    "16UC1": (np.uint16, 1),
    "mono16": (np.uint16, 1),
    "32FC1": (np.float32, 1),
    "mono8": (np.uint8, 1),
    "rgb8": (np.uint8, 3),
    "bgr8": (np.uint8, 3),
    "rgba8": (np.uint8, 4),
    "bgra8": (np.uint8, 4),
}
DEPTH = ("16UC1", "mono16", "32FC1")
UNITS = {"16UC1": "mm", "mono16": "mm", "32FC1": "m"}


def array_of(message: Any) -> NDArray[Any]:
    """Return the pixels of an image message: (H, W), or (H, W, 3) in the order red, green, blue.

    Raises:
        ValueError: an encoding that is not known here, or fewer bytes than the message states.
    """
    if message.encoding not in KINDS:
        raise ValueError(f"encoding {message.encoding!r} is unknown; expected one of {', '.join(KINDS)}")
    kind, channels = KINDS[message.encoding]
    stored = np.dtype(kind).newbyteorder(">" if message.is_bigendian else "<")
    row = message.width * channels * stored.itemsize
    if message.step < row or len(message.data) < message.height * message.step:
        raise ValueError(
            f"{message.width} x {message.height} pixels of {message.encoding} need {row} bytes a row; the message has "
            f"a step of {message.step} and {len(message.data)} bytes"
        )
    rows = np.frombuffer(bytes(message.data), np.uint8, message.height * message.step)
    lines = np.ascontiguousarray(rows.reshape(message.height, message.step)[:, :row])
    pixels = lines.view(stored).reshape(message.height, message.width, channels).astype(kind)
    if channels == 1:
        return pixels[..., 0]
    return pixels[..., :3][..., ::-1] if message.encoding.startswith("bgr") else pixels[..., :3]


def depth_of(message: Any) -> NDArray[Any]:
    """Return depth as stored, uint16 or float32 with NaN where nothing was measured.

    Raises:
        ValueError: the message is no depth image.
    """
    if message.encoding not in DEPTH:
        raise ValueError(f"encoding {message.encoding!r} is no depth; expected one of {', '.join(DEPTH)}")
    depth = array_of(message)
    if depth.dtype == np.float32:
        return np.where(np.isfinite(depth) & (depth > 0), depth, np.float32(np.nan))
    return depth


def fill(message: Any, values: NDArray[Any], encoding: str) -> Any:
    """Write depth [H, W] in the unit of an encoding into a message, whose header is left alone.

    Args:
        message: with the fields of sensor_msgs/Image.
        values: NaN where there is no value. 16UC1 ends at 65.535 m, which also stands for all that is farther.
        encoding: "16UC1" or "32FC1".
    """
    if encoding == "32FC1":
        stored = np.ascontiguousarray(values, dtype="<f4")
    else:
        known = np.where(np.isfinite(values), np.rint(values), 0)
        stored = np.ascontiguousarray(np.clip(known, 0, np.iinfo(np.uint16).max), dtype="<u2")
    message.height, message.width = values.shape
    message.encoding, message.is_bigendian = encoding, 0
    message.step = stored.strides[0]
    message.data = stored.tobytes()
    return message
