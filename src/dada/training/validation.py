"""Validation: errors under protocol P1, as shares of bicubic's on the same crops."""

from __future__ import annotations

import math
import warnings
from itertools import islice

import torch
from torch import Tensor, nn

from dada.datasets import Dataset, load_dataset
from dada.datasets.crops import grid_crops
from dada.datasets.pair import Pair
from dada.diffusion import ConvergenceWarning
from dada.errors import InputError
from dada.evaluation.metrics import Sums, measure
from dada.sample import Sample
from dada.training.config import TrainConfig
from dada.training.data import for_role, sample_of
from dada.training.processes import Processes


class Validation:
    """Crops to measure on, prepared once, each process its part of them."""

    def __init__(self, config: TrainConfig, processes: Processes) -> None:
        """Read the crops and measure bicubic on them.

        Raises:
            InputError: a data set cannot be opened, or has no crop of the size.
        """
        self._processes = processes
        self._samples: dict[str, list[Sample]] = {}
        wanted = config.validation
        for text in wanted.data:
            dataset = load_dataset(for_role(config.located(text), "val"), split=wanted.split)
            crops = spread_crops(dataset, wanted.crops, wanted.size) if wanted.crops else whole(dataset, wanted.size)
            if not crops:
                raise InputError(f"{text}: no image is as large as the crops of {wanted.size} (validation.size).")
            mine = crops[processes.rank :: processes.count]
            for factor in wanted.factors or config.factors:
                for sampling in wanted.sampling:
                    name = f"{dataset.name} x{factor}" + (f" {sampling}" if sampling != "mean" else "")
                    given = factor, dataset.unit, wanted.interpolation, sampling
                    self._samples[name] = [sample_of(crop, *given) for crop in mine]
        self._bicubic = {name: self._total(None, samples) for name, samples in self._samples.items()}

    def __call__(self, network: nn.Module, step: int = 0) -> dict[str, float]:
        """Return the share of bicubic's error left, by "DATASET xFACTOR mse" and "... mae", the same at any step."""
        shares = {}
        for name, samples in self._samples.items():
            left = self._total(network, samples) / self._bicubic[name].clamp(min=1e-30)
            shares[f"{name} mse"], shares[f"{name} mae"] = left.tolist()
        return shares

    def score(self, shares: dict[str, float]) -> float:
        """What the best weights have the least of: the geometric mean of the shares of bicubic's MSE."""
        return score(shares)

    def _total(self, network: nn.Module | None, samples: list[Sample]) -> Tensor:
        """Sums of the squared and the absolute error over all processes, [2]; bicubic's without a network."""
        sums = sum(measured(network, samples), Sums())
        return self._processes.total(torch.tensor([sums.squared, sums.absolute], dtype=torch.float64))


@torch.no_grad()
def measured(network: nn.Module | None, samples: list[Sample]) -> list[Sums]:
    """The sums of errors of each sample; bicubic's without a network."""
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a solution that did not converge shows as an error
        for sample in samples:
            found += measure(sample.initial if network is None else network(sample), sample)
    return found


def score(shares: dict[str, float], error: str = "mse") -> float:
    """The geometric mean of the shares of all data sets and factors; infinite where nothing was measured.

    A few far pixels of one set may make its share ten times as large: that shall not decide alone.
    """
    values = [value for name, value in shares.items() if name.endswith(f" {error}")]
    return math.prod(value ** (1 / len(values)) for value in values) if values else math.inf


def whole(dataset: Dataset, size: int) -> list[Pair]:
    """All crops of P1's grid that have a valid pixel."""
    every = (crop for index in range(len(dataset)) for crop in grid_crops(dataset[index], size))
    return [crop for crop in every if crop.valid.any()]


def spread_crops(dataset: Dataset, count: int, size: int) -> list[Pair]:
    """At most `count` crops of P1's grid, from as many different images as there are, evenly over the data set."""
    images = min(count, len(dataset))
    chosen = [dataset[i * len(dataset) // images] for i in range(images)]
    grids = [grid_crops(pair, size) for pair in chosen]
    deepest = max((len(grid) for grid in grids), default=0)
    # the middle of the grid first: the first crop of an indoor image often shows only the ceiling
    rounds = (grid[(len(grid) // 2 + k) % len(grid)] for k in range(deepest) for grid in grids if k < len(grid))
    return [crop for crop in islice(rounds, count) if crop.valid.any()]
