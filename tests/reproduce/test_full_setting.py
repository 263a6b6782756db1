"""The full setting asks for the paper's trainings: numbers of steps, data sets, factors, networks, starts."""

from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch

from dada.datasets import Pair
from dada.datasets.painted import Painted
from dada.evaluation.bench import Report, Runs
from dada.evaluation.cache import Record
from dada.evaluation.methods import Entry, resolve
from dada.evaluation.metrics import Sums
from dada.evaluation.paper import paper
from dada.evaluation.protocol import P1
from dada.models.dada import DADA
from dada.models.files import save
from dada.reproduce import found as data_sets
from dada.reproduce import memory, shown, trainings
from dada.reproduce.ablation import beside
from dada.reproduce.across import _table
from dada.reproduce.effort import FULL
from dada.reproduce.registry import _function
from dada.reproduce.study import Study

SETS = ("Middlebury", "NYUv2", "DIML")
TINY = replace(
    FULL, size=64, crops=1, network_crops=1, probes=1, loop_steps=(8, 64), test_steps=64, pixt_iterations=2,
    networks=("dada",), seeds=2,
)  # fmt: skip


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """Runs an experiment on painted scenes with the full setting; what it would train is noted, not trained."""
    torch.set_num_threads(1)
    sets = [data_sets.TestSet(title, f"painted:{n},4?size=64", "test", "painted") for n, title in enumerate(SETS)]
    monkeypatch.setattr(Study, "_found", property(lambda study: (sets, [])))
    weights = tmp_path / "light.safetensors"
    torch.manual_seed(0)
    save(DADA(), weights)

    def run(name):
        configs = []

        def note(study, config) -> Path:
            configs.append(config)
            return weights

        monkeypatch.setattr("dada.reproduce.trainings.trained", note)
        monkeypatch.setattr("dada.reproduce.unrolled.training_memory", lambda study, config: 1e6)
        monkeypatch.setattr("dada.reproduce.error_grid.save_figure", lambda figure, stem: None)  # takes seconds
        monkeypatch.setattr("dada.reproduce.video.FRAMES", 4)
        monkeypatch.setattr("dada.reproduce.video.LAST", 64)
        return configs, _function(name)(Study(name, tmp_path, TINY))

    return run


def trained_on(config):
    return next(title for title, kind in trainings.KINDS.items() if config.data[0].dataset.startswith(kind))


def test_steps_with_and_without_gradient_are_the_papers(asked):
    unrolled = {name: [c for c in asked(name)[0] if c.scheme == "unrolled"] for name in
                ("ablation-npre", "ablation-ngrad", "ablation-random-steps")}  # fmt: skip
    assert {c.grad_steps for c in unrolled["ablation-npre"]} == {1024}
    assert {c.pre_steps for c in unrolled["ablation-npre"]} == set(FULL.pre_steps)
    assert {c.pre_steps for c in unrolled["ablation-ngrad"]} == {8000}
    assert {c.grad_steps for c in unrolled["ablation-ngrad"]} == {32, 64, 128, 256, 512, 1024}
    assert {(c.pre_steps, c.grad_steps, c.constant_steps) for c in unrolled["ablation-random-steps"]} == {
        (8000, 1024, False), (8000, 1024, True),
    }  # fmt: skip


def test_the_constant_start_is_trained_with(asked):
    configs, found = asked("ablation-initialisation")
    three = [(c.initial, c.network["pretrained"], c.pre_steps, c.grad_steps) for c in configs[:3]]
    assert three == [("bicubic", True, 8000, 1024), ("bicubic", False, 8000, 1024), ("constant", True, 8000, 1024)]
    rows = {row[0]: row[-1] for row in found.tables[0].rows}
    assert rows["backbone from ImageNet, Y0 constant"] == "5.64 / 0.2"
    assert rows["backbone random, Y0 bicubic"] == "5.92 / 0.211"


def test_seeds_cover_three_data_sets_and_four_factors(asked):
    configs, found = asked("seeds")
    wanted = set(product(SETS, (4, 8, 16, 32), range(TINY.seeds)))
    assert {(trained_on(c), c.factors[0], c.seed) for c in configs} == wanted
    assert FULL.seeds == 5
    assert len(found.tables) == 12
    assert all(table.columns[1:3] == ["ours, batch means", "ours, all pixels alike"] for table in found.tables)


def test_enlarging_the_guide_covers_three_data_sets(asked):
    configs, found = asked("ablation-guide-upsampling")
    wanted = set(product(SETS, (4, 8, 16, 32), (True, False)))
    assert {(trained_on(c), c.factors[0], c.network["upsample"]) for c in configs} == wanted
    printed = paper()["up_and_down"]["DIML"]["base"]["32"]
    assert any(row[-1] == f"{printed['mse']:g} / {printed['mae']:g}" for table in found.tables for row in table.rows)


