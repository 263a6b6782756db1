"""`figure-coefficients`: the coefficients from colours and from a network."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from torch import Tensor

from dada.datasets.crops import to_sample
from dada.diffusion import Coefficients, coefficients
from dada.evaluation.bench import busiest
from dada.evaluation.metrics import THRESHOLDS
from dada.evaluation.tables import Table, number
from dada.features.standardising import KAPPA, standardise
from dada.models.dada import DADA
from dada.models.default import learned
from dada.reproduce.findings import Findings, Row
from dada.reproduce.plots import sheet
from dada.reproduce.study import Study
from dada.reproduce.trainings import about_dada, network
from dada.sample import Sample
from dada.sample.jumps import jumps

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FACTOR = 8


def coefficient_maps(study: Study) -> Findings:
    """Figure 4: coefficients of RGB and of deep features."""
    test = study.first()
    trained = network(study, "dada", FACTOR, test).method
    assert isinstance(trained, DADA)
    dataset = test.open()
    crops = study.protocol.cut(dataset[0])
    sample = to_sample(busiest(crops, dataset.unit), FACTOR, dataset.unit)
    colours = coefficients(standardise(sample.guide), KAPPA, "mean_absolute")
    maps = {"from RGB": colours, "from deep features": trained.coefficients(sample)}
    maps["by our default"] = learned().coefficients(sample)
    stopped = {name: _stopped(c) for name, c in maps.items()}
    assert sample.target is not None
    assert sample.target_mask is not None
    edges = jumps(sample.target[0, 0], sample.target_mask[0, 0], THRESHOLDS.jump).numpy()
    rows: list[Row] = []
    for name, block in stopped.items():
        rows.append({"coefficients": name, "stopped at jumps": _mean(block[edges]),
                     "stopped elsewhere": _mean(block[~edges])})  # fmt: skip
    ratios = [r["stopped at jumps"] / max(r["stopped elsewhere"], 1e-9) for r in rows]
    table = Table(
        f"How much of the diffusion is stopped, {sample.names[0]}",
        ["coefficients", "at depth jumps %", "elsewhere %", "ratio"],
        [
            [r["coefficients"], *(number(v) for v in (100 * r["stopped at jumps"], 100 * r["stopped elsewhere"], q))]
            for r, q in zip(rows, ratios, strict=True)
        ],
        "Mean of 1 - c over the pixels beside a jump of the true depth, and over all others. A large ratio is "
        "better: diffusion stops at objects, not at texture.",
    )
    summary = [
        f"Coefficients from colours stop diffusion {number(ratios[0])} times as much at depth jumps as elsewhere, "
        f"those of the network {number(ratios[1])} times, those of the default that comes with the package "
        f"{number(ratios[2])} times.",
        f"The network is trained as follows: {about_dada(study)}.",
    ]
    caption = "Guide, true depth, and how far diffusion is stopped (dark: not at all, bright: entirely)."
    protocol = f"none; the crop of {sample.names[0].partition('@')[0]} with the most depth jumps, source at x{FACTOR}"
    return Findings(summary, protocol, rows, _draw(sample, stopped), caption, [table], {"kappa of RGB": KAPPA})


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if values.size else float("nan")


def _stopped(c: Coefficients) -> np.ndarray:
    """1 minus the smallest coefficient of each pixel's edges, (H, W); a network may also speed diffusion up: 0."""
    vertical, horizontal = (_numpy(1 - edges[0]).clip(min=0) for edges in c)
    down, up = np.pad(vertical, ((0, 1), (0, 0))), np.pad(vertical, ((1, 0), (0, 0)))
    right, left = np.pad(horizontal, ((0, 0), (0, 1))), np.pad(horizontal, ((0, 0), (1, 0)))
    return np.asarray(np.max([down, up, right, left], axis=0))


def _numpy(values: Tensor) -> np.ndarray:
    return values.detach().float().cpu().numpy()


def _draw(sample: Sample, stopped: dict[str, np.ndarray]) -> Figure:
    figure, panels = sheet(2 + len(stopped), 1, (2.6, 2.9))
    assert sample.target is not None
    panels[0].imshow(sample.guide[0].permute(1, 2, 0).numpy()[..., :3])
    panels[0].set_title("guide", fontsize=10)
    depth = sample.target[0, 0].numpy() * sample.unit / 1000
    shown = panels[1].imshow(depth, cmap="viridis")
    panels[1].set_title("true depth (m)", fontsize=10)
    figure.colorbar(shown, ax=panels[1], orientation="horizontal", shrink=0.9, pad=0.03)
    for axes, (name, block) in zip(panels[2:], stopped.items(), strict=True):
        image = axes.imshow(block, cmap="magma", vmin=0, vmax=1)
        axes.set_title(f"stopped, {name}", fontsize=10)
        figure.colorbar(image, ax=axes, orientation="horizontal", shrink=0.9, pad=0.03)
    for axes in panels:
        axes.set_xticks([])
        axes.set_yticks([])
    return figure
