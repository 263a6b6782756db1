"""`speed`: distance from the equilibrium against time, for the loop and for the solver."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import mean
from typing import Any

import torch
from torch import Tensor

from dada.diffusion import Coefficients, coefficients, equilibrium, iterate
from dada.diffusion.equilibrium import TOLERANCE
from dada.diffusion.loop import STEPS
from dada.evaluation.fingerprint import fingerprint
from dada.evaluation.tables import Table, number
from dada.features.standardising import KAPPA, standardise
from dada.reproduce.findings import Findings, Row
from dada.reproduce.plots import lines, sheet
from dada.reproduce.study import Study, single_thread
from dada.sample import Sample

FACTORS = (8, 32)
TOLERANCES = (1e-1, 1e-2, 1e-3, TOLERANCE, 1e-5, 1e-6)
EXACT = 1e-9


def speed(study: Study) -> Findings:
    """Time to a given distance from the equilibrium."""
    rows: list[Row] = []
    with single_thread():
        for factor in FACTORS:
            for sample in study.samples(study.effort.probes, factor):
                key = fingerprint(sample.guide, sample.source, study.effort.loop_steps, study.effort.repeats)
                study.say(f"x{factor} {sample.names[0]}", None)
                rows += study.remember(__name__, key, lambda s=sample: measure(study, s))  # type: ignore[misc]
    means = _means(rows)
    figure, panels = sheet(len(FACTORS))
    for axes, factor in zip(panels, FACTORS, strict=True):
        curves = {}
        for how in ("loop", "equilibrium"):
            found = [r for r in means if r["factor"] == factor and r["how"] == how]
            curves[how] = [r["seconds"] for r in found], [100 * r["distance"] for r in found]
        lines(axes, curves, x="seconds a crop, one thread", y="distance from the end (% of the range)", log="xy",
              title=f"x{factor}")  # fmt: skip
        _mark(axes, means, factor)
    return Findings(
        [_sentence(means, factor) for factor in FACTORS],
        f"none; crops of {study.effort.size} x {study.effort.size}, coefficients of learning-free DADA, bicubic start",
        rows,
        figure,
        "Mean distance to where the loop ends, against time: the loop (compiled) after more and more steps, and the "
        "solver at finer and finer tolerance. Rings: what the paper runs, and this package's default.",
        [_table(means, factor) for factor in FACTORS],
        {"crops": len({r["crop"] for r in rows}), "loop steps": study.effort.loop_steps, "tolerances": TOLERANCES},
    )


def measure(study: Study, sample: Sample) -> list[Row]:
    """Distances and times on one crop."""
    c = coefficients(torch.cat([standardise(sample.guide), sample.initial], dim=1), KAPPA, "mean_absolute")
    options: dict[str, Any] = {"mask": sample.source_mask, "initial": sample.initial}
    exact = dict(options, initial=sample.initial.double())
    double = Coefficients(*(edges.double() for edges in c))
    end = equilibrium(sample.source.double(), double, **exact, tolerance=EXACT, warn=False).values
    known = sample.source[sample.source_mask]
    span = float(known.max() - known.min()) or 1.0
    ways: list[tuple[str, float, Callable[[], Tensor]]] = [
        ("loop", n, lambda n=n: iterate(sample.source, c, steps=n, **options).values)  # type: ignore[misc]
        for n in study.effort.loop_steps
    ]
    ways += [
        ("equilibrium", t, lambda t=t: equilibrium(sample.source, c, tolerance=t, warn=False, **options).values)  # type: ignore[misc]
        for t in TOLERANCES
    ]
    ways[0][2](), ways[-1][2]()  # compile
    found = []
    for how, setting, call in ways:
        best, values = float("inf"), end
        for _ in range(1 if how == "loop" and setting > STEPS else study.effort.repeats):
            begun = time.perf_counter()
            values = call()
            best = min(best, time.perf_counter() - begun)
        distance = float((values.double() - end).abs().mean()) / span
        found.append({"crop": sample.names[0], "factor": int(sample.factor), "how": how, "setting": setting,
                      "seconds": best, "distance": distance})  # fmt: skip
    return found


def _means(rows: list[Row]) -> list[Row]:
    groups: dict[tuple[int, str, float], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["factor"], row["how"], row["setting"]), []).append(row)
    return [
        {"factor": factor, "how": how, "setting": setting}
        | {name: mean(r[name] for r in found) for name in ("seconds", "distance")}
        for (factor, how, setting), found in groups.items()
    ]


def _default(means: list[Row], factor: int, how: str) -> Row:
    """The default setting: the paper's steps, or the nearest measured number, and the default tolerance."""
    wanted = STEPS if how == "loop" else TOLERANCE
    mine = [r for r in means if r["factor"] == factor and r["how"] == how]
    return min(mine, key=lambda r: abs(r["setting"] - wanted))


def _mark(axes: Any, means: list[Row], factor: int) -> None:
    for how in ("loop", "equilibrium"):
        row = _default(means, factor, how)
        name = f"{row['setting']:.0f} steps" if how == "loop" else f"tolerance {row['setting']:g}"
        place = row["seconds"], 100 * row["distance"]
        axes.plot(*place, "o", markersize=11, markerfacecolor="none", color="black")
        axes.annotate(name, place, (9, 7), textcoords="offset points", fontsize=8)


def _sentence(means: list[Row], factor: int) -> str:
    loop, solved = (_default(means, factor, how) for how in ("loop", "equilibrium"))
    far, near = (number(100 * row["distance"]) for row in (loop, solved))
    return (
        f"x{factor}: the solver at its default takes {solved['seconds']:.3f} s, "
        f"{loop['seconds'] / solved['seconds']:.0f} times less than {loop['setting']:.0f} steps of the loop "
        f"({loop['seconds']:.2f} s). Distance from the equilibrium: {near}% of the range, and {far}% after the steps."
    )


def _table(means: list[Row], factor: int) -> Table:
    mine = [r for r in means if r["factor"] == factor]
    rows = [
        [r["how"], f"{r['setting']:g}", f"{r['seconds']:.3f}", number(100 * r["distance"])] for r in mine
    ]  # fmt: skip
    caption = (
        "Setting: steps of the loop, tolerance of the solver. Distance: mean over pixels of the difference from the "
        "equilibrium (solved in double precision), as a share of the range of the source. Best of several calls."
    )
    return Table(f"x{factor}: time and distance", ["how", "setting", "seconds", "distance %"], rows, caption)
