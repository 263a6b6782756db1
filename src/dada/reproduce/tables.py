"""`table1`, `table2`, `runtime` and `metrics`: all methods on all data, by the bench."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dada.evaluation.bench import Report, Runs
from dada.evaluation.curves import curves, measured
from dada.evaluation.files import write
from dada.evaluation.methods import BICUBIC
from dada.evaluation.metrics import THRESHOLDS
from dada.evaluation.paper import paper, paper_set
from dada.evaluation.summary import details
from dada.evaluation.tables import Table, number
from dada.reproduce.findings import Findings
from dada.reproduce.plots import finish, lines, plain_ticks, sheet
from dada.reproduce.reports import (
    PIXT_ITERATIONS,
    about_pixtransform,
    all_rows,
    described,
    drawable,
    joined,
    learning_free_report,
    main_tables,
    missed,
    network_report,
)
from dada.reproduce.study import Study
from dada.reproduce.trainings import about_training

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FULL_TABLES = "all tables of this data set, per scene and per crop"


def learning_free(study: Study) -> Findings:
    """Table 2."""
    reports = [learning_free_report(study, test, study.effort.crops) for test in study.sets()]
    files = _write(study, reports)
    summary = [*(_least(report, "dada-free") for report in reports), *about_pixtransform(study)]
    settings = {"PixTransform": f"{study.effort.pixt_iterations} iterations (the paper: {PIXT_ITERATIONS})"}
    return Findings(
        summary, described(reports), all_rows(reports), *_drawn(reports[0]),
        [table for report in reports for table in main_tables(report)], settings, files,
    )  # fmt: skip


def learned(study: Study) -> Findings:
    """Table 1."""
    reports = [network_report(study, test) for test in study.sets()]
    files = _write(study, reports)
    summary = [f"The networks here are trained as follows: {about_training(study)}."] if study.effort.brief else []
    summary += [_least(report, next(c.label for c in report.entries if c.name == "dada")) for report in reports]
    summary += missed(reports)
    return Findings(
        summary, described(reports), all_rows(reports), *_drawn(reports[0]),
        [table for report in reports for table in main_tables(report)], {"training": about_training(study)}, files,
    )  # fmt: skip


def runtime(study: Study) -> Findings:
    """Time of every method at every factor."""
    test = study.first()
    free = learning_free_report(study, test, study.effort.network_crops)
    report = joined([free, network_report(study, test)])
    fastest = {(label, f): _fastest(runs) for (label, f), runs in report.runs.items()}
    times: dict[str, tuple[list[float], list[float]]] = {}
    for label in [c.label for c in report.entries if c.label != BICUBIC]:
        known = [(float(f), s) for f in report.factors if (s := fastest[label, f]) is not None]
        times[label] = [f for f, _ in known], [s for _, s in known]
    figure, (axes,) = sheet(1, 1, (7.0, 4.0))
    lines(axes, times, x="factor", y="seconds for a crop", log="xy", legend=False)
    plain_ticks(axes, report.factors, [f"x{f}" for f in report.factors])
    figure.legend(loc="outside right center", frameon=False, fontsize=8.5)
    table = Table(
        f"{report.dataset}, {report.protocol.describe(report.count)}: seconds for a crop",
        ["method", *(f"x{f}" for f in report.factors)],
        [[n, *("-" if (s := fastest[n, f]) is None else f"{s:.3f}" for f in report.factors)] for n in times],
        "The fastest of the crops, on the CPU at hand: the first ones also import and compile. The source and its "
        "bicubic interpolation are made before and not counted.",
    )
    first, last = (fastest["dada-free", report.factors[i]] or float("nan") for i in (0, -1))
    summary = [
        f"Learning-free DADA takes {first:.2g} s at x{report.factors[0]} and {last:.2g} s at x{report.factors[-1]}: "
        "the equilibrium, on a CPU.",
        f"The paper, in batches of 32 on an RTX 3090: DADA {_quoted('dada')}; LGR {_quoted('lgr')}; feed-forward "
        "networks below 0.02 s. Other machines: compare the ratios.",
    ]
    caption = "Seconds of a call for one crop, on the CPU at hand, against the factor."
    settings = {"networks": about_training(study)}
    return Findings(summary, described([report]), all_rows([report]), figure, caption, [table], settings)


def _fastest(runs: Runs) -> float | None:
    return min((record.seconds for record in runs.records), default=None) if runs.failure is None else None


def _quoted(method: str) -> str:
    return ", ".join(f"{seconds:g} s (x{factor})" for factor, seconds in paper()["seconds"][method].items())


def metrics(study: Study) -> Findings:
    """MAPE, value errors and edge errors at the largest factor."""
    factor = study.effort.network_factors[-1]
    reports, tables, rows = [], [], []
    for test in study.sets():
        free = learning_free_report(study, test, study.effort.network_crops, [factor])
        report = joined([free, network_report(study, test, [factor])])
        reports.append(report)
        tables += details(report)
        rows += all_rows([report])
        tables += _printed(report)
    figure, panels = sheet(len(reports), 1, (4.8, 3.8))
    for axes, report in zip(panels, reports, strict=True):
        _bars(axes, report, factor)
    limits = THRESHOLDS
    summary = [
        f"The paper prints value and edge errors after He et al. (2021), who give no formula. Here a value is wrong if "
        f"it is off by more than {limits.value:.0%}, a pixel at a jump if it is off by more than {limits.edge:g} "
        "standard deviations of the data set: this project's definitions. Only MAPE compares.",
        f"Training: {about_training(study)}.",
    ]
    caption = f"Share of pixels at a jump of the true depth that are wrong (edge error), at x{factor}."
    settings = {"networks": about_training(study)}
    return Findings(summary, described(reports), rows, figure, caption, tables, settings)


def _printed(report: Report) -> list[Table]:
    """The paper's percentages."""
    data = paper_set(report.dataset)
    found = paper()["percentages_x32"].get(data, {}) if data else {}
    rows = [[name, *(f"{v[key]:g}" for key in ("mape", "value_error", "edge_error"))] for name, v in found.items()]
    caption = "Printed in the paper for its own test images and trainings."
    title = f"The paper's, {data} at x32: percentages"
    return [Table(title, ["method", "MAPE %", "VE %", "EE %"], rows, caption)] if rows else []


