"""Training of DADA and of the networks it is compared with: one loop, one typed configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dada.training.config import DataConfig, LossConfig, ScheduleConfig, TrainConfig, ValidationConfig, read_config

if TYPE_CHECKING:
    from dada.training.loop import train

__all__ = ["DataConfig", "LossConfig", "ScheduleConfig", "TrainConfig", "ValidationConfig", "read_config", "train"]


def __getattr__(name: str) -> Any:
    """Import the loop when it is first used: the command line describes a configuration without torch."""
    if name != "train":
        raise AttributeError(f"module 'dada.training' has no attribute {name!r}")
    from dada.training.loop import train

    return train
