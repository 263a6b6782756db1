"""Where a training step's time and memory go: solver against network, implicit against unrolled.

    python benchmarks/training.py [--extractor light] [--size 256] [--batch 8] [--factor 8] [--threads 0]

Each row is measured in a process of its own; memory is the high-water mark of that process, with all that was imported.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

ROWS = (
    ("implicit", {"method": "equilibrium"}, 1.0),
    ("implicit, tolerance / 100", {"method": "equilibrium"}, 0.01),
    ("unrolled, N_grad 32", {"method": "iterate", "n_pre": 1000, "n_grad": 32}, 1.0),
    ("unrolled, N_grad 128", {"method": "iterate", "n_pre": 1000, "n_grad": 128}, 1.0),
)
WARM_UP, REPEATS = 1, 3


def main() -> None:
    options = _options()
    if options.row is not None:
        print(json.dumps(_measure(options, *ROWS[options.row][1:])))
        return
    print(f"{options.extractor}, x{options.factor}, batch {options.batch} of {options.size} x {options.size}")
    print(f"{'':28}{'step s':>9}{'solver s':>10}{'network s':>11}{'s/sample':>10}{'memory GB':>11}")
    for row, (name, _, _) in enumerate(ROWS):
        command = [sys.executable, __file__, *sys.argv[1:], "--row", str(row)]
        found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        step, solver = found["step"], found["solver"]
        print(
            f"{name:28}{step:9.2f}{solver:10.2f}{step - solver:11.2f}{step / options.batch:10.3f}{found['peak']:11.2f}"
        )


def _measure(options: argparse.Namespace, how: dict[str, Any], tightness: float) -> dict[str, float]:
    """Median seconds of a step and of its solves, and the peak of memory in GB (10^9 bytes)."""
    import torch

    from dada.datasets.crops import to_sample
    from dada.datasets.painted import Painted
    from dada.diffusion.equilibrium import TOLERANCE
    from dada.network import DADA, DadaConfig

    if options.threads:
        torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    painted = Painted(seed=0, size=(options.size, options.size))
    sample = to_sample([painted[i] for i in range(options.batch)], options.factor, painted.unit, "torch")
    network = DADA(DadaConfig(extractor=options.extractor, tolerance=TOLERANCE * tightness)).train()
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-3)
    solver = _watch_solver()
    steps = []
    for _ in range(WARM_UP + REPEATS):
        begun, solver.seconds = time.perf_counter(), 0.0
        optimiser.zero_grad()
        (10 * (network(sample, **how) - sample.target).abs().mean()).backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 0.01)
        optimiser.step()
        steps.append((time.perf_counter() - begun, solver.seconds))
    step, solved = sorted(steps[WARM_UP:])[REPEATS // 2]
    return {"step": step, "solver": solved, "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9}


def _watch_solver() -> SimpleNamespace:
    """Count the seconds in the solver of the CPU: the equilibrium and its adjoint."""
    from dada.diffusion import _cpu

    watch = SimpleNamespace(seconds=0.0)

    def timed(function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> Any:
            begun = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                watch.seconds += time.perf_counter() - begun

        return run

    _cpu.solve, _cpu.adjoint = timed(_cpu.solve), timed(_cpu.adjoint)  # type: ignore[assignment]
    return watch


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--extractor", default="light")
    parser.add_argument("--size", type=int, default=256)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--factor", type=int, default=8)
    parser.add_argument("--threads", type=int, default=0, help="of torch; 0: its own choice")
    parser.add_argument("--row", type=int, help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
