"""Scale and rotate a target without new depth values, and without staircases along its outlines.

Nearest-neighbour sampling makes a staircase of every outline: enlarged three times, the edges of the target are up to
one and a half pixels beside the true ones. Here each pixel takes the value of that of its four neighbours that is
nearest to their bilinear mean: between two surfaces the outline lies where that mean is half-way.
"""

from __future__ import annotations

import numpy as np

from dada.datasets.compiled import compiled


def snap(image: np.ndarray, matrix: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Sample a target.

    Args:
        image: (H, W); NaN is a hole. A pixel with a hole among its neighbours takes the nearest pixel, hole or not.
        matrix: (2, 3) from positions (x, y, 1) of the result to those of the image; pixel centres are integers.
        size: of the result, rows and columns.

    Returns:
        Values of the given image, and NaN outside it.
    """
    out = np.empty(size, image.dtype)
    _snap(np.ascontiguousarray(image), np.ascontiguousarray(matrix, np.float64), out)
    return out


@compiled
def _snap(image: np.ndarray, matrix: np.ndarray, out: np.ndarray) -> None:
    H, W = image.shape
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            x = matrix[0, 0] * j + matrix[0, 1] * i + matrix[0, 2]
            y = matrix[1, 0] * j + matrix[1, 1] * i + matrix[1, 2]
            row, col = int(np.floor(y + 0.5)), int(np.floor(x + 0.5))
            if row < 0 or row >= H or col < 0 or col >= W:
                out[i, j] = np.nan
                continue
            top, left = int(np.floor(y)), int(np.floor(x))
            low, right = min(top + 1, H - 1), min(left + 1, W - 1)
            down, across = y - top, x - left
            top, left = max(top, 0), max(left, 0)
            corners = (image[top, left], image[top, right], image[low, left], image[low, right])
            upper = (1 - across) * corners[0] + across * corners[1]
            lower = (1 - across) * corners[2] + across * corners[3]
            mean = (1 - down) * upper + down * lower
            best = image[row, col]
            if np.isfinite(mean):
                for value in corners:
                    if abs(value - mean) < abs(best - mean):
                        best = value
            out[i, j] = best
