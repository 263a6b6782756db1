"""Facts about what is printed and written: numbers as papers print them, one table in three forms, its protocol."""

import csv
import io
import json
from dataclasses import replace

import numpy as np
import pytest

from dada.evaluation.bench import run
from dada.evaluation.cache import Cache
from dada.evaluation.curves import curves, from_paper, measured
from dada.evaluation.files import as_csv, as_json, write
from dada.evaluation.gallery import ErrorMaps
from dada.evaluation.methods import Entry
from dada.evaluation.protocol import P1, P2
from dada.evaluation.summary import by_scene, cost, details, errors, everything, published, shares
from dada.evaluation.tables import Table, cells, number
from tests.evaluation.problems import Few, Offset, pair


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    scenes = Few(tuple(pair(name, (64, 64), seed) for seed, name in enumerate(("one", "two"))))
    entries = [
        Entry("bicubic", "bicubic", Offset()),
        Entry("gf (radius=4)", "gf", Offset(0.03)),
        Entry("sd", "sd", Offset(fails_at="two@0,0")),
    ]
    return run(entries, scenes, P1.with_crop(32), [4, 8], Cache(tmp_path_factory.mktemp("cache")))


@pytest.fixture(scope="module")
def as_the_paper(report):
    """The same as if the crops had had the paper's size."""
    return replace(report, protocol=P1)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.684, "1.68"), (9.996, "10.0"), (15.57, "15.6"), (143.2, "143"), (0.05, "0.05"), (0.0021, "0.002"),
        (0, "0.00"), (3e-9, "3e-09"), (float("nan"), "-"), (None, "failed"),
    ],
)  # fmt: skip
def test_numbers_are_printed_as_papers_do(value, text):
    assert number(value) == text


def test_the_best_of_each_place_is_marked():
    assert cells([(1.0, 9.0), None, (2.0, 3.0)]) == ["**1.00** / 9.00", "failed", "2.00 / **3.00**"]
    assert cells([(1.0,)]) == ["1.00"]


def test_one_table_in_three_forms():
    table = Table("a_b: 5 %", ["method", "MSE cm²"], [["gf|x", "**1.00**"], ["sd", "2.00"]], "Words & more.")
    assert table.markdown() == (
        "### a_b: 5 %\n\n| method | MSE cm² |\n| --- | ---: |\n| gf\\|x | **1.00** |\n| sd | 2.00 |\n\nWords & more.\n"
    )
    latex = table.latex()
    assert r"gf$|$x & \textbf{1.00} \\" in latex
    assert r"method & MSE cm$^2$ \\" in latex
    assert r"\caption{a\_b: 5 \%. Words \& more.}" in latex


def test_the_screen_shows_the_same(capsys):
    from rich.console import Console

    table = Table("title [x]", ["method", "x4"], [["gf", "**1.00**"]], "what it means")
    Console(width=60).print(table.rich())
    out = capsys.readouterr().out
    assert "title [x]" in out
    assert "1.00" in out
    assert "**" not in out


def test_every_table_says_its_protocol_and_how_it_differs(report):
    for table in everything(report):
        assert table.title.startswith(
            "middlebury_like, protocol P1, 8 crops of 32 x 32, which is not the protocol's own"
        )
        assert table.caption.endswith(".")


def test_failures_stand_in_the_table(report):
    rows = {row[0]: row[1:] for row in errors(report).rows}
    assert rows["sd"] == ["failed", "failed"]
    assert rows["bicubic"][0].count("/") == 1
    assert {row[0]: row[1] for row in cost(report).rows}["sd"] == "failed"


def test_the_papers_numbers_stand_beneath(as_the_paper):
    (table,) = published(as_the_paper)
    rows = {row[0]: row[1:] for row in table.rows}
    assert rows["gf (paper)"] == ["33.3 / 1.27", "40.5 / 1.49"]
    assert [table.rows[i][0] for i in sorted(table.quoted)] == ["bicubic (paper)", "gf (paper)", "sd (paper)"]


