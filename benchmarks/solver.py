"""Time the equilibrium against the loop it replaces: one run, one machine, one table.

    python benchmarks/solver.py                              # all sizes and factors, some ten minutes
    python benchmarks/solver.py --sizes 256 --factors 8 32   # a part of it
    python benchmarks/solver.py --threads 1                  # the equilibrium on one thread, as the loop

Every image is the embedded scene (`dada.scene`) at that size, its depth averaged down by the factor, with the
learning-free coefficients of the paper (RGB and the bicubic source, kappa 0.03) and the bicubic image as the start; or,
with --vectors FOLDER, the 256 x 256 crops of reference vectors `dada_free_*_xS.npz` in that folder.

Columns: `loop` is 9024 steps of eager torch on one thread (at sizes above 256 timed over fewer steps and scaled);
`compiled` the same steps compiled, on one thread too; `ratio` and `shift` the equilibrium, forward, and with the
gradient to source and coefficients (`+grad`), on as many threads as there are cores, or as --threads says. `x` is loop
time over forward time. Distances are means over pixels relative to the range of the source, to the true equilibrium:
the compiled loop in float64, started at a solve of tolerance 1e-9 and run until it stands still (at sizes above 256:
that solve itself). Memory is the peak over the process before the call.
Times are the best of several calls; take the ratios, not the times.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.progress import track
from rich.table import Table
from torch import Tensor
from torch.nn import functional

from dada.diffusion import Coefficients, coefficients, down, equilibrium, iterate
from dada.scene import render

STEPS = 9024
Problem = tuple[str, int, Tensor, Coefficients, Tensor]  # name, factor, source, coefficients, initial


def scene_problem(size: int, factor: int, cache: dict[int, tuple[Tensor, Tensor]]) -> Problem:
    if size not in cache:
        scene = render(size, size)
        guide = torch.from_numpy(scene.guide).permute(2, 0, 1)[None].float() / 255
        mean, std = torch.tensor((0.485, 0.456, 0.406)), torch.tensor((0.229, 0.224, 0.225))
        cache[size] = (guide - mean[:, None, None]) / std[:, None, None], torch.from_numpy(scene.depth)[None, None]
    guide, depth = cache[size]
    source = down(depth, (size // factor, size // factor))
    initial = functional.interpolate(source, size=(size, size), mode="bicubic")
    return f"{size}", factor, source, coefficients(torch.cat([guide, initial], 1), 0.03, "mean_absolute"), initial


def vector_problem(path: Path) -> Problem:
    with np.load(path) as data:
        source, initial, cv, ch = (torch.from_numpy(data[k])[None] for k in ("source", "bicubic", "cv", "ch"))
    name, _, factor = path.stem.removeprefix("dada_free_").rpartition("_x")
    return name, int(factor), source[None], Coefficients(cv, ch), initial[None]


def eager_loop(source: Tensor, c: Coefficients, y: Tensor, steps: int) -> Tensor:
    """Eq. 1 and Eq. 3 as written in eager torch, in place where that is faster."""
    factor = y.shape[-1] // source.shape[-1]
    cv, ch = 0.24 * c.vertical[:, None], 0.24 * c.horizontal[:, None]
    y = y.clone()
    for _ in range(steps):
        dv, dh = y.diff(dim=-2) * cv, y.diff(dim=-1) * ch
        y[:, :, 1:] -= dv
        y[:, :, :-1] += dv
        y[:, :, :, 1:] -= dh
        y[:, :, :, :-1] += dh
        ratio = source / functional.avg_pool2d(y, factor)
        y = y * functional.interpolate(ratio, scale_factor=factor, mode="nearest")
    return y


def best_time(run: Callable[[], object], seconds: float = 1.0, most: int = 200) -> float:
    """Least time of one call, over about `seconds`."""
    run()
    best, spent, calls = float("inf"), 0.0, 0
    while spent < seconds and calls < most:
        start = time.perf_counter()
        run()
        taken = time.perf_counter() - start
        best, spent, calls = min(best, taken), spent + taken, calls + 1
    return best


def peak_memory(run: Callable[[], object]) -> float:
    """Growth of the process's peak resident memory during a call, in MB; NaN where the system does not tell."""
    try:
        Path("/proc/self/clear_refs").write_text("5")  # reset the peak
        before = _status("VmRSS")
        run()
        return (_status("VmHWM") - before) / 1024
    except OSError:
        return float("nan")


def _status(field: str) -> float:
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(field))
    return float(line.split()[1])


