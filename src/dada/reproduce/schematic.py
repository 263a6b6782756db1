"""`figure-schematic`: how the method works, drawn from real images of the embedded scene."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from dada.datasets.crops import to_sample
from dada.datasets.pair import Pair
from dada.diffusion import Coefficients, equilibrium, iterate
from dada.diffusion.loop import adjustment, diffuse
from dada.diffusion.measurement import read_measurement
from dada.evaluation.gallery import truth_of
from dada.evaluation.tables import Table, number
from dada.models.default import learned
from dada.reproduce.findings import Findings, Row
from dada.sample import Sample
from dada.scene import render

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dada.reproduce.study import Study

FACTOR, SIDE, CORNER = 16, 256, (180, 30)  # pixels of the scene
UNIT = 1000.0  # millimetres
BEFORE = 40  # steps done before the one that is drawn
WIDTH, HEIGHT = 12.4, 5.0  # inches
PANEL, SMALL = 1.45, 0.8  # inches
INK, LOOP, BACK = "#1a1a1a", "#eef3fa", "#b3261e"


@dataclass(frozen=True)
class Stages:
    """What one step of the loop makes, each [H, W] or [h, w] in metres."""

    before: np.ndarray
    diffused: np.ndarray
    ratio: np.ndarray
    after: np.ndarray
    end: np.ndarray
    stopped: np.ndarray


def schematic(study: Study) -> Findings:
    """Figures 1 and 2: guide and source, coefficients, the two steps of the loop, the result and the loss."""
    scene = render(480, 640)
    window = slice(CORNER[0], CORNER[0] + SIDE), slice(CORNER[1], CORNER[1] + SIDE)
    sample = to_sample(Pair(scene.guide[window], 1000 * scene.depth[window], "room"), FACTOR, UNIT)
    with torch.no_grad():
        c = learned().coefficients(sample)
    stages = _stages(sample, Coefficients(*(edges.float() for edges in c)))
    truth = truth_of(sample)
    images = {
        "bicubic": sample.initial[0, 0].numpy(),
        f"Y after {BEFORE + 1} steps": stages.after,
        "result": stages.end,
    }
    rows: list[Row] = [{"image": n, "mean error m": float(np.abs(i - truth).mean())} for n, i in images.items()]
    table = Table(
        f"Mean absolute error of the images drawn, x{FACTOR}",
        ["image", "metres"],
        [[row["image"], number(row["mean error m"])] for row in rows],
        "The scene is rendered by this package; its depth is exact.",
    )
    return Findings(
        [
            "A network makes features of guide and source, Eq. 2 makes coefficients of the features, and the loop of "
            "diffusion (Eq. 1) and adjustment (Eq. 3) ends at an image whose cell means are the source.",
            f"The mean error falls from {number(rows[0]['mean error m'])} m (bicubic) to "
            f"{number(rows[-1]['mean error m'])} m at the end of the loop.",
        ],
        f"none; a crop of the embedded scene, {SIDE} x {SIDE} pixels at x{FACTOR}",
        rows,
        _draw(sample, stages, truth),
        "Coefficients: dark where diffusion is free, bright where it is stopped. Ratios: orange above 1, purple below. "
        "Dashed: gradients of the loss in training.",
        [table],
        {"coefficients": "the first round of the model that comes with the package", "steps before": BEFORE},
    )


def _stages(sample: Sample, c: Coefficients) -> Stages:
    """One step of the loop after `BEFORE` others, and where the loop ends."""
    y = iterate(sample.source, c, initial=sample.initial, steps=BEFORE).values[:, 0]
    diffused = diffuse(y, c)
    measurement = read_measurement(sample.source, c, "ratio", None, None, None)
    ratio = measurement.source / measurement.down(diffused)
    after = adjustment(diffused, measurement, "ratio")
    end = equilibrium(sample.source, c, initial=sample.initial).values[:, 0]
    drawn = (y, diffused, ratio, after, end, _stopped(c)[None])
    return Stages(*(image[0].numpy() for image in drawn))


def _stopped(c: Coefficients) -> Tensor:
    """1 - c of each pixel's edges, the larger of the one below and the one at its right."""
    vertical, horizontal = (1 - edges[0].clamp(max=1) for edges in c)
    down, right = _padded(vertical, (0, 0, 0, 1)), _padded(horizontal, (0, 1, 0, 0))
    return torch.maximum(down, right)


def _padded(values: Tensor, sides: tuple[int, ...]) -> Tensor:
    return torch.nn.functional.pad(values, sides)


