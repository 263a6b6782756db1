"""Benches of an experiment: the same code and cache as `dada benchmark`, over every data set that was found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dada.datasets import Dataset
from dada.errors import InputError
from dada.evaluation.bench import Draw, Report, Runs, run
from dada.evaluation.files import rows as report_rows
from dada.evaluation.methods import BICUBIC, Entry, resolve, resolve_all
from dada.evaluation.summary import errors, published, shares
from dada.evaluation.tables import Table
from dada.reproduce.findings import Row
from dada.reproduce.found import TestSet
from dada.reproduce.study import Study
from dada.reproduce.trainings import network

LEARNING_FREE = (BICUBIC, "gf", "sd", "pixt", "lgr-free", "dada-free")
PIXT_ITERATIONS = 32768
NOT_RUN = "not run in this setting"
OFF_SCALE = 6.0  # times bicubic's RMSE: a network that has hardly been trained


def learning_free_methods(study: Study) -> list[Entry]:
    """The rows of Table 2; PixTransform with the iterations of the effort, which its label names."""
    few = study.effort.pixt_iterations
    return resolve_all(LEARNING_FREE, [f"pixt.iterations={few}"] if few != PIXT_ITERATIONS else [])


def about_pixtransform(study: Study) -> list[str]:
    """A sentence where PixTransform does not get all its iterations."""
    few = study.effort.pixt_iterations
    if few >= PIXT_ITERATIONS:
        return []
    return [f"PixTransform was given {few} of its {PIXT_ITERATIONS} iterations to save time: ignore its errors."]


def bench(
    study: Study, entries: Sequence[Entry], dataset: Dataset, factors: Sequence[int], crops: int | None,
    draw: Draw | None = None,
) -> Report:  # fmt: skip
    """Run methods on a data set."""

    def progress(share: float, text: str) -> None:
        study.say(text, share)

    return run(entries, dataset, study.protocol, factors, study.cache, limit=crops, draw=draw, progress=progress)


def learning_free_report(
    study: Study, test: TestSet, crops: int | None, factors: Sequence[int] | None = None
) -> Report:
    """Table 2 on one data set."""
    return bench(study, learning_free_methods(study), test.open(), factors or study.effort.factors, crops)


def network_report(study: Study, test: TestSet, factors: Sequence[int] | None = None) -> Report:
    """Table 1 on one data set: bicubic, the networks, each trained for the factor it is tested at, and our default."""
    parts = []
    for factor in factors or study.effort.network_factors:
        entries, reasons = [resolve(BICUBIC)], {}
        for name in study.effort.networks:
            try:
                entries.append(network(study, name, factor, test))
            except InputError as error:
                reasons[name] = str(error)
        entries.append(resolve("default"))  # one for all factors, as it comes with the package
        report = bench(study, entries, test.open(), [factor], study.effort.network_crops)
        parts.append(_with_failures(report, reasons, factor))
    return joined(parts)


def _with_failures(report: Report, reasons: dict[str, str], factor: int) -> Report:
    """The report with rows for networks that do not exist at this factor."""
    absent = [Entry(name, name, resolve(BICUBIC).method) for name in reasons]
    runs = {(name, factor): Runs(failure=reason) for name, reason in reasons.items()}
    return replace(report, entries=[*report.entries, *absent], runs=report.runs | runs)


def joined(reports: Sequence[Report]) -> Report:
    """Join reports on the same problems: one row for each method, with its failures."""
    entries: dict[str, Entry] = {}
    runs: dict[tuple[str, int], Runs] = {}
    for report in reports:
        for entry in report.entries:
            label = _label(entry, entries)
            entries.setdefault(label, entry)
            for factor in report.factors:
                runs.setdefault((label, factor), report.runs[entry.label, factor])
    factors = sorted({factor for report in reports for factor in report.factors})
    for label in entries:
        for factor in factors:
            runs.setdefault((label, factor), Runs(failure=NOT_RUN))
    return replace(reports[0], entries=list(entries.values()), factors=factors, runs=runs)


def _label(entry: Entry, known: dict[str, Entry]) -> str:
    """Label of the row of a method: a failure at one factor belongs to the row of the other factors."""
    same = [label for label, other in known.items() if other.name == entry.name != BICUBIC]
    return same[0] if same and entry.label == entry.name else entry.label


def main_tables(report: Report) -> list[Table]:
    """Tables for a page: errors, with the paper's where available, and shares of bicubic's."""
    return [with_gaps(table, report) for table in (*(published(report) or [errors(report)]), shares(report))]


def with_gaps(table: Table, report: Report) -> Table:
    """The same with a dash where a method was not run, which is no failure."""
    gaps = {(label, f"x{f}") for (label, f), runs in report.runs.items() if runs.failure == NOT_RUN}
    rows = [
        ["-" if (row[0], column) in gaps else cell for column, cell in zip(table.columns, row, strict=True)]
        for row in table.rows
    ]
    return replace(table, rows=rows)


def missed(reports: Sequence[Report]) -> list[str]:
    """Failures and their reasons, each once, without methods that the setting leaves out."""
    failures = (text for report in reports for text in report.failures if not text.endswith(NOT_RUN))
    return list(dict.fromkeys(failures))


def drawable(report: Report) -> tuple[Report, str]:
    """The report without methods whose errors exceed the scale of a figure, and a sentence that names them."""
    plain = {factor: report.scores(BICUBIC, factor) for factor in report.factors}

    def off(entry: Entry) -> bool:
        found = {factor: report.scores(entry.label, factor) for factor in report.factors}
        return any(s.rmse > OFF_SCALE * p.rmse for f, s in found.items() if s and (p := plain[f]))

    hidden = [c.label for c in report.entries if off(c)]
    kept = replace(report, entries=[c for c in report.entries if c.label not in hidden])
    return kept, f" Not drawn, being far off the scale: {'; '.join(hidden)}." if hidden else ""


def all_rows(reports: Sequence[Report]) -> list[Row]:
    """Every number of several benches."""
    return [row for report in reports for row in report_rows(report)]


def described(reports: Sequence[Report]) -> str:
    """The protocol, with the number of crops of each data set."""
    parts = [f"{report.dataset}: {report.protocol.describe(report.count)}" for report in reports]
    return "; ".join(parts)
