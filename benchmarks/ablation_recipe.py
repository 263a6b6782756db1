"""What each part of the recipe is worth: short trainings that lack one part each, and their validation.

    python benchmarks/ablation_recipe.py --root DATA [--steps 1500] [--crops 4] [--only NAME ...]

Every training is `configs/default.toml` with so many steps and one change, validated at its end on the recipe's own
validation scenes (P1, share of bicubic's MSE, means over data sets). Run it again to go on where it was stopped.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from dada.training import DataConfig, TrainConfig, read_config, train
from dada.training.checkpoint import LAST

RECIPE = Path(__file__).parents[1] / "configs" / "default.toml"


def variants(recipe: TrainConfig) -> Iterator[tuple[str, TrainConfig]]:
    """The recipe, and what lacks a part of it."""
    yield "recipe", recipe
    yield "wide refinement network", _with(recipe, refinement="wide")
    yield "no refinement network", _with(recipe, feedback="coefficients")
    yield "no direct comparison", _with(recipe, direct=False)
    yield "no ImageNet start", _with(recipe, pretrained=False)
    yield "one round", _with(recipe, rounds=1, feedback="coefficients")
    yield "block means alone", replace(recipe, sampling=("mean",))
    yield "no painted scenes", _data(recipe, lambda entry: not entry.dataset.startswith("painted"))
    yield "no gaps, no sensor errors", _clean(recipe)
    yield "float32", replace(recipe, bfloat16=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", default="data")
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--output", default="runs/ablation")
    parser.add_argument("--crops", type=int, help="of each validation set; those of the recipe by default")
    parser.add_argument("--only", nargs="+", help="names of variants")
    options = parser.parse_args()
    recipe = replace(read_config(RECIPE), root=options.root, steps=options.steps)
    wanted = replace(recipe.validation, every=options.steps, crops=options.crops or recipe.validation.crops)
    recipe = replace(recipe, validation=wanted)
    print("| | " + " | ".join(columns(recipe)) + " |\n| --- |" + " ---: |" * len(columns(recipe)))
    for name, config in variants(recipe):
        if options.only and name not in options.only:
            continue
        folder = Path(options.output) / name.replace(" ", "-").replace(",", "")
        train(replace(config, output=str(folder)))
        print(f"| {name} | " + " | ".join(f"{value:.3f}" for value in means(recipe, scores(folder))) + " |", flush=True)


def columns(config: TrainConfig) -> list[str]:
    """What `means` tells."""
    return [f"{sampling} x{factor}" for sampling in config.validation.sampling for factor in config.validation.factors]


def means(config: TrainConfig, shares: dict[str, float]) -> list[float]:
    """Mean share of bicubic's MSE over data sets, by sampling and factor."""
    found = []
    for sampling in config.validation.sampling:
        for factor in config.validation.factors:
            end = f" x{factor} mse" if sampling == "mean" else f" x{factor} {sampling} mse"
            values = [value for name, value in shares.items() if name.endswith(end)]
            found.append(sum(values) / len(values))
    return found


def scores(folder: Path) -> dict[str, float]:
    """The last validation of a training."""
    import torch

    found: dict[str, float] = torch.load(folder / LAST, weights_only=True)["progress"]["scores"]
    return found


def _with(config: TrainConfig, **network: bool | int | float | str) -> TrainConfig:
    return replace(config, network={**config.network, **network})


def _data(config: TrainConfig, kept: Callable[[DataConfig], bool]) -> TrainConfig:
    return replace(config, data=tuple(entry for entry in config.data if kept(entry)))


def _clean(config: TrainConfig) -> TrainConfig:
    changed = [replace(entry, gaps=0.0, sensor=0.0, ragged=0.0, noise=0.0) for entry in config.data]
    return replace(config, data=tuple(changed))


if __name__ == "__main__":
    main()
