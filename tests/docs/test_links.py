"""The link checker finds what is broken, and nothing else."""

from pathlib import Path

from docsite.links import broken

GOOD = '<h1 id="top">x</h1><a href="b.html#part">b</a><a href="#top">up</a><a href="https://example.org/x">out</a>'


def site(folder: Path, **pages: str) -> Path:
    for name, text in pages.items():
        (folder / f"{name}.html").write_text(text)
    return folder


def test_a_good_site_has_nothing_broken(tmp_path: Path):
    assert broken(site(tmp_path, a=GOOD, b='<p id="part">y</p><img src="a.html">')) == []


def test_missing_files_pictures_and_anchors_are_named(tmp_path: Path):
    page = '<a href="none.html">n</a><img src="none.png"><a href="b.html#nowhere">b</a>'
    found = broken(site(tmp_path, a=page, b="<p>y</p>"))
    assert [line.split(": ")[1] for line in found] == ["b.html#nowhere", "none.html", "none.png"]


def test_what_is_loaded_from_another_machine_is_named(tmp_path: Path):
    page = '<script src="https://example.org/x.js"></script><link rel="stylesheet" href="//example.org/x.css">'
    found = broken(site(tmp_path, a=page + '<link rel="canonical" href="https://example.org/a.html">'))
    assert [line.split()[2] for line in found] == ["//example.org/x.css", "https://example.org/x.js"]
