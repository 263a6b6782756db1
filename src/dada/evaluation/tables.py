"""Tables for the screen, Markdown and LaTeX from one description. Each says its protocol and explains its words."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Group

FAILED = "failed"


@dataclass(frozen=True)
class Table:
    """Cells are texts in which **...** marks the best of a column.

    Attributes:
        title: what was measured, by which protocol, on what.
        columns: their headings.
        rows: cells, as many as columns.
        caption: explains the words of the table to who does not know them.
        quoted: numbers of the rows that are taken from the paper.
    """

    title: str
    columns: list[str]
    rows: list[list[str]]
    caption: str
    quoted: frozenset[int] = field(default_factory=frozenset)

    def rich(self) -> Group:
        """For the screen."""
        from rich import box
        from rich.console import Group
        from rich.markup import escape
        from rich.table import Table as RichTable
        from rich.text import Text

        table = RichTable(box=box.SIMPLE_HEAD)
        for number, column in enumerate(self.columns):
            table.add_column(escape(column), justify="right" if number else "left", no_wrap=not number)
        for number, row in enumerate(self.rows):
            cells = (_bold(escape(cell), "[bold green]", "[/]") for cell in row)
            table.add_row(*cells, style="dim" if number in self.quoted else None)
        return Group(Text(self.title, style="bold"), table, Text(f"{self.caption}\n", style="dim"))

    def markdown(self) -> str:
        """As a section with a pipe table."""
        lines = [
            _line(self.columns),
            _line(["---", *["---:"] * (len(self.columns) - 1)]),
            *(_line([cell.replace("|", "\\|") for cell in row]) for row in self.rows),
        ]
        return f"### {self.title}\n\n" + "\n".join(lines) + f"\n\n{self.caption}\n"

    def latex(self) -> str:
        """As a table environment that needs the package booktabs."""
        rows = [" & ".join(_tex(cell) for cell in row) + r" \\" for row in self.rows]
        return "\n".join(
            [
                r"\begin{table}",
                r"  \centering",
                rf"  \begin{{tabular}}{{l{'r' * (len(self.columns) - 1)}}}",
                r"    \toprule",
                f"    {' & '.join(map(_tex, self.columns))} \\\\",
                r"    \midrule",
                *(f"    {row}" for row in rows),
                r"    \bottomrule",
                r"  \end{tabular}",
                rf"  \caption{{{_tex(self.title)}. {_tex(self.caption)}}}",
                r"\end{table}",
                "",
            ]
        )


def number(value: float | None) -> str:
    """Two decimals below 10, then three digits as papers print them; small ones by their first two digits."""
    if value is None:
        return FAILED
    if value != value:
        return "-"
    size = abs(value)
    if size >= 99.95:
        return f"{value:.0f}"
    if size >= 9.995:
        return f"{value:.1f}"
    return f"{value:.2f}" if size >= 0.01 or value == 0 else f"{value:.1g}"


def cells(values: list[tuple[float, ...] | None]) -> list[str]:
    """A column: "1.23 / 0.45" for each tuple, the least of each place in bold; None is a failure."""
    known = [value for value in values if value is not None]
    least = [min((n for n in place if n == n), default=None) for place in zip(*known, strict=True)]
    best = len(known) > 1

    def text(n: float, low: float | None) -> str:
        return f"**{number(n)}**" if best and n == low else number(n)

    return [FAILED if v is None else " / ".join(text(*pair) for pair in zip(v, least, strict=True)) for v in values]


def _line(row: list[str]) -> str:
    return f"| {' | '.join(row)} |"


def _bold(text: str, begin: str, end: str) -> str:
    parts = text.split("**")
    return "".join(f"{begin}{part}{end}" if i % 2 else part for i, part in enumerate(parts))


_TEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "_": r"\_", "#": r"\#", "$": r"\$", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "²": "$^2$", "<": "$<$", ">": "$>$", "|": "$|$",
}  # fmt: skip


def _tex(text: str) -> str:
    return _bold("".join(_TEX.get(letter, letter) for letter in text), r"\textbf{", "}")
