"""`dada reproduce NAME`: a table or figure of the paper, from data to page."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from tyro.conf import Positional, arg

from dada.errors import InputError

if TYPE_CHECKING:
    from dada.reproduce.study import Study

SOME_FAILED = 1
ALL = "all"


@dataclass(frozen=True, kw_only=True)
class Reproduce:
    """Rebuild tables and figures of the paper, each with our numbers beside the paper's.

    Each writes a folder with a page (README.md), a figure (PNG, PDF) and every number (CSV, JSON). One that was ended
    goes on when it is started again.

    For example: `dada reproduce table2 --data data`

    What there is, and how far it has come: `dada reproduce --list`
    """

    names: Annotated[Positional[tuple[str, ...]], arg(metavar="NAME ...", help_behavior_hint="")] = ()
    """Experiments, or all."""
    setting: Literal["small", "full"] = "small"
    """small: minutes on two cores, brief trainings on painted scenes. full: as in the paper, with its trainings, all
    data and all factors: for a strong machine."""
    data: Annotated[Path | None, arg(metavar="DIR", help_behavior_hint="(default: painted scenes)")] = None
    """Folder of data sets: Middlebury, NYU Depth v2 and DIML as published, or folders of scenes."""
    weights: Annotated[Path | None, arg(metavar="DIR", help_behavior_hint="(default: train)")] = None
    """Folder of released weights, as msg/MSGNet_x8.caffemodel; networks without any are trained."""
    output: Annotated[Path, arg(aliases=["-o"], metavar="DIR")] = Path("reproduce")
    """Folder for the experiments' folders."""
    fresh: Annotated[bool, arg(help_behavior_hint="")] = False
    """Measure everything again; trainings are kept."""
    list: Annotated[bool, arg(help_behavior_hint="")] = False
    """Show all experiments and how far they have come."""

    def run(self) -> int:
        """Run the command; return its exit code, SOME_FAILED if one of several experiments failed."""
        from dada.reproduce.registry import EXPERIMENTS, lookup

        if self.list or not self.names:
            return self._show()
        for name in self.names:
            if name != ALL:
                lookup(name)
        for folder in (self.data, self.weights):
            if folder is not None and not folder.is_dir():
                raise InputError(f"{folder}: there is no such folder.")
        chosen = tuple(EXPERIMENTS) if ALL in self.names else self.names
        return self._all(chosen) if len(chosen) > 1 else self._one(chosen[0])

    def _show(self) -> int:
        from rich import box
        from rich.console import Console
        from rich.table import Table

        from dada.reproduce.registry import EXPERIMENTS, states

        table = Table(box=box.SIMPLE_HEAD)
        for heading in ("name", "what it shows", "in the paper", "state"):
            table.add_column(heading, no_wrap=heading == "name")
        for name, state in states(self.output).items():
            table.add_row(name, EXPERIMENTS[name].title, EXPERIMENTS[name].paper, state)
        Console(width=None if sys.stdout.isatty() else 150).print(table)
        return 0

    def _one(self, name: str) -> int:
        from dada.reproduce.registry import run

        print(run(self._study(name)))
        return 0

    def _all(self, names: tuple[str, ...]) -> int:
        """Run one after the other; what fails does not keep the others from running."""
        from dada.reproduce.registry import run

        failed = []
        for number, name in enumerate(names, 1):
            begun, worked = time.monotonic(), time.process_time()
            try:
                page = run(self._study(name))
                spent = time.monotonic() - begun, time.process_time() - worked
                print(f"{number}/{len(names)} {page} ({spent[0]:.0f} s, {spent[1]:.0f} s of processor)", flush=True)
            except InputError as error:
                failed.append(name)
                print(f"{number}/{len(names)} {name} failed: {error}", file=sys.stderr, flush=True)
        return SOME_FAILED if failed else 0

    def _study(self, name: str) -> Study:
        from dada.reproduce.effort import EFFORTS
        from dada.reproduce.study import Study

        say = _teller(name)
        return Study(name, self.output, EFFORTS[self.setting], self.data, self.weights, self.fresh, say)


def _teller(name: str) -> Callable[[str, float | None], None]:
    """Writes one line that is overwritten, on a terminal; nothing elsewhere."""
    if not sys.stderr.isatty():
        return lambda text, share: None

    def say(text: str, share: float | None) -> None:
        done = "" if share is None else f" {share:4.0%}"
        print(f"\r\033[K{name}{done} {text}"[:160], end="", file=sys.stderr, flush=True)

    return say
