"""Run by `torchrun` in test_processes.py: train, then leave each process's weights and losses in the folder."""

from __future__ import annotations

import sys
from pathlib import Path

import torch

from dada.training import loop, read_config
from dada.training.processes import processes, stop_on_signals
from dada.training.report import Report


def main(folder: Path) -> None:
    config = read_config(folder / "config.toml")
    torch.set_num_threads(config.threads)
    losses: list[float] = []
    tell = Report.step
    Report.step = lambda self, step, loss, *rest: (losses.append(loss), tell(self, step, loss, *rest))[1]  # type: ignore[method-assign]
    with stop_on_signals() as stop, processes() as group:
        training = loop._Training(config, group)
        training.run(stop)
        torch.save(
            {"network": training.network.state_dict(), "losses": losses, "scores": training.progress.scores},
            folder / f"rank{group.rank}.pt",
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
