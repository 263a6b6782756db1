"""A training that was interrupted or killed ends as one that was not."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from dada.errors import InputError
from dada.training import ScheduleConfig, TrainConfig, ValidationConfig, loop, toml, train
from dada.training.checkpoint import LAST

KILLS = int(os.environ.get("DADA_TEST_KILLS", "1"))
SPARSE = ValidationConfig(data=("painted:3",), factors=(8,), crops=1, size=32, every=15)


def state(config: TrainConfig) -> dict:
    return torch.load(Path(config.output) / LAST, weights_only=True)


def assert_same(one: TrainConfig, other: TrainConfig) -> None:
    """Weights, average and the optimiser's memory, bit for bit; and the best weights too."""
    a, b = state(one), state(other)
    for part in ("network", "average"):
        assert a[part].keys() == b[part].keys()
        assert all(torch.equal(a[part][key], b[part][key]) for key in a[part])
    for number, memory in a["optimiser"]["state"].items():
        assert all(torch.equal(value, b["optimiser"]["state"][number][key]) for key, value in memory.items())
    assert {**a["progress"], "seconds": 0} == {**b["progress"], "seconds": 0}
    best, again = (load_file(Path(config.output) / loop.BEST) for config in (one, other))
    assert best.keys() == again.keys()
    assert all(torch.equal(best[key], again[key]) for key in best)


def as_recipe(config: TrainConfig) -> TrainConfig:
    """With what the recipe draws for each batch, in bfloat16."""
    network = {**config.network, "bands": 4, "rounds": 2, "feedback": "refinement", "refinement": "narrow"}
    data = tuple(replace(entry, gaps=0.5) for entry in config.data)
    more: dict = {"sampling": ("mean", "point:any", "bicubic"), "bands": (1, 3, 4), "bfloat16": True}
    return replace(config, data=data, network=network, schedule=ScheduleConfig(kind="stable"), **more)


@pytest.fixture
def other(small: TrainConfig) -> TrainConfig:
    return replace(small, output=small.output + "-other")


@pytest.mark.parametrize("recipe", [False, True], ids=["plain", "as the recipe"])
def test_stopped_training_goes_on_bit_for_bit(small: TrainConfig, other: TrainConfig, monkeypatch, recipe: bool):
    if recipe:
        small, other = (as_recipe(config) for config in (small, other))
    train(small)
    steps = []

    def step_then_signal(training, *args):
        original(training, *args)
        steps.append(training.progress.step)
        if training.progress.step in (3, 7):
            signal.raise_signal(signal.SIGTERM if training.progress.step == 3 else signal.SIGINT)

    original = loop._Training._step
    monkeypatch.setattr(loop._Training, "_step", step_then_signal)
    for _ in range(3):
        train(other)
    assert steps == list(range(1, 13))  # none is done twice
    assert_same(small, other)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL on this system")
def test_killed_training_ends_with_the_same_weights(small: TrainConfig, other: TrainConfig, tmp_path: Path):
    """DADA_TEST_KILLS sets how often: by turns at a random moment after a new checkpoint, and of the start."""
    steps = 30 + 12 * KILLS
    small, other = (
        replace(c, steps=steps, checkpoint=0.002, validation=SPARSE) for c in (small, other)
    )  # every 0.12 s
    train(small)
    file = tmp_path / "config.toml"
    file.write_text(toml.write(replace(other, workers=1)))
    moment, reached, start_seconds = random.Random(0), 0, 0.0
    for number in range(KILLS):
        process, begun = start(file), time.monotonic()
        if number % 2 == 0:
            wait_for_checkpoint_after(reached, other, process)
            start_seconds = time.monotonic() - begun
            time.sleep(moment.uniform(0, 0.2))
        else:
            time.sleep(moment.uniform(0, start_seconds))
        process.kill()
        process.wait()
        assert_nothing_left_of(process)
        reached = state(other)["progress"]["step"]
    assert reached < other.steps, "the training was over before the last kill"

    process = start(file)  # and once politely, all of its processes at once, as a terminal or a job does
    wait_for_checkpoint_after(reached, other, process)
    os.killpg(process.pid, signal.SIGTERM)
    assert process.wait(timeout=60) == 0
    assert_nothing_left_of(process)
    train(other)
    assert_same(small, other)


def start(file: Path) -> subprocess.Popen:
    command = [sys.executable, "-m", "dada.cli", "train", "--config", str(file)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)


def assert_nothing_left_of(process: subprocess.Popen) -> None:
    """A worker sees within some seconds that nobody is there to work for."""
    for _ in range(300):
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.1)
    pytest.fail("a process of the training outlived it by half a minute")


def wait_for_checkpoint_after(step: int, config: TrainConfig, process: subprocess.Popen) -> None:
    for _ in range(2400):
        assert process.poll() is None, "the training ended by itself"
        if (Path(config.output) / LAST).exists() and state(config)["progress"]["step"] > step:
            return
        time.sleep(0.05)
    pytest.fail("no checkpoint within two minutes")


def test_time_limit_stops_and_the_next_run_goes_on(small: TrainConfig, other: TrainConfig):
    train(small)
    train(replace(other, minutes=1e-9))
    assert state(other)["progress"]["step"] == 1
    train(other)
    assert_same(small, other)


def test_other_settings_are_refused(small: TrainConfig):
    train(replace(small, minutes=1e-9))
    with pytest.raises(InputError, match=r"other settings \(learning_rate was 0.001, now 0.1\)"):
        train(replace(small, learning_rate=0.1))


def test_damaged_checkpoint_is_told(small: TrainConfig):
    train(replace(small, minutes=1e-9))
    (Path(small.output) / LAST).write_bytes(b"no checkpoint")
    with pytest.raises(InputError, match="checkpoint cannot be used"):
        train(small)


def test_a_training_at_its_full_rate_may_be_made_shorter(small: TrainConfig, other: TrainConfig):
    stable = ScheduleConfig(kind="stable", fall=0.25)
    train(replace(small, schedule=stable, steps=8))
    longer = replace(other, schedule=stable, steps=40, minutes=1e-6)
    train(longer)  # a step
    train(replace(longer, steps=8, minutes=0))
    assert_same(small, other)
    with pytest.raises(InputError, match="steps was 8, now 40"):
        train(replace(longer, minutes=0))
