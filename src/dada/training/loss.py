"""The loss: the paper's L1, and the optional terms of the configuration."""

from __future__ import annotations

import torch
from torch import Tensor

from dada.sample import Sample
from dada.sample.jumps import jumps, widen
from dada.training.config import LossConfig

REACH = 2  # pixels on either side of a jump that weigh more
FLOOR = 1e-3  # of bicubic's error in units of the data set: bounds the weight of batches of flat scenes


def loss(prediction: Tensor, sample: Sample, config: LossConfig) -> Tensor:
    """Return scale * ((1 - mse) mean |p - g| + mse mean (p - g)^2) over valid pixels.

    Args:
        prediction: [B, 1, H, W] in the sample's unit, or that of every round, [R, B, 1, H, W]: then a mean of their
            losses, in which each round weighs `config.earlier` of the next one.
        sample: with its truth.
        config: the mix; with `relative`, errors are divided by bicubic's: by the geometric mean of that of the image
            and that of the batch.

    Returns:
        A number that carries gradients to the prediction.
    """
    if prediction.ndim == 5:
        weights = config.earlier ** torch.arange(len(prediction) - 1, -1, -1)
        losses = torch.stack([loss(images, sample, config) for images in prediction])
        return (weights / weights.sum() * losses).sum()
    assert sample.target is not None
    assert sample.target_mask is not None
    weight = sample.target_mask.to(prediction.dtype)
    if config.jump_weight:
        weight = weight * (1 + config.jump_weight * near_jumps(sample, config.jump).to(weight.dtype))
    absolute, squared = _errors(prediction, sample.target, weight)
    share = weight.sum(dim=(1, 2, 3)) / weight.sum().clamp(min=1)  # of each image in the batch, [B]
    if config.relative:
        by_l1, by_mse = _errors(sample.initial, sample.target, weight)
        absolute, squared = absolute / _typical(by_l1, share, FLOOR), squared / _typical(by_mse, share, FLOOR**2)
    return config.scale * (share * ((1 - config.mse) * absolute + config.mse * squared)).sum()


def near_jumps(sample: Sample, size: float) -> Tensor:
    """[B, 1, H, W] bool: pixels within REACH of two valid neighbours whose true values differ by more than `size`."""
    assert sample.target is not None
    assert sample.target_mask is not None
    return widen(jumps(sample.target, sample.target_mask, size), REACH - 1)


def _errors(prediction: Tensor, target: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Weighted means of the absolute and the squared error of each image, [B]."""
    difference = prediction - target
    total = weight.sum(dim=(1, 2, 3)).clamp(min=1)
    absolute = (weight * difference.abs()).sum(dim=(1, 2, 3)) / total
    return absolute, (weight * difference.square()).sum(dim=(1, 2, 3)) / total


def _typical(errors: Tensor, share: Tensor, floor: float) -> Tensor:
    """Geometric mean of the error of each image and that of the batch, so that hard images weigh more."""
    return (errors * (share * errors).sum()).sqrt().clamp(min=floor)
