"""Facts about every experiment: it runs, and its folder has the page, the figure and the numbers."""

import csv
import json
import re
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from dada.evaluation.bench import run as run_bench
from dada.evaluation.cache import Cache
from dada.evaluation.methods import resolve_all
from dada.reproduce.registry import EXPERIMENTS, run, states

WHOLE = ("table2", "figure-1d", "speed")
"""Those whose figures are written as they are in use; that takes longer than all the rest."""
MISTAKES = ("nan%", "nan ", "None,", "Traceback", "{study", "inf ", "failed")


def sketch(figure: Figure, stem: Path) -> None:
    figure.savefig(stem.with_suffix(".png"), dpi=20)


@pytest.mark.parametrize("name", EXPERIMENTS)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_it_writes_a_page_a_figure_and_every_number(name, study, monkeypatch):
    monkeypatch.setattr("dada.reproduce.video.FRAMES", 4)
    if name not in WHOLE:
        monkeypatch.setattr("dada.reproduce.page.save_figure", sketch)
    page = run(study(name))
    text = page.read_text()
    folder = page.parent
    assert text.startswith(f"# {EXPERIMENTS[name].title}\n")
    for section in ("## How", "- Protocol: ", "## Data", "![", "Setting: small"):
        assert section in text
    assert not [word for word in MISTAKES if word in text]
    for linked in re.findall(r"\]\(([^)]+)\)", text):
        assert linked == "figure.pdf" or (folder / linked).stat().st_size > 0, linked
    assert (folder / "figure.png").read_bytes()[:4] == b"\x89PNG"
    if name in WHOLE:
        assert (folder / "figure.pdf").read_bytes()[:4] == b"%PDF"
    rows = list(csv.DictReader((folder / "results.csv").open()))
    assert rows
    assert len(rows) == len(json.loads((folder / "results.json").read_text())["results"])
    assert states(study(name).output)[name].startswith("done (small, ")


def test_rows_without_learning_are_those_of_the_bench(study, tmp_path):
    mine = study("table2")
    run(mine)
    dataset = mine.first().open()
    entries = resolve_all(["gf", "dada-free"])
    report = run_bench(entries, dataset, mine.protocol, [8], Cache(tmp_path), limit=mine.effort.crops)
    rows = json.loads((mine.folder / "results.json").read_text())["results"]
    for name in ("bicubic", "gf", "dada-free"):
        row = next(
            r for r in rows
            if (r["method"], r["factor"], r["scene"], r["averaged over"]) == (name, 8, "all", "pixels")
        )  # fmt: skip
        assert row["mse"] == report.scores(name, 8).mse
        assert row["mae"] == report.scores(name, 8).mae
