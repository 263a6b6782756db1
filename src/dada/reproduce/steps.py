"""`ablation-steps`: error and time against the number of steps at test time, and at the equilibrium."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dada.evaluation.bench import Report
from dada.evaluation.methods import Entry, resolve
from dada.evaluation.tables import Table, number
from dada.models.dada import DADA
from dada.reproduce.findings import Findings
from dada.reproduce.plots import asymptote, lines, sheet
from dada.reproduce.reports import all_rows, bench, described
from dada.reproduce.study import Study
from dada.reproduce.trainings import about_dada, network
from dada.sample import Sample

FACTOR = 8


@dataclass(frozen=True)
class Looped:
    """DADA with the loop at test time, or with its equilibrium for no steps."""

    network: DADA
    steps: int

    @property
    def name(self) -> str:
        """The name in tables."""
        return f"dada, {self.steps} steps" if self.steps else "dada, equilibrium"

    def __call__(self, sample: Sample) -> Tensor:
        """Return [B, 1, H, W]; see `dada.sample.Method`."""
        with torch.no_grad():
            how = "iterate" if self.steps else "equilibrium"
            images: Tensor = self.network(sample, solver=how, n_pre=self.steps or None)
        return images


def steps(study: Study) -> Findings:
    """Figure 6c, for DADA and for its learning-free variant."""
    test = study.first()
    trained = network(study, "dada", FACTOR, test)
    assert isinstance(trained.method, DADA)
    rivals = {name: looped(study, name, trained.method) for name in ("dada-free", "dada")}
    every = [resolve("bicubic"), *(c for rows in rivals.values() for c in rows.values())]
    report = bench(study, every, test.open(), [FACTOR], study.effort.probes)
    table = Table(
        f"{report.dataset}, {report.protocol.describe(report.count)}: x{FACTOR}",
        ["steps", *(f"{name}: MSE cm² / seconds" for name in rivals)],
        [
            [str(n) if n else "equilibrium", *(_cell(report, rivals[name][n]) for name in rivals)]
            for n in (*study.effort.loop_steps, 0)
        ],
        "Seconds for one crop on a CPU; the loop is compiled. The paper stops at 8000, with little further gain.",
    )
    figure, (left, right) = sheet(2)
    across = list(study.effort.loop_steps)
    drawn = {n: [_mse(report, rivals[n][s]) for s in across] for n in rivals}
    lines(left, {n: (across, e) for n, e in drawn.items()}, x="steps", y="MSE (cm²)", log="x", title="error")
    for number_, name in enumerate(rivals):
        asymptote(left, _mse(report, rivals[name][0]), f"{name}, equilibrium", f"C{number_}")
    spent = {n: [_seconds(report, rivals[n][s]) for s in across] for n in rivals}
    lines(right, {n: (across, s) for n, s in spent.items()}, x="steps", y="seconds a crop", log="xy", title="time")
    for number_, name in enumerate(rivals):
        asymptote(right, _seconds(report, rivals[name][0]), f"{name}, equilibrium", f"C{number_}")
    return Findings(
        [_sentence(report, name, rivals[name], across) for name in rivals],
        described([report]), all_rows([report]), figure,
        "Error and time of a crop against the number of steps of the loop; dashed: its equilibrium, solved directly.",
        [table], {"training of dada": about_dada(study), "factor": FACTOR},
    )  # fmt: skip


def looped(study: Study, name: str, trained: DADA) -> dict[int, Entry]:
    """A method by number of steps; 0 is the equilibrium."""
    if name == "dada":
        found = {n: Looped(trained, n) for n in (*study.effort.loop_steps, 0)}
        return {n: Entry(method.name, "dada", method) for n, method in found.items()}
    settings = {n: ["dada-free.method=iterate", f"dada-free.steps={n}"] for n in study.effort.loop_steps}
    return {n: resolve(name, given) for n, given in settings.items()} | {0: resolve(name)}


def _sentence(report: Report, name: str, rows: dict[int, Entry], across: list[int]) -> str:
    last = max(across)
    share = _mse(report, rows[last]) / _mse(report, rows[0])
    times = _seconds(report, rows[last]) / _seconds(report, rows[0])
    return (
        f"{name}: after {last} steps the loop's MSE is {share:.3f} times that of the equilibrium, which takes "
        f"1/{times:.0f} of the time."
    )


def _mse(report: Report, entry: Entry) -> float:
    scores = report.scores(entry.label, FACTOR)
    return scores.mse if scores else float("nan")


def _seconds(report: Report, entry: Entry) -> float:
    return report.runs[entry.label, FACTOR].seconds or float("nan")


def _cell(report: Report, entry: Entry) -> str:
    return f"{number(_mse(report, entry))} / {_seconds(report, entry):.3f}"
