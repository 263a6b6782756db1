"""What is known of each cell: its value, over which pixels it was measured, and how firmly it is kept."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from .blocks import Blocks, block_sum, from_starts, partition, spread
from .coefficients import Coefficients, at_least_float32

Adjust = Literal["ratio", "shift"]


def extremes(values: Tensor) -> tuple[float, float]:
    """Least and largest value; NaN if there is any."""
    try:
        array: Any = values.detach().numpy() if values.device.type == "cpu" else values.detach()  # NumPy's are faster
    except RuntimeError:
        raise NotImplementedError("transforms of torch.func do not work here; those of `equilibrium` do") from None
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

    def filled(self) -> Tensor:
        """The source with the mean of the measured cells where there is no measurement."""
        used = self.count > 0
        mean = self.source.sum(dim=(-2, -1)) / used.sum(dim=(-2, -1))
        return torch.where(used, self.source, mean[:, None, None])

    def down(self, target: Tensor) -> Tensor:
        """Mean of the measured pixels of each cell, [N, h, w]; 0 where not measured."""
        taken = target if self.measured is None else target * self.measured
        return block_sum(taken, self.blocks) / self.count.clamp(min=1) * (self.count > 0)


class Given(NamedTuple):
    """A problem of N = B K images of which only shapes and types were checked: no value was looked at yet."""

    source: Tensor  # [N, h, w]
    vertical: Tensor  # [N, H - 1, W]
    horizontal: Tensor  # [N, H, W - 1]
    weight: Tensor | None  # [N, h, w], 0 where masked; None: all of it infinite
    coverage: Tensor | None  # [N, H, W] bool
    rows: list[int] | None = None  # first row of each block, and the end; None: those of `partition`
    cols: list[int] | None = None


def read_given(
    source: Tensor,
    coefficients: Coefficients,
    mask: Tensor | None,
    coverage: Tensor | None,
    weight: Tensor | None,
    blocks: Blocks | None = None,
) -> Given:
    """Bring a problem to one form, in float32 or float64, differentiably.

    Raises:
        ValueError: a shape, type or device that was not expected.
    """
    source, *edges = (at_least_float32(values) for values in (source, *coefficients))
    c = Coefficients(*edges)
    if source.ndim != 4 or 0 in source.shape:
        raise ValueError(f"source must be [B, K, h, w] with no empty dimension, got shape {tuple(source.shape)}")
    if source.dtype not in (torch.float32, torch.float64):
        raise ValueError(f"source must be float32 or float64 (or of half precision), got {source.dtype}; use .float()")
    _check_coefficients(source, c)
    starts = (None, None) if blocks is None else _starts(blocks, tuple(source.shape[-2:]), c.size)
    cells, channels = (source.shape[0] * source.shape[1], *source.shape[2:]), source.shape[1]
    firmness = None if weight is None else _expand("weight", weight, source.shape).to(source.dtype)
    if mask is not None:
        firmness = torch.full_like(source, torch.inf) if firmness is None else firmness
        firmness = torch.where(_expand("mask", mask, source.shape).bool(), firmness, 0.0)
    if coverage is not None:
        coverage = _expand("coverage", coverage, (*source.shape[:2], *c.size)).bool().flatten(0, 1)
    vertical, horizontal = (edges.repeat_interleave(channels, 0) if channels > 1 else edges for edges in c)
    firmness = None if firmness is None else firmness.reshape(cells)
    return Given(source.reshape(cells), vertical, horizontal, firmness, coverage, *starts)


def _starts(blocks: Blocks, cells: tuple[int, ...], pixels: tuple[int, int]) -> tuple[list[int], list[int]]:
    if (blocks.source_size, blocks.target_size) != (cells, pixels):
        raise ValueError(
            f"blocks join {blocks.source_size} cells and {blocks.target_size} pixels, the source has {cells} cells and "
            f"the coefficients {pixels} pixels"
        )
    return blocks.rows.tolist(), blocks.cols.tolist()


def read_measurement(source: Tensor, c: Coefficients, adjust: Adjust, *options: Any) -> Measurement:
    """The measurement of a source with mask, coverage, weight and blocks, checked."""
    return measure(read_given(source, c, *options), adjust)


def measure(given: Given, adjust: Adjust) -> Measurement:
    """Check the values once, for the loop and the solver alike, and bring the measurement to one form.

    The blocks are those of `partition` where none are given.

    Raises:
        ValueError: what was given, what was expected, and what to do.
    """
    if adjust not in ("ratio", "shift"):
        raise ValueError(f'adjust must be "ratio" or "shift", got {adjust!r}')
    source, *edges, firmness, coverage, rows, cols = given
    for name, c in zip(("vertical", "horizontal"), edges, strict=True):
        low, high = extremes(c) if c.numel() else (0.0, 0.0)
        if not (low >= 0 and high < float("inf")):
            raise ValueError(f"{name} coefficients must be finite and >= 0; are there NaN in the guide's features?")
    if rows is None or cols is None:
        blocks = partition(tuple(source.shape[-2:]), Coefficients(*edges).size)
    else:
        blocks = from_starts(np.array(rows), np.array(cols))
    count = torch.from_numpy(blocks.area).to(source).expand(source.shape)
    if firmness is None and coverage is None:  # the usual case, in a few operations
        low, high = extremes(source)
        if not (math.isfinite(low) and math.isfinite(high) and (adjust == "shift" or low > 0)):
            _check_values(source.detach(), count > 0, adjust)
        return Measurement(blocks, source, torch.full_like(source, torch.inf), count, None)
    if firmness is None:
        firmness = torch.full_like(source, torch.inf)
    elif not bool((firmness.detach() >= 0).all()):
        raise ValueError("weight must be >= 0 (0: no measurement, infinite: exact), got negative values or NaN")
    if coverage is not None:
        count = block_sum(coverage.to(source.dtype), blocks)
    count = torch.where(firmness > 0, count, 0.0)
    if adjust == "ratio":  # firmer than the digits can tell from exact, since mu = w (S - d) / (n d)
        firmness = torch.where(firmness > torch.finfo(source.dtype).eps ** -0.4 * count, torch.inf, firmness)
    used = count > 0
    measured = coverage
    if coverage is not None:
        measured = coverage & spread(used, blocks)
    elif not bool(used.all()):
        measured = spread(used, blocks)
    _check_values(source.detach(), used, adjust)
    return Measurement(blocks, torch.where(used, source, 0.0), torch.where(used, firmness, 0.0), count, measured)


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