class _Board:
    """A figure on which everything is placed in inches from the lower left corner."""

    def __init__(self) -> None:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        self.figure = Figure(figsize=(WIDTH, HEIGHT), facecolor="white")
        FigureCanvasAgg(self.figure)
        self.axes = self.figure.add_axes((0, 0, 1, 1))
        self.axes.set(xlim=(0, WIDTH), ylim=(0, HEIGHT))
        self.axes.axis("off")

    def image(self, x: float, y: float, values: np.ndarray, title: str, side: float = PANEL, **style: Any) -> None:
        """An image whose lower left corner is at (x, y), with its name below."""
        extent = (x, x + side, y, y + side)
        self.axes.imshow(values, extent=extent, aspect="auto", interpolation="nearest", zorder=3, **style)
        self._frame(x, y, side, side, facecolor="none", zorder=4, linewidth=0.7)
        self.text(x + side / 2, y - 0.06, title, va="top")

    def box(self, x: float, y: float, width: float, height: float, text: str, **style: Any) -> None:
        """A box with a text in its middle."""
        self._frame(x, y, width, height, **({"facecolor": "#f6f1e6", "zorder": 3} | style))
        self.text(x + width / 2, y + height / 2, text, va="center")

    def text(self, x: float, y: float, text: str, **style: Any) -> None:
        given: dict[str, Any] = {"fontsize": 9.5, "ha": "center", "color": INK, "zorder": 5}
        self.axes.text(x, y, text, **(given | style))

    def arrow(self, begin: tuple[float, float], end: tuple[float, float], **style: Any) -> None:
        from matplotlib.patches import FancyArrowPatch

        given: dict[str, Any] = {"arrowstyle": "-|>", "mutation_scale": 13, "linewidth": 1.3, "color": INK, "zorder": 6}
        self.axes.add_patch(FancyArrowPatch(begin, end, shrinkA=0, shrinkB=0, **(given | style)))

    def line(self, *places: tuple[float, float], **style: Any) -> None:
        """A line through places, with an arrow at its end."""
        xs, ys = zip(*places[:-1], strict=True)
        color, dash = style.get("color", INK), style.get("linestyle", "-")
        self.axes.plot(xs, ys, color=color, linestyle=dash, linewidth=1.3, zorder=6, solid_joinstyle="miter")
        self.arrow(places[-2], places[-1], color=color, linestyle=dash)

    def _frame(self, x: float, y: float, width: float, height: float, **style: Any) -> None:
        from matplotlib.patches import Rectangle

        given: dict[str, Any] = {"edgecolor": INK, "linewidth": 1.0}
        self.axes.add_patch(Rectangle((x, y), width, height, **(given | style)))


def _draw(sample: Sample, stages: Stages, truth: np.ndarray) -> Figure:
    board = _Board()
    depth = {"cmap": "viridis", "vmin": float(np.min(truth)), "vmax": float(np.max(truth))}
    _inputs(board, sample, stages, depth)
    _loop(board, stages, depth)
    _outputs(board, stages, truth, depth)
    return board.figure


def _inputs(board: _Board, sample: Sample, stages: Stages, depth: dict[str, Any]) -> None:
    board.image(0.25, 2.95, sample.guide[0].permute(1, 2, 0).numpy(), "guide G")
    board.image(0.25, 0.6, sample.source[0, 0].numpy(), "source S", **depth)
    board.box(2.15, 3.1, 1.05, 1.15, "feature\nextractor F\n(a network)")
    board.image(3.65, 2.95, stages.stopped, "coefficients c (Eq. 2)", cmap="magma", vmin=0, vmax=1)
    board.arrow((1.7, 3.67), (2.15, 3.67))
    board.line((1.7, 1.6), (2.68, 1.6), (2.68, 3.1))
    board.text(2.76, 2.3, "bicubic", fontsize=8, ha="left")
    board.arrow((3.2, 3.67), (3.65, 3.67))


def _loop(board: _Board, stages: Stages, depth: dict[str, Any]) -> None:
    left, width = 3.35, 6.45
    board.box(left, 0.12, width, 2.42, "", facecolor=LOOP, edgecolor="#9db4d3", zorder=1)
    board.image(3.65, 0.75, stages.before, "Y before", **depth)
    board.box(5.4, 1.1, 0.85, 0.75, "diffuse\nEq. 1")
    board.image(6.55, 1.1, stages.diffused, "diffused", side=SMALL, **depth)
    high = float(np.abs(stages.ratio - 1).max())
    shades = {"cmap": "PuOr_r", "vmin": 1 - high, "vmax": 1 + high}
    board.image(7.65, 1.1, stages.ratio, "r = S / down", side=SMALL, **shades)
    board.box(8.7, 1.1, 0.85, 0.75, "adjust\nEq. 3")
    for begin, end in ((5.1, 5.4), (6.25, 6.55), (7.35, 7.65), (8.45, 8.7)):
        board.arrow((begin, 1.47), (end, 1.47))
    board.line((5.1, 3.4), (5.82, 3.4), (5.82, 1.85))
    board.line((9.12, 1.1), (9.12, 0.35), (4.37, 0.35), (4.37, 0.52), color="#3b5f91")
    board.text(6.75, 0.2, "again and again, or solved for its end directly", fontsize=8.5, color="#3b5f91")
    board.line((0.97, 0.36), (0.97, 0.06), (3.2, 0.06), (3.2, 2.3), (8.05, 2.3), (8.05, 1.9))
    board.text(8.15, 2.08, "S", fontsize=8.5, ha="left")


def _outputs(board: _Board, stages: Stages, truth: np.ndarray, depth: dict[str, Any]) -> None:
    board.image(10.35, 0.75, stages.end, "result Y, down(Y) = S", **depth)
    board.arrow((9.55, 1.47), (10.35, 1.47))
    board.image(10.35, 2.95, truth, "", **depth)
    board.text(11.07, 4.46, "truth")
    board.arrow((11.07, 2.2), (11.07, 2.95), arrowstyle="<|-|>")
    board.text(11.17, 2.58, "loss (L1)", ha="left")
    places = ((11.0, 2.62), (10.05, 2.62), (10.05, 4.72), (2.68, 4.72), (2.68, 4.25))
    board.line(*places, color=BACK, linestyle=(0, (4, 2)))
    board.text(6.6, 4.78, "gradients, through the loop or its end", fontsize=8.5, color=BACK)
