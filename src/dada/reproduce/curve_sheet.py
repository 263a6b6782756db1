"""`figure-curves`: Tables 1 and 2 as curves."""

from __future__ import annotations

from dada.evaluation.curves import curves
from dada.evaluation.files import save_figure
from dada.reproduce.findings import Findings
from dada.reproduce.reports import (
    all_rows,
    described,
    drawable,
    joined,
    learning_free_report,
    main_tables,
    network_report,
)  # fmt: skip
from dada.reproduce.study import Study
from dada.reproduce.trainings import about_training


def curve_sheet(study: Study) -> Findings:
    """Figure 7 and the supplement's: RMSE against the factor, learned methods above, learning-free ones below."""
    reports, files, drawn, hidden = [], {}, {}, {}
    for test in study.sets():
        free = learning_free_report(study, test, study.effort.network_crops)
        learned = network_report(study, test)
        report = joined([free, learned])
        reports.append(report)
        hidden[report.dataset] = drawable(report)[1]
        drawn[report.dataset] = curves(drawable(learned)[0], drawable(free)[0])
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
        f"RMSE against the factor, {first}: learned methods above, learning-free ones below. A method without a marker "
        f"at a factor was not run there.{hidden[first]}"
    )
    tables = [table for report in reports for table in main_tables(report)[:1]]
    return Findings(summary, described(reports), all_rows(reports), drawn[first], caption, tables, {}, files)
