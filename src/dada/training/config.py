"""The configuration of a training: typed dataclasses, from which `toml.py` and the command line are made."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Literal

from dada.errors import InputError
from dada.training import toml

ANY_POINT = "point:any"
"""A sampling of trainings alone: each batch has its points at another place in the cells."""
NetworkSettings = dict[str, bool | int | float | str]


@dataclass(frozen=True, kw_only=True)
class DataConfig:
    """One of the data sets that samples are drawn from."""

    dataset: str
    """KIND:PATH, such as scenes:data/third or painted:0."""
    weight: float = 1.0
    """How often it is drawn from, relative to the others."""
    split: Literal["train", "val", "test"] = "train"
    """Which part of it. Of scenes that the fixed split names (datasets/split.toml) only those to train on are used."""
    exclude: tuple[str, ...] = ()
    """Names of scenes to leave out, all views of them."""
    augmentation: Literal["none", "rigid", "strong", "paper"] = "rigid"
    """Augmentation of crops. rigid: flips and rotations. strong: also light, colours, noise and blur of the guide.
    paper: crops, epochs and validation as in the paper's released code; how rigid differs is told in
    docs/how-to/training.md."""
    zoom: tuple[float, float] = (1.0, 1.0)
    """Scale each crop by a random number between these two."""
    smooth: bool = False
    """Outlines of scaled and rotated targets are smooth, instead of the staircases of the nearest pixel."""
    register: bool = False
    """Shift each guide by its estimated sub-pixel offset from the target."""
    sensor: float = 0.0
    """Share of the samples that are degraded like those of real sensors: soft and ragged edges, a shifted guide."""
    ragged: float = 0.0
    """Largest displacement of the outlines of targets in pixels, as in measured ground truth."""
    noise: float = 0.0
    """Largest deviation of noise in the source alone, at a depth of one unit of the data set."""
    gaps: float = 0.0
    """Share of the samples whose source lacks cells: scattered ones, as sparse sensors leave them, or patches."""
    power: tuple[float, float] = (1.0, 1.0)
    """Raise positive targets to a random power between these two: -1 converts depth to disparity, 3 stretches the range
    of depths as outdoors."""
    own_unit: bool = False
    """Divide each crop by its own standard deviation, so that a far scene weighs no more than others in its batch."""

    def __post_init__(self) -> None:
        _at_least(self.weight, 0, f"weight of {self.dataset}")
        low, high = self.zoom
        if not 0.25 <= low <= high <= 8:
            raise InputError(f"zoom of {self.dataset} is {low} to {high}: use two rising numbers from 0.25 to 8.")
        if not 0 <= self.sensor <= 1:
            raise InputError(f"sensor of {self.dataset} is {self.sensor}: it is a share, from 0 to 1.")
        if not 0 <= self.gaps <= 1:
            raise InputError(f"gaps of {self.dataset} is {self.gaps}: it is a share, from 0 to 1.")
        _at_least(self.ragged, 0, f"ragged of {self.dataset}")
        _at_least(self.noise, 0, f"noise of {self.dataset}")
        low, high = self.power
        if not -8 <= low <= high <= 8:
            raise InputError(f"power of {self.dataset} is {low} to {high}: use two rising numbers from -8 to 8.")
        if self.augmentation == "paper":
            self._check_published()

    def _check_published(self) -> None:
        """Refuse what the released code does not do."""
        kept = ("dataset", "split", "exclude", "augmentation")
        changed = [f.name for f in fields(self) if f.name not in kept and getattr(self, f.name) != f.default]
        if changed:
            raise InputError(
                f'{self.dataset}: augmentation "paper" draws crops as the released code does, without '
                f'{", ".join(changed)}. Leave that out, or use augmentation "rigid".'
            )


@dataclass(frozen=True, kw_only=True)
class LossConfig:
    """The loss: L1 as in the paper, and optional terms."""

    scale: float = 10.0
    """Factor of the loss; it matters only with gradient clipping."""
    mse: float = 0.0
    """Share of the squared error in the loss, 0 to 1; the rest is the absolute error."""
    relative: bool = False
    """Divide both by bicubic's on the same image and batch (their geometric mean), so that factors weigh the same."""
    earlier: float = 0.0
    """Weight of the result of each round in terms of the next one's, for DADA: with 0.5 the last weighs 1, the one
    before 0.5. Above 0, fewer rounds than trained also give useful results. At most 1."""
    jump_weight: float = 0.0
    """Extra weight of pixels within 2 px of a jump of the true depth."""
    jump: float = 0.05
    """Smallest jump, in units of the data set."""

    def __post_init__(self) -> None:
        if not 0 <= self.mse <= 1:
            raise InputError(f"loss.mse is {self.mse}: it is a share, from 0 to 1.")
        if not 0 <= self.earlier <= 1:
            raise InputError(f"loss.earlier is {self.earlier}: it is a share, from 0 to 1.")
        _at_least(self.jump_weight, 0, "loss.jump_weight")


