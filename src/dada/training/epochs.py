"""Samples and validation as in the paper's released code: `augmentation = "paper"`.

Every epoch takes each image once, in a new order; the last batch of an epoch may be smaller. As everywhere in a
training, a batch is a pure function of the seed and the step.
"""

from __future__ import annotations

from math import ceil

import numpy as np
from torch import nn

from dada.datasets.crops import to_sample
from dada.datasets.pair import DEPTH, Pair
from dada.datasets.published import PublishedCrops
from dada.errors import InputError
from dada.evaluation.metrics import average
from dada.sample import DataUnit, Sample
from dada.sample.data_unit import with_mean
from dada.training.config import DataConfig, TrainConfig
from dada.training.data import Pairs, Steps
from dada.training.processes import Processes
from dada.training.validation import Validation, measured, whole

INTERIOR = ("nyuv2", "diml")
"""Kinds of data sets whose crops lie within the rotated image; all others follow the rule of Middlebury."""
ORDER_STREAM, VALIDATION_STREAM = 1 << 33, 1 << 34  # larger than every place in a batch


class Epochs(Steps):
    """Batch k holds the samples of step k: images in the shuffled order of its epoch.

    Attributes:
        config: of the training.
        length: steps of an epoch.
    """

    def __init__(self, config: TrainConfig, processes: Processes) -> None:
        """Open the data set.

        Raises:
            InputError: it cannot be opened or is empty, or there are several processes.
        """
        if processes.count > 1:
            raise InputError(
                f'augmentation "paper" trains in one process, as the released code does; there are {processes.count}. '
                'Start it without torchrun, or use augmentation "rigid".'
            )
        (entry,) = config.data
        self.config = config
        self._pairs = Pairs(entry, config.located(entry.dataset))
        self._crops = crops_of(entry.dataset)
        self._batch = config.batch_of(config.factors[0])
        self.length = ceil(len(self._pairs) / self._batch)

    @property
    def unit(self) -> DataUnit | None:
        """That of all samples; None where they are no lengths."""
        dataset = self._pairs.dataset
        return with_mean(dataset.unit) if dataset.quantity == DEPTH else None

    def images(self, step: int) -> list[int]:
        """Numbers of the images of a step."""
        epoch, place = divmod(step, self.length)
        order = np.random.default_rng((self.config.seed, epoch, ORDER_STREAM)).permutation(len(self._pairs))
        return [int(i) for i in order[place * self._batch : (place + 1) * self._batch]]

    def __getitem__(self, step: int) -> Sample:
        factor = self.config.factors[0]
        size = self.config.crop_of(factor)
        samples = []
        for place, image in enumerate(self.images(step)):
            rng = np.random.default_rng((self.config.seed, step, place))
            crop = self._crops.crop(self._pairs.pair(image, size), rng, size, factor)
            samples.append(to_sample(crop, factor, self._pairs.dataset.unit, self.config.interpolation))
        return Sample.batch(samples)


class PublishedValidation(Validation):
    """The whole split; the weights with the lowest L1 are the best ones.

    Middlebury and other sets: all crops of the grid. NYUv2 and DIML (`INTERIOR`): one random, augmented crop of each
    image, another one at each validation. Errors are means over shuffled batches of the training's size, then over
    these batches.
    """

    def __init__(self, config: TrainConfig, processes: Processes) -> None:
        """Open the data sets and cut the crops that do not change.

        Raises:
            InputError: a data set cannot be opened, or has no crop of the size.
        """
        self._config = config
        factors = config.validation.factors or config.factors
        self._sets = [_Split(config, text, factor) for text in config.validation.data for factor in factors]
        self._l1 = float("inf")

    def __call__(self, network: nn.Module, step: int = 0) -> dict[str, float]:
        """Return the share of bicubic's error left, by "DATASET xFACTOR mse" and "... mae"."""
        shares, every = {}, []
        for number, split in enumerate(self._sets):
            rng = np.random.default_rng((self._config.seed, step, VALIDATION_STREAM + number))
            mine, plain = split.measure(network, rng, self._config.batch_of(self._config.factors[0]))
            every.append(mine[1] / split.unit)
            for error, left, bicubic in zip(("mse", "mae"), mine, plain, strict=True):
                shares[f"{split.name} {error}"] = left / max(bicubic, 1e-30)
        self._l1 = sum(every) / len(every) if every else float("inf")
        return shares

    def score(self, shares: dict[str, float]) -> float:
        """Mean absolute error of the last call, in units of the data set."""
        return self._l1


class _Split:
    """A validation split at one factor."""

    def __init__(self, config: TrainConfig, text: str, factor: int) -> None:
        wanted = config.validation
        self.factor, self.size = factor, wanted.size
        self.interpolation = wanted.interpolation
        self.pairs = Pairs(DataConfig(dataset=text, split=wanted.split), config.located(text))
        self.unit = self.pairs.dataset.unit
        self.name = f"{self.pairs.dataset.name} x{self.factor}"
        self.crops = crops_of(text)
        self.fixed: list[Sample] = []
        if not self.crops.interior:
            self.fixed = [self._sample(crop) for crop in whole(self.pairs.dataset, self.size)]
            if not self.fixed:
                raise InputError(f"{text}: no image is as large as the crops of {self.size} (validation.size).")

    def measure(
        self, network: nn.Module, rng: np.random.Generator, batch: int
    ) -> tuple[tuple[float, float], tuple[float, float]]:
        """MSE and MAE of the network and of bicubic, as means over batches."""
        samples = self.fixed or [self._drawn(i, rng) for i in range(len(self.pairs))]
        order = rng.permutation(len(samples))
        found = [measured(network, [samples[i] for i in order]), measured(None, [samples[i] for i in order])]
        scores = [average(sums, "batches", batch) for sums in found]
        return (scores[0].mse, scores[0].mae), (scores[1].mse, scores[1].mae)

    def _drawn(self, image: int, rng: np.random.Generator) -> Sample:
        return self._sample(self.crops.crop(self.pairs.pair(image, self.size), rng, self.size, self.factor))

    def _sample(self, crop: Pair) -> Sample:
        return to_sample(crop, self.factor, self.unit, self.interpolation)


def crops_of(text: str) -> PublishedCrops:
    """How crops of a data set KIND:PATH are drawn."""
    return PublishedCrops(interior=text.partition(":")[0] in INTERIOR)
