"""docs/results/reproduce.md names a command or a file for everything of the paper, and each of them is there."""

import re
from pathlib import Path

import pytest

from dada.reproduce.registry import EXPERIMENTS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "results" / "reproduce.md").read_text()
WHERE = PAGE.partition("## Where everything of the paper is")[2]
ROWS = [line.strip("| ").split(" | ") for line in WHERE.splitlines() if line.startswith("| ") and "---" not in line]


def test_every_experiment_is_on_the_page_and_every_named_one_is_there():
    assert set(re.findall(r"`dada reproduce ([\w-]+)`", PAGE)) <= set(EXPERIMENTS)
    assert not [name for name in EXPERIMENTS if f"`{name}`" not in PAGE]


def test_every_experiment_of_the_paper_has_its_place_in_the_tables():
    of_paper = [name for name, experiment in EXPERIMENTS.items() if experiment.paper != "Not in the paper"]
    assert not [name for name in of_paper if f"`dada reproduce {name}`" not in WHERE]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_every_row_names_what_is_there(row):
    what, where = row
    assert what
    assert not re.search(r"missing|to do|not yet", where)
    path = None
    for named in re.findall(r"`([^`]+)`", where):
        if re.match(r"(src|tests|configs|docs)/", named):
            path = ROOT / named
            assert path.is_file(), named
        elif path is not None and re.fullmatch(r"\w+", named):
            assert re.search(rf"\b{named}\b", path.read_text()), f"{named} in {path}"


def test_the_order_of_equations_tables_and_figures_is_complete():
    wanted = [f"Eq. {n}" for n in (1, 2, 3)] + [f"Table {n}" for n in (1, 2, 3, "A1", "A2", "A3", "A4")]
    wanted += [f"Figure {n}" for n in (1, 2, 3, 4, 5, "6a", "6b", "6c", 7, "A1", "A2", "A3", "A4")]
    listed = " ".join(row[0] for row in ROWS)
    assert not [name for name in wanted if not re.search(rf"{name}\b", listed)]
