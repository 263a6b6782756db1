"""Turn what the bench wrote into a table of the documentation.

    dada benchmark --methods default dynamic --dataset scenes:PATH --output FOLDER
    python -m docsite.tables FOLDER/results.csv > docs/tables/middlebury.md

Pages include such tables, so that a number is written once, by a command.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from dada.errors import InputError
from dada.evaluation.files import ALL
from dada.evaluation.tables import number

Rows = list[dict[str, str]]


@dataclass(frozen=True, kw_only=True)
class Tables:
    """Print a table of MSE / MAE, or of shares of bicubic's, a row for each method."""

    results: Annotated[Positional[Path], arg(metavar="RESULTS.csv")]
    """What `dada benchmark` wrote."""
    methods: tuple[str, ...] = ()
    """Methods in their order; all by default."""
    shares: bool = False
    """Shares of bicubic's errors instead of the errors."""
    scenes: bool = False
    """A row for each scene of the first method, instead of one for each method."""

    def text(self) -> str:
        """The table."""
        rows = [row for row in _read(self.results) if row["averaged over"] != "batches"]
        there = list(dict.fromkeys(row["method"] for row in rows))
        if missing := [name for name in self.methods if name not in there]:
            raise InputError(f"{self.results} has no method {', '.join(missing)}. It has {', '.join(there)}.")
        methods = list(self.methods) or there
        if self.scenes:
            rows = [row for row in rows if row["method"] == methods[0] and row["scene"] != ALL]
            return _table("scene", list(dict.fromkeys(row["scene"] for row in rows)), rows, self.shares)
        return _table("method", methods, [row for row in rows if row["scene"] == ALL], self.shares)


def _read(path: Path) -> Rows:
    try:
        with path.open(newline="") as file:
            return list(csv.DictReader(file))
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}). Name results.csv of a bench.") from None


def _table(heading: str, names: list[str], rows: Rows, shares: bool) -> str:
    factors = sorted({int(row["factor"]) for row in rows})
    found = {(row[heading], int(row["factor"])): _cell(row, shares) for row in rows}
    lines = [[heading, *(f"x{factor}" for factor in factors)], ["---", *["---:"] * len(factors)]]
    for name in names:
        shown = f"`{name}`" if heading == "method" else name
        lines.append([shown, *(found[name, factor] for factor in factors)])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def _cell(row: dict[str, str], shares: bool) -> str:
    columns = [f"share of bicubic's {name}" if shares else name for name in ("mse", "mae")]
    return " / ".join(number(float(row[column]) if row[column] else None) for column in columns)


def main() -> None:
    """Print the table that the arguments ask for."""
    import tyro

    print(tyro.cli(Tables, prog="python -m docsite.tables").text(), end="")


if __name__ == "__main__":
    main()
