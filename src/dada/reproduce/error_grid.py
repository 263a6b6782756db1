"""`figure-errors` and `figure-curves`: Tables 1 and 2 as pictures."""

from __future__ import annotations

import numpy as np
from torch import Tensor

from dada import pictures
from dada.errors import InputError
from dada.evaluation.bench import printed_unit
from dada.evaluation.curves import curves
from dada.evaluation.files import save_figure
from dada.evaluation.gallery import truth_of
from dada.evaluation.methods import BICUBIC, Entry, resolve
from dada.evaluation.tables import Table, number
from dada.reproduce.findings import Findings, Row
from dada.reproduce.reports import (
    all_rows,
    bench,
    described,
    drawable,
    joined,
    learning_free_methods,
    learning_free_report,
    main_tables,
    network_report,
)  # fmt: skip
from dada.reproduce.study import Study
from dada.reproduce.trainings import about_training, network
from dada.sample import Sample

FACTOR = 8
SHOWN = ("gf", "pixt", "lgr-free", "dada-free")
BRIGHTEST = 97  # percentile of bicubic's errors that has the last colour
SCALE = "Red: too far, blue: too near; all maps of a figure have one scale, that of bicubic's errors."


def error_grid(study: Study) -> Findings:
    """Figure 5: error maps of all methods on the crop with the most depth jumps of the first scene of each set."""
    drawn, reports, rows = {}, [], []
    for test in study.sets():
        dataset = test.open()
        unit, scale = printed_unit(dataset.quantity)
        maps = _Maps(scale)
        entries = _entries(study)
        reports.append(bench(study, entries, dataset, [FACTOR], study.effort.network_crops, maps))
        drawn[reports[-1].dataset] = pictures.error_map(maps.errors, unit, range=maps.range)
        for label, error in maps.errors.items():
            rows.append(_row(reports[-1].dataset, maps.crop, label, error))
    first, *others = drawn
    files = {}
    study.folder.mkdir(parents=True, exist_ok=True)
    for name in others:
        save_figure(drawn[name], study.folder / f"errors_{name}")
        files[f"errors_{name}.png"] = f"the same on {name}"
    table = Table(
        f"Errors of the crops shown, x{FACTOR}",
        ["data set", "crop", "method", "MAE", "RMSE"],
        [[str(r["dataset"]), str(r["crop"]), str(r["method"]), number(r["mae"]), number(r["rmse"])] for r in rows],
        "In centimetres for depth.",
    )
    best = min((r for r in rows if r["dataset"] == first), key=lambda r: r["rmse"])
    summary = [
        f"On {first} the least RMSE is that of {best['method']}, {number(best['rmse'])}.",
        f"Networks: {about_training(study)}.",
    ]
    caption = f"Errors on the crop of {first} with the most depth jumps, x{FACTOR}. {SCALE}"
    return Findings(summary, described(reports), rows, drawn[first], caption, [table], {"factor": FACTOR}, files)


def curve_sheet(study: Study) -> Findings:
    """Figure 7: RMSE against the factor of all methods on each data set."""
    reports, files, drawn, hidden = [], {}, {}, {}
    for test in study.sets():
        free = learning_free_report(study, test, study.effort.network_crops)
        report = joined([free, network_report(study, test)])
        reports.append(report)
        shown, hidden[report.dataset] = drawable(report)
        drawn[report.dataset] = curves(shown)
    first, *others = drawn
    study.folder.mkdir(parents=True, exist_ok=True)
    for name in others:
        save_figure(drawn[name], study.folder / f"curves_{name}")
        files[f"curves_{name}.png"] = f"the same on {name}"
    summary = [
        "Left our numbers, right the paper's own for its own test images and trainings.",
        f"Networks here: {about_training(study)}.",
    ]
    caption = (
        f"RMSE against the factor, {first}. A method without a marker at a factor was not run there.{hidden[first]}"
    )
    tables = [table for report in reports for table in main_tables(report)[:1]]
    return Findings(summary, described(reports), all_rows(reports), drawn[first], caption, tables, {}, files)


class _Maps:
    """Takes the first problem that the bench would draw."""

    def __init__(self, scale: float) -> None:
        self.scale = scale
        self.crop = ""
        self.errors: dict[str, np.ndarray] = {}
        self.range = 1.0

    def __call__(self, sample: Sample, results: dict[str, Tensor]) -> None:
        if not self.errors:
            truth = truth_of(sample)
            self.crop = sample.names[0]
            # that of bicubic: a network that has hardly been trained must not set the scale
            plain = np.abs(sample.initial[0, 0].numpy() - truth) * sample.unit * self.scale
            self.range = float(np.nanpercentile(plain, BRIGHTEST)) or 1.0
            self.errors = {n: (r[0, 0].numpy() - truth) * sample.unit * self.scale for n, r in results.items()}


def _entries(study: Study) -> list[Entry]:
    """Bicubic, some methods without weights, the networks, and our default."""
    found = [resolve(BICUBIC), *(c for c in learning_free_methods(study) if c.name in SHOWN)]
    for name in study.effort.networks:
        try:
            found.append(network(study, name, FACTOR))
        except InputError:
            continue
    return [*found, resolve("default")]


def _row(dataset: str, crop: str, method: str, values: np.ndarray) -> Row:
    rmse, mae = float(np.sqrt(np.nanmean(values**2))), float(np.nanmean(np.abs(values)))
    return {"dataset": dataset, "crop": crop, "method": method, "mae": mae, "rmse": rmse}
