"""The numbers that the paper prints (paper.json), to stand beside one's own."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

SETS = {"middlebury": "Middlebury", "nyu": "NYUv2", "diml": "DIML"}
"""The paper's data sets, and what the names of data sets like them contain."""


class Printed(NamedTuple):
    """An error as the paper prints it: in cm^2 and cm, by protocol P1, averaged over batch means."""

    mse: float
    mae: float


@cache
def paper() -> dict[str, Any]:
    """All tables of the paper and its supplement; each says under "about" what it is."""
    content: dict[str, Any] = json.loads(files("dada.evaluation").joinpath("paper.json").read_text("utf-8"))
    return content


def paper_set(name: str) -> str | None:
    """Which of the paper's data sets a data set is like, by its name; None for others."""
    return next((title for part, title in SETS.items() if part in name.lower()), None)


def printed(data: str, method: str, factor: int) -> Printed | None:
    """What Tables 1 and 2 print for a method (named as in `dada.models.registry`), or None."""
    for table in ("learned", "learning_free"):
        found = paper()[table].get(data, {}).get(method, {}).get(str(factor))
        if found:
            return Printed(**found)
    return None
