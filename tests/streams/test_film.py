"""`dada video`: a colour video and its depth, to images or a lossless video of finer depth."""

import itertools

import av
import cv2
import numpy as np
import pytest

import dada
from dada.cli import main
from dada.io import TEMPORARY_PREFIX, read_image, video
from dada.streams import film as film_module

from .test_upsampler import frame, with_ball

COUNT = 4


def write_guide(path, images):
    """As a camera writes it: lossy, H.264."""
    with video.writing(path, images[0].shape[:2], video.RATE, lossless=False) as write:
        for image in images:
            write(image)


@pytest.fixture
def scan(tmp_path):
    """A video and a folder of depth in millimetres."""
    frames = [with_ball(number) if number > 1 else frame(0) for number in range(COUNT)]
    write_guide(tmp_path / "rgb.mp4", [guide for _, guide in frames])
    (tmp_path / "depth").mkdir()
    for number, (source, _) in enumerate(frames):
        cv2.imwrite(str(tmp_path / f"depth/{number:06d}.png"), np.uint16(1000 * source))
    return tmp_path


def decoded(path, kind):
    with av.open(str(path)) as container:
        return [image.to_ndarray(format=kind) for image in container.decode(video=0)]


def run(scan, *more):
    return main(["video", str(scan / "rgb.mp4"), str(scan / "depth"), "--model", "none", *map(str, more)])


def test_frames_are_those_of_separate_calls_and_give_back_their_depth(scan):
    assert run(scan, "-o", scan / "fine", "--no-keep") == 0
    names = sorted(path.name for path in (scan / "fine").iterdir())
    assert names == [f"{number:06d}.png" for number in range(COUNT)]
    for name, guide in zip(names, decoded(scan / "rgb.mp4", "rgb24"), strict=True):
        fine, source = read_image(scan / "fine" / name).values, read_image(scan / "depth" / name).values
        separate = dada.upsample(source, guide, model="none").values
        assert fine.dtype == np.uint16
        assert np.abs(fine - separate).max() <= 0.5
        means = fine.reshape(12, 8, 16, 8).mean((1, 3))
        assert np.abs(means - source).max() <= 0.5


def test_a_video_of_depth_is_lossless_and_the_same_as_the_folder(scan):
    assert run(scan, "-o", scan / "fine") == 0
    assert run(scan, "-o", scan / "fine.mkv") == 0
    images = [read_image(path).values for path in sorted((scan / "fine").iterdir())]
    assert np.array_equal(decoded(scan / "fine.mkv", "gray16le"), images)


def test_depth_may_be_a_lossless_video(scan):
    source = [read_image(path).values for path in sorted((scan / "depth").iterdir())]
    with video.writing(scan / "depth.mkv", source[0].shape, video.RATE, lossless=True) as write:
        for image in source:
            write(image)
    assert run(scan, "-o", scan / "a") == 0
    assert (
        main(["video", str(scan / "rgb.mp4"), str(scan / "depth.mkv"), "-o", str(scan / "b"), "--model", "none"]) == 0
    )
    for one, other in zip(sorted((scan / "a").iterdir()), sorted((scan / "b").iterdir()), strict=True):
        assert one.read_bytes() == other.read_bytes()


def test_the_preview_shows_guide_source_and_result(scan):
    assert run(scan, "-o", scan / "fine", "--preview", scan / "fine.mp4") == 0
    shown, guides = decoded(scan / "fine.mp4", "rgb24"), decoded(scan / "rgb.mp4", "rgb24")
    assert len(shown) == COUNT
    assert shown[0].shape == (96, 3 * 128, 3)
    assert np.abs(shown[0][:, :128].astype(int) - guides[0]).mean() < 8  # coded twice
    source, result = shown[0][:, 128:256].astype(int), shown[0][:, 256:].astype(int)
    assert np.abs(source[3::8, 3::8] - result[3::8, 3::8]).mean() < 20


def test_it_says_what_was_kept_and_how_still_it_is(scan, capsys):
    assert run(scan, "-o", scan / "fine") == 0
    printed = capsys.readouterr().out
    assert "4 frames, uint16 millimetres" in printed
    assert "1 frames with the coefficients of an earlier one, 3 computed anew" in printed
    assert "where nothing moved" in printed


def test_levels_of_a_phone_are_half_and_whole_also_where_no_pixel_is_sure(scan):
    (scan / "confidence").mkdir()
    for number in range(COUNT):
        cv2.imwrite(str(scan / f"confidence/{number:06d}.png"), np.ones((12, 16), np.uint8))
    assert run(scan, "-o", scan / "fine", "--confidence", scan / "confidence") == 0
    source = read_image(scan / "depth/000000.png").values
    guide = decoded(scan / "rgb.mp4", "rgb24")[0]
    wanted = dada.upsample(source, guide, model="none", confidence=np.full((12, 16), 0.5)).values
    assert np.abs(read_image(scan / "fine/000000.png").values - wanted).max() <= 0.5


def test_a_missing_frame_ends_it_and_leaves_nothing(scan, capsys):
    (scan / f"depth/{COUNT - 1:06d}.png").unlink()
    assert run(scan, "-o", scan / "fine", "--preview", scan / "fine.mp4") == 2
    assert "the depth ends after 3 frames" in capsys.readouterr().err
    left = {path.name for path in scan.iterdir()}
    assert left == {"rgb.mp4", "depth"}
    assert not [name for name in left if name.startswith(TEMPORARY_PREFIX)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-o", "fine.mp4"], "depth would lose its values"),
        (["-o", "fine", "--preview", "fine.gif"], "written as MP4"),
        (["-o", "depth"], "overwrite an input"),
    ],
)
def test_outputs_that_cannot_be(scan, capsys, arguments, message):
    paths = [text if text.startswith("-") else scan / text for text in arguments]
    assert run(scan, *paths) == 2
    assert message in capsys.readouterr().err


def test_a_folder_that_holds_something_is_not_replaced(scan, capsys):
    (scan / "fine").mkdir()
    (scan / "fine/mine.txt").write_text("mine")
    assert run(scan, "-o", scan / "fine") == 2
    assert "already is such a file or folder" in capsys.readouterr().err
    assert (scan / "fine/mine.txt").read_text() == "mine"


def test_a_coloured_video_is_no_depth(scan, capsys):
    assert main(["video", str(scan / "rgb.mp4"), str(scan / "rgb.mp4"), "-o", str(scan / "fine")]) == 2
    assert "holds one band" in capsys.readouterr().err


def test_a_damaged_video_is_told(scan, capsys):
    (scan / "rgb.mp4").write_bytes(b"not a video")
    assert run(scan, "-o", scan / "fine") == 2
    assert "cannot be read" in capsys.readouterr().err


def test_frames_are_read_one_at_a_time(scan, monkeypatch):
    """Memory does not grow with the length of the video."""
    frames = film_module.open_frames(scan / "depth", "source")
    first = next(itertools.islice(frames.read(), 1))
    assert (frames.length, first.values.shape) == (COUNT, (12, 16))
