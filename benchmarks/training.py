"""Where a training step's time and memory go: solver against network, implicit against unrolled.

    python benchmarks/training.py [--extractor light] [--size 256] [--batch 8] [--factor 8] [--threads 0] [--repeats 3]

Each row is measured in a process of its own; memory is the high-water mark of that process, with all that was imported.
The network's time is that of the feature extractor, forward and backward, and of the optimiser; the solver's is all the
rest of the step: coefficients, diffusion, its gradient, the loss. Times are medians.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor, nn

ROWS = (
    ("implicit", {"solver": "equilibrium"}, 1.0),
    ("implicit, tolerance / 100", {"solver": "equilibrium"}, 0.01),
    ("unrolled, N_grad 32", {"solver": "iterate", "n_pre": 1000, "n_grad": 32}, 1.0),
    ("unrolled, N_grad 128", {"solver": "iterate", "n_pre": 1000, "n_grad": 128}, 1.0),
)
WARM_UP = 1


def main() -> None:
    options = _options()
    if options.row is not None:
        print(json.dumps(_measure(options, *ROWS[options.row][1:])))
        return
    print(f"{options.extractor}, x{options.factor}, batch {options.batch} of {options.size} x {options.size}")
    print(f"{'':28}{'step s':>9}{'solver s':>10}{'network s':>11}{'solver / network':>18}{'memory GB':>11}")
    for row, (name, _, _) in enumerate(ROWS):
        command = [sys.executable, __file__, *sys.argv[1:], "--row", str(row)]
        found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        step, network = found["step"], found["network"]
        solver = step - network
        print(
            f"{name:28}{step:9.2f}{solver:10.2f}{network:11.2f}{solver / network:18.2f}{found['peak']:11.2f}",
            flush=True,
        )


def _measure(options: argparse.Namespace, how: dict[str, Any], tightness: float) -> dict[str, float]:
    """Median seconds of a step and of the network in it, and the peak of memory in GB (10^9 bytes)."""
    import torch

    from dada.datasets.crops import to_sample
    from dada.datasets.painted import Painted
    from dada.diffusion.equilibrium import TOLERANCE
    from dada.models.config import DadaConfig
    from dada.models.dada import DADA

    if options.threads:
        torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    painted = Painted(seed=0, size=(options.size, options.size))
    sample = to_sample([painted[i] for i in range(options.batch)], options.factor, painted.unit, "torch")
    network = DADA(DadaConfig(extractor=options.extractor, tolerance=TOLERANCE * tightness)).train()
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-3)
    watch = _Watch(network.extractor)
    steps = []
    for _ in range(WARM_UP + options.repeats):
        begun = time.perf_counter()
        optimiser.zero_grad()
        (10 * (network(sample, **how) - sample.target).abs().mean()).backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 0.01)
        optimiser.step()
        steps.append((time.perf_counter() - begun, watch.forward + time.perf_counter() - watch.backward_begun))
    step, inside = sorted(steps[WARM_UP:])[options.repeats // 2]
    return {"step": step, "network": inside, "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9}


class _Watch:
    """When the feature extractor is at work: going forward, and from its gradient's arrival to the end of the step."""

    def __init__(self, extractor: nn.Module) -> None:
        self.forward, self.forward_begun, self.backward_begun = 0.0, 0.0, 0.0
        extractor.register_forward_pre_hook(self._begin)
        extractor.register_forward_hook(self._end)

    def _begin(self, module: nn.Module, args: Any) -> None:
        self.forward_begun = time.perf_counter()

    def _end(self, module: nn.Module, args: Any, features: Tensor) -> None:
        self.forward = time.perf_counter() - self.forward_begun
        features.register_hook(self._gradient)

    def _gradient(self, gradient: Tensor) -> None:
        self.backward_begun = time.perf_counter()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--extractor", default="light")
    parser.add_argument("--size", type=int, default=256)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--factor", type=int, default=8)
    parser.add_argument("--threads", type=int, default=0, help="of torch; 0: its own choice")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--row", type=int, help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
