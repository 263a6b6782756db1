"""Measure what is left of a model's advantage when guide or source mislead; one table and one figure.

    python benchmarks/robustness.py --dataset scenes:PATH/middlebury_2005_full --figure robustness.png

Protocol P1 on crops spread over the images, every pixel weighs the same; numbers are shares of the MSE of bicubic
interpolation of the same source. What misleads:
- shift: the guide lies some target pixels to the right of where it should be;
- noise: the source has noise whose deviation is a share of the deviation of the depth in the crop (bicubic has it too);
- blank: the guide is one colour, so that no edge shows where depth jumps;
- other: the guide is that of another crop.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch
from rich.console import Console
from rich.progress import track
from rich.table import Table

from dada.datasets import load_dataset
from dada.datasets.crops import to_sample
from dada.evaluation.methods import resolve
from dada.reproduce.robustness import shift
from dada.sample import Sample, initialise
from dada.training.validation import spread_crops

SHIFTS, NOISES = (0, 1, 2, 4, 8), (0.02, 0.05, 0.1, 0.2)
Change = Callable[[Sample, Sample], Sample]  # (sample, another one) -> what the method is given


def shifted(pixels: int) -> Change:
    def change(sample: Sample, _: Sample) -> Sample:
        guide = shift(np.ascontiguousarray(sample.guide[0].permute(1, 2, 0).numpy()), pixels)
        return replace(sample, guide=torch.from_numpy(guide).permute(2, 0, 1)[None])

    return change


def noisy(share: float) -> Change:
    def change(sample: Sample, _: Sample) -> Sample:
        noise = torch.randn(sample.source.shape, generator=torch.Generator().manual_seed(0))
        source = sample.source + share * sample.deviation().float() * noise * sample.source_mask
        return replace(sample, source=source, initial=initialise(source, sample.source_mask, sample.size, "torch"))

    return change


def blank(sample: Sample, _: Sample) -> Sample:
    return replace(sample, guide=torch.full_like(sample.guide, 0.5))


def other(sample: Sample, another: Sample) -> Sample:
    return replace(sample, guide=another.guide)


CHANGES: dict[str, Change] = {f"shift {s}": shifted(s) for s in SHIFTS}
CHANGES |= {f"noise {n:g}": noisy(n) for n in NOISES}
CHANGES |= {"blank": blank, "other": other}


def squared_error(image: torch.Tensor, sample: Sample) -> float:
    assert sample.target is not None
    assert sample.target_mask is not None
    return float(((image - sample.target).square() * sample.target_mask).sum())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", required=True)
    parser.add_argument("--split", default="test")
    parser.add_argument("--methods", nargs="+", default=["default", "dynamic"])
    parser.add_argument("--factors", type=int, nargs="+", default=[4, 8, 16, 32])
    parser.add_argument("--crops", type=int, default=20)
    parser.add_argument("--figure", type=Path, help="file for a plot of the shares")
    args = parser.parse_args()
    console = Console(width=120)
    dataset = load_dataset(args.dataset, split=args.split)
    crops = spread_crops(dataset, args.crops, 256)
    methods = {name: resolve(name).method for name in args.methods}
    left: dict[tuple[str, str, int], float] = {}
    for factor in args.factors:
        samples = [to_sample(crop, factor, dataset.unit, "torch") for crop in crops]
        for label, change in track(CHANGES.items(), f"x{factor}", console=console):
            given = [change(s, samples[(i + len(samples) // 2) % len(samples)]) for i, s in enumerate(samples)]
            plain = sum(squared_error(g.initial, s) for g, s in zip(given, samples, strict=True))
            for name, method in methods.items():
                with torch.no_grad():
                    total = sum(squared_error(method(g), s) for g, s in zip(given, samples, strict=True))
                left[name, label, factor] = total / plain
    for name in methods:
        table = Table(title=f"{name}: share of bicubic's MSE, {len(crops)} crops of {dataset.name}")
        for head in ("", *(f"x{f}" for f in args.factors)):
            table.add_column(head, justify="right")
        for label in CHANGES:
            table.add_row(label, *(f"{left[name, label, f]:.2f}" for f in args.factors))
        console.print(table)
    if args.figure:
        draw(left, list(methods), args.factors, args.figure)


def draw(left: dict[tuple[str, str, int], float], methods: list[str], factors: list[int], path: Path) -> None:
    figure, panels = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained", sharey=True)
    for axes, label, values, head in (
        (panels[0], "shift", SHIFTS, "shift of the guide (pixels of the target)"),
        (panels[1], "noise", NOISES, "noise of the source (share of the depth's deviation)"),
    ):
        for k, factor in enumerate(factors):
            for name, style in zip(methods, ("-", ":"), strict=False):
                shares = [left[name, f"{label} {v:g}", factor] for v in values]
                axes.plot(values, shares, f"C{k}{style}", marker="o", markersize=3, label=f"{name}, x{factor}")
        axes.axhline(1, color="0.5", linewidth=1)
        axes.set(xlabel=head, ylim=(0, None))
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("share of bicubic's MSE")
    panels[1].legend(frameon=False, fontsize=8, ncols=2)
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main()
