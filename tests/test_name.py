"""The package is called dada-sr where it is installed: dada is another one's name there."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def texts() -> list[Path]:
    try:
        ran = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a checkout of git")
    return [ROOT / name for name in ran.stdout.splitlines() if Path(name).suffix in (".py", ".md", ".toml", ".yml")]


def test_no_text_tells_to_install_another_package():
    found = [
        f"{path.relative_to(ROOT)}: {match}"
        for path in texts()
        if path != Path(__file__)
        for match in re.findall(r"pip install [^\n`]*", path.read_text())
        if not re.match(r"pip install ['\"]?(-|\.|dada-sr\b|gradio\b|torch\b)", match)
    ]
    assert not found


def test_extras_are_named_after_the_package():
    extras = "|".join(("backbones", "train", "rasters", "opencv-contrib", "app"))
    pattern = re.compile(rf"(?<![-\w])dada\\?\[({extras})")
    assert not [str(path) for path in texts() if path != Path(__file__) and pattern.search(path.read_text())]
