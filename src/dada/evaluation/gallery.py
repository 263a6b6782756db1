"""Pictures of a bench: error maps of all methods on one scale, and the problems that a model solves worst."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from dada import pictures
from dada.evaluation.bench import Report
from dada.evaluation.methods import Entry
from dada.evaluation.protocol import problems
from dada.sample import Sample

if TYPE_CHECKING:
    from dada.datasets.pair import Dataset


class ErrorMaps:
    """Draws the errors of all methods on a problem, for `dada.evaluation.bench.run`.

    Args:
        folder: of the pictures; made if missing.
        unit: what errors are told in.
        scale: a unit of the data in this unit.
    """

    def __init__(self, folder: Path, unit: str, scale: float) -> None:
        self.folder, self.unit, self.scale = folder, unit, scale
        self.written: list[Path] = []

    def __call__(self, sample: Sample, results: dict[str, Tensor]) -> None:
        """Write errors_xFACTOR_NAME.png: all methods on one symmetric scale."""
        truth = truth_of(sample)
        errors = {label: (r[0, 0].numpy() - truth) * sample.unit * self.scale for label, r in results.items()}
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"errors_{_stem(sample)}.png"
        pictures.save(pictures.error_map(errors, self.unit), path)
        self.written.append(path)


def draw_worst(
    entry: Entry, report: Report, dataset: Dataset, folder: Path, *, count: int = 3, limit: int | None = None
) -> list[Path]:
    """Write the problems with the largest MSE of a method: guide, source, bicubic, result, truth; and its error.

    Args:
        entry: one of the report's; it runs again on these problems.
        report: of one factor.
        dataset: that of the report.
        folder: of the pictures; made if missing.
        count: of problems.
        limit: as it was for the report.

    Returns:
        The files, worst first.
    """
    factor = report.factors[0]
    records = [r for r in report.runs[entry.label, factor].records if r.sums.pixels]
    worst = [r.name for r in sorted(records, key=lambda r: r.sums.mse, reverse=True)[:count]]
    written = dict.fromkeys(worst, Path())
    for parts in problems(dataset, report.protocol, limit) if worst else ():
        for part in parts:
            if part.name in worst:
                sample = report.protocol.sample(part, factor, dataset.unit)
                rank = worst.index(part.name) + 1
                written[part.name] = _draw_one(entry, sample, report, folder, rank)
    return list(written.values())


def _draw_one(entry: Entry, sample: Sample, report: Report, folder: Path, rank: int) -> Path:
    scale = sample.unit * report.scale
    with torch.no_grad():
        result = entry.method(sample)[0, 0].cpu().numpy() * scale
    truth, bicubic = truth_of(sample) * scale, sample.initial[0, 0].numpy() * scale
    source, known = sample.source[0, 0].numpy() * scale, sample.source_mask[0, 0].numpy()
    guide = sample.guide[0].permute(1, 2, 0).numpy()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"worst{rank}_{_stem(sample)}.png"
    figure = pictures.comparison(
        guide, source, bicubic, result, unit=report.unit, source_valid=known, truth=truth
    )  # fmt: skip
    pictures.save(figure, path)
    errors = {"bicubic": bicubic - truth, entry.label: result - truth}
    pictures.save(pictures.error_map(errors, report.unit), path.with_name(f"{path.stem}_errors.png"))
    return path


def truth_of(sample: Sample) -> np.ndarray:
    """(H, W) of a sample of one problem, NaN where it is not known."""
    if sample.target is None or sample.target_mask is None:
        raise ValueError("the sample has no truth")
    return torch.where(sample.target_mask, sample.target, torch.nan)[0, 0].cpu().numpy()


def _stem(sample: Sample) -> str:
    name = re.sub(r"[^\w.+-]+", "_", sample.names[0])
    return f"x{sample.factor:g}_{name}"
