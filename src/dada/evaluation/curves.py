"""RMSE against the factor, the paper's figure: one line for each method; beside it the paper's own numbers."""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING, Any

from dada.evaluation.bench import Report
from dada.evaluation.paper import printed
from dada.evaluation.summary import beside_paper

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MARKERS = "osD^vPX*<>hd"
WIDTH, HEIGHT = 4.6, 3.6  # inches of a panel
Line = dict[int, float]  # RMSE by factor


def curves(*reports: Report) -> Figure:
    """Draw the figure, a row of panels for each report."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    rows = [_panels(report) for report in reports]
    width = max(len(panels) for panels in rows)
    figure = Figure(figsize=(WIDTH * width + 1.7, HEIGHT * len(rows)), layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.subplots(len(rows), width, squeeze=False)
    for axes, panels, report in zip(grid, rows, reports, strict=True):
        order = [c.label for c in report.entries]
        for panel, (title, lines) in zip(axes, panels.items(), strict=False):
            _draw(panel, title, lines, order, report)
        for empty in axes[len(panels) :]:
            empty.set_axis_off()
        handles, labels = axes[0].get_legend_handles_labels()
        axes[-1].legend(handles, labels, loc="center left", bbox_to_anchor=(1.02, 0.5), frameon=False, fontsize=8.5)
    return figure


def _panels(report: Report) -> dict[str, dict[str, Line]]:
    """What was measured and what the paper prints, by title."""
    panels = {f"{report.dataset}, protocol {report.protocol.name}": measured(report)}
    data = beside_paper(report)
    if data is not None and (quoted := from_paper(report, data)):
        panels[f"the paper's own {data} images"] = quoted
    return panels


def measured(report: Report) -> dict[str, Line]:
    """RMSE by label and factor, in printed units; methods that failed are absent there."""
    lines: dict[str, Line] = {}
    for entry in report.entries:
        found = {factor: report.scores(entry.label, factor) for factor in report.factors}
        line = {factor: scores.rmse for factor, scores in found.items() if scores is not None}
        lines |= {entry.label: line} if line else {}
    return lines


def from_paper(report: Report, data: str) -> dict[str, Line]:
    """The same from the paper's tables, of the methods and factors that it has."""
    lines: dict[str, Line] = {}
    for entry in report.entries:
        found = {factor: printed(data, entry.name, factor) for factor in report.factors}
        line = {factor: sqrt(errors.mse) for factor, errors in found.items() if errors is not None}
        lines |= {entry.label: line} if line else {}
    return lines


def _draw(axes: Axes, title: str, lines: dict[str, Line], order: list[str], report: Report) -> None:
    from matplotlib import colormaps
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

    for label, line in lines.items():
        place = order.index(label)
        color = colormaps["tab10"](place) if place < 10 else colormaps["Dark2"](place % 8)
        style: dict[str, Any] = {"marker": MARKERS[place % len(MARKERS)], "color": color}
        factors = sorted(line)
        axes.plot(factors, [line[f] for f in factors], label=label, linewidth=1.6, markersize=5, **style)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(sorted(report.factors), [f"x{factor}" for factor in sorted(report.factors)])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 1.5, 2, 3, 5, 7)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("factor", fontsize=9)
    axes.set_ylabel(f"RMSE ({report.unit})", fontsize=9)
    axes.set_title(title, fontsize=9.5, loc="left")
    axes.grid(alpha=0.3, linewidth=0.6)
    axes.tick_params(labelsize=8.5)
    axes.spines[["top", "right"]].set_visible(False)
