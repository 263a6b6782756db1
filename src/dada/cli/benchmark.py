"""`dada benchmark`: methods side by side on the same problems."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tyro.conf import arg

from dada.errors import InputError

if TYPE_CHECKING:
    from dada.evaluation.bench import Report
    from dada.evaluation.methods import Entry
    from dada.evaluation.protocol import Protocol
    from dada.evaluation.tables import Table

SOME_FAILED = 1


@dataclass(frozen=True, kw_only=True)
class Measuring:
    """What is measured on, and how."""

    dataset: Annotated[str, arg(metavar="KIND:PATH", help_behavior_hint="")]
    """Data set: scenes:PATH, folder:PATH, middlebury:PATH, nyuv2:PATH, diml:PATH or painted:SEED,COUNT."""
    split: Literal["train", "val", "test"] = "test"
    """Which part of it."""
    protocol: Literal["P1", "P2"] = "P1"
    """P1: the paper's (crops of 256 x 256, averaged down; MSE and MAE). P2: that of DKN and its successors
    (whole images, bicubic downsampling, RMSE of each image). Their numbers do not compare."""
    sampling: Annotated[
        str | None,
        arg(metavar="mean|point|point:ROWS,COLUMNS|bicubic", help_behavior_hint="(default: the protocol's own)"),
    ] = None
    """How sources are made from the truth. The tables say so where it is not the protocol's own way."""
    crop: Annotated[
        int | None, arg(metavar="PIXELS", help_behavior_hint="(default: the protocol's own, 256 for P1)")
    ] = None
    """Side of the crops; 0 for whole images, cropped to a multiple of the factor."""
    crops: Annotated[int | Literal["all"], arg(metavar="NUMBER|all")] = "all"
    """How many crops, spread evenly over the images."""
    fresh: Annotated[bool, arg(help_behavior_hint="")] = False
    """Measure everything again; by default results from before are taken from OUTPUT/cache."""
    settings: Annotated[
        tuple[str, ...], arg(name="set", metavar="METHOD.SETTING=VALUE ...", help_behavior_hint="")
    ] = ()
    """Settings of methods other than their own, such as pixt.iterations=2000; the tables say so."""

    def measure(
        self, entries: list[Entry], factors: tuple[int, ...], output: Path, *, pictures: bool = False
    ) -> Report:
        """Run the methods with a progress bar and write the results to files."""
        from dada.datasets import load_dataset
        from dada.evaluation.bench import printed_unit, run
        from dada.evaluation.cache import Cache
        from dada.evaluation.files import write
        from dada.evaluation.gallery import ErrorMaps

        dataset, protocol = load_dataset(self.dataset, self.split), self._protocol()
        make_folder(output)
        cache = Cache(output / "cache", fresh=self.fresh)
        draw = ErrorMaps(output / "pictures", *printed_unit(dataset.quantity)) if pictures else None
        options: dict[str, Any] = {"limit": self.limit(), "draw": draw}
        with _progress() as progress:
            report = run(entries, dataset, protocol, factors, cache, progress=progress, **options)
        write(report, output)
        return report

    def _protocol(self) -> Protocol:
        """The protocol, with crops of the size asked for."""
        from dada.evaluation.protocol import load_protocol

        protocol = load_protocol(self.protocol)
        protocol = protocol if self.sampling is None else protocol.with_sampling(self.sampling)
        return protocol if self.crop is None else protocol.with_crop(self.crop)

    def limit(self) -> int | None:
        """The number of crops; None for all."""
        if self.crops == "all":
            return None
        if self.crops < 1:
            raise InputError(f"crops {self.crops} is not a number of crops. Use 1 or more, or all.")
        return self.crops


@dataclass(frozen=True, kw_only=True)
class Benchmark(Measuring):
    """Compare methods on the same problems: errors beside the paper's, time, memory.

    Each result is kept as soon as it is there: a run that was interrupted goes on when it is started again.

    For example: `dada benchmark --methods gf dada-free --dataset scenes:data/middlebury --factors 4 8`

    Whole images instead of crops: `dada benchmark --methods gf pixt --set pixt.iterations=2000 --crop 0 --factors 8
    --dataset scenes:data/middlebury`
    """

    methods: Annotated[tuple[str, ...], arg(metavar="METHOD ...", help_behavior_hint="")]
    """Names such as bicubic, gf, dada-free; networks with their weights, as fdkn:FILE; models of `dada upsample`;
    methods of other packages (entry points of the group dada.methods). Bicubic always takes part."""
    factors: Annotated[tuple[int, ...], arg(metavar="FACTOR ...")] = (4, 8, 16, 32)
    """Target pixels for a source pixel."""
    output: Annotated[Path, arg(aliases=["-o"], metavar="DIR")] = Path("dada-benchmark")
    """Folder for tables (JSON, CSV, Markdown, LaTeX), curves, pictures and the cache."""
    pictures: Annotated[bool, arg(help_behavior_hint="")] = False
    """Also draw error maps of all methods, of the crop with the most depth jumps of each of the first scenes."""

    def run(self) -> int:
        """Run the command; return its exit code, SOME_FAILED if a method failed."""
        from dada.evaluation.methods import resolve_all
        from dada.evaluation.summary import screen

        if not self.methods or not self.factors:
            raise InputError("there is nothing to measure: name at least one method and one factor.")
        entries = resolve_all(self.methods, self.settings)
        report = self.measure(entries, tuple(dict.fromkeys(self.factors)), self.output, pictures=self.pictures)
        show(screen(report))
        print(
            f"every number, per scene and per crop: {self.output / 'results.json'}, results.csv, tables.md, tables.tex"
        )
        return conclude(report)


def make_folder(folder: Path) -> None:
    """Make a folder, or say why not."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"{folder}: the folder cannot be made ({error.strerror}). Choose one you may write to with --output."
        ) from None


def show(tables: list[Table]) -> None:
    """Print tables as wide as the terminal, or as wide as they are where there is none."""
    from rich.console import Console

    console = Console(width=None if sys.stdout.isatty() else 160)
    for table in tables:
        console.print(table.rich())


def conclude(report: Report) -> int:
    """Say which methods warned and which failed; return the exit code."""
    for text in report.warnings:
        print(f"warning: {text}", file=sys.stderr)
    for text in report.failures:
        print(f"failed: {text}", file=sys.stderr)
    return SOME_FAILED if report.failures else 0


@contextmanager
def _progress() -> Iterator[Callable[[float, str], None]]:
    """A function that shows the share of the work that is done, and what is being done."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = BarColumn(), TaskProgressColumn(), TimeRemainingColumn(), TextColumn("{task.description}")
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task("", total=1.0)
        yield lambda done, text: bar.update(task, completed=done, description=text)
