"""Several processes train one network."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from dada.training import DataConfig, TrainConfig, toml, train
from dada.training.checkpoint import LAST

SCRIPT = Path(__file__).with_name("two_processes.py")
pytestmark = pytest.mark.skipif(not dist.is_available(), reason="this torch has no torch.distributed")


def test_two_processes_train_as_one_with_twice_the_batch(small: TrainConfig, tmp_path: Path):
    # painted scenes have no holes: the mean over processes is the mean over the batch
    small = replace(small, data=(DataConfig(dataset="painted:1", augment="none"),), steps=5, factors=(8,))
    small = replace(small, loss=replace(small.loss, relative=False, jump_weight=0.0), learning_rate=1e-4)
    (tmp_path / "config.toml").write_text(toml.write(small))
    launch = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    ran = subprocess.run(
        [*launch, str(SCRIPT), str(tmp_path)], env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    first, second = (torch.load(tmp_path / f"rank{rank}.pt", weights_only=True) for rank in (0, 1))
    assert all(torch.equal(first["network"][key], second["network"][key]) for key in first["network"])
    assert first["scores"] == second["scores"]

    alone = replace(small, output=small.output + "-alone", batch=(4,))
    train(alone)
    single = torch.load(Path(alone.output) / LAST, weights_only=True)
    assert first["scores"] == pytest.approx(single["progress"]["scores"], rel=0.01)
    # Adam makes a whole step of a gradient of zero and rounding, so a few weights may differ by as much
    apart = torch.cat([(first["network"][key] - value).abs().flatten() for key, value in single["network"].items()])
    assert apart.mean() < 0.05 * small.steps * small.learning_rate
