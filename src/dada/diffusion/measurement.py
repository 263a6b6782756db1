"""What is known of each cell: its value, over which pixels it was measured, and how firmly it is kept."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from .blocks import Blocks, block_sum, partition, spread
from .coefficients import Coefficients

Adjust = Literal["ratio", "shift"]


def extremes(values: Tensor) -> tuple[float, float]:
    """Least and largest value; NaN if there is any."""
    array: Any = values.detach().numpy() if values.device.type == "cpu" else values.detach()  # NumPy's are faster
    return float(array.min()), float(array.max())


@dataclass
class Measurement:
    """The measurement of N = B K images, checked and in one form."""

    blocks: Blocks
    source: Tensor  # [N, h, w], zero where not measured
    weight: Tensor  # [N, h, w] in [0, inf]: infinite = hard, 0 = not measured
    count: Tensor  # [N, h, w] measured pixels of each cell, 0 where not measured
    measured: Tensor | None  # [N, H, W] bool, the pixels that take part; None: all of them

    def of(self, images: Tensor) -> Measurement:
        """Some of the images."""
        measured = None if self.measured is None else self.measured[images]
        return Measurement(self.blocks, self.source[images], self.weight[images], self.count[images], measured)

    def down(self, target: Tensor) -> Tensor:
        """Mean of the measured pixels of each cell, [N, h, w]; 0 where not measured."""
        taken = target if self.measured is None else target * self.measured
        return block_sum(taken, self.blocks) / self.count.clamp(min=1) * (self.count > 0)


def read_measurement(
    source: Tensor,
    coefficients: Coefficients,
    adjust: Adjust,
    mask: Tensor | None,
    coverage: Tensor | None,
    weight: Tensor | None,
    blocks: Blocks | None = None,
) -> Measurement:
    """Check shapes and values once, for the loop and the solver alike, and bring them to one form.

    The blocks are those of `partition` where none are given.

    Raises:
        ValueError: what was given, what was expected, and what to do.
    """
    if adjust not in ("ratio", "shift"):
        raise ValueError(f'adjust must be "ratio" or "shift", got {adjust!r}')
    if source.ndim != 4 or 0 in source.shape:
        raise ValueError(f"source must be [B, K, h, w] with no empty dimension, got shape {tuple(source.shape)}")
    if source.dtype not in (torch.float32, torch.float64):
        raise ValueError(f"source must be float32 or float64, got {source.dtype}; convert it with .float()")
    _check_coefficients(source, coefficients)
    blocks = blocks or partition(tuple(source.shape[-2:]), coefficients.size)
    if (blocks.source_size, blocks.target_size) != (tuple(source.shape[-2:]), coefficients.size):
        raise ValueError(
            f"blocks join {blocks.source_size} cells and {blocks.target_size} pixels, the source has "
            f"{tuple(source.shape[-2:])} cells and the coefficients {coefficients.size} pixels"
        )
    cells = (source.shape[0] * source.shape[1], *blocks.source_size)
    values, firmness = source.reshape(cells), torch.full_like(source, torch.inf)
    count = torch.from_numpy(blocks.area).to(source).expand(cells)
    if mask is None and coverage is None and weight is None:  # the usual case, in a few operations
        low, high = extremes(source)
        if not (math.isfinite(low) and math.isfinite(high) and (adjust == "shift" or low > 0)):
            _check_values(values.detach(), count > 0, adjust)
        return Measurement(blocks, values, firmness.reshape(cells), count, None)
    if weight is not None:
        firmness = _expand("weight", weight, source.shape).to(source.dtype)
        if not bool((firmness.detach() >= 0).all()):
            raise ValueError("weight must be >= 0 (0: no measurement, infinite: exact), got negative values or NaN")
    if mask is not None:
        firmness = torch.where(_expand("mask", mask, source.shape).bool(), firmness, 0.0)
    firmness = firmness.reshape(cells)
    measured = None
    if coverage is not None:
        measured = _expand("coverage", coverage, (*source.shape[:2], *coefficients.size)).bool().flatten(0, 1)
        count = block_sum(measured.to(source.dtype), blocks)
    count = torch.where(firmness > 0, count, 0.0)
    if adjust == "ratio":  # firmer than the digits can tell from exact, since mu = w (S - d) / (n d)
        firmness = torch.where(firmness > torch.finfo(source.dtype).eps ** -0.4 * count, torch.inf, firmness)
    used = count > 0
    if measured is None and not bool(used.all()):
        measured = spread(used, blocks)
    elif measured is not None:
        measured = measured & spread(used, blocks)
    _check_values(values.detach(), used, adjust)
    return Measurement(blocks, torch.where(used, values, 0.0), torch.where(used, firmness, 0.0), count, measured)


def _check_coefficients(source: Tensor, coefficients: Coefficients) -> None:
    vertical, horizontal = coefficients
    H, W = coefficients.size
    B = source.shape[0]
    if vertical.shape != (B, H - 1, W) or horizontal.shape != (B, H, W - 1):
        raise ValueError(
            f"coefficients must be [B, H - 1, W] and [B, H, W - 1] with B = {B} as in source, "
            f"got {tuple(vertical.shape)} and {tuple(horizontal.shape)}"
        )
    for name, c in (("vertical", vertical), ("horizontal", horizontal)):
        if c.dtype != source.dtype or c.device != source.device:
            raise ValueError(
                f"{name} coefficients are {c.dtype} on {c.device}, source is {source.dtype} on {source.device}; "
                "convert one to the other"
            )
        low, high = extremes(c) if c.numel() else (0.0, 0.0)
        if not (low >= 0 and high < float("inf")):
            raise ValueError(f"{name} coefficients must be finite and >= 0; are there NaN in the guide's features?")


def _expand(name: str, given: Tensor, shape: tuple[int, ...]) -> Tensor:
    try:
        return given.expand(shape)
    except RuntimeError:
        raise ValueError(f"{name} must broadcast to {tuple(shape)}, got shape {tuple(given.shape)}") from None


def _check_values(source: Tensor, used: Tensor, adjust: Adjust) -> None:
    """Every image has a measurement; the measured cells are finite, and positive for `ratio`."""
    if not bool(used.flatten(1).any(dim=1).all()):
        raise ValueError("an image has no measured cell at all (mask, coverage and weight leave none)")
    odd = int((used & ~torch.isfinite(source)).sum())
    if odd:
        raise ValueError(f"{odd} measured source cells are NaN or infinite; leave them out with mask=isfinite(source)")
    low = source[used].min()
    if adjust == "ratio" and not bool(low > 0):
        raise ValueError(
            f'adjust="ratio" needs positive measurements, the least given is {float(low):g}; use adjust="shift", '
            "which takes any value, or mask cells whose 0 means no measurement"
        )