def _bars(axes: Axes, report: Report, factor: int) -> None:
    found = {c.label: report.scores(c.label, factor) for c in report.entries}
    values = {label: 100 * scores.edge_error for label, scores in found.items() if scores}
    axes.barh(
        list(values), list(values.values()), color=["C3" if "dada" in n or "default" in n else "C0" for n in values]
    )
    axes.invert_yaxis()
    finish(axes, x="edge error (%)", y="", title=report.dataset)


def _write(study: Study, reports: list[Report]) -> dict[str, str]:
    """All files of the bench for each data set, in folders of their names."""
    files = {}
    for report in reports:
        folder = study.folder / report.dataset
        folder.mkdir(parents=True, exist_ok=True)
        write(report, folder)
        files[f"{report.dataset}/tables.md"] = FULL_TABLES
    return files


def _least(report: Report, label: str) -> str:
    """A sentence: the method's share of bicubic's MSE, and its rank."""
    parts = []
    for factor in report.factors:
        found = {c.label: report.scores(c.label, factor) for c in report.entries}
        mse = {name: scores.mse for name, scores in found.items() if scores}
        if label in mse:
            rank = sorted(mse, key=lambda name: mse[name]).index(label) + 1
            share = number(mse[label] / mse[BICUBIC])
            parts.append(f"{share} at x{factor} (rank {rank} of {len(mse)})")
    return f"{report.dataset}: of bicubic's MSE, {label} leaves {', '.join(parts)}."


def _drawn(report: Report) -> tuple[Figure, str]:
    """The curves, and their caption."""
    report, hidden = drawable(report)
    paper_too = " Right: the paper's own numbers, of its own test images." if paper_set(report.dataset) else ""
    several = " A method without a line at a factor was not run there." if len(measured(report)) > 1 else ""
    return curves(report), f"RMSE against the factor on {report.dataset}.{paper_too}{several}{hidden}"