def test_error_maps_use_networks_of_the_data_set_that_is_drawn(asked):
    configs, found = asked("figure-errors")
    assert {(trained_on(c), c.factors[0]) for c in configs} == set(product(SETS, (16, 32)))
    texts = {text.get_text() for text in found.figure.texts}
    assert {"guide", "source", "DADA, result", "truth", "Middlebury x16", "DIML x32"} <= texts


def test_the_supplements_pages_have_three_data_sets_and_four_factors(asked):
    configs, found = asked("figure-qualitative")
    assert {(trained_on(c), c.factors[0]) for c in configs} == set(product(SETS, (4, 8, 16, 32)))
    assert set(found.files) == {"qualitative_NYUv2.png", "qualitative_DIML.png"}
    texts = [text.get_text() for text in found.figure.texts]
    assert [text for text in texts if text.startswith("x")] == ["x4", "x8", "x16", "x32"]
    assert sum(text.startswith("errors") for text in texts) == 4  # one scale for a row


def test_the_video_shows_learned_coefficients_too(asked):
    configs, found = asked("video")
    assert [(trained_on(c), c.factors[0]) for c in configs] == [("Middlebury", 32)]
    assert {row["coefficients"] for row in found.rows} == {"learning-free", "learned"}


def test_memory_is_that_of_the_papers_networks(tmp_path):
    study = Study("memory", tmp_path, FULL)
    config = memory._config(study, "DADA, unrolled", 8)
    assert (config.network["features"], config.network["upsample"]) == (64, True)
    assert config.network["extractor"] == "unet-resnet50"
    assert (config.grad_steps, config.crop, config.batch) == (1024, (256,), (8,))
    assert memory._config(study, "LGR", 8).network["features"] == "unet-resnet50"


@pytest.fixture
def uneven():
    """Thirty-two crops without error and one small one that is wrong: a batch of its own."""
    sums = [Sums(pixels=1000, squared=0, absolute=0, cells=10)] * 32 + [
        Sums(pixels=10, squared=1e5, absolute=1e3, cells=1)
    ]
    records = [Record(f"a@{i},0", s, 0.1, None) for i, s in enumerate(sums)]
    method = resolve("bicubic").method
    entries = [Entry("bicubic", "bicubic", method), Entry("dada", "dada", method)]
    runs = {(entry.label, 8): Runs(records) for entry in entries}
    return Report(P1, "Middlebury", "depth mm", entries, [8], runs)


def test_tables_print_batch_means_and_pixels_beside_the_papers(uneven):
    """Half of 100 cm² over two batches, a hundredth of that over all pixels."""
    row = beside(uneven, {"dada": {"mse": 5.63, "mae": 0.2}}, {}, "").rows[1]
    assert row == ["dada", "50.0 / 5.00", "0.03 / 0.003", "1.00 / 1.00", "5.63 / 0.2"]
    row = _table(uneven).rows[1]
    assert row[1].startswith("50.0 / 5.00")
    assert row[2].startswith("0.03 / 0.003")
    assert row[3] == "7.82 / 0.35 / 0.00"


class Sized(Painted):
    """Painted scenes of two sizes."""

    def __getitem__(self, index: int) -> Pair:
        return replace(self, size=(512 + 256 * (index % 2), 512))._paint(index)

    def _paint(self, index: int) -> Pair:
        return Pair(np.zeros((*self.size, 3), np.uint8), np.ones(self.size, np.float32), f"image{index}")


def test_a_numbered_crop_counts_all_crops_of_the_images_before():
    """Images of 4 and 6 crops by turns."""
    dataset = Sized(seed=0, count=4)
    named = [shown._numbered(dataset, number, varying=True).name for number in (0, 3, 4, 9, 10)]
    assert named == ["image0@0,0", "image0@256,256", "image1@0,0", "image1@512,256", "image2@0,0"]
    even = replace(dataset, count=1)
    assert shown._numbered(even, 3, varying=False).name == "image0@256,256"


def test_the_papers_crops_are_taken_where_its_test_images_are_at_hand(study):
    mine = study("figure-errors")
    mine.effort = replace(mine.effort, size=256)
    test = data_sets.TestSet("NYUv2", "painted:1,8?size=512", "test", "stands for the paper's", own=True)
    dataset = test.open()
    assert shown.crop_to_show(mine, test, 5, 0).name == f"{dataset[1].name}@0,256"
    other = replace(test, own=False)
    assert shown.crop_to_show(mine, other, 5, 2).name.startswith(dataset[4].name)
