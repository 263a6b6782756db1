"""What is measured on one image, and how many images are averaged.

Notation: p is the result, g the ground truth, both in millimetres (or in the data's own unit); all sums run over the
valid pixels of g and are kept in float64. What is kept of an image are its sums, not its means, so that each averaging
rule can be applied to the same numbers later.

Value error and edge error carry names from the literature (He et al. 2021), where no formula is given: the definitions
here are this project's own, with their thresholds as parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from math import nan, sqrt
from typing import Literal

import torch
from torch import Tensor

from dada.sample import BATCH, Sample
from dada.sample.jumps import flying, jumps, sides, widen

Rule = Literal["pixels", "batches", "images"]
"""How images are averaged; see `average`."""


@dataclass(frozen=True)
class Thresholds:
    """What counts as wrong and as a jump: this project's definitions.

    Attributes:
        value: a value is wrong if |p - g| / g is above this.
        edge: a pixel at a jump is wrong if |p - g| is above this, in units of the sample (`Sample.unit`: the data set's
            standard deviation, so that the definition also holds for data that are not lengths).
        jump: two neighbours that differ by more than this are the two sides of a jump, in units of the sample.
        reach: pixels on either side of a jump that count as near it.
        flying: a pixel near a jump flies if it lies between the two sides and farther than this share of the jump from
            both.
    """

    value: float = 0.05
    edge: float = 0.05
    jump: float = 0.05
    reach: int = 2
    flying: float = 0.2


THRESHOLDS = Thresholds()
"""Those of every table."""


@dataclass(frozen=True)
class Sums:
    """Sums over the valid pixels of one or several images, and the measures that follow from them.

    Attributes:
        pixels, squared, absolute: count, sum of (p - g)^2, sum of |p - g|.
        positive, relative, wrong: count of g > 0, over these the sum of |p - g| / g and the count of wrong values.
        edges, edges_wrong: count of pixels at a jump, and of those that are wrong.
        near, near_absolute: count of pixels near a jump, and their sum of |p - g|.
        flying: count of pixels near a jump that float between its two sides.
        cells, cell_squared, cell_absolute, cell_worst: count of valid source cells, the sums of (down(p) - S)^2 and
            |down(p) - S|, and the largest of the latter.
    """

    pixels: float = 0
    squared: float = 0
    absolute: float = 0
    positive: float = 0
    relative: float = 0
    wrong: float = 0
    edges: float = 0
    edges_wrong: float = 0
    near: float = 0
    near_absolute: float = 0
    flying: float = 0
    cells: float = 0
    cell_squared: float = 0
    cell_absolute: float = 0
    cell_worst: float = 0

    def __add__(self, other: Sums) -> Sums:
        """The sums over both."""
        both = {f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)}
        return Sums(**(both | {"cell_worst": max(self.cell_worst, other.cell_worst)}))

    @property
    def mse(self) -> float:
        """Mean squared error: sum (p - g)^2 / n."""
        return _ratio(self.squared, self.pixels)

    @property
    def rmse(self) -> float:
        """Root mean squared error: sqrt(MSE)."""
        return sqrt(self.mse)

    @property
    def mae(self) -> float:
        """Mean absolute error: sum |p - g| / n."""
        return _ratio(self.absolute, self.pixels)

    @property
    def mape(self) -> float:
        """Mean absolute percentage error, as a share: mean of |p - g| / g over the pixels with g > 0."""
        return _ratio(self.relative, self.positive)

    @property
    def value_error(self) -> float:
        """Share of the pixels with g > 0 where |p - g| / g > `Thresholds.value` (this project's definition)."""
        return _ratio(self.wrong, self.positive)

    @property
    def edge_error(self) -> float:
        """Share of the pixels at a jump of g where |p - g| > `Thresholds.edge` (this project's definition)."""
        return _ratio(self.edges_wrong, self.edges)

    @property
    def jump_mae(self) -> float:
        """Mean of |p - g| over the pixels within `Thresholds.reach` of a jump of g: where methods truly differ."""
        return _ratio(self.near_absolute, self.near)

    @property
    def flying_share(self) -> float:
        """Share of the pixels near a jump of g that lie between its two sides, far from both: flying pixels.

        The sides are the least and the largest g within `Thresholds.reach` pixels (this project's definition).
        """
        return _ratio(self.flying, self.near)

    @property
    def consistency_mse(self) -> float:
        """Mean over valid cells of (down(p) - S)^2, down as the source was made: the paper's double dagger."""
        return _ratio(self.cell_squared, self.cells)

    @property
    def consistency_mae(self) -> float:
        """Mean over valid cells of |down(p) - S|."""
        return _ratio(self.cell_absolute, self.cells)

    @property
    def consistency_max(self) -> float:
        """Largest |down(p) - S| of all valid cells."""
        return self.cell_worst if self.cells else nan

    @property
    def consistency_max_squared(self) -> float:
        """Largest (down(p) - S)^2 of all valid cells."""
        return self.consistency_max**2


@dataclass(frozen=True)
class Scores:
    """Averages over images: the measures of `Sums`, whose docstrings give the formulas.

    Errors and consistency are in the data's unit (MSE: its square); MAPE, value error and edge error are shares. NaN
    where there was nothing to average.
    """

    mse: float
    rmse: float
    mae: float
    mape: float
    value_error: float
    edge_error: float
    jump_mae: float
    flying_share: float
    consistency_mse: float
    consistency_mae: float
    consistency_max: float
    consistency_max_squared: float

    def scaled(self, factor: float) -> Scores:
        """The same errors in a unit that is 1 / factor as large: 0.1 turns millimetres into centimetres."""
        power = dict.fromkeys(asdict(self), 1) | {
            "mse": 2, "consistency_mse": 2, "consistency_max_squared": 2, "mape": 0, "value_error": 0, "edge_error": 0,
            "flying_share": 0,
        }  # fmt: skip
        return Scores(**{name: value * factor ** power[name] for name, value in asdict(self).items()})


MEASURES = tuple(f.name for f in fields(Scores))


def measure(
    prediction: Tensor, sample: Sample, thresholds: Thresholds = THRESHOLDS, *, border: int = 0, averaged: bool = True
) -> list[Sums]:
    """Compare results with the truth of a sample.

    Args:
        prediction: [B, 1, H, W] in units of `sample.unit`.
        sample: with `target` and `target_mask`.
        thresholds: of the definitions that have some.
        border: pixels along each side that do not count.
        averaged: whether consistency with the source is measured; if not, it stays NaN.

    Returns:
        The sums of each of the B images, in the data's unit.

    Raises:
        ValueError: the sample has no truth, or the prediction is of another shape or not finite where the truth is
            known.
    """
    if sample.target is None or sample.target_mask is None:
        raise ValueError("the sample has no truth to compare with")
    if prediction.shape != sample.target.shape:
        raise ValueError(f"a result of shape {tuple(prediction.shape)}, expected {tuple(sample.target.shape)}")
    known = _inner(sample.target_mask.cpu(), border)
    result, truth = (image.detach().cpu().double() for image in (prediction, sample.target))
    lost = int((~torch.isfinite(result) & known).sum())
    if lost:
        raise ValueError(f"the result is not finite at {lost} of {int(known.sum())} pixels")
    low, cells = sample.source.cpu().double(), sample.source_mask.cpu()
    if not averaged:
        cells = torch.zeros_like(cells)
    misfit = (sample.sampling.down(result, (low.shape[-2], low.shape[-1])) - low).abs()
    valid = sample.target_mask.cpu()
    return [
        _sums(result[i, 0], truth[i, 0], known[i, 0], valid[i, 0], misfit[i][cells[i]], sample.unit, thresholds)
        for i in range(len(sample))
    ]


def _sums(p: Tensor, g: Tensor, known: Tensor, valid: Tensor, misfit: Tensor, unit: float, limits: Thresholds) -> Sums:
    """Of one image: p, g [H, W] and the misfit of its cells [n] in units of `unit`."""
    error = (p - g).abs()
    at_jump = jumps(g, valid, limits.jump)
    near = widen(at_jump, limits.reach - 1) & known
    at_jump = at_jump & known
    positive = known & (g > 0)
    relative = error[positive] / g[positive]
    totals = {
        "pixels": known.sum(),
        "squared": error[known].square().sum() * unit**2,
        "absolute": error[known].sum() * unit,
        "positive": positive.sum(),
        "relative": relative.sum(),
        "wrong": (relative > limits.value).sum(),
        "edges": at_jump.sum(),
        "edges_wrong": (error[at_jump] > limits.edge).sum(),
        "near": near.sum(),
        "near_absolute": error[near].sum() * unit,
        "flying": (flying(p, *sides(g, valid, limits.reach), limits.flying) & near).sum(),
        "cells": torch.tensor(misfit.numel()),
        "cell_squared": misfit.square().sum() * unit**2,
        "cell_absolute": misfit.sum() * unit,
        "cell_worst": misfit.max() * unit if misfit.numel() else 0.0,
    }
    return Sums(**{name: float(value) for name, value in totals.items()})


def _inner(mask: Tensor, border: int) -> Tensor:
    """The mask [..., H, W] without a border."""
    if border == 0:
        return mask
    kept = torch.zeros_like(mask)
    kept[..., border:-border, border:-border] = mask[..., border:-border, border:-border]
    return kept


# ---- many images -------------------------------------------------------------------------------------------


def average(images: Sequence[Sums], rule: Rule, batch: int = BATCH) -> Scores:
    """Average over images.

    Args:
        images: in the order of the data set.
        rule: "pixels": every pixel weighs the same. "batches": the rule of the published numbers: the mean over the
            pixels of each batch, then the mean over batches, whatever their number of valid pixels; the last may hold
            fewer images. "images": the mean over each image, then the mean over images.
        batch: images in a batch.

    Returns:
        The scores. RMSE is the root of the averaged MSE for "pixels" and "batches" (as the paper's curves), the average
        of the images' own RMSE for "images". The largest misfit is the largest of all.
    """
    size = {"pixels": max(len(images), 1), "batches": batch, "images": 1}[rule]
    groups = [sum(images[i : i + size], Sums()) for i in range(0, len(images), size)]
    means = {name: _mean([getattr(group, name) for group in groups]) for name in MEASURES}
    if rule != "images":
        means["rmse"] = sqrt(means["mse"])
    whole = sum(groups, Sums())
    means |= {"consistency_max": whole.consistency_max, "consistency_max_squared": whole.consistency_max_squared}
    return Scores(**means)


def _mean(values: Sequence[float]) -> float:
    """Over those that are numbers: a batch without a jump has no error near one."""
    found = [value for value in values if value == value]
    return sum(found) / len(found) if found else nan


def _ratio(total: float, count: float) -> float:
    return total / count if count else nan
