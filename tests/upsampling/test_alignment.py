"""Depth of one camera on the pixels of another: points where they belong, hidden ones left out."""

import json

import numpy as np
import pytest

import dada
from dada.cli import main
from dada.errors import InputError
from dada.io import read_image, write_image
from dada.io.cameras import Camera, Transform, read_camera, read_transform
from dada.scene import focal_length, render, render_depth
from dada.upsampling.alignment import align

DEPTH = Camera(90.0, 90.0, 39.5, 29.5)
COLOUR = Camera(180.0, 180.0, 79.5, 59.5)
BASELINE = Transform(np.eye(3), np.array([0.1, 0.0, 0.0]))
BOX = (-0.3, 0.3, -0.2, 0.25, 1.0)  # x, x, y, y and z: in front of a wall at 2 m
WALL = 2.0


def rendered(camera, size, moved):
    """Depth of the wall and the box, seen by a camera at `moved` to the right of the depth camera's place."""
    row, col = np.mgrid[: size[0], : size[1]]
    x, y = (col - camera.cx) / camera.fx, (row - camera.cy) / camera.fy
    left, right, top, bottom, near = BOX
    at_x, at_y = x * near + moved, y * near
    return np.where((at_x >= left) & (at_x <= right) & (at_y >= top) & (at_y <= bottom), near, WALL)


@pytest.fixture(scope="module")
def pair():
    return rendered(DEPTH, (60, 80), 0.0), rendered(COLOUR, (120, 160), -0.1)


def test_points_lie_where_they_belong_and_none_is_of_a_hidden_surface(pair):
    depth, truth = pair
    found = align(depth, DEPTH, COLOUR, BASELINE, truth.shape)
    row, col = np.nonzero(np.isfinite(depth))
    z = depth[row, col]
    x = ((col - DEPTH.cx) * z / DEPTH.fx + 0.1) / z * COLOUR.fx + COLOUR.cx
    y = (row - DEPTH.cy) * z / DEPTH.fy / z * COLOUR.fy + COLOUR.cy
    expected = {(round(a, 1), round(b, 1)) for a, b in zip(x, y, strict=True)}
    assert {(round(a, 1), round(b, 1)) for a, b, _ in found.points} <= expected
    known = np.isfinite(found.image)
    inner = known.copy()
    for shift in (-2, -1, 1, 2):  # pixels beside an outline belong to either side
        for axis in (0, 1):
            inner &= np.roll(truth, shift, axis) == truth
    assert np.abs(found.image - truth)[inner].max() < 1e-9
    assert found.hidden > 0
    assert not ((found.image > 1.5) & (truth < 1.5) & inner).any()
    assert known.mean() > 0.15  # two by two colour pixels for a depth pixel, less the borders


def test_distortion_is_undone_and_applied():
    bent = Camera(90.0, 90.0, 39.5, 29.5, (-0.2, 0.05, 0.001, 0.0))
    depth = np.full((60, 80), 2.0)
    same = align(depth, bent, bent, Transform(np.eye(3), np.zeros(3)), (60, 80))
    col, row = same.points[:, 0], same.points[:, 1]
    assert np.abs(col - np.round(col)).max() < 0.1
    assert np.abs(row - np.round(row)).max() < 0.1
    straight = align(depth, bent, DEPTH, Transform(np.eye(3), np.zeros(3)), (60, 80))
    assert np.abs(straight.points[0, :2] - same.points[0, :2]).max() > 1


@pytest.mark.parametrize("baseline", [18.5 / 360, 21.5 / 360, 0.09])
def test_a_surface_hides_no_farther_than_half_way_to_the_next_depth_pixel(baseline):
    scale, size = 8, (480, 640)
    colour = Camera(90.0 * scale, 90.0 * scale, 319.5, 239.5)
    depth = rendered(DEPTH, (60, 80), 0.0)
    found = align(depth, DEPTH, colour, Transform(np.eye(3), np.array([baseline, 0.0, 0.0])), size)
    places = []
    for surface in (WALL, BOX[-1]):
        row, col = np.nonzero(depth == surface)
        places.append(((col - DEPTH.cx) * scale + baseline / surface * colour.fx + colour.cx, row * scale + 3.5))
    (x, y), near = places
    beyond = np.maximum.reduce([near[0].min() - x, x - near[0].max(), near[1].min() - y, y - near[1].max()])
    visible = (beyond > scale / 2 + 1) & (x > 0) & (x < size[1] - 1) & (y > 0) & (y < size[0] - 1)
    kept = {(round(a, 2), round(b, 2)) for a, b, z in found.points if z > 1.5}
    assert {(round(a, 2), round(b, 2)) for a, b in zip(x[visible], y[visible], strict=True)} <= kept


def test_an_aligned_pair_is_as_good_as_one_that_was_never_shifted():
    """The same depth camera, one ray a pixel, at two places; over the surfaces that both cameras see."""
    size, coarse, place = (144, 192), (24, 32), (0.03, 0.0, 0.0)
    guide, truth = render(*size)
    cameras = [Camera(focal_length(*s), focal_length(*s), (s[1] - 1) / 2, (s[0] - 1) / 2) for s in (coarse, size)]
    moved = align(render_depth(*coarse, place), *cameras, Transform(np.eye(3), np.array(place)), size)
    aligned = dada.complete(moved.image, guide).values
    never = dada.upsample(render_depth(*coarse, (0.0, 0.0, 0.0)), guide, sampling="point").values

    row, col = np.mgrid[: size[0], : size[1]]
    there = np.rint(col - focal_length(*size) * place[0] / truth).astype(int)
    beside = render_depth(*size, place)[row, there.clip(0, size[1] - 1)]
    seen = (there >= 0) & (truth < 1.02 * beside)
    assert seen.mean() > 0.9
    errors = [(values - truth)[seen] for values in (aligned, never)]
    for measure in (lambda e: np.abs(e).mean(), lambda e: np.sqrt((e**2).mean())):
        assert measure(errors[0]) < 1.1 * measure(errors[1])


