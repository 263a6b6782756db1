"""Facts about `dada benchmark` and `dada evaluate`: from files to tables, twice the same, mistakes explained."""

import csv
import json

import pytest

from tests.evaluation.problems import write_folder


@pytest.fixture(scope="module")
def scenes(tmp_path_factory):
    return f"scenes:{write_folder(tmp_path_factory.mktemp('data') / 'nyuv2_like')}"


@pytest.fixture
def benchmark(dada, scenes, tmp_path):
    def run(*arguments):
        return dada("benchmark", "--dataset", scenes, "--crop", 32, "-o", tmp_path / "out", *arguments)

    return run


def test_two_scenes_end_to_end(benchmark, tmp_path):
    ran = benchmark("--methods", "gf", "dada-free", "--factors", 4, 8, "--pictures")
    assert (ran.code, ran.err) == (0, "")
    assert "nyuv2_like, protocol P1, 12 crops of 32 x 32, which is not the protocol's own size: MSE / MAE" in ran.out
    assert "paper" not in ran.out  # its crops are larger
    assert "share of bicubic's" in ran.out
    out = tmp_path / "out"
    assert {"results.json", "results.csv", "tables.md", "tables.tex", "curves.png", "curves.pdf"} <= {
        path.name for path in out.iterdir()
    }
    assert len(list((out / "pictures").glob("errors_x*.png"))) == 4
    rows = list(csv.DictReader((out / "results.csv").open()))
    assert {row["scene"] for row in rows} == {"all", "one", "two"}
    best = {r["method"]: float(r["share of bicubic's mse"]) for r in rows if (r["factor"], r["scene"]) == ("4", "all")}
    assert best["bicubic"] == 1
    assert best["dada-free"] < 0.5


def test_a_second_run_takes_the_results_from_the_cache(benchmark, tmp_path, monkeypatch):
    arguments = "--methods", "gf", "--factors", 4
    benchmark(*arguments)
    before = (tmp_path / "out" / "results.json").read_bytes()
    monkeypatch.setattr("dada.baselines.guided_filter.GuidedFilter.__call__", None)
    assert benchmark(*arguments).code == 0
    assert (tmp_path / "out" / "results.json").read_bytes() == before
    failed = benchmark(*arguments, "--fresh")
    assert failed.code == 1
    assert "failed: gf at x4: one@0,0: TypeError" in failed.err


def test_settings_are_confessed_in_the_table(benchmark):
    ran = benchmark("--methods", "gf", "--factors", 4, "--crops", 1, "--set", "gf.radius=2")
    assert ran.code == 0
    assert "gf (radius=2)" in ran.out


def test_whole_images(benchmark):
    ran = benchmark("--methods", "bicubic", "--factors", 8, "--crop", 0)
    assert "2 whole images" in ran.out


def test_p2_has_tables_of_its_own(benchmark, dada, tmp_path):
    holes = benchmark("--methods", "bicubic", "--factors", 8, "--protocol", "P2")
    assert holes.code == 2
    assert "pixels without a value" in holes.err
    filled = tmp_path / "filled"
    write_folder(filled)
    for depth in filled.glob("*/depth_mm.png"):
        from dada.io import read_image, write_image

        values = read_image(depth).values.copy()
        values[values == 0] = 2500
        write_image(depth, values)
    ran = dada(
        "benchmark", "--dataset", f"scenes:{filled}", "--methods", "bicubic", "--factors", 8, "--protocol", "P2",
        "-o", tmp_path / "p2",
    )  # fmt: skip
    assert ran.code == 0
    assert "protocol P2, 2 whole images, a border of 6 px left out: RMSE" in ran.out
    assert "paper" not in ran.out.replace("the paper's", "")


def test_evaluate_shows_scenes_and_draws_the_worst(dada, scenes, tmp_path):
    out = tmp_path / "evaluation"
    ran = dada(
        "evaluate", "--model", "none", "--dataset", scenes, "--factor", 4, "--crop", 32, "-o", out, "--worst", 2
    )  # fmt: skip
    assert (ran.code, ran.err) == (0, "")
    assert "MSE / MAE of every scene at x4" in ran.out
    assert "all measures at x4" in ran.out
    pictures = sorted(path.name for path in (out / "pictures").iterdir())
    assert [name.partition("_")[0] for name in pictures] == ["worst1", "worst1", "worst2", "worst2"]
    content = json.loads((out / "results.json").read_text())
    assert {row["method"] for row in content["results"]} == {"bicubic", "model none"}
    assert (out / "results.csv").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--methods", "nonsense"], "neither a method"),
        (["--methods", "gf", "--factors", 5], "cannot be divided by 5"),
        (["--methods", "gf", "--crops", 0], "not a number of crops"),
        (["--methods", "gf", "--set", "gf.width=1"], "no setting 'width'"),
        (["--methods", "gf", "--crop", 512, "--factors", 4], "no image gives a crop of 512"),
    ],
)
def test_mistakes_are_explained(benchmark, arguments, message):
    ran = benchmark(*arguments)
    assert ran.code == 2
    assert message in ran.err
    assert "Traceback" not in ran.err
