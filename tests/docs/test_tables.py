"""Tables of the documentation are made from what the bench wrote, and stand on pages that name their command."""

import re
from pathlib import Path

import pytest

from dada.datasets import load_dataset
from dada.errors import InputError
from dada.evaluation.bench import run
from dada.evaluation.cache import Cache
from dada.evaluation.files import write
from dada.evaluation.methods import resolve_all
from dada.evaluation.protocol import P1
from docsite.tables import Tables

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bench")
    data = load_dataset("painted:0,2?size=256")
    write(run(resolve_all(["bicubic-torch"]), data, P1, [8], Cache(folder / "cache")), folder)
    return folder / "results.csv"


def test_a_table_has_a_row_for_each_method_and_a_column_for_each_factor(results: Path):
    lines = Tables(results=results).text().splitlines()
    assert lines[0] == "| method | x8 |"
    assert [line.split(" | ")[0] for line in lines[2:]] == ["| `bicubic`", "| `bicubic-torch`"]
    assert all(re.fullmatch(r"\| \S+ \| [\d.]+ / [\d.]+ \|", line) for line in lines[2:])


def test_shares_of_bicubic_are_1_for_bicubic(results: Path):
    lines = Tables(results=results, shares=True, methods=("bicubic",)).text().splitlines()
    assert lines[2:] == ["| `bicubic` | 1.00 / 1.00 |"]


def test_scenes_have_rows_of_their_own(results: Path):
    assert len(Tables(results=results, scenes=True).text().splitlines()) == 2 + 2


def test_a_method_that_is_not_there_is_refused(results: Path):
    with pytest.raises(InputError, match=r"has no method gf\. It has bicubic, bicubic-torch"):
        Tables(results=results, methods=("gf",)).text()


def test_every_table_is_included_by_a_page():
    included = {name for page in DOCS.rglob("*.md") for name in re.findall(r'"tables/([\w-]+)\.md"', page.read_text())}
    assert included == {path.stem for path in (DOCS / "tables").glob("*.md")}


def test_the_front_page_states_no_other_numbers_than_the_tables():
    measured = {
        cell for path in (DOCS / "tables").glob("*.md") for cell in re.findall(r"[\d.]+ / [\d.]+", path.read_text())
    }
    shown = re.findall(r"[\d.]+ / [\d.]+", (DOCS.parent / "README.md").read_text())
    assert shown
    assert not [cell for cell in shown if cell not in measured]
