"""Many small panels in rows and columns, each already painted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .layout import FAINT, INK

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIDE, GAP, MARGIN = 1.15, 0.05, 0.1  # inches: width of a panel, between panels, around all
LABEL, NOTE, HEADING = 0.32, 0.75, 0.26  # inches: left of a row, right of it, above the columns
BETWEEN = 0.12  # inches more above a row with a label
FONT, SMALL = 8.5, 7.0  # points

Image = NDArray[np.uint8]


@dataclass(frozen=True)
class GalleryRow:
    """Panels of one row.

    Attributes:
        images: [H, W, 3] each; None leaves the place empty.
        label: at the left, written upwards; a row without one belongs to the row above.
        note: at the right, such as the scale of the colours.
        texts: below the upper border of each panel, such as an error; "" for none.
    """

    images: Sequence[Image | None]
    label: str = ""
    note: str = ""
    texts: Sequence[str] = ()


def gallery(columns: Sequence[str], rows: Sequence[GalleryRow]) -> Figure:
    """Draw painted images side by side, with a name above each column.

    Args:
        columns: their names.
        rows: as many images each as there are columns.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    heights = [_height(row) for row in rows]
    above = [BETWEEN if row.label and number else 0.0 for number, row in enumerate(rows)]
    width = 2 * MARGIN + LABEL + len(columns) * (SIDE + GAP) + NOTE
    height = 2 * MARGIN + HEADING + sum(heights) + sum(above) + GAP * len(rows)
    figure = Figure(figsize=(width, height), facecolor="white")
    FigureCanvasAgg(figure)
    top = height - MARGIN - HEADING
    for number, name in enumerate(columns):
        x = MARGIN + LABEL + number * (SIDE + GAP) + SIDE / 2
        _write(figure, x, top + 0.08, name, fontsize=FONT, weight="bold", ha="center")
    for row, tall, more in zip(rows, heights, above, strict=True):
        top -= more
        _draw_row(figure, row, top, tall)
        top -= tall + GAP
    return figure


def _height(row: GalleryRow) -> float:
    """Inches, from the proportions of the first image."""
    shown = next(image for image in row.images if image is not None)
    return SIDE * float(shown.shape[0] / shown.shape[1])


def _draw_row(figure: Figure, row: GalleryRow, top: float, tall: float) -> None:
    width, height = figure.get_size_inches()
    middle = top - tall / 2
    _write(figure, MARGIN + LABEL / 2, middle, row.label, fontsize=FONT, rotation=90, ha="center", va="center")
    end = MARGIN + LABEL + len(row.images) * (SIDE + GAP)
    _write(figure, end + 0.04, middle, row.note, fontsize=SMALL, va="center", color=FAINT)
    texts = row.texts or [""] * len(row.images)
    for number, (image, text) in enumerate(zip(row.images, texts, strict=True)):
        if image is None:
            continue
        left = MARGIN + LABEL + number * (SIDE + GAP)
        axes = figure.add_axes((left / width, (top - tall) / height, SIDE / width, tall / height))
        axes.imshow(image, aspect="auto", interpolation="nearest" if image.shape[0] < 128 else "antialiased")
        axes.set(xticks=[], yticks=[])
        for spine in axes.spines.values():
            spine.set(linewidth=0.5, color=FAINT)
        if text:
            box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 1.0}
            axes.text(0.03, 0.97, text, transform=axes.transAxes, fontsize=6.0, va="top", color=INK, bbox=box)


def _write(figure: Figure, x: float, y: float, text: str, **style: Any) -> None:
    """Text at a place in inches."""
    width, height = figure.get_size_inches()
    figure.text(x / width, y / height, text, **({"color": INK} | style))
