"""`table3`: trained on NYUv2, tested on the others, with the misfit to the source."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from dada.errors import InputError
from dada.evaluation.bench import Report
from dada.evaluation.methods import Entry, resolve
from dada.evaluation.paper import paper, paper_set
from dada.evaluation.tables import Table, number
from dada.reproduce.ablation import BATCH_MEANS, THEIRS
from dada.reproduce.findings import Findings
from dada.reproduce.found import TestSet
from dada.reproduce.plots import finish, sheet
from dada.reproduce.reports import all_rows, bench, described, drawable
from dada.reproduce.study import Study
from dada.reproduce.trainings import about, brief_training, load_trained, paper_training

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NETWORKS = ("msg", "fdkn", "pmba", "fdsr", "lgr", "dada")
TRAINED_ON = "NYUv2"


def across(study: Study) -> Findings:
    """Table 3."""
    every = study.sets()
    origin = next((s for s in every if s.title == TRAINED_ON and s.train), None)
    others = [s for s in every if s.title != TRAINED_ON] or every
    reports, tables, failures = [], [], set()
    for test in others:
        for factor in study.effort.across_factors:
            entries: list[Entry] = [resolve("bicubic")]
            for name in [n for n in NETWORKS if n in study.effort.networks]:
                try:
                    entries.append(_network(study, name, factor, origin))
                except InputError as error:
                    failures.add(f"{name} at x{factor}: {error}")
            report = bench(study, entries, test.open(), [factor], study.effort.network_crops)
            reports.append(report)
            tables.append(_table(report))
    dada = [report.scores(_label(report, "dada"), report.factors[0]) for report in reports]
    worst = max((s.consistency_mse for s in dada if s), default=float("nan"))
    summary = [
        f"Averaged down, DADA's result differs from the source by {number(worst)} {reports[0].unit}² at most "
        "(mean squared); networks without the adjustment change the measurement.",
        f"Training: {_about(study, origin)}.",
        *sorted(failures),
    ]
    return Findings(
        summary, described(reports[:: len(study.effort.across_factors)]), all_rows(reports), _figure(reports),
        f"Error and inconsistency of networks on data that they were not trained on.{drawable(reports[0])[1]}", tables,
        {"training": _about(study, origin)},
    )  # fmt: skip


def _network(study: Study, name: str, factor: int, origin: TestSet | None) -> Entry:
    if not study.effort.brief:
        return load_trained(study, paper_training(name, TRAINED_ON, factor), name)
    where = ""
    if origin is not None and study.data is not None:  # as the trainer names it: below --data
        kind, _, path = origin.train.partition(":")
        where = f"{kind}:{path.removeprefix(str(study.data)).lstrip('/') or '.'}"
    return load_trained(study, brief_training(study, name, factor, study.effort.ablation_steps, where), name)


def _label(report: Report, name: str) -> str:
    return next((c.label for c in report.entries if c.name == name), "bicubic")


def _table(report: Report) -> Table:
    factor, data = report.factors[0], paper_set(report.dataset)
    printed = paper()["across"].get(data, {}).get(str(factor), {}) if data else {}
    rows = []
    for entry in report.entries:
        found = [report.scores(entry.label, factor, rule) for rule in ("batches", "pixels")]
        theirs = printed.get(entry.name)
        rows.append([entry.label, *(_triple(vars(s)) if s else "failed" for s in found), _triple(theirs)])
    caption = (
        "Consistency: mean squared difference between the result averaged down and the source (the paper's MSE with a "
        f"double dagger). {BATCH_MEANS} {THEIRS}"
    )
    what = f"MSE {report.unit}² / MAE {report.unit} / consistency {report.unit}²"
    columns = ["method", f"{what}, batch means", "the same, all pixels alike", "paper: MSE / MAE / consistency"]
    return Table(f"{report.dataset}, {report.protocol.describe(report.count)}: x{factor}", columns, rows, caption)


def _triple(values: Mapping[str, float] | None) -> str:
    """MSE, MAE and consistency; a dash where there are none."""
    names = ("mse", "mae", "consistency_mse")
    return " / ".join(number(values[name]) for name in names) if values else "-"


def _figure(reports: list[Report]) -> Figure:
    from matplotlib.ticker import LogLocator

    figure, panels = sheet(2, 1, (4.6, 3.4))
    report = drawable(reports[0])[0]
    factor = report.factors[0]
    found = {c.label: report.scores(c.label, factor) for c in report.entries}
    known = {label: scores for label, scores in found.items() if scores}
    colors = ["C3" if label == "dada" else "C0" for label in known]
    panels[0].barh(list(known), [s.mse for s in known.values()], color=colors)
    panels[1].barh(list(known), [max(s.consistency_mse, 1e-12) for s in known.values()], color=colors)
    panels[1].set_xscale("log")
    panels[1].xaxis.set_major_locator(LogLocator(numticks=6))
    for axes, what in zip(panels, ("MSE", "consistency with the source"), strict=True):
        axes.invert_yaxis()
        finish(axes, x=f"{what} ({report.unit}²)", y="", title=f"{report.dataset}, x{factor}")
    return figure


def _about(study: Study, origin: TestSet | None) -> str:
    effort = study.effort
    where = "the training frames of NYUv2 found" if origin else "painted scenes, as NYUv2 was not found"
    steps = f"{effort.ablation_steps} steps (PMBA: {min(effort.slow_steps, effort.ablation_steps)})"
    return about(study, "NYUv2", steps, where, note=": the order of the networks means nothing")
