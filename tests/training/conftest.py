"""A training small enough to run many times: painted scenes of 32 x 32 and the light U-Net."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from dada.training import DataConfig, LossConfig, TrainConfig, ValidationConfig


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def small(tmp_path: Path) -> TrainConfig:
    """Two factors, an average, a validation on the way."""
    return TrainConfig(
        output=str(tmp_path / "run"),
        data=(
            DataConfig(dataset="painted:1", augmentation="none"),
            DataConfig(dataset="painted:2", sensor=0.5, noise=0.01),
        ),
        network={"extractor": "light", "features": 8, "source": "own"},
        factors=(4, 8),
        crop=(32,),
        batch=(2,),
        interpolation="torch",
        workers=0,
        threads=1,
        steps=12,
        average=0.9,
        clip=1.0,
        loss=LossConfig(mse=0.3, relative=True, jump_weight=1.0),
        validation=ValidationConfig(data=("painted:3",), factors=(8,), crops=2, size=32, every=5),
    )
