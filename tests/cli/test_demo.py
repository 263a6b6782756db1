"""`dada demo` leaves what it promises."""

import json
import re

from dada.io import read_image


def test_the_demo_leaves_pictures_and_a_report(dada, tmp_path):
    folder = tmp_path / "new" / "room"
    ran = dada("demo", folder)
    assert (ran.code, ran.err) == (0, "")
    for name in ("comparison.png", "error.png", "report.md"):
        assert str(folder / name) in ran.out
    assert {path.name for path in folder.iterdir()} == {
        "guide.png", "source.png", "result.png", "result_preview.png", "comparison.png", "error.png",
        "result.ply",
        "report.json", "report.md",
    }  # fmt: skip
    bicubic, ours = (float(number) for number in re.findall(r"([\d.]+) mm", ran.out)[:2])
    assert ours < 0.6 * bicubic
    assert read_image(folder / "result.png").values.shape == (480, 640)
    assert json.loads((folder / "report.json").read_text())["stored"]["consistency_max"] <= 0.5
    assert "48" in (folder / "report.md").read_text()


def test_a_place_that_cannot_be_is_explained(dada, tmp_path):
    (tmp_path / "file").write_text("")
    ran = dada("demo", tmp_path / "file" / "room")
    assert (ran.code, ran.out) == (2, "")
    assert "folder cannot be made" in ran.err
