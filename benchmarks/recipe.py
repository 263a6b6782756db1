"""Processor time of a training step of the recipe, and of the shipped network beside it, by factor and sampling.

    OMP_NUM_THREADS=1 python benchmarks/recipe.py --root DATA [--factors 4 8 16 32] [--samplings mean] [--repeats 2]

Milliseconds for a sample on one thread, forward + backward with the solver: the last of the repeats. The scenes are
painted before; the loss is that of the recipe. First come the operations (10^9) of a call at 640 x 480.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path

import torch
from torch.utils.flop_counter import FlopCounterMode

from dada.sample import Sample, make_sample
from dada.training import TrainConfig, read_config
from dada.training.data import Batches
from dada.training.loss import loss
from dada.training.networks import build, training_forward

RECIPE = Path(__file__).parents[1] / "configs" / "default.toml"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", default="data")
    parser.add_argument("--factors", type=int, nargs="+", default=[4, 8, 16, 32])
    parser.add_argument("--samplings", nargs="+", default=["mean"])
    parser.add_argument("--repeats", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(1)
    recipe = replace(read_config(RECIPE), root=options.root, bands=(3,))
    recipe = replace(recipe, data=recipe.data[:1])
    shipped = {**recipe.network, "bands": 3, "refinement": "wide"}
    rows = {
        "shipped network, float32": replace(recipe, network=shipped, bfloat16=False),
        "recipe's network, float32": replace(recipe, bfloat16=False),
        "recipe's network, bfloat16": recipe,
    }
    networks = {name: build(config).train() for name, config in rows.items()}
    for name in ("shipped network, float32", "recipe's network, float32"):
        print(f"{name}: {operations(networks[name]):.1f} GFLOP at 640 x 480", flush=True)
    for sampling in options.samplings:
        for factor in options.factors:
            batches = Batches(replace(recipe, sampling=(sampling,)))
            places = range(recipe.batch_of(factor))
            sample = Sample.batch([batches.sample(0, place, factor) for place in places])
            for _ in range(options.repeats):
                found = {name: step(networks[name], sample, config) for name, config in rows.items()}
            for name, (forward, backward) in found.items():
                print(f"{sampling} x{factor} {name}: {forward:.0f} + {backward:.0f} ms", flush=True)


def operations(network: torch.nn.Module) -> float:
    """Of the convolutions of a call at 640 x 480, in 10^9."""
    target, valid = 1 + torch.rand(1, 1, 480, 640), torch.ones(1, 1, 480, 640, dtype=torch.bool)
    sample = make_sample(torch.rand(1, 3, 480, 640), target, valid, 8, interpolation="torch")
    with FlopCounterMode(display=False) as counter:
        network(sample)
    return float(counter.get_total_flops()) / 1e9


def step(network: torch.nn.Module, sample: Sample, config: TrainConfig) -> tuple[float, float]:
    """Milliseconds a sample, forward and backward."""
    network.zero_grad()
    begun = time.process_time()
    value = loss(training_forward(network, sample, config), sample, config.loss)
    between = time.process_time()
    torch.autograd.backward(value)
    share = 1000 / len(sample)
    return share * (between - begun), share * (time.process_time() - between)


if __name__ == "__main__":
    main()
