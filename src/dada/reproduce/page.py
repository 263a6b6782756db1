"""The folder of an experiment: every number, the figure, and one page with results and settings."""

from __future__ import annotations

import csv
import io
import json
import os
from dataclasses import asdict
from typing import Any

from dada import __version__
from dada.evaluation.files import save_figure
from dada.io import write_bytes_atomically
from dada.reproduce.findings import Findings, Row
from dada.reproduce.study import Study

PAGE = "README.md"


def write(study: Study, title: str, place: str, findings: Findings, seconds: float) -> None:
    """Write results.csv, results.json, figure.png, figure.pdf and the page."""
    folder = study.folder
    folder.mkdir(parents=True, exist_ok=True)
    save_figure(findings.figure, folder / "figure")
    content = {
        "experiment": study.name, "setting": study.effort.name, "dada": __version__, "seconds": round(seconds, 1),
        "protocol": findings.protocol, "effort": asdict(study.effort), "settings": findings.settings,
        "data": [asdict(found) for found in study.used], "results": findings.rows,
    }  # fmt: skip
    texts = {
        "results.json": json.dumps(_clean(content), indent=1, default=str) + "\n",
        "results.csv": as_csv(findings.rows),
        PAGE: as_markdown(study, title, place, findings, seconds),
    }
    for name, text in texts.items():
        write_bytes_atomically(folder / name, text.encode())


def as_csv(rows: list[Row]) -> str:
    """Rows with a heading of all their keys; empty where a row has no such number."""
    keys = list(dict.fromkeys(key for row in rows for key in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=keys, lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: None if value != value else value for key, value in row.items()} for row in rows)
    return text.getvalue()


def as_markdown(study: Study, title: str, place: str, findings: Findings, seconds: float) -> str:
    """The page."""
    parts = [
        f"# {title}\n",
        f"*{place}. Setting: {study.effort.name}; {duration(seconds)} on {os.cpu_count()} cores.*\n",
        "\n".join(f"- {sentence}" for sentence in findings.summary) + "\n",
        f"![{title}](figure.png)\n",
        f"{findings.caption}\n",
        *(table.markdown() for table in findings.tables),
        "## How\n",
        _how(study, findings),
        "## Data\n",
        _data(study),
        "## Files\n",
        _files(findings),
    ]
    return "\n".join(parts)


def duration(seconds: float) -> str:
    """A time with a fitting unit: seconds, minutes or hours."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 90 * 60 else f"{seconds / 3600:.1f} h"


def _how(study: Study, findings: Findings) -> str:
    lines = [f"- Protocol: {findings.protocol}"]
    lines += [f"- {key[:1].upper()}{key[1:]}: {_value(value)}" for key, value in findings.settings.items()]
    command = f"dada reproduce {study.name} --setting {study.effort.name}"
    lines.append(
        f"- This page: `{command}{_options(study)}`. An interrupted run continues when the command is repeated."
    )
    if study.effort.name != "full" and study.used:
        lines.append(f"- On all data, with the paper's trainings: `dada reproduce {study.name} --setting full`")
    return "\n".join(lines) + "\n"


def _options(study: Study) -> str:
    given = {"data": study.data, "weights": study.weights}
    return "".join(f" --{name} {path}" for name, path in given.items() if path is not None)


def _value(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def _data(study: Study) -> str:
    lines = [f"- Used: {s.title}, `{s.text}` ({s.about})" for s in study.used]
    if not study.used:
        return "- None is needed: the example is made here.\n"
    lines += [f"- Missing: the paper's {absent.title}. {absent.remedy}" for absent in study.absent]
    if study.absent:
        lines.append("- Then run the command above with `--data` and the folder named there.")
    return "\n".join(lines) + "\n"


def _files(findings: Findings) -> str:
    files: dict[Any, str] = {
        "results.csv": "every number", "results.json": "the same, with all settings",
        "figure.pdf": "the figure for print", **findings.files,
    }  # fmt: skip
    return "\n".join(f"- [{name}]({name}): {about}" for name, about in files.items()) + "\n"


def _clean(value: Any) -> Any:
    """JSON has no NaN."""
    if isinstance(value, dict):
        return {str(key): _clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(item) for item in value]
    return None if isinstance(value, float) and value != value else value
