"""`figure-1d` and `figure-adjustment`: diffusion and adjustment on small signals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from dada.diffusion import coefficients, down, equilibrium, iterate, up
from dada.diffusion.loop import adjustment, diffuse
from dada.diffusion.measurement import read_measurement
from dada.evaluation.tables import Table, number
from dada.reproduce.findings import Findings
from dada.reproduce.plots import finish, sheet

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dada.reproduce.study import Study

LENGTH, CELL, KAPPA_1D = 96, 12, 0.05
SHOWN = (0, 30, 300, 3000)


def signal(study: Study) -> Findings:
    """Guide, source, and the signal as it diffuses between them."""
    guide, truth = _scene()
    source = down(truth, (1, LENGTH // CELL))
    c = coefficients(guide, KAPPA_1D)
    moments = {f"step {n}": iterate(source, c, steps=n).values for n in SHOWN}
    moments["equilibrium"] = equilibrium(source, c, tolerance=1e-8).values
    errors = {name: float((values - truth).abs().mean()) for name, values in moments.items()}
    nearest, end = errors["step 0"], errors["equilibrium"]
    rows = [
        {"pixel": i, "guide": float(guide[0, 0, 0, i]), "truth": float(truth[0, 0, 0, i])}
        | {name: float(values[0, 0, 0, i]) for name, values in moments.items()}
        for i in range(LENGTH)
    ]
    return Findings(
        summary=[
            f"The mean error falls from {nearest:.3f} m (each measurement repeated) to {end:.3f} m at the equilibrium, "
            f"{1 - end / nearest:.0%} less, and both depth edges are within a pixel of the guide's edges.",
            "The stripes of the guide on the left, which are texture and no edge of depth, leave a ripple of "
            "centimetres: diffusion is slower across them, but the measurements on both sides agree.",
        ],
        protocol="none; a signal made here, 96 pixels, 8 measurements, each the mean of 12 pixels",
        rows=rows,
        figure=_draw_signal(guide, truth, source, moments),
        caption="Above: the guide. Below: the source (grey bars: one mean over 12 pixels), the diffusing signal after "
        "some steps of the loop, its equilibrium and the truth. Shaded: where the guide's edges stop the diffusion.",
        tables=[
            Table(
                "Mean absolute error of the signal",
                ["after", "metres"],
                [[name, number(error)] for name, error in errors.items()],
                "Step 0 is the start: each measurement repeated over its pixels.",
            )
        ],
        settings={"kappa": KAPPA_1D, "steps": SHOWN},
    )


def adjustment_example(study: Study) -> Findings:
    """One diffusion step and one adjustment step on 4 x 4 pixels, by numbers."""
    source = torch.tensor([[[[2.0, 4.0], [3.0, 8.0]]]])
    y = up(source, (4, 4)) * torch.tensor([[[[1.1, 0.9], [0.9, 1.1]]]]).repeat(1, 1, 2, 2)
    c = coefficients(torch.zeros(1, 1, 4, 4), 1.0)
    diffused = diffuse(y[:, 0], c)
    constraint = read_measurement(source, c, "ratio", None, None, None)
    means = constraint.down(diffused)
    ratios = constraint.source / means
    adjusted = adjustment(diffused, constraint, "ratio")
    stages = {
        "Y, before": y[:, 0], "diffused (Eq. 1)": diffused, "its means, down(Y)": means,
        "source S": source[:, 0], "r = S / down(Y)": ratios, "Y times R (Eq. 3)": adjusted,
    }  # fmt: skip
    rows = [
        {"stage": name, "row": i, "column": j, "value": float(values[0, i, j])}
        for name, values in stages.items()
        for i in range(values.shape[1])
        for j in range(values.shape[2])
    ]
    left = float((constraint.down(adjusted) - source[:, 0]).abs().max())
    moved = float((means - source[:, 0]).abs().max())
    return Findings(
        summary=[
            f"Diffusion moved the means of the blocks away from the source, by up to {moved:.2f}; after the adjustment "
            f"they differ by {left:.0e}: rounding.",
            "Within a block the adjustment keeps all proportions: each block is multiplied by one number.",
        ],
        protocol="none; 4 x 4 pixels over a source of 2 x 2, all coefficients 1, lambda 0.24",
        rows=rows,
        figure=_draw_stages(stages),
        caption="One step of the loop from left to right: the image, diffused, averaged down, compared with the "
        "source, and multiplied block by block by the ratios.",
    )


def _scene() -> tuple[Tensor, Tensor]:
    """A guide of two edges and some stripes, and a depth in metres that jumps at the two edges; both [1, 1, 1, W]."""
    x = np.arange(LENGTH)
    truth = np.where(x < 41, 2.0, np.where(x < 67, 1.2, 1.6)) + 0.002 * x
    guide = np.where(x < 41, 0.3, np.where(x < 67, 0.75, 0.45)) + 0.015 * np.sin(x / 2)
    guide = guide + 0.08 * ((x // 4) % 2) * (x < 30)
    return tuple(torch.from_numpy(v.astype(np.float32))[None, None, None] for v in (guide, truth))  # type: ignore[return-value]


def _draw_signal(guide: Tensor, truth: Tensor, source: Tensor, moments: dict[str, Tensor]) -> Figure:
    from matplotlib import colormaps

    figure, (above, below) = sheet(1, 2, (7.2, 2.5))
    x = np.arange(LENGTH)
    above.plot(x, guide.flatten(), color="#2a7f3f", linewidth=1.5)
    finish(above, x="", y="guide (0 to 1)", title="guide")
    for place in (40.5, 66.5):
        for axes in (above, below):
            axes.axvspan(place - 0.7, place + 0.7, color="#2a7f3f", alpha=0.25, linewidth=0)
    edges = np.repeat(np.arange(0, LENGTH + 1, CELL), 2)[1:-1] - 0.5
    below.fill_between(edges, 0, source.flatten().repeat_interleave(2), color="0.88", label="source")
    for n, (name, values) in enumerate(moments.items()):
        last = name == "equilibrium"
        style: dict[str, Any] = {"color": "#c0272d" if last else colormaps["Blues"](0.35 + 0.17 * n)}
        below.plot(x, values.flatten(), label=name, linewidth=1.8 if last else 1.2, **style)
    below.plot(x, truth.flatten(), color="black", linewidth=1, linestyle=":", label="truth")
    below.set_ylim(1.0, 2.4)
    for axes in (above, below):
        axes.set_xlim(-1, LENGTH)
    below.legend(fontsize=8, frameon=False, ncols=2, loc="upper right")
    finish(below, x="pixel", y="depth (m)", title="source and diffusing signal")
    return figure


def _draw_stages(stages: dict[str, Tensor]) -> Figure:
    figure, panels = sheet(3, 2, (2.6, 2.75))
    for axes, (name, values) in zip(panels, stages.items(), strict=True):
        _draw_grid(axes, values[0].numpy(), ratio=name.startswith("r"))
        axes.set_title(name, fontsize=10)
    return figure


def _draw_grid(axes: Axes, values: np.ndarray, ratio: bool) -> None:
    limits: dict[str, Any] = {"cmap": "PuOr", "vmin": 0.6, "vmax": 1.4} if ratio else {"vmin": 0, "vmax": 11}
    axes.imshow(values, alpha=0.55, **limits)
    side = len(values)
    for i in range(side):
        for j in range(side):
            axes.text(j, i, f"{values[i, j]:.2f}", ha="center", va="center", fontsize=9 if side == 4 else 12)
    axes.set_xticks([])
    axes.set_yticks([])
    if side == 4:
        axes.axhline(1.5, color="black", linewidth=1.2)
        axes.axvline(1.5, color="black", linewidth=1.2)
