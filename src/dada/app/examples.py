"""Three scenes of our own, as files: a room with depth, a street front with temperatures, a town with heights."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

SIZE = (480, 640)
TRUTH = "truth.npy"


@dataclass(frozen=True)
class Example:
    """A pair of files that the package draws itself."""

    name: str
    title: str
    words: str
    source: str
    guide: str
    factor: int
    fields: dict[str, str]  # of the form, where the user gives none
    label: str = ""


EXAMPLES = {
    example.name: example
    for example in (
        Example(
            "room",
            "Room",
            "Depth of 80 x 60 pixels in millimetres, as a small time-of-flight camera gives it, and a photograph.",
            "room_depth.png",
            "room_rgb.png",
            8,
            {"intrinsics": "614.4,614.4,319.5,239.5"},
        ),
        Example(
            "thermal",
            "Street",
            "Temperatures of 160 x 120 pixels, as a small thermal camera gives them, and a photograph.",
            "street_thermal.tiff",
            "street_rgb.png",
            4,
            {"unit": "raw"},
            label="°C",
        ),
        Example(
            "height",
            "Town",
            "Heights of 80 x 60 cells of 4 metres, as an elevation model gives them, and an aerial photograph.",
            "town_height.tiff",
            "town_rgb.png",
            8,
            {},
        ),
    )
}


def write_example(name: str, folder: Path) -> None:
    """Write source, guide and the true values of an example into a folder."""
    import numpy as np

    from dada.io import Georeference, write_image

    example = EXAMPLES[name]
    guide, truth, place = _drawn(name)
    source = _averaged(truth, example.factor)
    if name == "room":
        write_image(folder / example.source, np.rint(source).astype(np.uint16))
    else:
        cell = None if place is None else place * example.factor
        georeference = None if cell is None else Georeference(None, (cell, 0, 0, 0, -cell, 0))
        write_image(folder / example.source, source.astype(np.float32), georeference=georeference)
    write_image(folder / example.guide, guide)
    write_image(folder / TRUTH, truth.astype(np.float32))


def _drawn(name: str) -> tuple[np.ndarray, np.ndarray, float | None]:
    """Guide, true values in the unit of the source, and metres in a pixel where the scene lies on the ground."""
    import numpy as np

    if name == "thermal":
        from dada.scene.facade import draw_facade

        facade = draw_facade(*SIZE)
        return facade.guide, facade.temperature.astype(np.float64), None
    if name == "height":
        from dada.scene.town import PIXEL, draw_town

        town = draw_town(*SIZE)
        return town.guide, town.height.astype(np.float64), PIXEL
    from dada.scene import render

    room = render(*SIZE)
    return room.guide, 1000 * room.depth.astype(np.float64), None


def _averaged(truth: np.ndarray, factor: int) -> np.ndarray:
    H, W = truth.shape
    averaged: np.ndarray = truth.reshape(H // factor, factor, W // factor, factor).mean(axis=(1, 3))
    return averaged
