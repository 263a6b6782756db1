"""The learning rate as a function of the step, without state."""

from __future__ import annotations

import math

from dada.training.config import TrainConfig


def falls_at(config: TrainConfig) -> float:
    """The last step of a "stable" schedule with the full rate."""
    return config.steps * (1 - config.schedule.fall)


def learning_rate(step: int, config: TrainConfig) -> float:
    """Return the rate of a step, counted from 0."""
    schedule = config.schedule
    rate = config.learning_rate * min(1.0, (step + 1) / (schedule.warmup + 1))
    if schedule.kind == "step":
        return rate * schedule.decay ** (step // schedule.every)
    if schedule.kind == "stable":
        left = (config.steps - step) / (config.steps - falls_at(config))
        return rate * (schedule.floor + (1 - schedule.floor) * min(max(left, 0.0), 1.0))
    done = min(step / config.steps, 1.0)
    return rate * (schedule.floor + (1 - schedule.floor) * (1 + math.cos(math.pi * done)) / 2)
