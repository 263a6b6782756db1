"""`ablation-guide-upsampling` and `ablation-extractor`: what the features come from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from dada.evaluation.bench import Report
from dada.evaluation.paper import paper
from dada.evaluation.tables import Table
from dada.reproduce.ablation import FACTOR, about_ablation, bars, beside, share, spread, variants
from dada.reproduce.findings import Findings, Row
from dada.reproduce.plots import finish, label_bars, sheet
from dada.reproduce.reports import all_rows, described
from dada.reproduce.study import Study
from dada.reproduce.trainings import training, with_network

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WITH, WITHOUT = "guide enlarged x2", "guide as it is"


def guide_upsampling(study: Study) -> Findings:
    """With and without enlarging the guide before the feature extractor, on every data set and at every factor."""
    every, factors = study.sets(), study.effort.network_factors
    reports, tables, summary = [], [], []
    for test in every:
        printed = paper()["up_and_down"].get(test.title, {})
        found, quoted = {}, {}
        for factor in factors:
            base = training(study, "dada", factor, test.title, ablation=True)
            trainings = {WITH: with_network(base, upsample=True), WITHOUT: with_network(base, upsample=False)}
            report, reasons = variants(study, trainings, factor, test)
            theirs = {
                WITH: printed.get("base", {}).get(str(factor)),
                WITHOUT: printed.get("without", {}).get(str(factor)),
            }
            known = {label: values for label, values in theirs.items() if values}
            tables.append(beside(report, known, reasons, "Features are averaged back."))
            found[factor] = share(report, WITH) / share(report, WITHOUT)
            if len(known) == len(theirs):
                quoted[factor] = known[WITH]["mse"] / known[WITHOUT]["mse"]
            reports.append(report)
        summary.append(_ratios(test.title, found, quoted))
    seconds = [reports[0].runs[label, factors[0]].seconds or 0.0 for label in (WITH, WITHOUT)]
    summary.append(f"It takes {seconds[0] / max(seconds[1], 1e-9):.1f} times as long ({seconds[0]:.2f} s a crop).")
    about = about_ablation(study, data="the training part of each data set")
    summary.append(f"Training: {about}.")
    return Findings(
        summary, described(reports[:: len(factors)]), all_rows(reports), _ratio_bars(reports, len(factors)),
        "Share of bicubic's MSE left with and without enlarging the guide (dotted: bicubic).", tables,
        {"training": about},
    )  # fmt: skip


def _ratios(data: str, found: dict[int, float], quoted: dict[int, float]) -> str:
    """A sentence: MSE with an enlarged guide over that without, and the paper's."""

    def listed(ratios: dict[int, float]) -> str:
        return ", ".join(f"{ratio:.2f} at x{factor}" for factor, ratio in ratios.items())

    theirs = f" (the paper: {listed(quoted)})" if quoted else ""
    return f"{data}: MSE with an enlarged guide over that without: {listed(found)}{theirs}."


def _ratio_bars(reports: list[Report], columns: int) -> Figure:
    figure, panels = sheet(columns, len(reports) // columns, (3.4, 1.7))
    for axes, report in zip(panels, reports, strict=True):
        values = [share(report, label) for label in (WITH, WITHOUT)]
        drawn = axes.barh([WITH, WITHOUT], values, color=["C0", "C1"], height=0.6)
        label_bars(axes, drawn, values)
        axes.invert_yaxis()
        axes.axvline(1, color="0.5", linewidth=1, linestyle=":")
        axes.set_xlim(0, 1.25 * max(1.0, *values))
        finish(axes, x="share of bicubic's MSE", y="", title=f"{report.dataset}, x{report.factors[0]}")
    return figure


def extractors(study: Study) -> Findings:
    """Feature extractors of several architectures and depths."""
    test = study.first()
    base = training(study, "dada", FACTOR, test.title, ablation=True)
    trainings = {name: with_network(base, extractor=name) for name in study.effort.extractors}
    report, reasons = variants(study, trainings)
    sizes = {
        c.label: sum(p.numel() for p in c.method.parameters()) / 1e6
        for c in report.entries
        if isinstance(c.method, torch.nn.Module)
    }
    rows: list[Row] = [row | {"million parameters": sizes.get(str(row["method"]))} for row in all_rows([report])]
    costs = Table(
        "Size and time",
        ["extractor", "million parameters", "seconds a crop"],
        [[n, f"{s:.1f}", f"{report.runs[n, FACTOR].seconds or 0:.2f}"] for n, s in sizes.items()],
        "Time with the equilibrium, on the CPU at hand.",
    )
    summary = [spread(report), *(f"{label} is not available: {reason}" for label, reason in reasons.items())]
    printed = paper()["feature_extractors"]["Middlebury"]
    return Findings(
        summary, described([report]), rows, bars(report, f"extractors at x{FACTOR}"),
        "Share of bicubic's MSE that DADA leaves with each feature extractor.",
        [beside(report, printed, reasons, "light and lite0 are ours."), costs],
        {"training": about_ablation(study, extractor="")},
    )  # fmt: skip
