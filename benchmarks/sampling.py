"""How surely `sampling="auto"` tells an averaged source from a sampled one.

    python benchmarks/sampling.py scenes:FOLDER [scenes:FOLDER ...] --split test --crops 20

Every crop of 256 x 256 (protocol P1) is brought down by means and by points at each factor. Printed is the share of
these sources for which "auto" decides, and the share of its decisions that are right.
"""

from __future__ import annotations

import argparse

import torch

from dada.datasets import load_dataset
from dada.datasets.crops import to_sample
from dada.evaluation.protocol import P1, problems
from dada.upsampling.problem import Problem
from dada.upsampling.sampling import SURE, mean_odds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", nargs="+")
    parser.add_argument("--split", default="test")
    parser.add_argument("--crops", type=int, default=20, help="of each data set")
    parser.add_argument("--factors", type=int, nargs="+", default=[4, 8, 16, 32])
    args = parser.parse_args()
    torch.set_num_threads(1)
    every: list[tuple[bool, bool]] = []
    for text in args.datasets:
        dataset = load_dataset(text, args.split)
        crops = [crop for parts in problems(dataset, P1, args.crops) for crop in parts]
        for factor in args.factors:
            found = []
            for crop in crops:
                for kind in ("mean", "point"):
                    sample = to_sample(crop, factor, dataset.unit, "torch", kind)
                    if bool(sample.source_mask.any()):
                        odds = mean_odds(Problem(sample.guide, sample.source, sample.source_mask))
                        found.append((abs(odds) >= SURE, (odds > 0) == (kind == "mean")))
            every += found
            print(f"{dataset.name} x{factor}: {_words(found)}", flush=True)
    print(f"all: {_words(every)}")


def _words(found: list[tuple[bool, bool]]) -> str:
    decided = [right for sure, right in found if sure]
    share = len(decided) / max(len(found), 1)
    return f"{len(found)} sources, {share:.0%} decided, {sum(decided) / max(len(decided), 1):.1%} of these rightly"


if __name__ == "__main__":
    main()
