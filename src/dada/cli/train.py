"""`dada train --config FILE`: every setting of a training is a flag too."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any

from tyro.conf import arg

from dada.errors import InputError
from dada.training.config import TrainConfig, read_config


@dataclass(frozen=True, kw_only=True)
class Train(TrainConfig):
    """Train DADA, or a network it is compared with.

    A training that was interrupted or killed goes on where it stopped when it is started again, and ends with the
    same weights. Flags go before what the configuration says.

    For example: `dada train --config configs/short.toml --output runs/short`

    On several processes: `torchrun --nproc-per-node 2 -m dada.cli train --config configs/short.toml`
    """

    config: Annotated[str, arg(metavar="FILE", help_behavior_hint="")] = ""
    """TOML file of these settings."""

    def run(self) -> int:
        """Run the command; return its exit code."""
        import os

        from dada.training import train

        best = train(TrainConfig(**_values(self)))
        if best.exists() and os.environ.get("RANK", "0") == "0":  # one of those that torchrun started
            print(best)
        return 0


def parse(arguments: Sequence[str]) -> Train:
    """Read the command's arguments, on top of the file that `--config` names."""
    import tyro

    file = _file(arguments)
    begin = Train(**_values(read_config(file)), config=file) if file else Train()
    given = tyro.cli(
        Train, prog="dada train", default=begin, args=list(arguments), config=(tyro.conf.FlagCreatePairsOff,)
    )
    return dataclasses.replace(given, network={**begin.network, **given.network})


def _values(config: TrainConfig) -> dict[str, Any]:
    return {f.name: getattr(config, f.name) for f in dataclasses.fields(TrainConfig)}


def _file(arguments: Sequence[str]) -> str:
    """The file of `--config FILE` or `--config=FILE`; it is needed before the rest can be read."""
    files = [text.removeprefix("--config=") for text in arguments if text.startswith("--config=")]
    files += [after for name, after in pairwise(arguments) if name == "--config"]
    if len(files) > 1:
        raise InputError(f"there are {len(files)} configurations, {' and '.join(files)}. Give one --config.")
    return files[0] if files else ""
