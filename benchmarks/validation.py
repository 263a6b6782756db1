"""The recipe's own validation of any weights of DADA: share of bicubic's MSE, by data set, sampling and factor.

    python benchmarks/validation.py --root DATA [--crops 4] [--factors 4 8 16 32] learned FILE ...

"learned" is the model that comes with the package. Scenes, interpolation and samplings are those of
`configs/default.toml`. A network is run on one thread, in float32.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import torch

from dada import DADA
from dada.models.default import learned
from dada.training import read_config
from dada.training.processes import Processes
from dada.training.validation import Validation, score

RECIPE = Path(__file__).parents[1] / "configs" / "default.toml"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--root", default="data")
    parser.add_argument("--crops", type=int, default=4)
    parser.add_argument("--factors", type=int, nargs="+", default=[4, 8, 16, 32])
    parser.add_argument("--samplings", nargs="+", default=["mean", "point", "bicubic"])
    options = parser.parse_args()
    torch.set_num_threads(1)
    recipe = replace(read_config(RECIPE), root=options.root)
    wanted = replace(
        recipe.validation,
        crops=options.crops,
        factors=tuple(options.factors),
        sampling=tuple(options.samplings),
    )
    validation = Validation(replace(recipe, validation=wanted), Processes())
    networks = {name: learned() if name == "learned" else DADA.load(name) for name in options.models}
    found = {name: validation(network) for name, network in networks.items()}
    rows = [name for name in next(iter(found.values())) if name.endswith(" mse")]
    print("| | " + " | ".join(found) + " |\n| --- |" + " ---: |" * len(found))
    for row in rows:
        print(f"| {row.removesuffix(' mse')} | " + " | ".join(f"{shares[row]:.3f}" for shares in found.values()) + " |")
    print("| geometric mean | " + " | ".join(f"{score(shares):.3f}" for shares in found.values()) + " |")


if __name__ == "__main__":
    main()
