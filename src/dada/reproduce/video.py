"""`video`: the image and its distance from the truth while diffusion and adjustment run, as an animation."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from dada import pictures
from dada.diffusion import Coefficients, coefficients, equilibrium, iterate
from dada.evaluation.bench import printed_unit
from dada.evaluation.gallery import truth_of
from dada.evaluation.tables import Table, number
from dada.features.standardising import KAPPA, standardise
from dada.io import atomic_path
from dada.models.dada import DADA
from dada.reproduce.findings import Findings, Row
from dada.reproduce.plots import sheet
from dada.reproduce.study import Study
from dada.reproduce.trainings import about_dada, network
from dada.sample import Sample

FRAMES = 24
LAST = 9024
MILLISECONDS, LAST_MILLISECONDS = 180, 1800  # each frame is shown this long, and the last one
SIDE = 2.7  # inches of a panel
FREE, LEARNED = "learning-free", "learned"


@dataclass(frozen=True)
class Film:
    """The loop with one set of coefficients, in printed units.

    Attributes:
        images: (H, W) by the number of steps done.
        end: (H, W), the equilibrium.
    """

    images: dict[int, np.ndarray]
    end: np.ndarray


def video(study: Study) -> Findings:
    """Y_t and its residual over the steps, at the largest factor, with both kinds of coefficients."""
    factor = study.effort.factors[-1]
    sample = next(iter(study.samples(1, factor)))
    test = study.first()
    unit, scale = printed_unit(test.open().quantity)
    truth = truth_of(sample) * sample.unit * scale
    films = {
        name: _film(study, sample, c, sample.unit * scale) for name, c in _coefficients(study, sample, factor).items()
    }
    rows: list[Row] = []
    for name, film in films.items():
        steps = {str(n): image for n, image in film.images.items()} | {"equilibrium": film.end}
        rows += [{"coefficients": name} | _row(step, image, truth, film.end) for step, image in steps.items()]
    study.folder.mkdir(parents=True, exist_ok=True)
    _animate(study.folder / "video.gif", films, truth, unit)
    moments = list(films[FREE].images)
    shown = [moments[0], moments[2 * len(moments) // 3], moments[-1]]
    errors: dict[str, np.ndarray] = {}
    for name, film in films.items():
        errors |= {f"{name}, step {n}": film.images[n] - truth for n in shown}
        errors |= {f"{name}, equilibrium": film.end - truth}
    wanted = {str(n) for n in shown} | {"equilibrium"}
    table = Table(
        f"{sample.names[0]}, x{factor}",
        ["coefficients", "step", f"RMSE {unit}", f"distance from the equilibrium {unit}"],
        [[r["coefficients"], r["step"], number(r["rmse"]), number(r["distance"])] for r in rows if r["step"] in wanted],
        "Step 0 is the bicubic image, adjusted to the source. Distance: root mean square.",
    )
    summary = [
        *(_sentence(name, [r for r in rows if r["coefficients"] == name], unit) for name in films),
        f"The learned coefficients are those of a DADA, trained as follows: {about_dada(study)}.",
        "[video.gif](video.gif) shows the image and its error over the steps, which grow geometrically; above with "
        "learning-free coefficients, below with learned ones.",
    ]
    caption = "Error (red: too far, blue: too near) after some steps of the loop, and at the equilibrium."
    protocol = f"none; one crop, x{factor} as in the paper's videos"
    files = {"video.gif": "the animation"}
    settings = {"frames": len(moments), "steps": LAST, "training": about_dada(study)}
    return Findings(summary, protocol, rows, pictures.error_map(errors, unit), caption, [table], settings, files)


def _coefficients(study: Study, sample: Sample, factor: int) -> dict[str, Coefficients]:
    """Those of colours and bicubic source, and those of a network."""
    trained = network(study, "dada", factor, study.first()).method
    assert isinstance(trained, DADA)
    with torch.no_grad():
        learned = trained.coefficients(sample)
    free = coefficients(torch.cat([standardise(sample.guide), sample.initial], dim=1), KAPPA, "mean_absolute")
    return {FREE: free, LEARNED: Coefficients(*(edges.to(sample.source.dtype) for edges in learned))}


def _film(study: Study, sample: Sample, c: Coefficients, scale: float) -> Film:
    moments = [0, *dict.fromkeys(np.geomspace(1, LAST, FRAMES - 1).round().astype(int).tolist())]
    images: dict[int, np.ndarray] = {}
    y, done = sample.initial, 0
    for moment in moments:
        study.say(f"step {moment}", moment / LAST)
        solution = iterate(sample.source, c, initial=y, steps=moment - done, mask=sample.source_mask)
        y, done = solution.values, moment
        images[moment] = y[0, 0].numpy() * scale
    end = equilibrium(sample.source, c, initial=sample.initial, mask=sample.source_mask).values
    return Film(images, end[0, 0].numpy() * scale)


def _row(step: str, image: np.ndarray, truth: np.ndarray, end: np.ndarray) -> Row:
    return {
        "step": step,
        "rmse": float(np.sqrt(np.nanmean((image - truth) ** 2))),
        "distance": float(np.sqrt(np.mean((image - end) ** 2))),
    }


def _sentence(name: str, rows: list[Row], unit: str) -> str:
    first, last, end = (number(rows[i]["rmse"]) for i in (0, -2, -1))
    return (
        f"With {name} coefficients the RMSE goes from {first} to {last} {unit} in {LAST} steps; the equilibrium has "
        f"{end} {unit}."
    )


def _animate(path: Path, films: dict[str, Film], truth: np.ndarray, unit: str) -> None:
    """Write a GIF: a row for each film, the image on the left, its error on the right, on scales that stay."""
    from PIL import Image

    low, high = np.nanpercentile(truth, (1, 99))
    moments = list(films[FREE].images)
    first = films[FREE].images[moments[0]]
    limit = float(np.nanpercentile(np.abs(first - truth), 97)) or 1.0
    figure, panels = sheet(2, len(films), (SIDE + 0.5, SIDE + 0.1))
    drawn = {}
    for name, left, right in zip(films, panels[::2], panels[1::2], strict=True):
        depth = left.imshow(first, cmap="viridis", vmin=low, vmax=high)
        error = right.imshow(first - truth, cmap="RdBu_r", vmin=-limit, vmax=limit)
        right.set_title(f"error ({unit})", fontsize=9)
        drawn[name] = left, depth, error
        for axes, shown in ((left, depth), (right, error)):
            axes.set(xticks=[], yticks=[])
            figure.colorbar(shown, ax=axes, shrink=1.0, pad=0.02).ax.tick_params(labelsize=7)
    figure.set_dpi(110)
    frames = []
    for moment in moments:
        for name, (left, depth, error) in drawn.items():
            left.set_title(f"{name}, {moment} steps ({unit})", fontsize=9)
            depth.set_data(films[name].images[moment])
            error.set_data(films[name].images[moment] - truth)
        figure.canvas.draw()
        pixels = np.asarray(figure.canvas.buffer_rgba())[..., :3]  # type: ignore[attr-defined]
        frames.append(Image.fromarray(np.ascontiguousarray(pixels)).quantize(256))
    durations = [MILLISECONDS] * (len(frames) - 1) + [LAST_MILLISECONDS]
    with atomic_path(path) as temporary, temporary.open("wb") as file:
        frames[0].save(file, format="GIF", save_all=True, append_images=frames[1:], duration=durations, loop=0)
