"""A bench's results as files: JSON and CSV with every number, Markdown and LaTeX with the tables, the curves."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dada import __version__
from dada.evaluation.bench import Report
from dada.evaluation.methods import BICUBIC
from dada.evaluation.metrics import MEASURES, THRESHOLDS
from dada.evaluation.summary import beside_paper, everything
from dada.io import atomic_path, write_bytes_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ALL = "all"


def write(report: Report, folder: Path) -> list[Path]:
    """Write results.json, results.csv, tables.md, tables.tex, and curves.png and .pdf if there are several factors.

    Raises:
        InputError: the folder cannot be written to.
    """
    tables = everything(report)
    texts = {
        "results.json": json.dumps(as_json(report), indent=1) + "\n",
        "results.csv": as_csv(report),
        "tables.md": "\n".join(table.markdown() for table in tables),
        "tables.tex": "\n".join(table.latex() for table in tables),
    }
    for name, text in texts.items():
        write_bytes_atomically(folder / name, text.encode())
    written = [folder / name for name in texts]
    if len(report.factors) > 1:
        from dada.evaluation.curves import curves

        written += save_figure(curves(report), folder / "curves")
    return written


def save_figure(figure: Figure, stem: Path) -> list[Path]:
    """Write STEM.png and STEM.pdf, whole or not at all; the same figure gives the same files."""
    kinds: dict[str, dict[str, Any]] = {"png": {"Software": None}, "pdf": {"CreationDate": None, "Producer": None}}
    paths = [stem.with_suffix(f".{kind}") for kind in kinds]
    for path, (kind, metadata) in zip(paths, kinds.items(), strict=True):
        with atomic_path(path) as temporary:
            figure.savefig(temporary, format=kind, dpi=160, metadata=metadata)
    return paths


def rows(report: Report) -> list[dict[str, Any]]:
    """Every number: one row for each method, factor, averaging rule and scene; scene "all" is the whole set."""
    found = []
    for entry in report.entries:
        for factor in report.factors:
            for scene in (None, *report.scenes):
                found += _rows(report, entry.label, factor, scene)
    return found


def _rows(report: Report, label: str, factor: int, scene: str | None) -> list[dict[str, Any]]:
    """Of the protocol's rule, and of the published one for the whole set of P1."""
    runs = report.runs[label, factor]
    rules = [report.protocol.rule]
    if scene is None and report.protocol.name == "P1":
        rules.append("batches")
    count = sum(scene in (None, record.scene) for record in runs.records)
    head = {
        "protocol": report.protocol.name, "dataset": report.dataset, "unit": report.unit, "method": label,
        "factor": factor, "scene": scene or ALL, "problems": count,
    }  # fmt: skip
    found = []
    for rule in rules:
        scores = report.scores(label, factor, rule, scene)
        plain = report.scores(BICUBIC, factor, rule, scene)
        row = head | {"averaged over": rule} | dict.fromkeys(MEASURES, None)
        row |= {} if scores is None else asdict(scores)
        for name in ("mse", "mae", "rmse"):
            known = scores is not None and plain is not None and getattr(plain, name) > 0
            row[f"share of bicubic's {name}"] = getattr(scores, name) / getattr(plain, name) if known else None
        row |= {"seconds": runs.seconds, "memory bytes": runs.memory, "failure": runs.failure}
        found.append(row)
    return found


def as_csv(report: Report) -> str:
    """The rows with a heading; empty where there is no number."""
    table = rows(report)
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(table[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: None if value != value else value for key, value in row.items()} for row in table)
    return text.getvalue()


def as_json(report: Report) -> dict[str, Any]:
    """Settings, rows and the sums of every problem, from which any other average can be made."""
    problems = [
        {"method": label, "factor": factor, **asdict(record)}
        for (label, factor), runs in report.runs.items()
        for record in runs.records
    ]
    content = {
        "dada": __version__,
        "protocol": asdict(report.protocol) | {"description": report.protocol.describe(report.count)},
        "dataset": report.dataset,
        "quantity": report.quantity,
        "unit of errors": report.unit,
        "thresholds": asdict(THRESHOLDS),
        "beside the paper's": beside_paper(report),
        "results": rows(report),
        "problems, sums in the data's own unit": problems,
    }
    cleaned: dict[str, Any] = _without_nan(content)
    return cleaned


def _without_nan(value: Any) -> Any:
    """JSON has no NaN."""
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(item) for item in value]
    return None if isinstance(value, float) and value != value else value
