"""A running `dada app`, a browser to look at it, and a small pair of files."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dada.io import write_image
from dada.scene import render

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--force-color-profile=srgb",
    "--hide-scrollbars",
    "--window-size=1440,1180",
)


class Running:
    """A server in a process of its own, as a user starts it."""

    def __init__(self, *options: str) -> None:
        self.temporary = Path(tempfile.mkdtemp(prefix="dada-test-"))
        environment = os.environ | {"TMPDIR": str(self.temporary)}
        command = [sys.executable, "-m", "dada.cli", "app", "--port", "0", *options]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
        )
        assert self.process.stdout is not None
        self.line = self.process.stdout.readline()
        self.url = self.line.split()[0]

    def folders(self) -> list[Path]:
        """Folders of requests and jobs that are there now."""
        return list(self.temporary.glob("dada-app-*/jobs/*"))

    def forgets(self, kept: set[Path], seconds: float = 20) -> bool:
        """Whether, in a while, no folder is left but those that were there before."""
        end = time.monotonic() + seconds
        while (left := set(self.folders()) - kept) and time.monotonic() < end:
            time.sleep(0.1)
        return not left

    def stop(self) -> int:
        """End it as `kill` does; return its exit code."""
        self.process.terminate()
        code = self.process.wait(30)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code

    def clear(self) -> None:
        if self.process.poll() is None:
            self.stop()
        shutil.rmtree(self.temporary, ignore_errors=True)


@pytest.fixture(scope="session")
def server() -> Iterator[Running]:
    running = Running("--jobs", "2")
    yield running
    running.clear()


@pytest.fixture(scope="session")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """16-bit depth.png in millimetres, with a hole, and rgb.png, eight times as fine."""
    folder = tmp_path_factory.mktemp("pair")
    scene = render(96, 128)
    depth = np.rint(1000 * scene.depth.astype(np.float64).reshape(12, 8, 16, 8).mean(axis=(1, 3))).astype(np.uint16)
    depth[2, 3] = 0
    write_image(folder / "depth.png", depth)
    write_image(folder / "rgb.png", scene.guide)
    return folder / "depth.png", folder / "rgb.png"


def start_browser(profile: Path, downloads: Path) -> Any:
    """Debian's chromium without a screen; the test is skipped where there is none."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("no chromium and chromedriver (Debian: apt-get install chromium chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.add_experimental_option("prefs", {"download.default_directory": str(downloads)})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
