"""The fuzzer itself: it runs every target, is repeatable, and keeps what it finds."""

from pathlib import Path

import numpy as np
import pytest

from dada.io import read_image
from tests.fuzz.__main__ import Tally, _run_worker
from tests.fuzz.make_seeds import SEEDS, write_seeds
from tests.fuzz.mutation import damage
from tests.fuzz.targets import TARGETS


@pytest.mark.filterwarnings("ignore::dada.io.ImageWarning")
def test_every_seed_is_read_before_it_is_damaged():
    for path in SEEDS.iterdir():
        role = path.name.partition("_")[0]
        if role != "weights":
            assert read_image(path, role=role).values.size


def test_the_seeds_are_what_their_program_writes(tmp_path: Path):
    write_seeds(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {path.name for path in SEEDS.iterdir()}


def test_damage_is_repeatable():
    for path in SEEDS.iterdir():
        first, second = (damage(path.read_bytes(), np.random.default_rng(3)) for _ in range(2))
        assert first == second


@pytest.mark.parametrize("name", ["read", "weights", "command", "arrays"])
def test_some_cases_of_every_target_hold(name: str, tmp_path: Path, capfd):
    seeds = sorted(SEEDS.iterdir())
    for number in range(20 if name == "read" else 3):
        TARGETS[name].run(tmp_path, seeds, np.random.default_rng([1, number]))


def test_a_process_that_ends_wrongly_is_kept_with_its_input(tmp_path: Path, capsys):
    work = tmp_path / "work"
    work.mkdir()
    reason = _run_worker("no such target", work, 0, 1.0)
    assert "exit code 1" in reason
    assert "KeyError" in reason
    (work / "case" / "input.tif").write_bytes(b"II*")
    tally = Tally(tmp_path / "findings")
    tally.count("read", work)
    assert tally.cases["read"] == 0
    tally.keep("read", work, reason)
    (kept,) = (tmp_path / "findings").iterdir()
    assert {path.name for path in kept.iterdir()} == {"input.tif", "finding.txt"}
    assert tally.found.total() == 1
