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

from dada.training import DataConfig, LossConfig, TrainConfig, toml, train
from dada.training.checkpoint import LAST

SCRIPT = Path(__file__).with_name("two_processes.py")
pytestmark = pytest.mark.skipif(not dist.is_available(), reason="this torch has no torch.distributed")


def test_two_processes_train_as_one_with_twice_the_batch(small: TrainConfig, tmp_path: Path):
    # painted scenes have no holes: the mean over processes is the mean over the batch
    data = (DataConfig(dataset="painted:1", augmentation="none"),)
    small = replace(small, data=data, loss=LossConfig(mse=0.3), learning_rate=1e-4, steps=5, factors=(8,))
    networks = {
        "dada": small,
        "fdkn": replace(small, method="fdkn", network={}, steps=2),  # gathers statistics of its batches
        "fdsr": replace(small, method="fdsr", network={"features": 8}, steps=2),  # has parameters it does not use
    }
    for name, config in networks.items():
        (tmp_path / f"{name}.toml").write_text(toml.write(replace(config, output=f"{small.output}-{name}")))
    launch = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone"]
    ran = subprocess.run(
        [*launch, str(SCRIPT), str(tmp_path)], env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    for name in networks:
        first, second = (torch.load(tmp_path / f"{name}-{rank}.pt", weights_only=True) for rank in (0, 1))
        assert first["scores"] == second["scores"]
        assert all(torch.equal(first["average"][key], second["average"][key]) for key in first["average"])

    train(replace(small, batch=(4,)))
    single = torch.load(Path(small.output) / LAST, weights_only=True)
    double = torch.load(tmp_path / "dada-0.pt", weights_only=True)
    assert double["scores"] == pytest.approx(single["progress"]["scores"], rel=0.01)
    # Adam makes a whole step of a gradient of zero and rounding, so a few weights may differ by as much
    apart = torch.cat([(double["network"][key] - value).abs().flatten() for key, value in single["network"].items()])
    assert apart.mean() < 0.05 * small.steps * small.learning_rate
