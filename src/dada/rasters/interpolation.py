"""A window of the interpolated source, as the interpolation of the whole would have it there."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

CUBIC = -0.75  # of the cubic convolution, as in torch
TAPS = 4


def taps(positions: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Cells that each position is interpolated from, and their weights, both [n, 4]; cells beyond an end repeat it."""
    first = np.floor(positions)
    share = positions - first
    near, far = _near(share), _far(1 + share)
    weights = np.stack([far, near, _near(1 - share), _far(2 - share)], axis=1)
    indices = np.clip(first[:, None].astype(np.int64) + np.arange(-1, TAPS - 1), 0, count - 1)
    return indices, weights


def _near(x: np.ndarray) -> np.ndarray:
    result: np.ndarray = ((CUBIC + 2) * x - (CUBIC + 3)) * x * x + 1
    return result


def _far(x: np.ndarray) -> np.ndarray:
    result: np.ndarray = ((CUBIC * x - 5 * CUBIC) * x + 8 * CUBIC) * x - 4 * CUBIC
    return result


def bicubic_window(cells: np.ndarray, rows: np.ndarray, cols: np.ndarray, ends: tuple[float, float]) -> Tensor:
    """Interpolate bicubically at given positions.

    Args:
        cells: [h, w] without holes.
        rows: positions of the wanted rows, in cells from the centre of the first row of cells.
        cols: the same of columns.
        ends: values are kept between these two.

    Returns:
        [H, W] of the dtype of the cells.
    """
    (at_row, by_row), (at_col, by_col) = taps(rows, cells.shape[0]), taps(cols, cells.shape[1])
    by_row, by_col = by_row.astype(cells.dtype), by_col.astype(cells.dtype)
    tall = sum(by_row[:, k, None] * cells[at_row[:, k]] for k in range(TAPS))
    image = sum(by_col[:, k] * np.take(tall, at_col[:, k], axis=1) for k in range(TAPS))
    return torch.from_numpy(np.ascontiguousarray(image)).clamp(*ends)
