"""Layout of panels, titles, colour bar and legend, in inches, from the proportions of the image."""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .colours import Scale
from .values import NEUTRAL, Size, Window

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.ticker import Formatter

MARGIN, GAP, LINE, TITLE_PAD = 0.15, 0.14, 0.185, 0.07  # inches
BAR, BAR_LABELS, LEGEND = 0.16, 0.5, 0.3
FONT, SMALL = 10.5, 8.5  # points
PROPORTIONS = (1 / 5, 8.0)  # of a panel; a longer or taller image is centred in it
INK, FAINT = "#1a1a1a", "#5c5c5c"


def panel(size: Size, area: float) -> tuple[float, float]:
    """Width and height of a panel of about the given square inches."""
    proportion = float(np.clip(size[1] / size[0], *PROPORTIONS))
    return sqrt(area * proportion), sqrt(area / proportion)


class Sheet:
    """A figure with a grid of panels, titles above them, a colour bar on the right and a legend if needed."""

    def __init__(
        self,
        widths: list[float],
        heights: list[float],
        masks: list[NDArray[np.bool_]],
        *,
        lines: int,
        every_row: bool = False,
    ) -> None:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        self.widths, self.heights = widths, heights
        title = lines * LINE + TITLE_PAD - 0.04 if lines else 0.0
        self.above = [title] + [title if every_row else 0.0] * (len(heights) - 1)
        missing = [1 - float(mask.mean()) for mask in masks]
        self.bottom = MARGIN + (LEGEND if any(missing) else 0.0)
        self.width = 2 * MARGIN + sum(widths) + GAP * len(widths) + BAR + BAR_LABELS
        self.height = MARGIN + sum(heights) + GAP * (len(heights) - 1) + sum(self.above) + self.bottom
        self.figure = Figure(figsize=(self.width, self.height), facecolor="white")
        FigureCanvasAgg(self.figure)
        if any(missing):
            self._legend("no value" + (f" ({_percent(missing[0])})" if len(missing) == 1 else ""))

    def _axes(self, left: float, bottom: float, width: float, height: float) -> Axes:
        """Axes at a place in inches."""
        x, y = self.width, self.height
        return self.figure.add_axes((left / x, bottom / y, width / x, height / y))

    def show(
        self,
        row: int,
        column: int,
        image: NDArray[np.uint8],
        window: Window,
        title: str = "",
        detail: str = "",
    ) -> Axes:
        left = MARGIN + sum(self.widths[:column]) + GAP * column
        top = self.height - MARGIN - sum(self.above[: row + 1]) - sum(self.heights[:row]) - GAP * row
        width, height = self.widths[column], self.heights[row]
        axes = self._axes(left, top - height, width, height)
        rows, columns = window
        axes.imshow(image, extent=(columns.start, columns.stop, rows.stop, rows.start))
        axes.set(xticks=[], yticks=[])
        for spine in axes.spines.values():
            spine.set(linewidth=0.6, color=FAINT)
        raised = (LINE if detail else 0.0) + TITLE_PAD
        _write(axes, title, width, raised, FONT, color=INK, weight="bold")
        _write(axes, detail, width, TITLE_PAD, SMALL, color=FAINT)
        return axes

    def colour_bar(self, scale: Scale, unit: str) -> None:
        from matplotlib.cm import ScalarMappable
        from matplotlib.colors import Normalize

        top = self.height - MARGIN - self.above[0]
        left = MARGIN + sum(self.widths) + GAP * len(self.widths)
        axes = self._axes(left, self.bottom, BAR, top - self.bottom)
        colours = ScalarMappable(Normalize(*scale.limits), scale.colormap)
        bar = self.figure.colorbar(
            colours,
            cax=axes,
            extend=scale.extend,
            extendfrac=0.1 / (top - self.bottom),
            format=_tick_labels(scale),
        )
        bar.outline.set(linewidth=0.6, edgecolor=FAINT)
        axes.tick_params(labelsize=SMALL, labelcolor=INK, color=FAINT, width=0.6, length=3)
        if scale.empty:
            bar.set_ticks([])
        at = left / self.width, (top + TITLE_PAD) / self.height
        self.figure.text(*at, unit, fontsize=SMALL, color=INK)

    def _legend(self, text: str) -> None:
        from matplotlib.patches import Rectangle

        side = 0.13
        at = MARGIN / self.width, MARGIN / self.height
        colour = tuple(c / 255 for c in NEUTRAL)
        patch = Rectangle(at, side / self.width, side / self.height, facecolor=colour, edgecolor=FAINT, linewidth=0.6)
        self.figure.add_artist(patch)
        x, y = (MARGIN + side + 0.07) / self.width, (MARGIN + side / 2) / self.height
        self.figure.text(x, y, text, fontsize=SMALL, color=INK, va="center_baseline")


def _tick_labels(scale: Scale) -> Formatter:
    """Plain decimals for ordinary numbers; never an offset that the reader would have to add."""
    from matplotlib.ticker import FuncFormatter, ScalarFormatter

    if not 0.01 <= max(map(abs, scale.limits)) < 1e6:
        return FuncFormatter(lambda value, _: f"{value:.3g}".replace("-", "−"))
    plain = ScalarFormatter(useOffset=False)
    plain.set_scientific(False)
    return plain


def _write(axes: Axes, text: str, width: float, height: float, font: float, **style: Any) -> None:
    """Text above the left corner of axes, made smaller and then cut to fit a width in inches."""
    needed = 0.62 * font / 72 * len(text)
    font = max(min(font, font * width / max(needed, 1e-9)), 6.0)
    letters = max(4, int(width / (0.62 * font / 72)) + 1)
    text = text if len(text) <= letters else text[: letters - 1] + "…"
    axes.annotate(text, (0, 1), (0, 72 * height), "axes fraction", "offset points", fontsize=font, **style)


def mark(axes: Axes, window: Window) -> None:
    """Outline the enlarged part."""
    from matplotlib.patches import Rectangle

    rows, columns = window
    size = columns.stop - columns.start, rows.stop - rows.start
    for colour, line in (("black", 2.2), ("white", 1.1)):
        axes.add_patch(Rectangle((columns.start, rows.start), *size, fill=False, edgecolor=colour, linewidth=line))


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %" if share >= 0.001 else "under 0.1 %"
