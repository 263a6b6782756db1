"""`seeds`: the same training with several seeds."""

from __future__ import annotations

from dataclasses import replace
from statistics import mean, stdev

from dada.evaluation.paper import paper, paper_set
from dada.evaluation.tables import Table, number
from dada.reproduce.ablation import FACTOR, about_ablation, variants
from dada.reproduce.findings import Findings
from dada.reproduce.plots import finish, sheet
from dada.reproduce.reports import all_rows, described
from dada.reproduce.study import Study
from dada.reproduce.trainings import training

MEASURES = {
    "mse": ("MSE", 1.0), "mae": ("MAE", 1.0), "mape": ("MAPE %", 100.0), "value_error": ("value error %", 100.0),
    "edge_error": ("edge error %", 100.0),
}  # fmt: skip
OWN = ("value_error", "edge_error")  # defined by this project: not those of the paper


def seeds(study: Study) -> Findings:
    """Mean and deviation over trainings."""
    test = study.first()
    base = training(study, "dada", FACTOR, test.title, ablation=True)
    trainings = {f"seed {seed}": replace(base, seed=seed) for seed in range(study.effort.seeds)}
    report, _ = variants(study, trainings)
    scores = {label: report.scores(label, FACTOR) for label in trainings}
    data = paper_set(report.dataset)
    printed = paper()["variability"].get(data, {}) if data else {}
    found, rows = {}, []
    for key, (title, scale) in MEASURES.items():
        values = [getattr(s, key) * scale for s in scores.values() if s]
        found[key] = mean(values), stdev(values) if len(values) > 1 else 0.0
        theirs = printed.get(key, {}).get(str(FACTOR))
        quoted = f"{theirs['mean']:g} ± {theirs['deviation']:g}" if theirs else "-"
        rows.append([title, f"{number(found[key][0])} ± {number(found[key][1])}", quoted + " *" * (key in OWN)])
    average, deviation = found["mse"]
    table = Table(
        f"{report.dataset}, {report.protocol.describe(report.count)}: {len(trainings)} trainings, x{FACTOR}",
        ["measure", "ours", "paper"],
        rows,
        "Mean ± standard deviation over trainings that differ in the seed alone; MSE in cm², MAE in cm for depth. "
        "*: the paper gives no formula; ours is another measure of the same name.",
    )
    figure, (axes,) = sheet(1, 1, (5.6, 3.4))
    values = [s.mse if s else float("nan") for s in scores.values()]
    axes.axhspan(average - deviation, average + deviation, color="C0", alpha=0.15, linewidth=0)
    axes.axhline(average, color="C0", linewidth=1)
    axes.plot(range(len(values)), values, "o", color="C0")
    axes.set_xticks(range(len(values)), list(scores))
    axes.set_ylim(0, 1.15 * max([v for v in values if v == v], default=1.0))
    finish(axes, x="", y=f"MSE ({report.unit}²)", title=f"x{FACTOR}")
    summary = [
        f"The MSE over {len(values)} seeds is {number(average)} ± {number(deviation)} {report.unit}², a deviation of "
        f"{deviation / average:.1%}" + (f" (the paper: {_relative(printed):.1%})." if printed else "."),
        f"Training: {about_ablation(study)}.",
    ]
    caption = "Error of each training; the band is mean ± standard deviation."
    settings = {"training": about_ablation(study), "seeds": list(range(study.effort.seeds))}
    return Findings(summary, described([report]), all_rows([report]), figure, caption, [table], settings)


def _relative(printed: dict[str, dict[str, dict[str, float]]]) -> float:
    theirs = printed["mse"][str(FACTOR)]
    return theirs["deviation"] / theirs["mean"]
