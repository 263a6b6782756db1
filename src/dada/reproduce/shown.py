"""The crops that figures show, and the images that methods make of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from torch import Tensor

from dada.datasets import Dataset, Pair
from dada.datasets.crops import grid_crops
from dada.datasets.pair import Derived
from dada.errors import InputError
from dada.evaluation.bench import busiest, printed_unit
from dada.evaluation.gallery import truth_of
from dada.evaluation.methods import BICUBIC, Entry, resolve
from dada.evaluation.protocol import P1
from dada.reproduce.found import TestSet
from dada.reproduce.reports import bench, learning_free_methods
from dada.reproduce.study import Study
from dada.reproduce.trainings import network
from dada.sample import Sample

BRIGHTEST = 97  # percentile of bicubic's errors that has the last colour
DEFAULT = "default"

Numbers = dict[str, dict[int, int]]
"""By data set and factor: the number of the paper's crop among all crops of the test images, from 0."""


@dataclass(frozen=True)
class OneCrop(Derived):
    """A data set of a single crop of another one."""

    dataset: Dataset
    pair: Pair

    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: int) -> Pair:
        if index:
            raise IndexError(index)
        return self.pair


@dataclass
class Shown:
    """A crop at a factor, and what became of it; all values in printed units.

    Attributes:
        crop: its name.
        factor: of the source.
        unit: of all values, such as "cm".
        guide: (H, W, C) in 0..1.
        source: (h, w), NaN where nothing is known.
        truth: (H, W), NaN where nothing is known.
        results: (H, W) by the name of the method.
        labels: of the methods by their names; they say how a network was trained.
        limit: error of the last colour: that of bicubic, as a network that has hardly been trained must not set it.
        reasons: why methods are missing.
    """

    crop: str
    factor: int
    unit: str
    guide: np.ndarray
    source: np.ndarray
    truth: np.ndarray
    results: dict[str, np.ndarray]
    labels: dict[str, str]
    limit: float = 1.0
    reasons: dict[str, str] = field(default_factory=dict)

    def error(self, name: str) -> np.ndarray | None:
        """Signed error of a method, or None where it did not run."""
        return self.results[name] - self.truth if name in self.results else None


def crop_to_show(study: Study, test: TestSet, number: int | None, order: int) -> Pair:
    """The paper's own crop where its test images are at hand, else one with many depth jumps.

    Args:
        study: whose protocol cuts.
        test: the data set.
        number: of the paper's crop; see `Numbers`.
        order: other numbers give other images.
    """
    dataset = test.open()
    if test.own and number is not None and study.protocol == P1:
        return _numbered(dataset, number, varying=test.title == "Middlebury")
    image = order * len(dataset) // 4 % len(dataset)
    return busiest(study.protocol.cut(dataset[image]), dataset.unit)


def _numbered(dataset: Dataset, number: int, *, varying: bool) -> Pair:
    """A crop by its number among all of the data set, images in order; `varying`: they differ in size."""
    if varying:
        every: Iterator[Pair] = (crop for index in range(len(dataset)) for crop in grid_crops(dataset[index]))
        return next(crop for place, crop in enumerate(every) if place == number)
    count = len(grid_crops(dataset[0]))
    return grid_crops(dataset[number // count])[number % count]


def show(study: Study, test: TestSet, pair: Pair, factor: int, names: Sequence[str]) -> Shown:
    """Run methods on a crop; networks are those trained on this data set.

    Args:
        study: the experiment.
        test: the data set of the crop.
        pair: the crop.
        factor: of the source.
        names: of methods without weights, of networks, or `DEFAULT`.
    """
    dataset = OneCrop(test.open(), pair)
    entries, reasons = _entries(study, test, factor, names)
    found: list[Shown] = []
    labels = {entry.name: entry.label for entry in entries}
    unit, scale = printed_unit(dataset.quantity)

    def draw(sample: Sample, results: dict[str, Tensor]) -> None:
        by = sample.unit * scale
        truth = truth_of(sample) * by
        source = np.where(sample.source_mask[0, 0].numpy(), sample.source[0, 0].numpy() * by, np.nan)
        images = {entry.name: results[entry.label][0, 0].numpy() * by for entry in entries if entry.label in results}
        limit = float(np.nanpercentile(np.abs(images.pop(BICUBIC) - truth), BRIGHTEST)) or 1.0
        guide = sample.guide[0].permute(1, 2, 0).numpy()
        found.append(Shown(pair.name, factor, unit, guide, source, truth, images, labels, limit, reasons))

    report = bench(study, entries, dataset, [factor], None, draw)
    for entry in entries:
        if failure := report.runs[entry.label, factor].failure:
            reasons[entry.name] = failure
    return found[0]


def _entries(study: Study, test: TestSet, factor: int, names: Sequence[str]) -> tuple[list[Entry], dict[str, str]]:
    free = {entry.name: entry for entry in learning_free_methods(study)}
    entries, reasons = [free[BICUBIC]], {}
    for name in names:
        try:
            if name in free:
                entries.append(free[name])
            elif name == DEFAULT:
                entries.append(Entry(DEFAULT, DEFAULT, resolve(DEFAULT).method))
            elif name in study.effort.networks:
                entries.append(network(study, name, factor, test))
        except InputError as error:
            reasons[name] = str(error)
    return entries, reasons
