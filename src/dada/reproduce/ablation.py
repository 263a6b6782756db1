"""Common parts of the training ablations: train variants, measure all on the same crops, compare with the paper."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dada.errors import InputError
from dada.evaluation.bench import Report
from dada.evaluation.methods import Entry, resolve
from dada.evaluation.tables import Table, number
from dada.reproduce.found import TestSet
from dada.reproduce.plots import finish, label_bars, sheet
from dada.reproduce.reports import bench
from dada.reproduce.study import Study
from dada.reproduce.trainings import about, load_trained
from dada.sample import BATCH
from dada.training.config import TrainConfig

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FACTOR = 8
BATCH_MEANS = f"Batch means, the paper's rule: over the pixels of {BATCH} crops at a time, then over these batches."
THEIRS = "The paper's numbers are of its own test images and full trainings."
Printed = Mapping[str, Mapping[str, float]]


def variants(
    study: Study, trainings: Mapping[str, TrainConfig], factor: int = FACTOR, test: TestSet | None = None
) -> tuple[Report, dict[str, str]]:
    """Train and measure variants; the second result gives the reasons of those that failed."""
    entries: list[Entry] = [resolve("bicubic")]
    reasons: dict[str, str] = {}
    for label, config in trainings.items():
        try:
            entries.append(load_trained(study, config, label))
        except InputError as error:
            reasons[label] = str(error)
    return compared(study, entries, factor, test), reasons


def compared(study: Study, entries: list[Entry], factor: int = FACTOR, test: TestSet | None = None) -> Report:
    """Measure networks on the crops of a data set, the first one if none is given."""
    return bench(study, entries, (test or study.first()).open(), [factor], study.effort.probes)


def beside(report: Report, printed: Printed, reasons: Mapping[str, str], note: str) -> Table:
    """MSE and MAE by both averaging rules and shares of bicubic's, with what the paper prints for the same variant."""
    factor, unit = report.factors[0], report.unit
    rows = []
    for label in (*(entry.label for entry in report.entries), *reasons):
        theirs = printed.get(label)
        quoted = f"{theirs['mse']:g} / {theirs['mae']:g}" if theirs else "-"
        rows.append([label, *(["not run", "-", "-"] if label in reasons else _cells(report, label)), quoted])
    title = f"{report.dataset}, {report.protocol.describe(report.count)}: x{factor}"
    columns = [
        "variant", f"MSE {unit}² / MAE {unit}, batch means", "the same, all pixels alike",
        "share of bicubic's MSE / MAE", "paper: MSE cm² / MAE cm",
    ]  # fmt: skip
    return Table(title, columns, rows, " ".join([note, BATCH_MEANS, *([THEIRS] if printed else [])]))


def _cells(report: Report, label: str) -> list[str]:
    factor = report.factors[0]
    batches, mine = report.scores(label, factor, "batches"), report.scores(label, factor)
    plain = report.scores("bicubic", factor)
    if batches is None or mine is None or plain is None:
        return ["failed", "-", "-"]
    return [
        f"{number(batches.mse)} / {number(batches.mae)}",
        f"{number(mine.mse)} / {number(mine.mae)}",
        f"{number(mine.mse / plain.mse)} / {number(mine.mae / plain.mae)}",
    ]


def share(report: Report, label: str) -> float:
    """MSE of a variant over that of bicubic."""
    mine, plain = report.scores(label, report.factors[0]), report.scores("bicubic", report.factors[0])
    return mine.mse / plain.mse if mine and plain else float("nan")


def bars(report: Report, title: str = "") -> Figure:
    """Shares of bicubic's MSE, a bar for each variant."""
    labels = [c.label for c in report.entries if c.label != "bicubic"]
    figure, (axes,) = sheet(1, 1, (6.6, 0.9 + 0.42 * len(labels)))
    values = [share(report, label) for label in labels]
    drawn = axes.barh(labels, values, color="C0", height=0.6)
    label_bars(axes, drawn, values)
    axes.invert_yaxis()
    axes.set_xlim(0, max(1.1, 1.15 * max(v for v in values if v == v)) if values else 1)
    axes.axvline(1, color="0.5", linewidth=1, linestyle=":")
    finish(axes, x="share of bicubic's MSE (dotted: bicubic)", y="", title=title)
    return figure


def spread(report: Report) -> str:
    """A sentence on the best and the worst variant."""
    shares = {c.label: share(report, c.label) for c in report.entries if c.label != "bicubic"}
    low, high = min(shares, key=lambda n: shares[n]), max(shares, key=lambda n: shares[n])
    return f"Least: {low} ({shares[low]:.2f} of bicubic's MSE); most: {high} ({shares[high]:.2f})."


def unrolled(study: Study, base: TrainConfig, **changes: Any) -> TrainConfig:
    """The training through the loop, with the numbers of steps of the effort where they are not given."""
    steps = {"pre_steps": study.effort.pre, "grad_steps": study.effort.grad}
    return replace(base, scheme="unrolled", **(steps | changes))


def about_ablation(study: Study, extractor: str | None = None, data: str = "Middlebury") -> str:
    """A description of the trainings, for the pages; an empty `extractor` where it is what varies."""
    effort = study.effort
    name = effort.extractor if extractor is None else extractor
    more = f", {effort.train_batch} a step" + (f", extractor {name}" if name else "")
    note = ": differences of a few percent mean nothing"
    return about(study, data, f"{effort.ablation_steps} steps", more=more, note=note)
