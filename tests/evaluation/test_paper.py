"""Facts about the paper's numbers: each is the one that the paper prints."""

import os
import re
from pathlib import Path

import pytest

from dada.evaluation.paper import paper, paper_set, printed
from dada.models.registry import METHODS, NETWORKS

SETS = ("Middlebury", "NYUv2", "DIML")
FACTORS = ("4", "8", "16", "32")


@pytest.fixture(scope="module")
def tex() -> str:
    data = Path(os.environ.get("DADA_TEST_DATA", Path(__file__).parents[3] / "shared" / "data"))
    path = data.parent / "paper.tex"
    if not path.exists():
        pytest.skip(f"no paper at {path} (set DADA_TEST_DATA to the data folder beside it)")
    return path.read_text()


def table(tex: str, label: str) -> list[list[str]]:
    """Rows of a table as cells, without what is only layout."""
    end = tex.index(rf"\label{{{label}}}")
    body = tex[tex.rindex(r"\begin{tabular", 0, end) : end].partition(r"\end{tabular")[0]
    body = "\n".join(re.split(r"(?<!\\)%", line)[0] for line in body.splitlines())
    body = re.sub(r"\\(textbf|multirow|rotatebox|parbox)(\[[^]]*\])?(\{[\d*.a-z]*\})?\{", "{", body)
    body = re.sub(r"\\(midrule|quad|hspace\{5pt\})|[{}*]", "", body)
    return [[cell.strip() for cell in row.split("&")] for row in body.split(r"\\") if "&" in row]


def numbers(cell: str) -> list[float]:
    return [float(n) for n in re.findall(r"\d+(?:\.\d+)?", cell)]


def filled(rows: list[list[str]], cells: int) -> list[list[str]]:
    """Rows of numbers: those whose last cell begins with a digit."""
    return [row for row in rows if len(row) == cells and re.match(r"\d", row[-1])]


def by_factor(errors: dict) -> list[list[float]]:
    return [[errors[f]["mse"], errors[f]["mae"]] for f in FACTORS]


@pytest.mark.parametrize(
    ("label", "key", "names"),
    [
        ("tab:cmp_l", "learned", ["msg", "dkn", "fdkn", "pmba", "fdsr", "lgr", "dada"]),
        ("tab:cmp_nl", "learning_free", ["bicubic", "gf", "sd", "pixt", "lgr-free", "dada-free"]),
        ("tab:updown_abl", "up_and_down", ["base", "without"]),
    ],
)
def test_tables_by_data_set_and_factor(tex, label, key, names):
    rows = filled(table(tex, label), 5)
    ours = [(data, name) for data in SETS for name in names]
    assert len(rows) == len(ours)
    for (data, name), row in zip(ours, rows, strict=True):
        assert by_factor(paper()[key][data][name]) == [numbers(cell) for cell in row[1:]]
        if key != "up_and_down":
            assert row[0].split()[-1].lower().startswith(name.removesuffix("-free"))


def test_the_table_across_data_sets(tex):
    rows = filled(table(tex, "tab:cmp_crosstesting"), 8)
    names = ["msg", "fdkn", "pmba", "fdsr", "lgr", "dada"]
    assert len(rows) == 12
    for place, row in enumerate(rows):
        factor, name = ("8", "32")[place // 6], names[place % 6]
        assert row[1].lower() == name
        for data, part in (("DIML", row[2:5]), ("Middlebury", row[5:8])):
            found = paper()["across"][data][factor][name]
            assert [found["mse"], found["mae"], found["consistency_mse"]] == [float(cell) for cell in part]


def test_the_percentages(tex):
    rows = filled(table(tex, "tab:new_metrics_SM"), 4)
    assert [row[0].lower() for row in rows] == list(paper()["percentages_x32"]["DIML"])
    for row in rows:
        for data, cell in zip(SETS, row[1:], strict=True):
            assert list(paper()["percentages_x32"][data][row[0].lower()].values()) == numbers(cell)


def test_the_variability(tex):
    rows = filled(table(tex, "tab:r5_SM"), 5)
    names = ["mse", "mae", "mape", "value_error", "edge_error"]
    assert len(rows) == 15
    for place, row in enumerate(rows):
        found = paper()["variability"][SETS[place // 5]][names[place % 5]]
        assert [[found[f]["mean"], found[f]["deviation"]] for f in FACTORS] == [numbers(cell) for cell in row[1:]]


def test_the_feature_extractors(tex):
    rows = filled(table(tex, "tab:encoders_SM"), 9)
    found = paper()["feature_extractors"]["Middlebury"].values()
    assert [[e["mse"] for e in found], [e["mae"] for e in found]] == [[float(c) for c in row[1:]] for row in rows]


def test_methods_are_named_as_everywhere():
    for data in SETS:
        assert set(paper()["learning_free"][data]) <= set(METHODS)
        assert set(paper()["learned"][data]) <= set(NETWORKS)


def test_numbers_are_found_by_data_set_method_and_factor():
    assert printed("NYUv2", "dada", 32) == (223, 5.76)
    assert printed("DIML", "dada-free", 8) == (9.35, 0.51)
    assert printed("Middlebury", "dada", 64) is None
    assert printed("Middlebury", "nobody", 8) is None
    assert [paper_set(name) for name in ("middlebury_2005_full", "NYUv2", "nyuv2 test", "thermal")] == [
        "Middlebury", "NYUv2", "NYUv2", None
    ]  # fmt: skip


def test_the_initialisation(tex):
    said = tex[tex.index(r"\paragraph{Initialization.}") :].partition(r"\paragraph")[2].partition(r"\paragraph")[0]
    found = paper()["initialisation"]["Middlebury"]
    assert [list(found[name].values()) for name in ("base", "random_backbone", "constant_start")] == [
        [float(mse), float(mae)] for mse, mae in re.findall(r"MSE=([\d.]+)\$, \$MAE=([\d.]+)\$", said)
    ]


def test_the_memory_by_steps_with_gradient(tex):
    printed = re.findall(r"(\d+) GB for \$N_\{\\text\{grad\}\} = (\d+)\$", tex)
    found = {steps: size for steps, size in paper()["grad_steps_gigabytes"].items() if steps != "about"}
    assert found == {steps: float(size) for size, steps in printed}
