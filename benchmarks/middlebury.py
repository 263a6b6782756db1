"""Error of bicubic and of learning-free DADA on full-size Middlebury 2005 scenes, protocol P1 of the paper.

    python benchmarks/middlebury.py FOLDER

FOLDER holds one folder for each scene with rgb.png, disp1_filled.png (8-bit disparity) and meta.json (with `dmin`).
Protocol: depth = 3740 * 160 / (disparity + dmin) mm in units of 1122.7 mm; crops of 256 x 256 from the top left, what
remains is dropped; source = block means; coefficients from RGB (ImageNet mean and deviation) and the bicubic source,
kappa 0.03 and the released code's distance; the equilibrium at its default tolerance. MSE in cm^2 / MAE in cm over all
pixels of all crops. "bicubic" is torch's, not the Clough-Tocher interpolation of the released code.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import cv2
import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor
from torch.nn import functional

from dada.diffusion import coefficients, down, equilibrium

MEAN, STD = (torch.tensor(v)[:, None, None] for v in ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)))
UNIT_MM = 1122.7


def crops(folder: Path, size: int = 256) -> tuple[Tensor, Tensor]:
    """Guide [N, 3, size, size] and depth [N, 1, size, size] of every scene below the folder."""
    guides, depths = [], []
    for scene in sorted(p for p in folder.iterdir() if (p / "disp1_filled.png").exists()):
        rgb = cv2.imread(str(scene / "rgb.png"))[..., ::-1]
        disparity = cv2.imread(str(scene / "disp1_filled.png"), cv2.IMREAD_UNCHANGED).astype(np.float64)
        depth = 3740 * 160 / (disparity + json.loads((scene / "meta.json").read_text())["dmin"]) / UNIT_MM
        for i in range(0, depth.shape[0] - size + 1, size):
            for j in range(0, depth.shape[1] - size + 1, size):
                place = np.s_[i : i + size, j : j + size]
                guides.append(torch.from_numpy(rgb[place].copy()).permute(2, 0, 1))
                depths.append(torch.from_numpy(depth[place]).float()[None])
    return (torch.stack(guides).float() / 255 - MEAN) / STD, torch.stack(depths)


def error(values: Tensor, truth: Tensor) -> str:
    difference = (values - truth) * UNIT_MM / 10
    return f"{difference.square().mean():.2f} / {difference.abs().mean():.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--factors", type=int, nargs="+", default=[4, 8, 16, 32])
    args = parser.parse_args()
    guide, depth = crops(args.folder)
    table = Table(title=f"P1, {len(depth)} crops of 256 x 256, pixel-weighted: MSE cm² / MAE cm")
    for head in ("factor", "bicubic", "ratio", "shift", "iterations", "converged", "ms a crop"):
        table.add_column(head, justify="right")
    for factor in args.factors:
        source = down(depth, (256 // factor, 256 // factor))
        initial = functional.interpolate(source, size=(256, 256), mode="bicubic")
        c = coefficients(torch.cat([guide, initial], dim=1), 0.03, "mean_absolute")
        start = time.perf_counter()
        ratio = equilibrium(source, c, initial=initial)
        taken = (time.perf_counter() - start) / len(depth)
        shift = equilibrium(source, c, initial=initial, adjust="shift")
        count = ratio.iterations.float().mean()
        row = [f"x{factor}", *(error(v, depth) for v in (initial, ratio.values, shift.values)), f"{count:.0f}"]
        table.add_row(*row, f"{int(ratio.converged.sum())} of {len(depth)}", f"{1e3 * taken:.1f}")
    Console(width=None if sys.stdout.isatty() else 120).print(table)


if __name__ == "__main__":
    main()