def truth(source: Tensor, c: Coefficients, adjust: str, stand_still: bool) -> Tensor:
    """The true equilibrium, in float64."""
    source, c = source.double(), Coefficients(*(v.double() for v in c))
    y = equilibrium(source, c, adjust=adjust, tolerance=1e-9, max_iterations=20_000).values
    for _ in range(50 if stand_still else 0):
        moved = iterate(source, c, adjust=adjust, initial=y, steps=2000).values
        change, y = (moved - y).abs().max() / (source.max() - source.min()), moved
        if change < 1e-9:
            break
    return y


def measure(problem: Problem, seconds: float, threads: int) -> dict[str, float | str]:
    name, factor, source, c, initial = problem
    small = initial.shape[-1] <= 256
    spread = source.max() - source.min()
    steps = STEPS if small else 100
    row: dict[str, float | str] = {"image": name, "factor": factor}
    torch.set_num_threads(1)
    eager = eager_loop(source, c, initial, steps)
    row["loop"] = best_time(lambda: eager_loop(source, c, initial, steps), 8 * seconds, 3) * STEPS / steps
    torch.set_num_threads(threads)
    row["compiled"] = best_time(lambda: iterate(source, c, initial=initial, steps=steps), seconds, 3) * STEPS / steps
    for adjust in ("ratio", "shift"):
        true = truth(source, c, adjust, stand_still=small)
        solution = equilibrium(source, c, initial=initial, adjust=adjust)
        wanted = source.clone().requires_grad_(), *(v.clone().requires_grad_() for v in c)
        probe = torch.randn(initial.shape, generator=torch.Generator().manual_seed(0))

        def forward(adjust: str = adjust) -> Tensor:
            return equilibrium(source, c, initial=initial, adjust=adjust).values

        def both(adjust: str = adjust, wanted: tuple = wanted, probe: Tensor = probe) -> None:
            values = equilibrium(wanted[0], Coefficients(*wanted[1:]), initial=initial, adjust=adjust).values
            torch.autograd.grad((values * probe).sum(), wanted)

        row[adjust] = best_time(forward, seconds)
        row[f"{adjust} +grad"] = best_time(both, seconds)
        row[f"{adjust} iterations"] = solution.iterations.item()
        row[f"{adjust} MB"] = peak_memory(forward)
        row[f"{adjust} error"] = ((solution.values - true).abs().mean() / spread).item()
        if adjust == "ratio":
            row["loop error"] = ((eager - true).abs().mean() / spread).item() if small else float("nan")
    return row


def show(rows: list[dict], threads: int, console: Console) -> None:
    many = f"{threads} threads" if threads > 1 else "one thread"
    table = Table(title=f"{STEPS} steps of the loop on one thread against its equilibrium on {many} (float32)")
    heads = ["image", "x", "loop s", "compiled s", "compiled x"]
    for adjust in ("ratio", "shift"):
        heads += [f"{adjust} ms", "x", "+grad / forward", "iterations", "MB", "error"]
    for head in [*heads, "loop error"]:
        table.add_column(head, justify="right")
    for row in rows:
        cells = [row["image"], row["factor"], f"{row['loop']:.2f}", f"{row['compiled']:.2f}"]
        cells.append(f"{row['loop'] / row['compiled']:.1f}")
        for a in ("ratio", "shift"):
            cells += [f"{1e3 * row[a]:.1f}", f"{row['loop'] / row[a]:.0f}", f"{row[f'{a} +grad'] / row[a]:.1f}"]
            cells += [row[f"{a} iterations"], f"{row[f'{a} MB']:.0f}", f"{row[f'{a} error']:.1e}"]
        table.add_row(*map(str, cells), "-" if np.isnan(row["loop error"]) else f"{row['loop error']:.1e}")
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[256, 512, 1024, 2048])
    parser.add_argument("--factors", type=int, nargs="+", default=[4, 8, 16, 32])
    parser.add_argument("--vectors", type=Path, help="folder of dada_free_*_xS.npz reference vectors to use instead")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1, help="for the equilibrium (default: all)")
    parser.add_argument("--seconds", type=float, default=1.0, help="time to spend on each measurement")
    args = parser.parse_args()
    console = Console(width=None if os.isatty(1) else 200)
    if args.vectors:
        problems = [vector_problem(path) for path in sorted(args.vectors.glob("dada_free_*_x*.npz"))]
    else:
        cache: dict[int, tuple[Tensor, Tensor]] = {}
        problems = [scene_problem(size, factor, cache) for size in args.sizes for factor in args.factors]
    rows = [measure(problem, args.seconds, args.threads) for problem in track(problems, "measuring", console=console)]
    show(rows, args.threads, console)


if __name__ == "__main__":
    main()
