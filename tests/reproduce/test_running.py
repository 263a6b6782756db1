"""Facts about running experiments: resuming, data that are missing, weights, the command line."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from dada.cli import main
from dada.errors import InputError
from dada.evaluation.protocol import P1
from dada.reproduce import registry, trainings
from dada.reproduce.effort import SMALL
from dada.reproduce.found import find
from dada.reproduce.registry import EXPERIMENTS, run, states
from dada.reproduce.robustness import Shifted
from dada.reproduce.study import Study
from dada.training.config import read_config

CONFIGS = Path(__file__).parents[2] / "configs"


def test_a_killed_run_is_partial_and_goes_on_with_what_it_had(study, tmp_path):
    mine = study("guide-shift")
    mine.output = tmp_path
    calls = []

    def stop_after_some(text, share):
        calls.append(text)
        if len(calls) == 8:
            raise KeyboardInterrupt

    mine.say = stop_after_some
    with pytest.raises(KeyboardInterrupt):
        run(mine)
    assert states(tmp_path)["guide-shift"] == "partial (small)"
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "cache").rglob("*.json")}
    assert kept
    again = study("guide-shift")
    again.output = tmp_path
    run(again)
    assert states(tmp_path)["guide-shift"].startswith("done")
    assert all(path.stat().st_mtime_ns == time for path, time in kept.items())


def test_what_is_done_is_not_done_again_unless_asked(study):
    page = run(study("figure-1d"))
    time = page.stat().st_mtime_ns
    assert run(study("figure-1d")) == page
    assert page.stat().st_mtime_ns == time
    run(study("figure-1d", fresh=True))
    assert page.stat().st_mtime_ns > time


def test_measurements_are_remembered(study, tmp_path):
    mine = study("speed")
    mine.output = tmp_path
    counted = []
    for _ in range(2):
        assert mine.remember("dada.reproduce.speed", "key", lambda: counted.append(1) or {"a": 1.5}) == {"a": 1.5}
    assert len(counted) == 1
    mine.fresh = True
    mine.remember("dada.reproduce.speed", "key", lambda: counted.append(1) or 0)
    assert len(counted) == 2


def test_a_stopped_training_stops_the_experiment(study, monkeypatch, tmp_path):
    mine = study("seeds")
    mine.output = tmp_path
    monkeypatch.setattr("dada.training.loop.train", lambda config: Path(config.output) / "best.safetensors")
    with pytest.raises(KeyboardInterrupt):
        trainings.trained(mine, trainings.training(mine, "dada", 8))


def test_a_brief_training_does_not_stop_the_diffusion(tmp_path):
    """With the full rate from the first step, the coefficients of most seeds fall to 0 everywhere."""
    torch.set_num_threads(1)
    mine = Study("seeds", tmp_path, SMALL)
    config = replace(trainings.training(mine, "dada", 8, ablation=True), seed=1)
    network = trainings.load_trained(mine, config, "dada").method
    dataset = mine.first().open()
    sample = P1.with_crop(64).sample(dataset[0].cut(0, 0, 64, 64), 8, dataset.unit)
    with torch.inference_mode():
        edges = torch.cat([edge.flatten() for edge in network.coefficients(sample)])
    assert edges.median() > 0.02
    assert edges.quantile(0.05) < 0.5 * edges.quantile(0.95)


@pytest.mark.parametrize("config", sorted(CONFIGS.glob("paper-*-x8.toml")), ids=lambda p: p.stem)
def test_full_trainings_are_those_of_the_configurations(config):
    written = read_config(config)
    kind = written.data[0].dataset.partition(":")[0]
    data = next(title for title, name in trainings.KINDS.items() if name == kind)
    made = trainings.paper_training(written.method, data, 8)
    for name in vars(written):
        if name not in ("output", "root"):
            assert getattr(made, name) == getattr(written, name), name


@pytest.mark.parametrize("data", trainings.KINDS)
def test_the_released_rate_is_all_that_its_configurations_change(data):
    written, supplement = (
        read_config(CONFIGS / f"paper-{trainings.KINDS[data]}-x8{end}.toml") for end in ("-released", "")
    )
    assert (written.learning_rate, supplement.learning_rate) == (1e-4, 1e-3)
    assert replace(written, learning_rate=1e-3, output=supplement.output) == supplement
    assert written.published


def test_missing_data_are_told_with_where_to_get_them(tmp_path):
    sets, absent = find(tmp_path, 64)
    assert [s.title for s in sets] == ["painted"]
    assert [a.title for a in absent] == ["Middlebury", "NYUv2", "DIML"]
    for missing in absent:
        assert "https://" in missing.remedy
        assert str(tmp_path) in missing.remedy
    assert len(sets[0].open()) > 0


def test_weights_are_found_by_method_and_factor(tmp_path):
    for name in ("msg/MSGNet_x8.caffemodel", "msg/MSGNet_x16.caffemodel", "fdkn/FDKN_8x", "fdkn/notes_18x"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert trainings.released_weights(tmp_path, "msg", 8).name == "MSGNet_x8.caffemodel"
    assert trainings.released_weights(tmp_path, "msg", 16).name == "MSGNet_x16.caffemodel"
    assert trainings.released_weights(tmp_path, "fdkn", 8).name == "FDKN_8x"
    assert trainings.released_weights(tmp_path, "fdkn", 1) is None
    assert trainings.released_weights(tmp_path, "dada", 8) is None
    assert trainings.released_weights(None, "msg", 8) is None


def test_an_unknown_name_is_told_with_all_there_are():
    with pytest.raises(InputError, match=r"no experiment 'tabel1'.*table1, table2"):
        registry.lookup("tabel1")


def test_a_damaged_state_counts_as_never_run(tmp_path):
    (tmp_path / "table1").mkdir()
    (tmp_path / "table1" / "state.json").write_text("{")
    assert states(tmp_path)["table1"] == "never run"


def test_the_command_lists_runs_and_complains(tmp_path, capsys):
    assert main(["reproduce", "figure-adjustment", "--output", str(tmp_path)]) == 0
    assert "figure-adjustment/README.md" in capsys.readouterr().out.replace("\\", "/")
    assert json.loads((tmp_path / "figure-adjustment" / "results.json").read_text())["setting"] == "small"
    assert main(["reproduce", "--list", "--output", str(tmp_path)]) == 0
    listed = capsys.readouterr().out
    assert all(name in listed for name in EXPERIMENTS)
    assert "done (small" in listed
    assert listed.count("never run") == len(EXPERIMENTS) - 1
    assert main(["reproduce", "nothing", "--output", str(tmp_path)]) == 2
    assert main(["reproduce", "table2", "--data", str(tmp_path / "absent")]) == 2


def test_a_shifted_guide_lies_to_the_right_and_all_else_stays(study):
    dataset = study("guide-shift").first().open()
    plain, moved = dataset[0], Shifted(dataset, 2.0)[0]
    assert np.array_equal(moved.guide[:, 2:], plain.guide[:, :-2])
    assert np.array_equal(moved.target, plain.target, equal_nan=True)
    assert (Shifted(dataset, 2.0).name, Shifted(dataset, 2.0).unit) == (dataset.name, dataset.unit)


def test_every_experiment_has_a_function():
    assert all(callable(registry._function(name)) for name in EXPERIMENTS)


def test_a_list_of_experiments_and_data_sets_needs_no_torch():
    code = "import sys, dada.datasets, dada.reproduce.registry; print(*{'torch', 'cv2', 'numba'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout == "\n"
