"""Draw the pictures of docs/explanation/method.md on the embedded room: `python -m docsite.pictures`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from torch import Tensor

from dada.datasets.crops import to_sample
from dada.datasets.pair import Pair
from dada.diffusion import Coefficients, coefficients, equilibrium, iterate, up
from dada.diffusion.loop import adjustment, diffuse
from dada.diffusion.measurement import read_measurement
from dada.models.default import learned
from dada.models.learning_free import LearningFree
from dada.models.model import Round
from dada.sample import Sample
from dada.scene import render

FOLDER = Path(__file__).parents[1] / "docs" / "images"
FACTOR, SIDE, CORNER = 16, 256, (180, 30)  # of the crop of the 480 x 640 room
DIFFUSED = 60
STEPS = (0, 10, 100, 1000, 9024)
UNIT = 1000.0  # millimetres, of which a network is shown one metre as 1

Panel = tuple[str, np.ndarray, dict[str, Any]]


def main() -> None:
    """Draw all five, and print the numbers that the page states."""
    scene = render(480, 640)
    window = slice(CORNER[0], CORNER[0] + SIDE), slice(CORNER[1], CORNER[1] + SIDE)
    sample = to_sample(Pair(scene.guide[window], UNIT * scene.depth[window], "room"), FACTOR, UNIT)
    with torch.no_grad():
        draw_problem(sample)
        draw_coefficients(sample)
        draw_step(sample)
        draw_end(sample)
        draw_rounds(sample)


def draw_problem(sample: Sample) -> None:
    """Guide, source, bicubic, truth."""
    guide = sample.guide[0].permute(1, 2, 0).numpy()
    source = "source S: 16 x 16 cells"
    panels = [
        ("guide: 256 x 256 pixels", guide, {}),
        (source, plain(sample.source), depth(sample)),
        (f"bicubic, {millimetres(sample.initial, sample)} mm", plain(sample.initial), depth(sample)),
        ("truth", plain(sample.target), depth(sample)),
    ]
    save("method-1-problem", panels)


def draw_coefficients(sample: Sample) -> None:
    """Where diffusion is stopped: by colours, by the network, and where depth truly jumps."""
    jumps = coefficients(sample.target, kappa=0.15)
    panels = [
        ("by the guide's colours", stopped(by_colours(sample)), shades()),
        ("by the learned features", stopped(by_network(sample)), shades()),
        ("jumps of the true depth", stopped(jumps), shades()),
    ]
    save("method-2-coefficients", panels)


def draw_step(sample: Sample) -> None:
    """One step of the loop: diffuse, compare with the source, adjust."""
    c = by_colours(sample)
    before = up(sample.source, (SIDE, SIDE))[:, 0]
    for _ in range(DIFFUSED):
        before = diffuse(before, c)
    measurement = read_measurement(sample.source, c, "ratio", None, None, None)
    ratio = measurement.source / measurement.down(before)
    after = adjustment(before, measurement, "ratio")
    largest = float((ratio - 1).abs().max())
    print(f"step: cell means are off by up to {100 * largest:.1f} % before the adjustment")
    panels = [
        ("cells copied", plain(up(sample.source, (SIDE, SIDE))), depth(sample)),
        (f"{DIFFUSED} times diffused (Eq. 1)", plain(before), depth(sample)),
        ("source / cell mean", plain(ratio), {"cmap": "PuOr_r", "vmin": 1 - largest, "vmax": 1 + largest}),
        ("adjusted (Eq. 3)", plain(after), depth(sample)),
    ]
    save("method-3-step", panels)


def draw_end(sample: Sample) -> None:
    """The loop after more and more steps, and the equilibrium."""
    c = by_colours(sample)
    solved = equilibrium(sample.source, c, initial=sample.initial)
    panels: list[Panel] = []
    for steps in STEPS:
        y = iterate(sample.source, c, initial=sample.initial, steps=steps).values
        far = (y - solved.values).abs().mean() * UNIT
        print(f"end: after {steps} steps {far:.2f} mm from the equilibrium, error {millimetres(y, sample)} mm")
        if steps in (0, 100, 1000):
            panels.append((f"{steps} steps, {millimetres(y, sample)} mm", plain(y), depth(sample)))
    print(
        f"end: equilibrium in {int(solved.iterations.max())} iterations, error {millimetres(solved.values, sample)} mm"
    )
    panels.append((f"equilibrium, {millimetres(solved.values, sample)} mm", plain(solved.values), depth(sample)))
    save("method-4-end", panels)


def draw_rounds(sample: Sample) -> None:
    """The three rounds of the learned model: errors of each result."""
    model = learned()
    guidance, before = model.prepare(sample), None
    results: list[Tensor] = []
    for number in range(model.rounds):
        c = as_float(guidance.coefficients(before))
        results.append(equilibrium(sample.source, c, initial=sample.initial, adjust="shift").values)
        before = Round(number, c, results[-1])
    style = {"cmap": "RdBu_r", "vmin": -300, "vmax": 300}
    panels = [("error of bicubic", plain(sample.initial - sample.target) * UNIT, style)]
    for number, y in enumerate(results, 1):
        panels.append((f"round {number}: {millimetres(y, sample)} mm", plain(y - sample.target) * UNIT, style))
    save("method-5-rounds", panels)


def by_colours(sample: Sample) -> Coefficients:
    """Those of the paper's learning-free variant: Eq. 2 on the guide and the bicubic source."""
    return as_float(LearningFree().prepare(sample).coefficients())


def by_network(sample: Sample) -> Coefficients:
    """The first round of the model that comes with the package."""
    return as_float(learned().coefficients(sample))


def as_float(c: Coefficients) -> Coefficients:
    """The same in float32."""
    return Coefficients(*(edges.float() for edges in c))


def stopped(c: Coefficients) -> np.ndarray:
    """[H, W]: 1 - c of each pixel's edges, the larger of the one below and the one at its right."""
    vertical, horizontal = (1 - edges[0].clamp(max=1) for edges in c)
    down = torch.nn.functional.pad(vertical, (0, 0, 0, 1))
    return torch.maximum(down, torch.nn.functional.pad(horizontal, (0, 1, 0, 0))).numpy()


def millimetres(y: Tensor, sample: Sample) -> str:
    """The mean absolute error."""
    return f"{float((y - sample.target).abs().mean()) * UNIT:.0f}"


def depth(sample: Sample) -> dict[str, Any]:
    """One colour scale for all images of depth."""
    return {"cmap": "viridis", "vmin": float(sample.target.min()), "vmax": float(sample.target.max())}


def shades() -> dict[str, Any]:
    """Dark where diffusion is free, bright where it is stopped."""
    return {"cmap": "magma", "vmin": 0, "vmax": 1}


def plain(image: Tensor) -> np.ndarray:
    """The only image of a batch."""
    return image.squeeze().numpy()


def save(name: str, panels: Sequence[Panel]) -> None:
    """Write panels side by side, each below its title."""
    figure = Figure(figsize=(2.6 * len(panels), 2.95), layout="constrained")
    FigureCanvasAgg(figure)
    for ax, (title, image, style) in zip(np.atleast_1d(figure.subplots(1, len(panels))), panels, strict=True):
        ax.imshow(image, interpolation="nearest", **style)
        ax.set_title(title, fontsize=10)
        ax.axis("off")
    figure.savefig(FOLDER / f"{name}.png", dpi=100)


if __name__ == "__main__":
    main()