def test_shares_are_of_bicubics_error(report, as_the_paper):
    rows = {row[0]: row[1:] for row in shares(as_the_paper).rows}
    plain, mine = report.scores("bicubic", 4), report.scores("gf (radius=4)", 4)
    assert rows["gf (radius=4)"][0] == f"{mine.mse / plain.mse:.2f} / {mine.mae / plain.mae:.2f}"
    assert rows["gf (paper)"][0] == "2.50 / 2.31"  # 33.3 / 13.3 and 1.27 / 0.55


def test_other_data_and_protocols_have_nothing_of_the_paper_beside_them(report, as_the_paper):
    heights = replace(as_the_paper, quantity="height m")
    assert published(heights) == []
    assert not shares(heights).quoted
    assert "in m²" in errors(heights).caption
    assert published(replace(as_the_paper, protocol=P2)) == []
    assert published(replace(as_the_paper, dataset="elsewhere")) == []
    assert published(report) == []  # crops of another size


def test_details_explain_their_own_definitions(report):
    for table in details(report):
        assert "This project's definitions" in table.caption
        assert len(table.columns) == 11


def test_scenes_have_rows_of_their_own(report):
    first = by_scene(report)[0]
    assert [row[0] for row in first.rows] == ["one", "two"]
    assert first.columns == ["scene", "bicubic", "gf (radius=4)", "sd"]


def test_csv_holds_every_number(report):
    rows = list(csv.DictReader(io.StringIO(as_csv(report))))
    assert len(rows) == 3 * 2 * (2 + 2)  # methods, factors, two rules for all and two scenes
    chosen = [r for r in rows if (r["method"], r["factor"], r["scene"]) == ("bicubic", "8", "all")]
    assert [r["averaged over"] for r in chosen] == ["pixels", "batches"]
    assert float(chosen[0]["mse"]) == pytest.approx(report.scores("bicubic", 8).mse)
    assert {r["protocol"] for r in rows} == {"P1"}
    assert {r["mse"] for r in rows if r["method"] == "sd"} == {""}


def test_json_is_strict_and_holds_the_sums_of_every_problem(report):
    content = json.loads(json.dumps(as_json(report), allow_nan=False))
    assert content["protocol"]["name"] == "P1"
    problems = content["problems, sums in the data's own unit"]
    assert len([p for p in problems if p["method"] == "bicubic"]) == 16


def test_files_are_written(report, tmp_path):
    names = {path.name for path in write(report, tmp_path)}
    assert names == {"results.json", "results.csv", "tables.md", "tables.tex", "curves.png", "curves.pdf"}
    assert names == {path.name for path in tmp_path.iterdir()}
    assert (tmp_path / "tables.md").read_text().count("\n| --- |") == len(everything(report))
    assert (tmp_path / "curves.pdf").read_bytes().startswith(b"%PDF")
    before = (tmp_path / "curves.pdf").read_bytes()
    write(report, tmp_path)
    assert (tmp_path / "curves.pdf").read_bytes() == before


def test_the_papers_curves_stand_in_a_panel_of_their_own(as_the_paper):
    assert [axes.get_title(loc="left") for axes in curves(as_the_paper).axes] == [
        "middlebury_like, protocol P1",
        "the paper's own Middlebury images",
    ]


def test_curves_are_roots_of_the_tables(report):
    lines = measured(report)
    assert list(lines) == ["bicubic", "gf (radius=4)"]
    assert lines["bicubic"][8] == pytest.approx(report.scores("bicubic", 8).mse ** 0.5)
    assert from_paper(report, "Middlebury")["bicubic"][4] == pytest.approx(13.3**0.5)
    assert len(curves(report).axes) == 1


def test_error_maps_share_a_scale_and_tell_centimetres(tmp_path):
    found = pair("a/b", (32, 32))
    sample = P1.with_crop(0).sample(found, 4, 1000.0)
    draw = ErrorMaps(tmp_path / "pictures", "cm", 0.1)
    draw(sample, {"bicubic": sample.initial, "nothing": 0 * sample.initial})
    assert [path.name for path in draw.written] == ["errors_x4_a_b.png"]
    assert np.frombuffer(draw.written[0].read_bytes()[:4], np.uint8).tolist() == [137, 80, 78, 71]
