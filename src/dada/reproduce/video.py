"""`video`: the image and its distance from the truth while diffusion and adjustment run, as an animation."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from dada import pictures
from dada.diffusion import coefficients, equilibrium, iterate
from dada.evaluation.bench import printed_unit
from dada.evaluation.gallery import truth_of
from dada.evaluation.tables import Table, number
from dada.features.standardising import KAPPA, standardise
from dada.io import atomic_path
from dada.reproduce.findings import Findings, Row
from dada.reproduce.plots import sheet
from dada.reproduce.study import Study

FRAMES = 24
LAST = 9024
MILLISECONDS, LAST_MILLISECONDS = 180, 1800  # each frame is shown this long, and the last one
SIDE = 3.0  # inches of a panel


def video(study: Study) -> Findings:
    """Y_t and its residual over the steps, at the largest factor."""
    factor = study.effort.factors[-1]
    sample = next(iter(study.samples(1, factor)))
    unit, scale = printed_unit(study.first().open().quantity)
    c = coefficients(torch.cat([standardise(sample.guide), sample.initial], dim=1), KAPPA, "mean_absolute")
    moments = [0, *dict.fromkeys(np.geomspace(1, LAST, FRAMES - 1).round().astype(int).tolist())]
    truth = truth_of(sample) * sample.unit * scale
    images: dict[int, np.ndarray] = {}
    y, done = sample.initial, 0
    for moment in moments:
        study.say(f"step {moment}", moment / LAST)
        solution = iterate(sample.source, c, initial=y, steps=moment - done, mask=sample.source_mask)
        y, done = solution.values, moment
        images[moment] = y[0, 0].numpy() * sample.unit * scale
    end = equilibrium(sample.source, c, initial=sample.initial, mask=sample.source_mask).values
    exact = end[0, 0].numpy() * sample.unit * scale
    rows: list[Row] = [_row(str(n), image, truth, exact) for n, image in images.items()]
    rows.append(_row("equilibrium", exact, truth, exact))
    study.folder.mkdir(parents=True, exist_ok=True)
    _animate(study.folder / "video.gif", images, truth, unit)
    shown = [moments[0], moments[2 * len(moments) // 3], moments[-1]]
    errors = {f"step {n}": images[n] - truth for n in shown} | {"equilibrium": exact - truth}
    table = Table(
        f"{sample.names[0]}, x{factor}",
        ["step", f"RMSE {unit}", f"distance from the equilibrium {unit}"],
        [[str(r["step"]), number(r["rmse"]), number(r["distance"])] for r in rows if r["step"] in
         {str(n) for n in shown} | {"equilibrium"}],
        "Step 0 is the bicubic image, adjusted to the source. Distance: root mean square.",
    )  # fmt: skip
    summary = [
        f"The RMSE falls from {number(rows[0]['rmse'])} to {number(rows[-2]['rmse'])} {unit} in {LAST} steps; the "
        f"equilibrium has {number(rows[-1]['rmse'])} {unit}.",
        "[video.gif](video.gif) shows the image and its error over the steps, which grow geometrically.",
    ]
    caption = "Error (red: too far, blue: too near) after some steps of the loop, and at the equilibrium."
    protocol = f"none; one crop, coefficients of learning-free DADA, x{factor} as in the paper's videos"
    files: dict[str, str] = {"video.gif": "the animation"}
    figure = pictures.error_map(errors, unit)
    return Findings(summary, protocol, rows, figure, caption, [table], {"frames": len(moments), "steps": LAST}, files)


def _row(step: str, image: np.ndarray, truth: np.ndarray, end: np.ndarray) -> Row:
    return {
        "step": step,
        "rmse": float(np.sqrt(np.nanmean((image - truth) ** 2))),
        "distance": float(np.sqrt(np.mean((image - end) ** 2))),
    }


def _animate(path: Path, images: dict[int, np.ndarray], truth: np.ndarray, unit: str) -> None:
    """Write a GIF: the image on the left, its error on the right, on scales that stay."""
    from PIL import Image

    low, high = np.nanpercentile(truth, (1, 99))
    first = next(iter(images.values()))
    limit = float(np.nanpercentile(np.abs(first - truth), 97)) or 1.0
    figure, (left, right) = sheet(2, 1, (SIDE, SIDE + 0.5))
    depth = left.imshow(first, cmap="viridis", vmin=low, vmax=high)
    error = right.imshow(first - truth, cmap="RdBu_r", vmin=-limit, vmax=limit)
    right.set_title(f"error ({unit})", fontsize=9.5)
    for axes, shown in ((left, depth), (right, error)):
        axes.set_xticks([])
        axes.set_yticks([])
        figure.colorbar(shown, ax=axes, orientation="horizontal", shrink=0.9, pad=0.03).ax.tick_params(labelsize=8)
    figure.set_dpi(110)
    frames = []
    for moment, image in images.items():
        left.set_title(f"Y after {moment} steps ({unit})", fontsize=9.5)
        depth.set_data(image)
        error.set_data(image - truth)
        figure.canvas.draw()
        pixels = np.asarray(figure.canvas.buffer_rgba())[..., :3]  # type: ignore[attr-defined]
        frames.append(Image.fromarray(np.ascontiguousarray(pixels)).quantize(128))
    durations = [MILLISECONDS] * (len(frames) - 1) + [LAST_MILLISECONDS]
    with atomic_path(path) as temporary, temporary.open("wb") as file:
        frames[0].save(file, format="GIF", save_all=True, append_images=frames[1:], duration=durations, loop=0)
