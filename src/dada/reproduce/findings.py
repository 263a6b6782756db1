"""The results of an experiment, before they are written to files."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dada.evaluation.tables import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Row = dict[str, Any]


@dataclass
class Findings:
    """All that goes onto the page and into the files of an experiment.

    Attributes:
        summary: the results in sentences, a list item each.
        protocol: how it was measured.
        rows: every number, for results.csv and results.json.
        figure: written as figure.png and figure.pdf.
        caption: of the figure.
        tables: for the page, with captions that explain their words.
        settings: of the experiment.
        files: names of other files it wrote, and what they are.
    """

    summary: list[str]
    protocol: str
    rows: list[Row]
    figure: Figure
    caption: str
    tables: list[Table] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
