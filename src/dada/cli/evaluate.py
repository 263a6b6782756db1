"""`dada evaluate`: how well one model does on a data set."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import arg

from dada.cli.benchmark import Measuring, conclude, show

SCENES = 40  # more have no room on a screen; the files have them all


@dataclass(frozen=True, kw_only=True)
class Evaluate(Measuring):
    """Measure one model on a data set: all measures, every scene, pictures of where it is worst.

    For example: `dada evaluate --model dada:model.safetensors --dataset scenes:data/middlebury --factor 8`
    """

    model: Annotated[str, arg(metavar="MODEL", help_behavior_hint="")]
    """Weights of DADA (a file or folder), another network as NAME:FILE, a method as gf, or default, none, FILE.json."""
    factor: Annotated[int, arg(metavar="FACTOR", help_behavior_hint="")]
    """Target pixels for a source pixel."""
    output: Annotated[Path, arg(aliases=["-o"], metavar="DIR")] = Path("dada-evaluation")
    """Folder for results.json, results.csv, tables, pictures and the cache."""
    worst: Annotated[int, arg(metavar="NUMBER")] = 3
    """How many of the worst crops to draw."""

    def run(self) -> int:
        """Run the command; return its exit code."""
        from dada.datasets import load_dataset
        from dada.evaluation.gallery import draw_worst
        from dada.evaluation.methods import resolve_all
        from dada.evaluation.summary import by_scene, screen

        entries = resolve_all([self.model], self.settings)
        report = self.measure(entries, (self.factor,), self.output)
        show(screen(report) + (by_scene(report) if len(report.scenes) <= SCENES else []))
        if self.worst > 0 and not report.failures:
            dataset = load_dataset(self.dataset, self.split)
            folder = self.output / "pictures"
            for path in draw_worst(entries[-1], report, dataset, folder, count=self.worst, limit=self.limit()):
                print(f"among the worst: {path}")
        print(f"every number: {self.output / 'results.json'} and results.csv")
        return conclude(report)
