"""Pictures of inputs and results: `preview`, `comparison` and `error_map` make a figure, `save` writes it.

Figures are laid out in inches from the proportions of the image, so that panels and colour bars line up for
any size. Nothing global is touched: no pyplot, no change of matplotlib's settings, and matplotlib is imported
only when a picture is made.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from dada.errors import InputError

from .colours import Scale
from .layout import Sheet, mark, panel
from .values import (
    Map,
    Mask,
    Range,
    Size,
    busiest,
    checked,
    error_text,
    guide_painter,
    pick,
    same_size,
    size_text,
    thin,
    whole_window,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["comparison", "error_map", "preview", "save"]

COLORMAP = "viridis"  # perceptually uniform


def preview(
    values: ArrayLike,
    valid: ArrayLike | None = None,
    *,
    range: Range | None = None,
    unit: str = "",
    title: str | None = None,
    colormap: str = COLORMAP,
) -> Figure:
    """Show values in colour, with a colour bar.

    Args:
        values: [H, W], of any real type; NaN and infinities count as invalid.
        valid: [H, W], False where there is no value.
        range: values of the first and last colour; None: 1st to 99th percentile of the valid values.
        unit: written above the colour bar.
        title: written above the picture.
        colormap: name of a colour map of matplotlib.

    Raises:
        InputError: a wrong shape, an empty range or an unknown colour map.
    """
    data, known = checked(values, valid, "values")
    scale = Scale.robust(data, known, range, colormap)
    width, height = panel(data.shape, 20.0)
    whole = whole_window(data.shape)
    sheet = Sheet([width], [height], [known], lines=1 if title or unit else 0)
    sheet.show(0, 0, scale.paint(*pick(data, known, data.shape, whole)), whole, title or "")
    sheet.colour_bar(scale, unit)
    return sheet.figure


def comparison(
    guide: ArrayLike,
    source: ArrayLike,
    bicubic: ArrayLike,
    result: ArrayLike,
    *,
    unit: str = "",
    valid: ArrayLike | None = None,
    source_valid: ArrayLike | None = None,
    truth: ArrayLike | None = None,
    range: Range | None = None,
) -> Figure:
    """Show guide, source, bicubic and result (and truth) together, and enlarged where edges are densest.

    Args:
        guide: [H, W] or [H, W, bands], 8-bit, 16-bit or float.
        source: [h, w], drawn with its own large pixels.
        bicubic: [H, W], the plain upsampling to compare with.
        result: [H, W].
        unit: written above the colour bar and after errors.
        valid: [H, W], False where result and bicubic have no value.
        source_valid: [h, w], False where source has no value.
        truth: [H, W], NaN where unknown; adds a panel, and the mean absolute errors to the titles.
        range: values of the first and last colour; None: 1st to 99th percentile of truth, else of result.

    Raises:
        InputError: a wrong shape, shapes that do not belong together, or an empty range.
    """
    maps: dict[str, Map] = {
        "source": checked(source, source_valid, "source"),
        "bicubic": checked(bicubic, valid, "bicubic"),
        "result": checked(result, valid, "result"),
    }
    if truth is not None:
        maps["truth"] = checked(truth, None, "truth")
    picture = np.asarray(guide)
    size = maps["result"][0].shape
    reference = maps.get("truth", maps["result"])
    same_size(size, {"guide": picture, "bicubic": maps["bicubic"][0], "truth": reference[0]})

    scale = Scale.robust(*reference, range, COLORMAP)
    wide, tall = size[1] > 2 * size[0], size[0] > 2 * size[1]  # their enlargements are squares
    zoom = busiest(*reference, scale.limits, square=wide or tall)
    sheet = _sheet(size, len(maps) + 1, [known for _, known in maps.values()])
    paint_guide = guide_painter(picture)
    for place, (name, detail) in enumerate(_details(maps, size, unit).items()):
        for enlarged, window in enumerate((whole_window(size), zoom)):
            image = paint_guide(window) if name == "guide" else scale.paint(*pick(*maps[name], size, window))
            row, column = (place, enlarged) if wide else (enlarged, place)
            if enlarged:
                sheet.show(row, column, image, window)
            else:
                mark(sheet.show(row, column, image, window, name, detail), zoom)
    sheet.colour_bar(scale, unit)
    return sheet.figure


def _sheet(size: Size, count: int, masks: list[Mask]) -> Sheet:
    """A sheet for `count` panels and their enlargements: below the panels, or beside them where images are wide."""
    wide, tall = size[1] > 2 * size[0], size[0] > 2 * size[1]
    width, height = panel(size, 9.0 if tall else 7.0)
    if wide:
        return Sheet([width, height], [height] * count, masks, lines=2, every_row=True)
    return Sheet([width] * count, [height, width if tall else height], masks, lines=2)


def _details(maps: Mapping[str, Map], size: Size, unit: str) -> dict[str, str]:
    """The second line of each title: the size of a map, or the error of bicubic and result where truth is known."""
    details = {"guide": size_text(size)} | {name: size_text(data.shape) for name, (data, _) in maps.items()}
    if "truth" in maps:
        truth, known_truth = maps["truth"]
        for name in ("bicubic", "result"):
            data, known = maps[name]
            both = known & known_truth
            details[name] = error_text(data[both] - truth[both], unit)
    return details


def error_map(errors: Mapping[str, ArrayLike], unit: str = "", *, range: float | None = None) -> Figure:
    """Show signed errors side by side on one symmetric scale, with their mean absolute and root mean square.

    Args:
        errors: name of each method and its [H, W] error (result - truth), NaN where there is none.
        unit: written above the colour bar and after the errors.
        range: error of the last colour; None: 97th percentile of the absolute values of all maps together.

    Raises:
        InputError: no map, a wrong shape, maps of different sizes, or a range that is not positive.
    """
    maps = {name: checked(error, None, name) for name, error in errors.items()}
    if not maps:
        raise InputError("no error map was given: pass at least one, as {name: error}")
    size = next(iter(maps.values()))[0].shape
    same_size(size, {name: data for name, (data, _) in maps.items()})
    scale = Scale.symmetric([thin(data, known) for data, known in maps.values()], range)
    width, height = panel(size, 9.0)
    columns = 1 if size[1] > 2 * size[0] else min(len(maps), 4)
    rows = ceil(len(maps) / columns)
    masks = [known for _, known in maps.values()]
    sheet = Sheet([width] * columns, [height] * rows, masks, lines=2, every_row=True)
    whole = whole_window(size)
    for place, (name, (data, known)) in enumerate(maps.items()):
        image = scale.paint(*pick(data, known, size, whole))
        sheet.show(place // columns, place % columns, image, whole, name, error_text(data, unit, rmse=True))
    sheet.colour_bar(scale, unit)
    return sheet.figure


def save(figure: Figure, path: str | os.PathLike[str], dpi: float = 150) -> None:
    """Write a figure as PNG; the file appears complete or not at all.

    Raises:
        OSError: the folder does not exist or cannot be written.
    """
    path = Path(path)
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
    try:
        with open(partial, "xb") as file:
            # Without matplotlib's version in it, the same picture is the same file.
            figure.savefig(file, format="png", dpi=dpi, metadata={"Software": None})
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
