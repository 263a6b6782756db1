"""Facts about the page in a real browser. With DADA_SCREENSHOTS=FOLDER its pictures are kept, as in docs/images."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from dada.cli import main
from dada.io import read_image, write_image
from tests.app.conftest import Running, start_browser

PATIENCE = 90.0  # seconds: other tests run beside these


class Page:
    """A tab with the page in it."""

    def __init__(self, browser: Any, url: str) -> None:
        self.browser, self.url = browser, url
        browser.get(url)
        self.until(lambda: browser.execute_script("return document.body.dataset.ready") == "yes")

    def until(self, holds: Callable[[], Any], seconds: float = PATIENCE) -> Any:
        end = time.monotonic() + seconds
        while not (found := holds()):
            assert time.monotonic() < end, (self["state"].text, self["problem"].text)
            time.sleep(0.03)
        return found

    def __getitem__(self, name: str) -> Any:
        return self.browser.find_element("id", name)

    def first(self, selector: str) -> Any:
        return self.browser.find_element("css selector", selector)

    def run_js(self, script: str) -> Any:
        return self.browser.execute_script(script)

    def send(self, source: Path, guide: Path) -> None:
        for name, path in (("source", source), ("guide", guide)):
            self[name].send_keys(str(path))
        self["run"].click()

    def done(self) -> None:
        self.until(lambda: self["state"].text.startswith("done"))

    def example(self, name: str) -> None:
        self.first(f"[data-example={name}]").click()
        self.until(lambda: not self["state"].text.startswith("done"))
        self.done()

    def choose(self, name: str, value: str) -> None:
        from selenium.webdriver.support.ui import Select

        Select(self[name]).select_by_value(value)

    def problem(self, field: str) -> str:
        """The message beside a file, once there is one."""
        place = self.first(f'.zone[data-field="{field}"] .problem')
        return str(self.until(lambda: place.text))

    def colours(self, canvas: str) -> np.ndarray:
        """[H, W, 3] of a canvas."""
        script = f"""
            const c = document.getElementById("{canvas}");
            return [c.width, c.height, c.toDataURL("image/png").split(",")[1]];"""
        import base64

        _, _, data = self.run_js(script)
        return cv2.imdecode(np.frombuffer(base64.b64decode(data), np.uint8), cv2.IMREAD_COLOR)

    def keep(self, name: str, height: int | None = None) -> None:
        """Keep a picture of the page where DADA_SCREENSHOTS says."""
        if not (folder := os.environ.get("DADA_SCREENSHOTS")):
            return
        for field in ("source", "guide"):  # what a file holds comes a little later
            self.until(lambda field=field: "looking" not in self.first(f'.zone[data-field="{field}"] .details').text)
        data = np.frombuffer(self.browser.get_screenshot_as_png(), np.uint8)
        image = cv2.imdecode(data, cv2.IMREAD_COLOR)[:height]
        image = cv2.resize(image, None, fx=0.75, fy=0.75, interpolation=cv2.INTER_AREA)
        cv2.imwrite(str(Path(folder) / f"{name}.png"), image, [cv2.IMWRITE_PNG_COMPRESSION, 9])


@pytest.fixture(scope="module")
def downloads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("downloads")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory, downloads: Path) -> Iterator[Any]:
    found = start_browser(tmp_path_factory.mktemp("profile"), downloads)
    yield found
    found.quit()


@pytest.fixture
def page(browser: Any, server: Running) -> Page:
    return Page(browser, server.url)


def test_a_16_bit_pair_comes_back_as_the_command_writes_it(page, pair, downloads, tmp_path):
    page.send(*pair)
    page.done()
    page.first('a[data-what="result"]').click()
    fetched = downloads / "depth_upsampled.png"
    page.until(lambda: fetched.exists() and fetched.stat().st_size)
    assert main(["upsample", *map(str, pair), "-o", str(tmp_path / "own.png"), "--threads", "1"]) == 0
    assert fetched.read_bytes() == (tmp_path / "own.png").read_bytes()
    assert page["command"].text.startswith("dada upsample depth.png rgb.png -o depth_upsampled.png --threads 1")
    details = page.first('.zone[data-field="source"] .details')
    page.until(lambda: "uint16" in details.text)
    assert "unit mm, invalid 0 (1 pixels)" in details.text


def test_the_slider_moves_and_the_value_under_the_pointer_is_that_of_the_file(page, pair, downloads):
    from selenium.webdriver import ActionChains

    page.send(*pair)
    page.done()
    before = page.colours("canvas")
    canvas, width = page["canvas"], page["canvas"].size["width"]
    actions = ActionChains(page.browser)
    actions.move_to_element(canvas).click_and_hold().move_by_offset(-int(0.3 * width), 0).release().perform()
    assert int(page["divider"].get_attribute("value")) == pytest.approx(200, abs=15)
    assert (page.colours("canvas") != before).any()
    page["divider"].send_keys("\ue014")  # an arrow key moves it too
    assert int(page["divider"].get_attribute("value")) == pytest.approx(200, abs=20)

    page.choose("left", "guide")
    ActionChains(page.browser).move_to_element_with_offset(canvas, 100, 60).perform()
    words = page["readout"].text
    column, row = (int(words.split(name)[1].split(",")[0].split("·")[0]) for name in ("column ", "row "))
    page.first('a[data-what="report"]')
    page.run_js("document.querySelector('a[data-what=result]').click()")
    files = page.until(lambda: [path for path in downloads.glob("depth_upsampled*.png") if path.stat().st_size])
    stored = read_image(files[0]).values
    assert f"result {stored[row, column]} mm" in words
    red, green, blue = read_image(pair[1], role="guide").values[row, column]
    assert f"guide {red}, {green}, {blue}" in words


def test_the_point_cloud_is_drawn_and_turns(page):
    page.example("room")
    page["tab-cloud"].click()
    page.until(lambda: page.colours("cloud").std() > 20)
    image = page.colours("cloud")
    ground = image[2, 2]
    assert (image != ground).any(axis=2).mean() > 0.15
    page["cloud"].send_keys("\ue014\ue014")
    page.until(lambda: (page.colours("cloud") != image).any(axis=2).mean() > 0.05)
    assert "Camera as stated" in page["cloud-words"].text


@pytest.mark.parametrize("name", ["room", "thermal", "height"])
def test_each_example_is_shown_with_its_error(page, name):
    page.example(name)
    assert "bicubic" in page["errors"].text
    assert page.colours("canvas").std() > 20
    if name == "room":
        page.keep("app")
    if name == "thermal":
        page.choose("left", "guide")
        page["edges"].click()
        page.keep("app-edges")
        page["edges"].click()
        page.choose("left", "error of bicubic")
        page.choose("right", "error of result")
        page.run_js("document.getElementById('below').scrollIntoView({block: 'end'})")
        assert "error in °C" in page["legends"].text
        page.keep("app-errors")
    if name == "height":
        page["tab-cloud"].click()
        page.until(lambda: page.colours("cloud").std() > 20)
        page.keep("app-points")


def test_a_self_test_shows_an_error_map(page, pair, tmp_path):
    scene = np.tile(np.linspace(1000, 3000, 128), (96, 1)).astype(np.uint16)
    scene[:, 60:] += 900
    write_image(tmp_path / "fine.png", scene)
    page["selftest"].click()
    page.send(tmp_path / "fine.png", pair[1])
    page.done()
    page.choose("right", "error of result")
    assert "error in mm" in page["legends"].text
    assert page.first('a[data-what="averaged source"]')


def test_a_truncated_file_is_told_beside_it(page, pair, tmp_path):
    cut = tmp_path / "depth.png"
    cut.write_bytes(pair[0].read_bytes()[:-40])
    page["source"].send_keys(str(cut))
    assert page.problem("source").startswith("depth.png: ")


def test_swapped_files_are_told_beside_the_source(page, pair):
    page.send(pair[1], pair[0])
    assert "swap the two files" in page.problem("source")


def test_a_colour_depth_map_is_told_beside_the_source(page, pair, tmp_path):
    colours = cv2.applyColorMap((np.arange(192).reshape(12, 16)).astype(np.uint8), cv2.COLORMAP_JET)
    write_image(tmp_path / "jet.png", colours)
    page.send(tmp_path / "jet.png", pair[1])
    assert "a colour-mapped picture of the values is not the values" in page.problem("source")
    page.keep("app-problem", height=760)


def test_two_users_at_once_each_get_their_own(browser, server, pair):
    pages = []
    for name in ("room", "height"):
        browser.switch_to.new_window("tab")
        page = Page(browser, server.url)
        page.first(f"[data-example={name}]").click()
        pages.append((browser.current_window_handle, page, name))
    for handle, page, name in pages:
        browser.switch_to.window(handle)
        page.done()
        assert {"room": "room_depth", "height": "town_height"}[name] in page["command"].text
        browser.close()
    browser.switch_to.window(browser.window_handles[0])


def test_the_page_asks_nobody_else_and_who_leaves_takes_the_files_along(browser):
    running = Running("--jobs", "1")
    try:
        for name in ("performance", "browser"):  # of the tests before
            browser.get_log(name)
        page = Page(browser, running.url)
        page.example("room")
        logged = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
        asked = {m["params"]["request"]["url"] for m in logged if m["method"] == "Network.requestWillBeSent"}
        assert asked
        assert not [url for url in asked if not url.startswith((running.url, "data:", "blob:"))]
        assert not [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
        browser.get("about:blank")
        assert running.forgets(set())
    finally:
        running.clear()
