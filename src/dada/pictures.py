"""Pictures of inputs and results: `preview`, `comparison` and `error_map` make a figure, `save` writes it.

Figures are laid out in inches from the proportions of the image, so that panels and colour bars line up for
any size. Nothing global is touched: no pyplot, no change of matplotlib's settings, and matplotlib is imported
only when a picture is made.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np
from numpy.typing import ArrayLike, NDArray

from dada.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure
    from matplotlib.ticker import Formatter

COLORMAP = "viridis"  # perceptually uniform
DIVERGING = "RdBu_r"  # white is no error
NEUTRAL = (158, 158, 158)  # pixels without a value: a gray that neither colour map contains
DISPLAY = 1400  # pixels: a longer side is thinned out before it is drawn
SAMPLE = 2_000_000  # values looked at for a robust range
ROBUST = (1, 99)  # percentiles of values
ROBUST_ERROR = 97  # percentile of absolute errors: they are few and large, along edges

Range = tuple[float, float]
Size = tuple[int, ...]
Window = tuple[slice, slice]  # rows and columns of the target


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
    data, known = _checked(values, valid, "values")
    scale = _Scale.robust(data, known, range, colormap)
    width, height = _panel(data.shape, 20.0)
    whole = _whole(data.shape)
    sheet = _Sheet([width], [height], [known], lines=1 if title or unit else 0)
    sheet.show(0, 0, scale.paint(*_pick(data, known, data.shape, whole)), whole, title or "")
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
    maps = {
        "source": _checked(source, source_valid, "source"),
        "bicubic": _checked(bicubic, valid, "bicubic"),
        "result": _checked(result, valid, "result"),
    }
    if truth is not None:
        maps["truth"] = _checked(truth, None, "truth")
    picture = np.asarray(guide)
    size = maps["result"][0].shape
    reference = maps.get("truth", maps["result"])
    _same_size(size, {"guide": picture, "bicubic": maps["bicubic"][0], "truth": reference[0]})

    scale = _Scale.robust(*reference, range, COLORMAP)
    wide, tall = size[1] > 2 * size[0], size[0] > 2 * size[1]  # their enlargements are squares
    zoom = _busiest(*reference, scale.limits, square=wide or tall)
    width, height = _panel(size, 9.0 if tall else 7.0)
    count = len(maps) + 1
    masks = [known for _, known in maps.values()]
    if wide:  # panels one below the other, the enlargements beside them
        sheet = _Sheet([width, height], [height] * count, masks, lines=2, every_row=True)
    else:
        sheet = _Sheet([width] * count, [height, width if tall else height], masks, lines=2)

    details = {"guide": _text(size)} | {name: _text(data.shape) for name, (data, _) in maps.items()}
    if truth is not None:
        for name in ("bicubic", "result"):
            data, known = maps[name]
            both = known & reference[1]
            details[name] = _mae(data[both] - reference[0][both], unit)

    paint_guide = _guide_painter(picture)
    for place, (name, detail) in enumerate(details.items()):
        for enlarged, window in enumerate((_whole(size), zoom)):
            image = paint_guide(window) if name == "guide" else scale.paint(*_pick(*maps[name], size, window))
            row, column = (place, enlarged) if wide else (enlarged, place)
            if enlarged:
                sheet.show(row, column, image, window)
            else:
                _mark(sheet.show(row, column, image, window, name, detail), zoom)
    sheet.colour_bar(scale, unit)
    return sheet.figure


def error_map(errors: Mapping[str, ArrayLike], unit: str = "", *, range: float | None = None) -> Figure:
    """Show signed errors side by side on one symmetric scale, with their mean absolute and root mean square.

    Args:
        errors: name of each method and its [H, W] error (result - truth), NaN where there is none.
        unit: written above the colour bar and after the errors.
        range: error of the last colour; None: 97th percentile of the absolute values of all maps together.

    Raises:
        InputError: no map, a wrong shape, maps of different sizes, or a range that is not positive.
    """
    maps = {name: _checked(error, None, name) for name, error in errors.items()}
    if not maps:
        raise InputError("no error map was given: pass at least one, as {name: error}")
    size = next(iter(maps.values()))[0].shape
    _same_size(size, {name: data for name, (data, _) in maps.items()})
    scale = _Scale.symmetric([_thin(data, known) for data, known in maps.values()], range)
    width, height = _panel(size, 9.0)
    columns = 1 if size[1] > 2 * size[0] else min(len(maps), 4)
    rows = ceil(len(maps) / columns)
    masks = [known for _, known in maps.values()]
    sheet = _Sheet([width] * columns, [height] * rows, masks, lines=2, every_row=True)
    whole = _whole(size)
    for place, (name, (data, known)) in enumerate(maps.items()):
        image = scale.paint(*_pick(data, known, size, whole))
        sheet.show(place // columns, place % columns, image, whole, name, _mae(data, unit, rmse=True))
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


# ------------------------------------------------------------------------------------------------- values


def _checked(values: ArrayLike, valid: ArrayLike | None, name: str) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """The map as an array, and where it has a value."""
    data = np.asarray(values)
    if data.ndim != 2 or not data.size:
        raise InputError(f"{name} has shape {data.shape}: expected height x width, neither of them 0")
    if data.dtype.kind not in "fiub":
        raise InputError(f"{name} holds {data.dtype}: expected real numbers")
    known = np.isfinite(data)
    if valid is not None:
        mask = np.asarray(valid, bool)
        if mask.shape != data.shape:
            raise InputError(f"the valid mask of {name} has shape {mask.shape}: expected {data.shape}, as {name}")
        known &= mask
    return (data if data.dtype.kind == "f" else data.astype(np.float32)), known


def _same_size(size: Size, images: Mapping[str, NDArray[Any]]) -> None:
    for name, image in images.items():
        if image.shape[:2] != size:
            raise InputError(f"{name} has shape {image.shape}, the others {size}: they must agree in height and width")


def _thin(data: NDArray[Any], known: NDArray[np.bool_]) -> NDArray[Any]:
    """Valid values, evenly chosen where there are very many."""
    step = max(1, round(sqrt(data.size / SAMPLE)))
    return data[::step, ::step][known[::step, ::step]]


def _whole(size: Size) -> Window:
    return slice(0, size[0]), slice(0, size[1])


def _pick(
    data: NDArray[Any], known: NDArray[np.bool_], size: Size, window: Window
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """A map of any resolution in a window of the target: nearest neighbours, at most DISPLAY a side."""
    axes = []
    for own, target, part in zip(data.shape, size, window, strict=True):
        length = part.stop - part.start
        drawn = min(length, DISPLAY)
        at = part.start + (np.arange(drawn) + 0.5) * length / drawn
        axes.append((at.astype(int) + 0.5) * own // target)
    cells = np.ix_(*(a.astype(int) for a in axes))
    return data[cells], known[cells]


def _busiest(data: NDArray[Any], known: NDArray[np.bool_], limits: Range, *, square: bool) -> Window:
    """The part with the most edges: a quarter of each side, or a square on a third of the shorter side."""
    H, W = data.shape
    thin, thin_known = _pick(data, known, data.shape, _whole(data.shape))
    filled = np.where(thin_known, thin, limits[0]).astype(np.float32)
    steep = np.float32((limits[1] - limits[0]) / 25)
    edges = np.zeros_like(filled)
    edges[1:] += (np.abs(np.diff(filled, axis=0)) > steep) & thin_known[1:] & thin_known[:-1]
    edges[:, 1:] += (np.abs(np.diff(filled, axis=1)) > steep) & thin_known[:, 1:] & thin_known[:, :-1]

    share = min(1.0, max(1 / 3 if square else 1 / 4, 6 / min(H, W)))  # at least 6 pixels
    rows, columns = (max(1, round(share * (min(H, W) if square else n))) for n in (H, W))
    h, w = edges.shape[0], edges.shape[1]
    box = max(1, columns * w // W), max(1, rows * h // H)
    density = cv2.boxFilter(edges, -1, box, borderType=cv2.BORDER_CONSTANT)
    i, j = np.unravel_index(np.argmax(density), density.shape) if density.any() else (h // 2, w // 2)
    top = int(np.clip((i + 0.5) * H / h - rows / 2, 0, H - rows))
    left = int(np.clip((j + 0.5) * W / w - columns / 2, 0, W - columns))
    return slice(top, top + rows), slice(left, left + columns)


def _guide_painter(guide: NDArray[Any]) -> Callable[[Window], NDArray[np.uint8]]:
    """A function from a window to its RGB image: the first three bands, or the first as gray."""
    if guide.ndim not in (2, 3) or not guide.size or guide.dtype.kind not in "fiub":
        raise InputError(f"guide has shape {guide.shape} of {guide.dtype}: expected height x width (x bands)")
    bands = guide[..., None] if guide.ndim == 2 else guide
    bands = bands[..., :3] if bands.shape[2] >= 3 else bands[..., :1]
    low, high = 0.0, 255.0
    if guide.dtype != np.uint8:
        step = max(1, round(sqrt(bands.size / SAMPLE)))
        sample = bands[::step, ::step].astype(np.float32)
        low, high = _robust(sample[np.isfinite(sample)])
        if guide.dtype.kind == "f" and low >= 0 and 0.5 < high <= 1:
            low, high = 0.0, 1.0  # already the usual range of float images

    def paint(window: Window) -> NDArray[np.uint8]:
        part = bands[window]
        thinner = tuple(max(1, n // (2 * DISPLAY)) for n in part.shape[:2])
        part = part[:: thinner[0], :: thinner[1]].astype(np.float32)
        shown = 255 * np.clip((part - np.float32(low)) / np.float32(high - low), 0, 1)
        shown = np.where(np.isfinite(part), shown, np.float32(NEUTRAL[0]))
        drawn = tuple(min(n, DISPLAY) for n in shown.shape[1::-1])
        if drawn != shown.shape[1::-1]:
            shown = cv2.resize(shown, drawn, interpolation=cv2.INTER_AREA).reshape(*drawn[::-1], -1)
        return np.broadcast_to(np.rint(shown).astype(np.uint8), (*shown.shape[:2], 3))

    return paint


def _mae(error: NDArray[Any], unit: str, *, rmse: bool = False) -> str:
    finite = error[np.isfinite(error)].astype(np.float64)
    if not finite.size:
        return "no value to compare"
    text = f"MAE {_digits(np.abs(finite).mean())} {unit}".strip()
    return text + (f", RMSE {_digits(sqrt((finite**2).mean()))} {unit}".rstrip() if rmse else "")


def _digits(value: float) -> str:
    """Three significant digits."""
    return f"{value:#.3g}".rstrip(".") if 1e-4 <= value < 1000 else f"{value:.4g}"


def _text(size: Size) -> str:
    return f"{size[1]} × {size[0]}"


# ------------------------------------------------------------------------------------------------- colours


def _robust(values: NDArray[Any]) -> Range:
    """Percentiles that span a range, the extremes if those do not, a made-up neighbourhood of a constant."""
    if not values.size:
        return 0.0, 1.0
    low, high = (float(v) for v in np.percentile(values.astype(np.float64), ROBUST))
    if low == high:
        low, high = float(values.min()), float(values.max())
    pad = 0.0 if high - low > 1e-9 * max(abs(low), abs(high)) else 0.1 * abs(low) or 1.0
    return low - pad, high + pad


@dataclass(frozen=True)
class _Scale:
    """Colours of values."""

    limits: Range
    colormap: Colormap
    extend: str  # which ends of the scale some values lie beyond: neither, min, max or both
    empty: bool = False  # no value at all: the limits mean nothing

    @classmethod
    def of(cls, values: NDArray[Any], limits: Range, colormap: str) -> _Scale:
        import matplotlib

        if not (np.isfinite(limits).all() and limits[0] < limits[1]):
            raise InputError(f"the range {limits[0]:g} to {limits[1]:g} is empty: give a lower and a greater value")
        if colormap not in matplotlib.colormaps:
            raise InputError(f"unknown colour map {colormap!r}: use one of matplotlib's, such as viridis or magma")
        below, above = bool((values < limits[0]).any()), bool((values > limits[1]).any())
        extend = {(0, 0): "neither", (1, 0): "min", (0, 1): "max", (1, 1): "both"}[below, above]
        return cls(limits, matplotlib.colormaps[colormap], extend, not values.size)

    @classmethod
    def robust(cls, data: NDArray[Any], known: NDArray[np.bool_], limits: Range | None, colormap: str) -> _Scale:
        values = _thin(data, known)
        return cls.of(values, _robust(values) if limits is None else limits, colormap)

    @classmethod
    def symmetric(cls, errors: list[NDArray[Any]], limit: float | None) -> _Scale:
        values = np.concatenate(errors)
        size = np.abs(values)
        if limit is None:
            limit = float(np.percentile(size, ROBUST_ERROR)) if size.size else 1.0
            limit = limit or float(size.max()) or 1.0
        return cls.of(values, (-limit, limit), DIVERGING)

    def paint(self, data: NDArray[Any], known: NDArray[np.bool_]) -> NDArray[np.uint8]:
        low, high = self.limits
        place = (np.where(known, data, low).astype(np.float64) - low) / (high - low)
        image = self.colormap(np.clip(place, 0, 1), bytes=True)[..., :3]
        image[~known] = NEUTRAL
        return image


# ------------------------------------------------------------------------------------------------- layout

MARGIN, GAP, LINE, TITLE_PAD = 0.15, 0.14, 0.185, 0.07  # inches
BAR, BAR_LABELS, LEGEND = 0.16, 0.5, 0.3
FONT, SMALL = 10.5, 8.5  # points
PROPORTIONS = (1 / 5, 8.0)  # of a panel; a longer or taller image stands in its middle
INK, FAINT = "#1a1a1a", "#5c5c5c"


def _panel(size: Size, area: float) -> tuple[float, float]:
    """Width and height of a panel of about the given square inches."""
    proportion = float(np.clip(size[1] / size[0], *PROPORTIONS))
    return sqrt(area * proportion), sqrt(area / proportion)


class _Sheet:
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

    def colour_bar(self, scale: _Scale, unit: str) -> None:
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


def _tick_labels(scale: _Scale) -> Formatter:
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


def _mark(axes: Axes, window: Window) -> None:
    """Outline the enlarged part."""
    from matplotlib.patches import Rectangle

    rows, columns = window
    size = columns.stop - columns.start, rows.stop - rows.start
    for colour, line in (("black", 2.2), ("white", 1.1)):
        axes.add_patch(Rectangle((columns.start, rows.start), *size, fill=False, edgecolor=colour, linewidth=line))


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %" if share >= 0.001 else "under 0.1 %"