@dataclass(frozen=True, kw_only=True)
class ScheduleConfig:
    """The learning rate over time, in steps of the optimiser."""

    kind: Literal["step", "cosine", "stable"] = "step"
    """step: times `decay` after every `every` steps. cosine: a half cosine from the full rate down to `floor`. stable:
    the full rate, and a straight fall to `floor` over the last `fall` of all steps; until then a training may be made
    longer or shorter."""
    decay: float = 0.9
    """Of `step`."""
    every: int = 1000
    """Of `step`."""
    floor: float = 0.01
    """Of `cosine` and `stable`: the share of the rate left at the end."""
    fall: float = 0.25
    """Of `stable`: the share of the steps over which the rate falls."""
    warmup: int = 0
    """Steps over which the rate rises from 0."""

    def __post_init__(self) -> None:
        _at_least(self.every, 1, "schedule.every")
        _at_least(self.warmup, 0, "schedule.warmup")
        if not 0 < self.fall <= 1:
            raise InputError(f"schedule.fall is {self.fall}: it is a share, above 0 and at most 1.")


@dataclass(frozen=True, kw_only=True)
class ValidationConfig:
    """Validation during a training: errors under protocol P1, as shares of bicubic's."""

    data: tuple[str, ...] = ()
    """Data sets, KIND:PATH. If empty, nothing is measured and the last weights are saved as the best."""
    split: Literal["train", "val", "test"] = "val"
    """Which part of them."""
    factors: tuple[int, ...] = ()
    """Upsampling factors; empty: those of the training."""
    sampling: tuple[str, ...] = ("mean",)
    """How sources are made; each is measured on its own."""
    crops: int = 16
    """Number of crops from each data set, spread over its scenes; 0 for the whole split."""
    size: int = 256
    """Height and width of a crop."""
    every: int = 1000
    """Steps between two validations."""
    interpolation: Literal["clough-tocher", "torch"] = "clough-tocher"
    """Bicubic upsampling of the crops. P1's takes seconds for a crop with many edges, at every start."""

    def __post_init__(self) -> None:
        _at_least(self.crops, 0, "validation.crops")
        _at_least(self.every, 1, "validation.every")


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """Train DADA, or a network it is compared with."""

    output: str = "runs/train"
    """Folder for checkpoints, weights, curves and the configuration. A training in it is resumed."""
    method: str = "dada"
    """What to train: dada, msg, dkn, fdkn, pmba, fdsr or lgr."""
    network: Annotated[NetworkSettings, toml.flag_of_settings()] = field(default_factory=dict)
    """Settings of the network, such as extractor=light rounds=2: the fields of DadaConfig, or what the class of another
    method takes."""
    start: str = ""
    """File or folder of weights to start from."""
    seed: int = 0
    """Seed of all random numbers."""

    root: str = "."
    """Folder that paths of data sets are relative to."""
    data: Annotated[tuple[DataConfig, ...], toml.flag_of_tables(DataConfig)] = ()
    """Data sets to draw from, each "KIND:PATH" or "KIND:PATH; weight=2; zoom=[1, 3]"."""
    factors: tuple[int, ...] = (8,)
    """Upsampling factors; each batch has one of them."""
    sampling: tuple[str, ...] = ("mean",)
    """How sources are made: mean, point, point:ROWS,COLUMNS, point:any (elsewhere in each batch) or bicubic; each
    batch has one of them."""
    bands: tuple[int, ...] = ()
    """Bands of the guides, drawn for each batch: 1 (grey), 3 (colours) or 4 (and an imitated near infrared); if empty,
    those of the data."""
    crop: tuple[int, ...] = (256,)
    """Height and width of a training crop: one number, or one for each factor."""
    batch: tuple[int, ...] = (8,)
    """Samples in a step (of each process): one number, or one for each factor."""
    interpolation: Literal["clough-tocher", "torch"] = "clough-tocher"
    """Bicubic upsampling of training samples; torch is much faster."""
    workers: int = 1
    """Processes that prepare samples."""
    bfloat16: bool = False
    """Convolutions in bfloat16 (autocast), where the processor has it: 1.5 to 2 times as fast."""
    threads: int = 0
    """Threads of the network; 0: torch's default."""

    scheme: Literal["implicit", "unrolled"] = "implicit"
    """Gradients of DADA: through the equilibrium, or through the last steps of the paper's loop."""
    pre_steps: int = 8000
    """Steps without gradient: for each batch a number from 0 to one less is drawn (unrolled: the paper's N_pre)."""
    constant_steps: bool = False
    """Always run all pre_steps, instead of a random number."""
    grad_steps: int = 1024
    """Number of steps with gradient (unrolled: the paper's N_grad)."""
    initial: Literal["bicubic", "constant"] = "bicubic"
    """Image that DADA's unrolled loop starts from; the features always use the bicubic one."""

    steps: int = 45_000
    """Total number of optimiser steps."""
    learning_rate: float = 1e-3
    """Largest learning rate of Adam."""
    weight_decay: float = 1e-5
    """L2 weight decay of Adam."""
    clip: float = 0.01
    """Largest norm of the gradient; 0 for no limit."""
    average: float = 0.0
    """Decay of the moving average of the weights (EMA), such as 0.999; 0 for none. It is validated and saved."""
    schedule: ScheduleConfig = field(default_factory=ScheduleConfig)
    loss: LossConfig = field(default_factory=LossConfig)
    validation: ValidationConfig = field(default_factory=ValidationConfig)

    checkpoint: float = 5.0
    """Minutes between two checkpoints."""
    minutes: float = 0.0
    """Stop after this many minutes, with a checkpoint to resume from; 0 for no limit."""

    def __post_init__(self) -> None:
        for name in ("steps", "grad_steps"):
            _at_least(getattr(self, name), 1, name)
        for name in ("workers", "threads", "pre_steps", "weight_decay", "clip", "checkpoint", "minutes", "seed"):
            _at_least(getattr(self, name), 0, name)
        if not 0 < self.learning_rate < math.inf:
            raise InputError(f"learning_rate is {self.learning_rate}: it must be a positive number.")
        if not 0 <= self.average < 1:
            raise InputError(f"average is {self.average}: it must be 0 or a number below 1 such as 0.999.")
        if self.initial == "constant" and (self.method, self.scheme) != ("dada", "unrolled"):
            raise InputError(
                'initial "constant" is where the loop of DADA starts: use it with method "dada" and scheme "unrolled".'
            )
        self._check_factors()
        self._check_sampling()
        if not {*self.bands} <= {1, 3, 4}:
            raise InputError(f"bands are {list(self.bands)}: use some of 1, 3 and 4.")
        if self.published:
            self._check_published()

    @property
    def published(self) -> bool:
        """Whether samples are drawn and validated as in the paper's released code."""
        return any(entry.augmentation == "paper" for entry in self.data)

    def _check_published(self) -> None:
        if len(self.data) > 1 or len(self.factors) > 1:
            raise InputError(
                f'augmentation "paper" trains on one data set at one factor, got {len(self.data)} and '
                f"{len(self.factors)}. Name one of each."
            )
        if self.validation.data and self.validation.crops:
            raise InputError(
                f'validation.crops is {self.validation.crops}: with augmentation "paper" validation uses the whole '
                "split. Set it to 0."
            )
        if {*self.sampling, *self.validation.sampling} != {"mean"}:
            raise InputError(
                f'sampling is {", ".join((*self.sampling, *self.validation.sampling))}: augmentation "paper" averages '
                "sources, as the paper does. Leave it at mean."
            )

    def _check_sampling(self) -> None:
        for name, given in (("sampling", self.sampling), ("validation.sampling", self.validation.sampling)):
            if not given:
                raise InputError(f"{name} is empty: name one or more of mean, point, point:ROWS,COLUMNS and bicubic.")
            if set(given) != {"mean"}:  # the reader of texts imports torch, which commands must not wait for
                from dada.sample.sampling import Sampling

                for text in given:
                    if text != ANY_POINT or name != "sampling":
                        Sampling.of(text)

    def _check_factors(self) -> None:
        if not self.factors or min(self.factors) < 1:
            raise InputError(f"factors are {list(self.factors)}: name one or more whole numbers such as 8.")
        for name in ("crop", "batch"):
            given = getattr(self, name)
            if len(given) not in (1, len(self.factors)) or min(given) < 1:
                raise InputError(
                    f"{name} is {list(given)}: give one number from 1, or one for each of the "
                    f"{len(self.factors)} factors {list(self.factors)}."
                )
        for factor in self.factors:
            size = self.crop_of(factor)
            if size % factor:
                raise InputError(f"crop {size} is not a multiple of factor {factor}: use {-size // factor * -factor}.")
        for factor in self.validation.factors or self.factors:
            if self.validation.size % factor:
                raise InputError(f"validation.size {self.validation.size} is not a multiple of factor {factor}.")

    def crop_of(self, factor: int) -> int:
        """Height and width of a training crop at this factor."""
        return self.crop[self.factors.index(factor) if len(self.crop) > 1 else 0]

    def batch_of(self, factor: int) -> int:
        """Samples of a step of one process at this factor."""
        return self.batch[self.factors.index(factor) if len(self.batch) > 1 else 0]

    def located(self, dataset: str) -> str:
        """The text of a data set with its path, or that of its textures, below `root`."""
        kind, _, path = dataset.partition(":")
        if kind == "painted":
            before, option, folder = dataset.partition("textures=")
            return f"{before}{option}{Path(self.root) / folder}" if option else dataset
        return f"{kind}:{Path(self.root) / path}" if path else dataset


def read_config(path: Path | str) -> TrainConfig:
    """Read a TOML file.

    Raises:
        InputError: the file cannot be read, or a key or value in it is not one of a TrainConfig.
    """
    return toml.read(Path(path), TrainConfig)


def _at_least(value: float, least: float, name: str) -> None:
    if not least <= value < math.inf:
        raise InputError(f"{name} is {value}: it must be at least {least}.")
