"""The samples of a training: each is a pure function of the seed, the step and its place in the batch.

A resumed training therefore gets the same samples, with any number of workers, and no state of the data is saved.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from dada.datasets import load_dataset
from dada.datasets.augment import STRONG, Augmentation, raised
from dada.datasets.bands import with_bands
from dada.datasets.crops import TRIES, to_sample
from dada.datasets.painted import Painted
from dada.datasets.pair import DEPTH, Pair
from dada.datasets.register import register
from dada.datasets.sensor import RAGGED, Sensor, noisy_source, with_gaps
from dada.datasets.split import Role
from dada.errors import InputError
from dada.sample import DataUnit, Interpolation, Sample, Sampling
from dada.sample.data_unit import with_mean
from dada.sample.guide import fill_nearest
from dada.training.config import ANY_POINT, DataConfig, TrainConfig
from dada.training.processes import ENDS, signals_held

FACTOR_STREAM = 1 << 32  # larger than every place in a batch: seeds the draw of a step's factor
SAMPLING_STREAM = FACTOR_STREAM + 1  # the same for the draw of its sampling
BANDS_STREAM = FACTOR_STREAM + 2  # ... and of the bands of its guides
KEEP_BYTES = 1 << 29  # of decoded images, for each data set and worker
PREFETCH = 3  # batches ahead of the network, for each worker
DEVIATION = 0.2  # of a crop measured in its own unit: those of painted and measured rooms have 0.1 to 0.6


AUGMENTATIONS = {"none": Augmentation(flip=0.0, rotation=0.0), "rigid": Augmentation(), "strong": STRONG}


class Steps(Dataset[Sample]):
    """What a training uses: item k is the batch of one process in step k.

    Attributes:
        config: of the training.
    """

    config: TrainConfig

    def __len__(self) -> int:
        return self.config.steps


class Batches(Steps):
    """Each sample is drawn on its own, whatever was drawn before; `epochs.py` holds the paper's way.

    Attributes:
        rank: of the process; each gets its own part of the step's samples.
    """

    def __init__(self, config: TrainConfig, rank: int = 0) -> None:
        """Open the data sets, so that a wrong path is reported first.

        Raises:
            InputError: there is no data set, or one cannot be opened or is empty.
        """
        if not config.data:
            raise InputError("there is no data to train on: name some, such as --data painted:0.")
        self.config, self.rank = config, rank
        self._origins = [_Origin(entry, config.located(entry.dataset)) for entry in config.data]
        weights = np.array([entry.weight for entry in config.data])
        if not weights.sum() > 0:
            raise InputError("the weights of all data sets are 0: give one of them more.")
        self._share = weights / weights.sum()

    @property
    def unit(self) -> DataUnit | None:
        """That of all samples; None where they have no length or differ, as crops do that are scaled by themselves."""
        if any(o.entry.own_unit or o.entry.power != (1, 1) or o.dataset.quantity != DEPTH for o in self._origins):
            return None
        deviation, *others = {o.dataset.unit for o in self._origins}
        return None if others else with_mean(deviation)

    def factor(self, step: int) -> int:
        """Upsampling factor of a step, the same in all processes."""
        rng = np.random.default_rng((self.config.seed, step, FACTOR_STREAM))
        return int(rng.choice(self.config.factors))

    def __getitem__(self, step: int) -> Sample:
        factor = self.factor(step)
        size = self.config.batch_of(factor)
        places = range(self.rank * size, (self.rank + 1) * size)
        return Sample.batch([self.sample(step, place, factor) for place in places])

    def bands(self, step: int) -> int:
        """Bands of the guides of a step, the same in all processes; 0: those of the data."""
        if len(self.config.bands) < 2:
            return self.config.bands[0] if self.config.bands else 0
        rng = np.random.default_rng((self.config.seed, step, BANDS_STREAM))
        return int(rng.choice(self.config.bands))

    def sampling(self, step: int) -> str:
        """How the sources of a step are made, the same in all processes."""
        rng = np.random.default_rng((self.config.seed, step, SAMPLING_STREAM))
        drawn = str(rng.choice(self.config.sampling))
        if drawn != ANY_POINT:
            return drawn
        row, column = rng.integers(1000, size=2) / 1000
        return str(Sampling("point", (float(row), float(column))))

    def sample(self, step: int, place: int, factor: int) -> Sample:
        """One problem, [1, ...]: that of a place in the batch over all processes."""
        rng = np.random.default_rng((self.config.seed, step, place))
        origin = self._origins[rng.choice(len(self._origins), p=self._share)]
        wanted = self.config.crop_of(factor), factor, self.config.interpolation, self.sampling(step), self.bands(step)
        return origin.draw(rng, *wanted)


class Pairs:
    """The pairs of one data set, which are kept in memory up to `KEEP_BYTES`.

    Attributes:
        entry: its configuration.
        dataset: what it reads.
    """

    def __init__(self, entry: DataConfig, text: str) -> None:
        """Open the data set.

        Args:
            entry: its configuration.
            text: KIND:PATH with the path below the training's root.

        Raises:
            InputError: it cannot be opened or is empty.
        """
        self.entry = entry
        self.dataset = load_dataset(for_role(without(text, entry.exclude), "train"), split=entry.split)
        if len(self.dataset) == 0:
            raise InputError(f"{text}: there is nothing to train on in split {entry.split!r}.")
        self.painted: dict[int, Painted] = {}
        self.kept: dict[int, Pair] = {}
        self.kept_bytes = 0

    def __len__(self) -> int:
        return len(self.dataset)

    def pair(self, index: int, size: int) -> Pair:
        """Return a pair, from memory where it was read before; painted ones have the given height and width."""
        if isinstance(self.dataset, Painted):  # painted at the size needed; too many to keep
            if size not in self.painted:
                self.painted[size] = replace(self.dataset, size=(size, size))
            return self.painted[size][index]
        if index in self.kept:
            return self.kept[index]
        pair = self.dataset[index]  # decoded once where memory allows: decoding takes longer than augmentation
        pair = register(pair) if self.entry.register else pair
        self.kept_bytes += pair.guide.nbytes + pair.target.nbytes
        if self.kept_bytes < KEEP_BYTES:
            self.kept[index] = pair
        return pair


class _Origin(Pairs):
    """One data set with its augmentation."""

    def __init__(self, entry: DataConfig, text: str) -> None:
        super().__init__(entry, text)
        self.augmentation = replace(AUGMENTATIONS[entry.augmentation], zoom=entry.zoom, smooth=entry.smooth)
        self.sensor = Sensor(share=entry.sensor)
        self.ragged = replace(RAGGED, ragged=entry.ragged)

    def draw(
        self,
        rng: np.random.Generator,
        size: int,
        factor: int,
        interpolation: Interpolation,
        sampling: str,
        bands: int,
    ) -> Sample:
        for _ in range(TRIES):
            sample = self._drawn(rng, size, factor, interpolation, sampling, bands)
            if bool(sample.source_mask.any()):
                return sample
        raise InputError(f"{self.entry.dataset}: {TRIES} crops had no measured cell at x{factor}. Leave this set out.")

    def _drawn(
        self,
        rng: np.random.Generator,
        size: int,
        factor: int,
        interpolation: Interpolation,
        sampling: str,
        bands: int,
    ) -> Sample:
        pair = self.pair(int(rng.integers(len(self.dataset))), size)
        crop = self.sensor(self.augmentation.crop(pair, rng, size, factor), rng)
        if self.entry.ragged:
            crop = self.ragged(crop, rng)
        if self.entry.power != (1, 1):
            crop = raised(crop, rng.uniform(*self.entry.power))
        if bands:
            crop = with_bands(crop, bands, rng)
        sample = sample_of(crop, factor, self._unit(crop), interpolation, sampling)
        if self.entry.gaps and rng.random() < self.entry.gaps:
            sample = with_gaps(sample, rng, interpolation)
        amount = self.entry.noise * rng.random()
        return noisy_source(sample, amount, rng, interpolation) if amount else sample

    def _unit(self, crop: Pair) -> float:
        """The value that becomes 1.0: that of the data set, or one that gives the crop the deviation `DEVIATION`."""
        known = crop.target[crop.valid].astype(np.float64)
        own = float(known.std()) / DEVIATION if self.entry.own_unit and known.size else 0.0
        return own or self.dataset.unit


def sample_of(pair: Pair, factor: int, unit: float, interpolation: Interpolation, sampling: str) -> Sample:
    """One problem, [1, ...]. What is resized has no holes: they are filled with the nearest value before.

    A cell of a resized source is measured where all pixels around it are, which at x32 may leave none.
    """
    valid = torch.from_numpy(pair.valid)
    if sampling != "bicubic" or bool(valid.all()) or not bool(valid.any()):
        return to_sample(pair, factor, unit, interpolation, sampling)
    filled = fill_nearest(torch.from_numpy(pair.target.copy())[None], ~valid)[0].numpy()
    sample = to_sample(replace(pair, target=filled), factor, unit, interpolation, sampling)
    assert sample.target is not None
    return replace(sample, target=torch.where(valid, sample.target, 0), target_mask=valid[None, None])


def without(text: str, names: tuple[str, ...]) -> str:
    """The text of a data set that leaves out some scenes."""
    return f"{text}{'&' if '?' in text else '?'}without={','.join(names)}" if names else text


def for_role(text: str, role: Role) -> str:
    """The text of a data set of which only scenes of a role of the fixed split are used; see `dada.datasets.split`."""
    return f"{text}{'&' if '?' in text else '?'}role={role}" if text.startswith("scenes:") else text


def load(batches: Steps, start: int) -> Iterator[Sample]:
    """Yield the batches from step `start` on, prepared by the configured number of processes."""
    config = batches.config
    if config.workers == 0:
        yield from (batches[step] for step in range(start, config.steps))
        return
    loader = DataLoader(
        batches,
        batch_size=None,
        sampler=range(start, config.steps),
        num_workers=config.workers,
        prefetch_factor=PREFETCH,
        worker_init_fn=_begin_worker,
        multiprocessing_context="spawn",  # a fork would copy running threads of torch and numba
    )
    with signals_held():
        prepared = iter(loader)
    yield from prepared


def _begin_worker(worker: int) -> None:
    """Ignore signals to end, which reach all processes of a terminal: the main process handles them."""
    for number in ENDS:
        signal.signal(number, signal.SIG_IGN)
    torch.set_num_threads(1)
