"""Cameras and the transform between two of them, as flags and as the files that OpenCV, ROS and RealSense write."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dada.errors import InputError

DISTORTIONS = (0, 4, 5, 8, 12, 14)  # numbers that OpenCV's Brown-Conrady and rational models have


@dataclass(frozen=True)
class Camera:
    """A pinhole camera with lens distortion.

    Attributes:
        fx, fy, cx, cy: focal lengths and principal point in pixels, whose centres are whole numbers.
        distortion: k1, k2, p1, p2, and k3, and k4, k5, k6 where there are so many, as OpenCV orders them.
        size: (height, width) where the file says so.
    """

    fx: float
    fy: float
    cx: float
    cy: float
    distortion: tuple[float, ...] = ()
    size: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        """Check that it can be a camera."""
        numbers = np.array([self.fx, self.fy, self.cx, self.cy, *self.distortion])
        if not np.isfinite(numbers).all() or min(self.fx, self.fy) <= 0 or len(self.distortion) not in DISTORTIONS:
            raise InputError(
                f"camera {self.fx:g},{self.fy:g},{self.cx:g},{self.cy:g} with {len(self.distortion)} distortion "
                "numbers is none: focal lengths are positive, and distortion has 0, 4, 5, 8, 12 or 14 numbers."
            )

    @property
    def matrix(self) -> np.ndarray:
        """[3, 3]."""
        return np.array([[self.fx, 0, self.cx], [0, self.fy, self.cy], [0, 0, 1.0]])


@dataclass(frozen=True)
class Transform:
    """Points of the depth camera to the colour camera: rotation @ point + translation, in metres."""

    rotation: np.ndarray  # [3, 3]
    translation: np.ndarray  # [3]

    def __post_init__(self) -> None:
        """Check that it is rigid."""
        if not np.allclose(self.rotation @ self.rotation.T, np.eye(3), atol=1e-3) or np.linalg.det(self.rotation) < 0:
            raise InputError("the rotation of the extrinsics is not one: its rows are not orthogonal unit vectors.")


def read_camera(text: str) -> Camera:
    """Read a camera: "fx,fy,cx,cy" with distortion numbers after these, or a file.

    Files: JSON (fx, fy, cx or ppx, cy or ppy, and coeffs or distortion, as RealSense names them), OpenCV's YAML
    (camera_matrix, distortion_coefficients), and YAML or JSON of ROS's camera_info (K or k, D or d).

    Raises:
        InputError: it is none of these; the message says what was found.
    """
    numbers = _numbers(text)
    if numbers is not None:
        if len(numbers) < 4:
            raise InputError(f"camera {text!r} has {len(numbers)} numbers. Give fx,fy,cx,cy and distortion after them.")
        fx, fy, cx, cy = numbers[:4]
        return Camera(fx, fy, cx, cy, tuple(numbers[4:]))
    found = _read(Path(text))
    rows, cols = (_first(found, *names) for names in (("height", "image_height"), ("width", "image_width")))
    size = (int(rows), int(cols)) if rows and cols else None
    distortion = _flat(_first(found, "distortion_coefficients", "distortion", "coeffs", "D", "d", "dist_coeffs"))
    model = str(_first(found, "distortion_model", "model") or "").lower()
    if any(word in model for word in ("fisheye", "equidistant", "kannala")) and any(distortion):
        raise InputError(f"{text}: distortion model {model!r} is not supported. Undistort the images first.")
    if "inverse" in model and any(distortion):
        raise InputError(f"{text}: inverse Brown-Conrady distortion is not supported. Undistort the depth first.")
    matrix = _flat(_first(found, "camera_matrix", "K", "k", "intrinsic_matrix", "matrix"))
    if len(matrix) == 9:
        return Camera(matrix[0], matrix[4], matrix[2], matrix[5], tuple(distortion), size)
    four = [_first(found, *names) for names in (("fx",), ("fy",), ("cx", "ppx"), ("cy", "ppy"))]
    if any(number is None for number in four):
        raise InputError(f"{text}: there is no camera in it. Expected fx, fy, cx, cy, or a camera matrix of 9 numbers.")
    fx, fy, cx, cy = (float(number) for number in four)
    return Camera(fx, fy, cx, cy, tuple(distortion), size)


def read_transform(text: str) -> Transform:
    """Read the transform from the depth camera to the colour camera, in metres.

    "tx,ty,tz" (no rotation), 12 numbers (three rows of rotation and translation), or a JSON or YAML file with rotation
    (9 numbers by rows; by columns where "column_major" is true, as RealSense has them) and translation, or a 4 x 4
    matrix.

    Raises:
        InputError: it is none of these.
    """
    numbers = _numbers(text)
    if numbers is None:
        found = _read(Path(text))
        rotation = _flat(_first(found, "rotation", "R", "r"))
        translation = _flat(_first(found, "translation", "T", "t"))
        if len(rotation) == 9 and len(translation) == 3:
            matrix = np.array(rotation).reshape(3, 3)
            return Transform(matrix.T if found.get("column_major") else matrix, np.array(translation))
        numbers = _flat(_first(found, "matrix", "extrinsics", "transform"))
    if len(numbers) == 3:
        return Transform(np.eye(3), np.array(numbers))
    if len(numbers) in (12, 16):
        rows = np.array(numbers).reshape(-1, 4)
        return Transform(rows[:3, :3], rows[:3, 3])
    raise InputError(
        f"extrinsics {text!r} are not understood. Give tx,ty,tz in metres, 12 numbers (rows of rotation and "
        "translation), or a file with rotation and translation."
    )


def _numbers(text: str) -> list[float] | None:
    """Numbers of a text that are separated by commas; None if it is none such."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        return None


def _read(path: Path) -> dict[str, Any]:
    """The mapping in a JSON or YAML file."""
    import yaml

    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: the file cannot be read ({error}). Give numbers, or a JSON or YAML file.") from None
    try:
        # OpenCV writes a directive without a space, and a tag of its own
        plain = "\n".join(line for line in text.splitlines() if not line.startswith("%")).replace("!!opencv-matrix", "")
        found = json.loads(text) if path.suffix.lower() == ".json" else yaml.safe_load(plain)
    except (ValueError, yaml.YAMLError) as error:
        raise InputError(f"{path}: it is neither JSON nor YAML ({str(error).splitlines()[0]}).") from None
    if not isinstance(found, dict):
        raise InputError(f"{path}: expected names with values, such as fx, fy, cx, cy; found {type(found).__name__}.")
    return found


def _first(found: dict[str, Any], *names: str) -> Any:
    """The value of the first of these names that is there."""
    return next((found[name] for name in names if found.get(name) is not None), None)


def _flat(value: Any) -> list[float]:
    """Numbers of a list, a list of lists, or of {rows, cols, data}."""
    if isinstance(value, dict):
        value = value.get("data", [])
    return [] if value is None else [float(number) for number in np.asarray(value, np.float64).ravel()]
