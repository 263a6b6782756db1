"""Run by `torchrun` in test_processes.py: train each configuration of a folder, leave there what each process has."""

from __future__ import annotations

import sys
from pathlib import Path

import torch

from dada.training import loop, read_config
from dada.training.processes import processes, stop_on_signals


def main(folder: Path) -> None:
    with stop_on_signals() as stop, processes() as group:
        for file in sorted(folder.glob("*.toml")):
            config = read_config(file)
            torch.set_num_threads(config.threads)
            training = loop._Training(config, group)
            training.run(stop)
            state = {
                "network": training.network.state_dict(),
                "average": training.average.network.state_dict(),
                "scores": training.progress.scores,
            }
            torch.save(state, folder / f"{file.stem}-{group.rank}.pt")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
