"""`seeds`: the same training with several seeds."""

from __future__ import annotations

from dataclasses import replace
from statistics import mean, stdev
from typing import TYPE_CHECKING, Any, NamedTuple

from dada.evaluation.bench import Report
from dada.evaluation.metrics import Rule
from dada.evaluation.paper import paper, paper_set
from dada.evaluation.tables import Table, number
from dada.reproduce.ablation import BATCH_MEANS, THEIRS, about_ablation, variants
from dada.reproduce.findings import Findings
from dada.reproduce.plots import finish, sheet
from dada.reproduce.reports import all_rows, described
from dada.reproduce.study import Study
from dada.reproduce.trainings import training

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MEASURES = {
    "mse": ("MSE", 1.0), "mae": ("MAE", 1.0), "mape": ("MAPE %", 100.0), "value_error": ("value error %", 100.0),
    "edge_error": ("edge error %", 100.0),
}  # fmt: skip
OWN = ("value_error", "edge_error")  # defined by this project: not those of the paper


class Spread(NamedTuple):
    """Mean and standard deviation over trainings."""

    mean: float
    deviation: float

    def __str__(self) -> str:
        return f"{number(self.mean)} ± {number(self.deviation)}"


def seeds(study: Study) -> Findings:
    """Mean and deviation over trainings, on every data set and at every factor."""
    every, labels = study.sets(), [f"seed {seed}" for seed in range(study.effort.seeds)]
    reports = []
    for test in every:
        for factor in study.effort.network_factors:
            base = training(study, "dada", factor, test.title, ablation=True)
            trainings = {label: replace(base, seed=seed) for seed, label in enumerate(labels)}
            reports.append(variants(study, trainings, factor, test)[0])
    about = about_ablation(study, data="the training part of each data set")
    summary = [_sentence(report, labels) for report in reports]
    summary.append(f"Training: {about}.")
    caption = "Error of each training; the band is mean ± standard deviation."
    settings = {"training": about, "seeds": list(range(study.effort.seeds))}
    protocol = described(reports[:: len(study.effort.network_factors)])
    figure = _figure(reports, labels, len(study.effort.network_factors))
    tables = [_table(report, labels) for report in reports]
    return Findings(summary, protocol, all_rows(reports), figure, caption, tables, settings)


def spread(report: Report, labels: list[str], measure: str, rule: Rule) -> Spread:
    """Of one measure over the trainings of a report."""
    found = [report.scores(label, report.factors[0], rule) for label in labels]
    values = [getattr(scores, measure) * MEASURES[measure][1] for scores in found if scores]
    return Spread(mean(values), stdev(values) if len(values) > 1 else 0.0)


def _printed(report: Report, measure: str) -> dict[str, float] | None:
    """Mean and deviation as the paper prints them."""
    data = paper_set(report.dataset)
    found: dict[str, Any] = paper()["variability"].get(data, {}).get(measure, {}) if data else {}
    return found.get(str(report.factors[0]))


def _table(report: Report, labels: list[str]) -> Table:
    rows = []
    for measure, (title, _) in MEASURES.items():
        ours = [str(spread(report, labels, measure, rule)) for rule in ("batches", "pixels")]
        theirs = _printed(report, measure)
        quoted = f"{theirs['mean']:g} ± {theirs['deviation']:g}" if theirs else "-"
        rows.append([title, *ours, quoted + " *" * (measure in OWN)])
    what = f"{len(labels)} trainings, x{report.factors[0]}"
    return Table(
        f"{report.dataset}, {report.protocol.describe(report.count)}: {what}",
        ["measure", "ours, batch means", "ours, all pixels alike", "paper"],
        rows,
        "Mean ± standard deviation over trainings that differ in the seed alone; MSE in cm², MAE in cm for depth. "
        f"{BATCH_MEANS} {THEIRS} *: the paper gives no formula; ours is another measure of the same name.",
    )


def _sentence(report: Report, labels: list[str]) -> str:
    found, theirs = spread(report, labels, "mse", "batches"), _printed(report, "mse")
    quoted = f" (the paper: {theirs['deviation'] / theirs['mean']:.1%})" if theirs else ""
    return (
        f"{report.dataset}, x{report.factors[0]}: the MSE over {len(labels)} seeds is {found} {report.unit}², a "
        f"deviation of {found.deviation / found.mean:.1%}{quoted}."
    )


def _figure(reports: list[Report], labels: list[str], columns: int) -> Figure:
    figure, panels = sheet(columns, len(reports) // columns, (3.3, 2.6))
    for axes, report in zip(panels, reports, strict=True):
        _points(axes, report, labels)
    return figure


def _points(axes: Axes, report: Report, labels: list[str]) -> None:
    found = [report.scores(label, report.factors[0], "batches") for label in labels]
    values = [s.mse if s else float("nan") for s in found]
    average, deviation = spread(report, labels, "mse", "batches")
    axes.axhspan(average - deviation, average + deviation, color="C0", alpha=0.15, linewidth=0)
    axes.axhline(average, color="C0", linewidth=1)
    axes.plot(range(len(values)), values, "o", color="C0")
    axes.set_xticks(range(len(values)), [str(seed) for seed in range(len(values))])
    axes.set_ylim(0, 1.15 * max([v for v in values if v == v], default=1.0))
    finish(axes, x="seed", y=f"MSE ({report.unit}²)", title=f"{report.dataset}, x{report.factors[0]}")
