"""The checkpoint of a training: its complete state, in one file that is written atomically."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn

from dada.errors import InputError
from dada.io.atomic import TEMPORARY_PREFIX, atomic_path, write_bytes_atomically
from dada.training import toml
from dada.training.average import Average
from dada.training.config import TrainConfig
from dada.training.schedule import falls_at

LAST, CONFIG = "last.pt", "config.toml"
FREE = ("output", "root", "workers", "threads", "checkpoint", "minutes")
"""Settings that may differ when a training is resumed: they do not change the result (threads: only rounding)."""


@dataclass
class Progress:
    """Progress of a training; with the weights and the optimiser's state this is its whole state.

    Attributes:
        step: steps done. Data, learning rate and random numbers follow from it.
        best: lowest validation score so far; see `Validation.score`.
        seconds: spent in all runs together.
        scores: newest validation, share of bicubic's error by "DATASET xFACTOR mse|mae".
    """

    step: int = 0
    best: float = float("inf")
    seconds: float = 0.0
    scores: dict[str, float] = field(default_factory=dict)


def save(folder: Path, progress: Progress, network: nn.Module, average: Average, optimiser: torch.optim.Adam) -> None:
    """Write the checkpoint."""
    state = {
        "progress": dataclasses.asdict(progress),
        "network": network.state_dict(),
        "average": average.network.state_dict(),
        "optimiser": optimiser.state_dict(),
    }
    with atomic_path(folder / LAST) as temporary:
        torch.save(state, temporary)


def restore(folder: Path, network: nn.Module, average: Average, optimiser: torch.optim.Adam) -> Progress:
    """Read the checkpoint of a folder into the network, its average and the optimiser, if there is one.

    Raises:
        InputError: there is one that cannot be read or belongs to another network.
    """
    path = folder / LAST
    if not path.exists():
        return Progress()
    try:
        state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
        network.load_state_dict(state["network"])
        average.network.load_state_dict(state["average"])
        optimiser.load_state_dict(state["optimiser"])
        return Progress(**state["progress"])
    except Exception as error:  # any error that a damaged file causes within torch
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"{path}: the checkpoint cannot be used ({reason}). Choose another --output.") from None


def claim(folder: Path, config: TrainConfig) -> None:
    """Create the folder of a training, or check that it holds this training, and write the configuration.

    Raises:
        InputError: the folder holds a training of another configuration, or cannot be written to.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: the folder cannot be made ({error.strerror}). Choose another --output.") from None
    for stale in folder.glob(f"{TEMPORARY_PREFIX}*.tmp"):  # of a killed run
        stale.unlink(missing_ok=True)
    path = folder / CONFIG
    if path.exists() and (folder / LAST).exists():
        before = toml.read(path, TrainConfig)
        free = (*FREE, "steps") if _length_is_free(folder, before, config) else FREE
        other = [
            f"{f.name} was {getattr(before, f.name)!r}, now {getattr(config, f.name)!r}"
            for f in dataclasses.fields(config)
            if f.name not in free and getattr(before, f.name) != getattr(config, f.name)
        ]
        if other:
            raise InputError(
                f"{folder}: it holds a training with other settings ({'; '.join(other)}). Choose another --output; "
                "to start from its weights, name them with --start."
            )
    write_bytes_atomically(path, toml.write(config).encode() + b"\n")


def _length_is_free(folder: Path, before: TrainConfig, config: TrainConfig) -> bool:
    """Whether what was done so far would be the same with the steps of either configuration."""
    if config.schedule.kind != "stable" or before.schedule != config.schedule:
        return False
    try:
        done = torch.load(folder / LAST, map_location="cpu", weights_only=True)["progress"]["step"]
    except Exception:  # any error that a damaged file causes; `restore` tells of it
        return False
    return bool(done <= min(falls_at(before), falls_at(config)))
