"""What another place of the depth camera costs: `align` and `complete` beside the pair that was never shifted.

    python benchmarks/align.py --size 240 320 --factor 8 --baseline 0.03

A depth camera with `factor` times fewer pixels looks at the embedded room, one ray a pixel, from the place of the
colour camera and from `baseline` metres to its right. Compared are, over the pixels whose surface both cameras see:

    never shifted     upsample, sampling point, depth from the colour camera's own place
    whole pixels      the same measurements as points on the colour pixels nearest to them, completed
    aligned           depth from the place beside, aligned, completed
    visible points    the same with all points of that depth but those that the truth shows to be hidden
    not aligned       that depth, upsampled as if it had not been shifted
    averaged          upsample of block means of the truth: more than a camera of one ray a pixel measures
"""

from __future__ import annotations

import argparse
import warnings
from contextlib import suppress

import numpy as np

import dada
from dada.errors import InputError
from dada.io.cameras import Camera, Transform
from dada.scene import focal_length, render, render_depth
from dada.upsampling.alignment import Aligned, align

SAME = 0.02  # of a depth: how much nearer a surface must be to hide another


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, nargs=2, default=[240, 320])
    parser.add_argument("--factor", type=int, default=8)
    parser.add_argument("--baseline", type=float, default=0.03)
    parser.add_argument("--model", default="default")
    args = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    size, coarse = tuple(args.size), tuple(n // args.factor for n in args.size)
    guide, truth = render(*size)
    place = (args.baseline, 0.0, 0.0)
    at_home, beside = render_depth(*coarse, (0.0, 0.0, 0.0)), render_depth(*coarse, place)
    cameras = camera(coarse), camera(size)
    home = align(at_home, *cameras, Transform(np.eye(3), np.zeros(3)), size)
    beside_home = Transform(np.eye(3), np.array(place))
    moved, every = align(beside, *cameras, beside_home, size), every_point(beside, cameras, beside_home, size)
    behind = every[:, 2] > truth[pixels_of(every)] * (1 + SAME)
    results = {
        "never shifted": dada.upsample(at_home, guide, model=args.model, sampling="point").values,
        "whole pixels": dada.complete(home.image, guide, model=args.model).values,
        "aligned": dada.complete(moved.image, guide, model=args.model).values,
        "visible points": dada.complete(nearest(every[~behind], size), guide, model=args.model).values,
        "not aligned": dada.upsample(beside, guide, model=args.model, sampling="point").values,
        "averaged": dada.upsample(means(truth, coarse), guide, model=args.model).values,
    }
    seen = visible(truth, render_depth(*size, place), args.baseline)
    title = f"{size[1]} x {size[0]}, x{args.factor}, baseline {args.baseline:g} m"
    print(f"{title}: {seen.mean():.1%} of pixels seen by both")
    print(count(every, behind, moved))
    base = None
    for name, values in results.items():
        error = np.abs(values - truth)
        mae, rmse = error[seen].mean(), np.sqrt((error[seen] ** 2).mean())
        base = base or (mae, rmse)
        ratio = f"{mae / base[0]:.2f} / {rmse / base[1]:.2f}"
        every = f"{1000 * error.mean():.1f} / {1000 * np.sqrt((error**2).mean()):.1f}"
        print(f"{name:14} MAE / RMSE {1000 * mae:.1f} / {1000 * rmse:.1f} mm ({ratio}), all pixels {every}")


def camera(size: tuple[int, int]) -> Camera:
    """That of the room, for an image of H x W."""
    focal = focal_length(*size)
    return Camera(focal, focal, (size[1] - 1) / 2, (size[0] - 1) / 2)


def every_point(
    depth: np.ndarray, cameras: tuple[Camera, Camera], transform: Transform, size: tuple[int, int]
) -> np.ndarray:
    """(n, 3) x, y and depth of all points, each aligned by itself, so that none hides another."""
    found = []
    for row, col in np.argwhere(np.isfinite(depth)):
        alone = np.zeros(depth.shape, bool)
        alone[row, col] = True
        with suppress(InputError):  # it falls outside
            found.append(align(depth, *cameras, transform, size, alone).points)
    return np.concatenate(found)


def pixels_of(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of the pixels nearest to points."""
    col, row = (np.floor(points[:, i] + 0.5).astype(int) for i in (0, 1))
    return row, col


def nearest(points: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """[H, W] depth of the nearest point on each pixel, NaN elsewhere."""
    image = np.full(size, np.inf)
    np.minimum.at(image, pixels_of(points), points[:, 2])
    return np.where(np.isfinite(image), image, np.nan)


def count(every: np.ndarray, behind: np.ndarray, moved: Aligned) -> str:
    """How many points are left out, and how many of those should be."""
    kept = {tuple(point) for point in moved.points.tolist()}
    out = np.array([tuple(point) not in kept for point in every.tolist()])
    return (
        f"{len(every)} points: left out {(out & behind).sum()} that are behind the surface of their pixel and "
        f"{(out & ~behind).sum()} that are not; kept {(~out & behind).sum()} that are"
    )


def means(truth: np.ndarray, coarse: tuple[int, int]) -> np.ndarray:
    """Block means of a truth whose sides are multiples of the coarse ones."""
    h, w = coarse
    return truth.reshape(h, truth.shape[0] // h, w, truth.shape[1] // w).mean((1, 3), dtype=np.float64)


def visible(truth: np.ndarray, beside: np.ndarray, baseline: float) -> np.ndarray:
    """[H, W] bool, pixels of the colour camera whose surface the camera beside it sees within its image."""
    focal = focal_length(*truth.shape)
    row, col = np.mgrid[: truth.shape[0], : truth.shape[1]]
    there = np.rint(col - focal * baseline / truth).astype(int)
    inside = (there >= 0) & (there < truth.shape[1])
    found = beside[row, np.clip(there, 0, truth.shape[1] - 1)]
    return inside & (truth < found * (1 + SAME))


if __name__ == "__main__":
    main()
