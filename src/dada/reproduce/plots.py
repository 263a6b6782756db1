"""Line charts that look alike on every page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dada.evaluation.tables import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.container import BarContainer
    from matplotlib.figure import Figure

PANEL = 4.3, 3.3  # inches
MARKERS = "osD^vPX*<>hd"
ASYMPTOTE: dict[str, Any] = {"linestyle": (0, (4, 2)), "linewidth": 1.3}


def sheet(columns: int, rows: int = 1, panel: tuple[float, float] = PANEL) -> tuple[Figure, list[Axes]]:
    """A figure with panels in reading order."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(panel[0] * columns, panel[1] * rows), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, list(figure.subplots(rows, columns, squeeze=False).flat)


def lines(
    axes: Axes,
    curves: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    *,
    x: str,
    y: str,
    title: str = "",
    log: str = "",
    legend: bool = True,
) -> None:
    """Draw one line for each name; positions and heights are its x and y values.

    Args:
        axes: the panel.
        curves: by name.
        x: what the horizontal axis shows, with its unit.
        y: the same of the vertical one.
        title: above the panel.
        log: which axes are logarithmic: "", "x", "y" or "xy".
        legend: whether the names are written into the panel.
    """
    for place, (name, (across, up)) in enumerate(curves.items()):
        style: dict[str, Any] = {"marker": MARKERS[place % len(MARKERS)], "color": _color(place, len(curves))}
        axes.plot(across, up, label=name, linewidth=1.6, markersize=4.5, **style)
    if "x" in log:
        axes.set_xscale("log")
        places = [tuple(across) for across, _ in curves.values()]
        if len(set(places)) == 1:  # numbers of steps and the like, chosen by us
            plain_ticks(axes, _apart(places[0]))
    if "y" in log:
        axes.set_yscale("log")
    finish(axes, x=x, y=y, title=title)
    if legend and len(curves) > 1:
        axes.legend(fontsize=8, frameon=False)


def _color(number: int, count: int) -> Any:
    """Ten colours, and their lighter twins for more curves than that."""
    from matplotlib import colormaps

    return f"C{number}" if count <= 10 else colormaps["tab20"]((2 * number + number // 10) % 20)


def _apart(values: Sequence[float], ratio: float = 1.7) -> list[float]:
    """Those of rising values that leave room for their labels on a logarithmic axis."""
    kept: list[float] = []
    for value in values:
        if not kept or value >= ratio * kept[-1]:
            kept.append(value)
    return kept


def finish(axes: Axes, *, x: str, y: str, title: str = "") -> None:
    """Label a panel and lighten its frame."""
    axes.set_xlabel(x, fontsize=9)
    axes.set_ylabel(y, fontsize=9)
    axes.set_title(title, fontsize=9.5, loc="left")
    axes.grid(alpha=0.3, linewidth=0.6)
    axes.tick_params(labelsize=8.5)
    axes.spines[["top", "right"]].set_visible(False)


def label_bars(axes: Axes, bars: BarContainer, values: Sequence[float]) -> None:
    """Write values behind bars, readable where a line crosses them."""
    behind = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
    axes.bar_label(bars, [number(value) for value in values], fontsize=8.5, padding=4, bbox=behind, zorder=5)


def plain_ticks(axes: Axes, values: Sequence[float], names: Sequence[str] | None = None) -> None:
    """Ticks of the horizontal axis at these values alone, written out."""
    from matplotlib.ticker import NullLocator

    axes.set_xticks(list(values), list(names) if names else [f"{value:.6g}" for value in values])
    axes.xaxis.set_minor_locator(NullLocator())


def asymptote(axes: Axes, height: float, name: str, color: str = "black") -> None:
    """A dashed line at a height, named in the legend."""
    axes.axhline(height, color=color, label=name, **ASYMPTOTE)
    axes.legend(fontsize=8, frameon=False)
