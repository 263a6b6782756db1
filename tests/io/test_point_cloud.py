"""A point cloud holds every valid pixel where the camera saw it."""

from pathlib import Path

import numpy as np
import pytest

from dada.errors import InputError
from dada.io import parse_intrinsics, write_point_cloud

random = np.random.default_rng(2)
DEPTH = random.uniform(0.5, 5, (7, 9)).astype(np.float32)
RGB = random.integers(0, 255, (7, 9, 3), dtype=np.uint8)
CAMERA = parse_intrinsics("10, 11, 4.5, 3")


def points_of(path: Path) -> np.ndarray:
    header, _, data = path.read_bytes().partition(b"end_header\n")
    assert header.startswith(b"ply\nformat binary_little_endian 1.0\n")
    kinds = {"float": "<f4", "uchar": "u1"}
    fields = [line.split()[1:] for line in header.decode().splitlines() if line.startswith("property")]
    points = np.frombuffer(data, [(name, kinds[kind]) for kind, name in fields])
    assert f"element vertex {len(points)}\n".encode() in header
    return points


def test_points_project_back_onto_their_pixels(tmp_path: Path):
    valid = random.random(DEPTH.shape) > 0.3
    assert write_point_cloud(tmp_path / "a.ply", DEPTH, RGB, CAMERA, valid) == valid.sum()
    points = points_of(tmp_path / "a.ply")
    column = np.rint(points["x"] / points["z"] * CAMERA.fx + CAMERA.cx).astype(int)
    row = np.rint(points["y"] / points["z"] * CAMERA.fy + CAMERA.cy).astype(int)
    assert len(points) == valid.sum()
    assert valid[row, column].all()
    np.testing.assert_array_equal(points["z"], DEPTH[row, column])
    for band, name in enumerate(["red", "green", "blue"]):
        np.testing.assert_array_equal(points[name], RGB[row, column, band])


def test_no_valid_pixel_gives_an_empty_cloud_and_grey_colours_three_channels(tmp_path: Path):
    assert write_point_cloud(tmp_path / "a.ply", DEPTH, RGB, CAMERA, np.zeros((7, 9), bool)) == 0
    assert len(points_of(tmp_path / "a.ply")) == 0
    write_point_cloud(tmp_path / "b.ply", DEPTH, RGB[..., 0], CAMERA, np.ones((7, 9), bool))
    np.testing.assert_array_equal(points_of(tmp_path / "b.ply")["blue"], RGB[..., 0].ravel())


@pytest.mark.parametrize("text", ["", "1,2,3", "1,2,3,4,5", "0,1,2,3", "-5,5,2,3", "nan,1,2,3", "a,b,c,d"])
def test_bad_intrinsics_are_refused(text):
    with pytest.raises(InputError, match="fx,fy,cx,cy"):
        parse_intrinsics(text)


def test_what_does_not_match_is_refused_and_nothing_written(tmp_path: Path):
    every = np.ones((7, 9), bool)
    for name, depth, colours, valid in [
        ("a.ply", DEPTH[1:], RGB, every),
        ("a.ply", DEPTH, RGB[1:], every),
        ("a.ply", DEPTH, RGB.astype(np.float32), every),
        ("a.ply", DEPTH, RGB, every.astype(np.uint8)),
        ("a.obj", DEPTH, RGB, every),
        ("missing/a.ply", DEPTH, RGB, every),
    ]:
        with pytest.raises(InputError):
            write_point_cloud(tmp_path / name, depth, colours, CAMERA, valid)
    assert list(tmp_path.iterdir()) == []


def test_pixels_that_float_between_two_surfaces_are_left_out_if_asked(tmp_path):
    depth = np.full((20, 24), 3.0)
    depth[:, 12:], depth[:, 11] = 1.0, 2.1  # a column of mixed depths between wall and box
    slope = np.linspace(1.0, 1.3, 24)[None].repeat(20, axis=0)
    colours, valid = np.zeros((20, 24, 3), np.uint8), np.ones((20, 24), bool)
    camera = (100.0, 100.0, 12.0, 10.0)
    everything = write_point_cloud(tmp_path / "all.ply", depth, colours, camera, valid)
    fewer = write_point_cloud(tmp_path / "fewer.ply", depth, colours, camera, valid, without_flying=True)
    assert (everything, fewer) == (480, 460)
    assert write_point_cloud(tmp_path / "slope.ply", slope, colours, camera, valid, without_flying=True) == 480
