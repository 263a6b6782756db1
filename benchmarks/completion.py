"""RMSE of `dada.complete` beside natural-neighbour interpolation, in the setting of the depth-completion literature.

    python benchmarks/completion.py scenes:FOLDER/nyuv2 --split val --every 4 --points 500 3466 --models default dynamic

Frames of 640 x 480 are halved (the guide averaged, the depth by every second pixel) and cropped to the 304 x 228 pixels
at the centre. So many random pixels are measured, the same for all. Natural neighbours are Sibson's on the pixel grid:
each pixel gives the value of its nearest point to all pixels that are at most as far from it. RMSE of each frame in
metres, averaged over frames.
"""

from __future__ import annotations

import argparse
import warnings

import cv2
import numpy as np
import torch
from scipy.spatial import cKDTree

import dada
from dada.datasets import load_dataset


def natural_neighbours(places: np.ndarray, values: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Interpolate values at (row, column) places to an image."""
    height, width = size
    distance, nearest = cKDTree(places).query(np.argwhere(np.ones(size, bool)))
    total, count, disks = np.zeros(size), np.zeros(size), {}
    for at, (far, index) in enumerate(zip(distance, nearest, strict=True)):
        row, col, reach = at // width, at % width, int(np.ceil(far))
        if reach not in disks:
            down, across = np.mgrid[-reach : reach + 1, -reach : reach + 1]
            disks[reach] = down**2 + across**2
        top, left = max(row - reach, 0), max(col - reach, 0)
        window = np.s_[top : row + reach + 1, left : col + reach + 1]
        within = disks[reach] <= far**2 + 1e-9
        part = within[top - row + reach : height - row + reach, left - col + reach : width - col + reach]
        total[window] += part * values[index]
        count[window] += part
    return total / count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset")
    parser.add_argument("--split", default="val")
    parser.add_argument("--every", type=int, default=1, help="take every so many frames")
    parser.add_argument("--points", type=int, nargs="+", default=[500, 3466])
    parser.add_argument("--models", nargs="+", default=["default", "dynamic"])
    args = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    dataset = load_dataset(args.dataset, args.split)
    for points in args.points:
        errors: dict[str, list[float]] = {}
        for index in range(0, len(dataset), args.every):
            pair = dataset[index]
            guide = cv2.resize(pair.guide, (320, 240), interpolation=cv2.INTER_AREA)[6:234, 8:312]
            depth = pair.target[::2, ::2][6:234, 8:312].astype(np.float64) / 1000
            known = np.argwhere(np.isfinite(depth))
            places = known[np.random.default_rng(index).choice(len(known), points, replace=False)]
            values = depth[tuple(places.T)]
            results = {"natural neighbours": natural_neighbours(places, values, depth.shape)}
            listed = np.column_stack([places[:, ::-1], values])
            results |= {model: dada.complete(listed, guide, model=model).values for model in args.models}
            for name, result in results.items():
                errors.setdefault(name, []).append(float(np.sqrt(np.nanmean(np.square(result - depth)))))
        base = np.mean(errors["natural neighbours"])
        for name, found in errors.items():
            print(f"{points} points, {name}: RMSE {np.mean(found):.4f} m, {np.mean(found) / base:.2f} of the first")


if __name__ == "__main__":
    main()
