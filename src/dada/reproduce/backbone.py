"""`ablation-initialisation`, `ablation-guide-upsampling` and `ablation-extractor`: what the features come from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from dada.diffusion import Coefficients
from dada.evaluation.methods import Entry, resolve
from dada.evaluation.paper import paper
from dada.evaluation.tables import Table
from dada.models.dada import DADA
from dada.reproduce.ablation import FACTOR, about_ablation, bars, beside, compared, share, spread, variants
from dada.reproduce.findings import Findings, Row
from dada.reproduce.reports import all_rows, described
from dada.reproduce.study import Study
from dada.reproduce.trainings import load_trained, training, with_network
from dada.sample import Sample

WITH, WITHOUT = "guide enlarged x2", "guide as it is"


@dataclass(frozen=True)
class StartedFrom:
    """DADA's loop from another initial image; the features still use the bicubic image.

    Attributes:
        network: trained.
        start: "bicubic" or "constant".
        steps: of the loop.
    """

    network: DADA
    start: str
    steps: int

    @property
    def name(self) -> str:
        """The name in tables."""
        return f"Y0 {self.start}, {self.steps} steps"

    def __call__(self, sample: Sample) -> Tensor:
        """Return [B, 1, H, W]; see `dada.sample.Method`."""
        network = self.network
        if self.start == "constant":
            network = _FromConstant(self.network.config).eval()
            network.load_state_dict(self.network.state_dict())
        with torch.no_grad():
            images: Tensor = network(sample, solver="iterate", n_pre=self.steps)
        return images


class _FromConstant(DADA):
    """DADA whose loop starts at the mean of the source."""

    def _solve(self, sample: Sample, unit: Tensor, c: Coefficients, start: Tensor, *how: Any) -> Tensor:
        mean = start.mean(dim=(-2, -1), keepdim=True).expand_as(start).contiguous()
        return super()._solve(sample, unit, c, mean, *how)


def initialisation(study: Study) -> Findings:
    """Backbone with ImageNet or random weights; Y0 bicubic or constant."""
    test = study.first()
    backbone, base = study.effort.backbone, training(study, "dada", FACTOR, test.title, ablation=True)
    starts = {
        "backbone from ImageNet": with_network(base, extractor=backbone, pretrained=True),
        "backbone random": with_network(base, extractor=backbone, pretrained=False),
    }
    report, reasons = variants(study, starts)
    printed = paper()["initialisation"]["Middlebury"]
    theirs = {"backbone from ImageNet": printed["base"], "backbone random": printed["random_backbone"]}
    short, long = study.effort.loop_steps[0], study.effort.loop_steps[-1]
    network = load_trained(study, base, "dada").method
    assert isinstance(network, DADA)
    ways = [StartedFrom(network, start, n) for n in (short, long) for start in ("bicubic", "constant")]
    looped = compared(study, [resolve("bicubic"), *(Entry(w.name, "dada", w) for w in ways)])
    theirs_y = {f"Y0 bicubic, {long} steps": printed["base"], f"Y0 constant, {long} steps": printed["constant_start"]}
    summary = [
        f"After {short} steps of the loop a constant Y0 leaves {share(looped, ways[1].name):.3f} of bicubic's MSE, a "
        f"bicubic one {share(looped, ways[0].name):.3f}; after {long} steps {share(looped, ways[3].name):.3f} and "
        f"{share(looped, ways[2].name):.3f}: the equilibrium does not depend on the start.",
        *(f"{label} is not available: {reason}" for label, reason in reasons.items()),
    ]
    note = "The start is changed at test time; implicit training does not depend on it."
    return Findings(
        summary, described([report]), all_rows([report, looped]), bars(looped, "start of the loop"),
        "Share of bicubic's MSE that the loop leaves after few and after many steps, from two starts.",
        [beside(looped, theirs_y, {}, note), beside(report, theirs, reasons, f"Backbone: {backbone}.")],
        {"training": about_ablation(study), "backbone": backbone},
    )  # fmt: skip


def guide_upsampling(study: Study) -> Findings:
    """With and without enlarging the guide before the feature extractor."""
    test = study.first()
    base = training(study, "dada", FACTOR, test.title, ablation=True)
    trainings = {WITH: with_network(base, upsample=True), WITHOUT: with_network(base, upsample=False)}
    found = {}
    reports, tables, rows = [], [], []
    printed = paper()["up_and_down"]["Middlebury"]
    for factor in study.effort.network_factors:
        at = {n: replace(c, factors=(factor,), crop=(max(c.crop[0], 2 * factor),)) for n, c in trainings.items()}
        report, reasons = variants(study, at, factor)
        theirs = {WITH: printed["base"].get(str(factor)), WITHOUT: printed["without"].get(str(factor))}
        tables.append(beside(report, {k: v for k, v in theirs.items() if v}, reasons, "Features are averaged back."))
        found[factor] = share(report, WITH) / share(report, WITHOUT)
        reports.append(report)
        rows += all_rows([report])
    seconds = [reports[0].runs[label, reports[0].factors[0]].seconds or 0.0 for label in (WITH, WITHOUT)]
    summary = [
        "MSE with an enlarged guide over that without: "
        + ", ".join(f"{ratio:.2f} at x{factor}" for factor, ratio in found.items())
        + ". The paper: 0.90, 0.95, 0.89 and 1.01 at x4, x8, x16 and x32.",
        f"It takes {seconds[0] / max(seconds[1], 1e-9):.1f} times as long ({seconds[0]:.2f} s a crop).",
    ]
    return Findings(
        summary, described(reports[:1]), rows, bars(reports[0], f"x{reports[0].factors[0]}"),
        f"Share of bicubic's MSE left at x{reports[0].factors[0]}.", tables, {"training": about_ablation(study)},
    )  # fmt: skip


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