CAMERAS = {
    "opencv.yaml": "%YAML:1.0\n---\ncamera_matrix: !!opencv-matrix\n   rows: 3\n   cols: 3\n   dt: d\n"
    "   data: [90., 0., 39.5, 0., 90., 29.5, 0., 0., 1.]\ndistortion_coefficients: !!opencv-matrix\n   rows: 1\n"
    "   cols: 5\n   dt: d\n   data: [0.1, 0., 0., 0., 0.]\n",
    "ros.yaml": "image_width: 80\nimage_height: 60\ndistortion_model: plumb_bob\ncamera_matrix:\n  rows: 3\n  cols: 3\n"
    "  data: [90.0, 0.0, 39.5, 0.0, 90.0, 29.5, 0.0, 0.0, 1.0]\ndistortion_coefficients:\n  rows: 1\n  cols: 5\n"
    "  data: [0.1, 0.0, 0.0, 0.0, 0.0]\n",
    "camera_info.yaml": "height: 60\nwidth: 80\ndistortion_model: plumb_bob\nd: [0.1, 0, 0, 0, 0]\n"
    "k: [90, 0, 39.5, 0, 90, 29.5, 0, 0, 1]\n",
    "realsense.json": json.dumps({"width": 80, "height": 60, "fx": 90, "fy": 90, "ppx": 39.5, "ppy": 29.5,
                                  "model": "distortion.brown_conrady", "coeffs": [0.1, 0, 0, 0, 0]}),
}  # fmt: skip


@pytest.mark.parametrize("name", CAMERAS)
def test_cameras_are_read_as_others_write_them(name, tmp_path):
    (tmp_path / name).write_text(CAMERAS[name])
    camera = read_camera(str(tmp_path / name))
    assert (camera.fx, camera.fy, camera.cx, camera.cy) == (90, 90, 39.5, 29.5)
    assert camera.distortion == (0.1, 0, 0, 0, 0)
    assert camera == read_camera("90,90,39.5,29.5,0.1,0,0,0,0") or camera.size == (60, 80)


def test_transforms_are_read_by_rows_or_columns(tmp_path):
    turn = [0.0, -1, 0, 1, 0, 0, 0, 0, 1]
    (tmp_path / "rows.json").write_text(json.dumps({"rotation": turn, "translation": [1, 2, 3]}))
    columns = np.array(turn).reshape(3, 3).T.ravel().tolist()
    (tmp_path / "columns.json").write_text(
        json.dumps({"rotation": columns, "translation": [1, 2, 3], "column_major": True})
    )
    one, other = (read_transform(str(tmp_path / f"{name}.json")) for name in ("rows", "columns"))
    assert np.array_equal(one.rotation, other.rotation)
    assert np.array_equal(one.translation, [1, 2, 3])


@pytest.mark.parametrize("text", ["90,90", "0,90,1,1", "missing.yaml", "90,90,1,1,0.1"])
def test_what_is_no_camera_is_explained(text):
    with pytest.raises(InputError):
        read_camera(text)


def test_the_commands_align_and_leave_a_tenth_of_what_a_shifted_pair_leaves(pair, tmp_path, capsys):
    depth, truth = pair
    write_image(tmp_path / "depth.png", np.round(depth * 1000).astype(np.uint16))
    write_image(tmp_path / "rgb.png", np.where(truth < 1.5, 60, 200).astype(np.uint8)[..., None].repeat(3, axis=2))
    files = [str(tmp_path / "depth.png"), str(tmp_path / "rgb.png")]
    cameras = ["--depth-camera", "90,90,39.5,29.5", "--color-camera", "180,180,79.5,59.5", "--extrinsics", "0.1,0,0"]
    assert main(["align", *files, *cameras]) == 0
    assert "hidden" in capsys.readouterr().out
    sparse = read_image(tmp_path / "depth_aligned.png").values
    assert sparse.shape == truth.shape
    assert 0.1 < (sparse > 0).mean() < 0.5
    options = ["--model", "none", "--sampling", "point:0,0"]
    assert main(["upsample", *files, *cameras, "--model", "none", "-o", str(tmp_path / "aligned.png")]) == 0
    assert main(["upsample", *files, *options, "-o", str(tmp_path / "shifted.png")]) == 0
    names = ("aligned", "shifted")
    seen = np.s_[:, 20:140]  # the depth camera does not see the borders
    error = {name: np.square(read_image(tmp_path / f"{name}.png").values / 1000 - truth)[seen].mean() for name in names}
    assert error["aligned"] < 0.1 * error["shifted"]
    assert main(["upsample", *files, "--depth-camera", "90,90,39.5,29.5"]) == 2
    for more in (["--sampling", "point"], ["--noise", "5mm"]):
        capsys.readouterr()
        assert main(["upsample", *files, *cameras, *more, "-o", str(tmp_path / "refused.png")]) == 2
        assert "aligning makes points" in capsys.readouterr().err
    assert not (tmp_path / "refused.png").exists()
