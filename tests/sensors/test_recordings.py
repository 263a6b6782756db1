"""Recordings of phones and depth cameras are known by their layout, and `dada batch` takes them."""

import json
import os
from functools import lru_cache
from pathlib import Path

import cv2
import numpy as np
import pytest

import dada
from dada.cli import main
from dada.errors import InputError
from dada.io import read_image, video, write_image
from dada.scene import render
from dada.sensors import recognise
from dada.sensors.realsense import units_per_metre
from dada.sensors.tum import associated

FACTOR, COUNT = 8, 2


@lru_cache
def scene():
    return render(96, 128)


def metres() -> np.ndarray:
    return scene().depth.reshape(12, FACTOR, 16, FACTOR).mean((1, 3), dtype=np.float64)


def write_colour(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    assert cv2.imwrite(str(path), scene().guide[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, 95])


def write_depth(path: Path, per_metre: float, fine: bool = False) -> np.ndarray:
    path.parent.mkdir(parents=True, exist_ok=True)
    values = np.uint16((scene().depth if fine else metres()) * per_metre)
    write_image(path, values)
    return values


@pytest.fixture
def stray(tmp_path) -> Path:
    """256 x 192 there, 16 x 12 here; the rest is as the app writes it."""
    folder = tmp_path / "71de12f9"
    for number in range(COUNT):
        write_depth(folder / f"depth/{number:06d}.png", 1000)
        levels = np.full((12, 16), 2, np.uint8)
        levels[:, :4], levels[:, 4:8] = 0, 1
        (folder / "confidence").mkdir(exist_ok=True)
        write_image(folder / f"confidence/{number:06d}.png", levels)
    with video.writing(folder / "rgb.mp4", (96, 128), video.RATE, lossless=False) as write:
        for _ in range(COUNT):
            write(scene().guide)
    rows = [[100.5, 0, 63.5], [0, 100.5, 47.5], [0, 0, 1]]
    (folder / "camera_matrix.csv").write_text("\n".join(", ".join(f"{n:.4f}" for n in row) for row in rows))
    (folder / "odometry.csv").write_text(
        "timestamp, frame, x, y, z, qx, qy, qz, qw\n0.1, 000000, 0, 0, 0, 0, 0, 0, 1\n"
    )
    (folder / "imu.csv").write_text("timestamp, a_x, a_y, a_z, alpha_x, alpha_y, alpha_z\n")
    return folder


@pytest.fixture
def record3d(tmp_path) -> Path:
    folder = tmp_path / "EXR_RGBD"
    for number in range(COUNT):
        write_colour(folder / f"rgb/{number}.jpg")
        (folder / "depth").mkdir(exist_ok=True)
        depth = metres().astype(np.float32)
        depth[0, 0] = 0
        write_image(folder / f"depth/{number}.exr", depth)
    metadata = {"w": 128, "h": 96, "fps": 60, "K": [100.5, 0, 0, 0, 100.5, 0, 63.5, 47.5, 1], "poses": []}
    (folder / "metadata.json").write_text(json.dumps(metadata))
    return folder


@pytest.fixture
def tum(tmp_path) -> Path:
    """Two depth images with a colour image each, and one without."""
    folder, start = tmp_path / "rgbd_dataset", 1305031102.0
    lists = {"rgb": ["# color images", "# file: 'x.bag'", "# timestamp filename"], "depth": ["# depth maps"]}
    for name, times in (("rgb", [0.0, 0.033]), ("depth", [0.005, 0.040, 0.5])):
        for time in times:
            file = f"{name}/{start + time:.6f}.png"
            lists[name].append(f"{start + time:.6f} {file}")
            if name == "rgb":
                write_colour(folder / file)
            else:
                values = write_depth(folder / file, 5000, fine=True)
                values[40:50, 60:70] = 0
                write_image(folder / file, values)
        (folder / f"{name}.txt").write_text("\n".join(lists[name]) + "\n")
    return folder


@pytest.fixture
def realsense(tmp_path) -> Path:
    folder = tmp_path / "realsense"
    for number in range(COUNT):
        write_colour(folder / f"color/{number:06d}.jpg")
        write_depth(folder / f"depth/{number:06d}.png", 4000)
    content = {"width": 128, "height": 96, "intrinsic_matrix": [100.5, 0, 0, 0, 100.5, 0, 63.5, 47.5, 1]}
    (folder / "camera_intrinsic.json").write_text(json.dumps(content | {"depth_scale": 0.00025}))
    return folder


def batch(folder: Path, out: Path, *more: str) -> int:
    return main(["batch", str(folder), str(out), "--model", "none", "--jobs", "1", *more])


@pytest.mark.parametrize(
    ("name", "layout", "unit"),
    [
        ("stray", "Stray Scanner", "mm"),
        ("record3d", "Record3D", "m"),
        ("tum", "TUM RGB-D", "tum"),
        ("realsense", "RealSense", "4000"),
    ],
)
def test_each_layout_is_recognised_with_its_unit(name, layout, unit, request):
    found = recognise(request.getfixturevalue(name))
    assert (found.layout, found.unit, len(found.shots)) == (layout, unit, COUNT)
    assert found.intrinsics == (None if name == "tum" else "100.5,100.5,63.5,47.5")


def test_a_scan_of_a_phone_is_upsampled_with_its_confidence(stray, tmp_path, capsys):
    out = tmp_path / "fine"
    assert batch(stray, out, "--point-cloud") == 0
    printed = capsys.readouterr().out
    assert "layout of Stray Scanner, 2 pairs, depth mm (1000 units a metre)" in printed
    assert "confidence 0, 1, 2 taken as 0, 0.5, 1" in printed
    fine, guide = read_image(out / "000000.png").values, read_image(out / "frames/000000.png", role="guide").values
    assert (out / "000000.ply").exists()
    levels = read_image(stray / "confidence/000000.png").values
    source = read_image(stray / "depth/000000.png").values
    wanted = dada.upsample(source, guide, model="none", confidence=levels / 2)
    assert np.array_equal(fine == 0, ~wanted.valid)
    assert np.abs(fine - wanted.values)[wanted.valid].max() <= 0.5


def test_a_frame_of_which_nothing_is_sure_is_no_more_than_half_sure(stray, tmp_path):
    write_image(stray / "confidence/000001.png", np.ones((12, 16), np.uint8))
    assert batch(stray, tmp_path / "fine") == 0
    guide = read_image(tmp_path / "fine/frames/000001.png", role="guide").values
    source = read_image(stray / "depth/000001.png").values
    wanted = dada.upsample(source, guide, model="none", confidence=np.full((12, 16), 0.5)).values
    assert np.abs(read_image(tmp_path / "fine/000001.png").values - wanted).max() <= 0.5


def test_a_second_run_decodes_and_computes_nothing_again(stray, tmp_path, capsys):
    out = tmp_path / "fine"
    assert batch(stray, out) == 0
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*.png")}
    assert batch(stray, out) == 0
    assert "2 complete from before" in capsys.readouterr().out
    assert {path: path.stat().st_mtime_ns for path in out.rglob("*.png")} == before


def test_frames_of_another_video_are_decoded_again(stray, tmp_path):
    out = tmp_path / "fine"
    assert batch(stray, out) == 0
    before = (out / "frames/000000.png").read_bytes()
    with video.writing(stray / "rgb.mp4", (96, 128), video.RATE, lossless=False) as write:
        for _ in range(COUNT):
            write(255 - scene().guide)
    os.utime(stray / "rgb.mp4", ns=(1, 1))
    assert batch(stray, out) == 0
    assert (out / "frames/000000.png").read_bytes() != before


def test_record3d_depth_is_in_metres_and_0_is_no_measurement(record3d, tmp_path):
    assert batch(record3d, tmp_path / "fine", "--format", "npy") == 0
    fine = np.load(tmp_path / "fine/0.npy")
    assert (fine[:8, :8] == 0).all()
    assert np.abs(fine[8:].reshape(11, 8, 16, 8).mean((1, 3)) - metres()[1:]).max() < 1e-4


def test_tum_depth_of_the_guides_size_keeps_its_values_and_loses_its_holes(tum, tmp_path, capsys):
    assert batch(tum, tmp_path / "fine") == 1
    captured = capsys.readouterr()
    assert "depth tum (5000 units a metre)" in captured.out
    assert "failed: 1305031102.500000.png: there is no colour image of it." in captured.err
    source = read_image(tum / "depth/1305031102.005000.png").values
    fine = read_image(tmp_path / "fine/1305031102.005000.png").values
    assert np.array_equal(fine[source > 0], source[source > 0])
    assert (fine > 0).all()


def test_a_scale_in_units_or_in_metres_is_the_same(realsense, tmp_path):
    path = Path("intrinsic.json")
    assert units_per_metre(path, {"depth_scale": 0.001}) == 1000
    assert units_per_metre(path, {"depth_scale": 0.0010000000474974513}) == 1000
    assert units_per_metre(path, {"depth_scale": 1000.0}) == 1000
    assert units_per_metre(path, {}) == 1000
    with pytest.raises(InputError, match="no scale"):
        units_per_metre(path, {"depth_scale": "mm"})


def test_a_stated_unit_wins(realsense, tmp_path, capsys):
    assert batch(realsense, tmp_path / "fine", "--unit", "mm") == 0
    assert "depth mm (1000 units a metre)" in capsys.readouterr().out


def test_each_image_has_one_partner_and_the_nearest_pairs_come_first():
    assert associated([0.0, 0.012], [0.01, 0.031]) == {1: 0}
    assert associated([0.0, 0.012], [0.01, 0.031, -0.015]) == {0: 2, 1: 0}
    assert associated([5.0], [5.02001]) == {}


def _without(folder: Path, name: str) -> Path:
    path = folder / name
    if path.is_dir():
        for file in path.iterdir():
            file.unlink()
        path.rmdir()
    else:
        path.unlink()
    return folder


@pytest.mark.parametrize(
    ("name", "part", "message"),
    [
        ("stray", "rgb.mp4", "neither rgb.mp4 nor images in rgb/"),
        ("stray", "confidence/000001.png", "confidence/000001.png is missing"),
        ("record3d", "depth", "no depth"),
        ("record3d", "rgb", "no colour"),
        ("tum", "rgb.txt", "rgb.txt is missing"),
    ],
)
def test_what_is_missing_is_named(name, part, message, request):
    folder = _without(request.getfixturevalue(name), part)
    with pytest.raises(InputError, match=message):
        recognise(folder)


def test_a_packed_record3d_file_is_explained(tmp_path):
    (tmp_path / "rgbd").mkdir()
    (tmp_path / "rgbd/0.depth").write_bytes(b"bvx2")
    (tmp_path / "rgbd/0.jpg").write_bytes(b"")
    (tmp_path / "metadata").write_text("{}")
    with pytest.raises(InputError, match="LZFSE"):
        recognise(tmp_path)


def test_an_unknown_folder_lists_what_is_known(tmp_path, capsys):
    assert batch(tmp_path, tmp_path / "out") == 2
    error = capsys.readouterr().err
    assert "no layout" in error
    assert "Record3D" in error


def test_depth_beyond_the_end_of_the_video_fails_alone(stray, tmp_path, capsys):
    for name in ("depth", "confidence"):
        (stray / name / "000007.png").write_bytes((stray / name / "000000.png").read_bytes())
    assert batch(stray, tmp_path / "fine") == 1
    assert "000007.png: the video ends at frame 1" in capsys.readouterr().err
    assert (tmp_path / "fine/000001.png").exists()
