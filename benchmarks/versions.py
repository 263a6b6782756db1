"""Time another checkout of this project against this one: the same problems, in turn, on one machine, in one run.

    python benchmarks/versions.py OLD --parts crops upsample first start embedded
    python benchmarks/versions.py OLD --vectors FOLDER --scenes FOLDER     # real crops, and full-size scenes

OLD is the folder of the other checkout. Each part runs in processes of its own, old and new alternately (`--rounds`);
the least time of each counts, and what is printed is both times and new / old. Parts:

crops     `equilibrium` on one thread, 256 x 256: the reference vectors `dada_free_*_xS.npz` of --vectors, else the
          embedded scene; `ratio` and `shift`, forward, and forward with the gradient
scenes    the same, forward, on all cores, for the full-size scenes in --scenes (rgb.png, disp1_filled.png)
embedded  the same for the embedded scene at 2048 x 2048
upsample  `dada.upsample` from arrays: `none` at 256 x 256 for every factor, on the middle of each scene in --scenes
          and on the embedded scene; the default at x8 for three sizes of the embedded scene, also in float32
first     a new process with an empty cache of compiled code: `dada.upsample` at x8, and at x8 and then x32
start     a new process with a filled cache: `dada --help`, and one `dada.upsample`
"""

from __future__ import annotations

import argparse
import inspect
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

FACTORS = (4, 8, 16, 32)
PARTS = ("crops", "scenes", "embedded", "upsample", "first", "start")
Rows = dict[str, float]


# ---- in the process of one checkout


def least_time(run: Callable[[], object], seconds: float, clock: Callable[[], float] = time.perf_counter) -> float:
    """Least time of one call, over about `seconds` and at most 200 calls, after a first call."""
    run()
    times: list[float] = []
    while sum(times) < seconds and len(times) < 200:
        begin = clock()
        run()
        times.append(clock() - begin)
    return min(times)


def vector_problems(folder: str) -> Iterator[tuple[str, Any, Any, Any]]:
    """Name, source, coefficients and start of 256 x 256 crops."""
    import numpy as np
    import torch

    from dada.diffusion import Coefficients

    for path in sorted(Path(folder).glob("dada_free_*_x*.npz")):
        with np.load(path) as data:
            source, initial, cv, ch, valid = (
                torch.from_numpy(data[k])[None] for k in ("source", "bicubic", "cv", "ch", "source_valid")
            )
        lift = 0.0 if bool(valid.all()) else 0.1  # as the released code does where there are holes
        source = torch.where(valid > 0, source + lift, source[valid > 0].mean() + lift)
        yield path.stem.removeprefix("dada_free_"), source[None], Coefficients(cv, ch), initial[None] + lift


def problem(guide: Any, depth: Any, factor: int) -> tuple[Any, Any, Any]:
    """Source, learning-free coefficients and start of a guide [1, 3, H, W] in 0..1 and a depth [1, 1, H, W]."""
    import torch
    from torch.nn.functional import interpolate

    from dada.diffusion import coefficients, down

    height, width = (n // factor * factor for n in depth.shape[-2:])
    guide, depth = guide[..., :height, :width], depth[..., :height, :width]
    source = down(depth, (height // factor, width // factor))
    initial = interpolate(source, size=(height, width), mode="bicubic")
    mean, deviation = torch.tensor((0.485, 0.456, 0.406)), torch.tensor((0.229, 0.224, 0.225))
    features = torch.cat([(guide - mean[:, None, None]) / deviation[:, None, None], initial / initial.std()], 1)
    return source, coefficients(features, 0.03, "mean_absolute"), initial


def embedded(size: int) -> tuple[Any, Any]:
    """Guide [1, 3, H, W] and depth [1, 1, H, W] of the embedded scene."""
    import torch

    from dada.scene import render

    scene = render(size, size)
    guide = torch.from_numpy(scene.guide).permute(2, 0, 1)[None].float() / 255
    return guide, torch.from_numpy(scene.depth)[None, None].float()


def solve_times(name: str, source: Any, c: Any, initial: Any, seconds: float, one_thread: bool) -> Rows:
    """Times of both adjustments; on one thread its processor time, which other work disturbs less, and the gradient."""
    from dada.diffusion import Coefficients, equilibrium

    rows = {}
    clock = time.process_time if one_thread else time.perf_counter
    for adjust in ("ratio", "shift"):

        def forward(adjust: Any = adjust) -> Any:
            return equilibrium(source, c, initial=initial, adjust=adjust)

        def both(adjust: Any = adjust) -> None:
            s, v, h = (t.detach().clone().requires_grad_() for t in (source, *c))
            equilibrium(s, Coefficients(v, h), initial=initial, adjust=adjust).values.square().sum().backward()

        rows[f"{name} {adjust}"] = least_time(forward, seconds, clock)
        if one_thread:
            rows[f"{name} {adjust} +grad"] = least_time(both, seconds, clock)
    return rows


def run_crops(options: argparse.Namespace) -> Rows:
    import torch

    torch.set_num_threads(1)
    rows: Rows = {}
    if options.vectors:
        for name, *given in vector_problems(options.vectors):
            rows |= solve_times(name, *given, options.seconds, True)
    else:
        guide, depth = embedded(256)
        for factor in FACTORS:
            rows |= solve_times(f"embedded 256 x{factor}", *problem(guide, depth, factor), options.seconds, True)
    return rows


def full_size(scenes: str) -> Iterator[tuple[str, Any, Any]]:
    """Name, guide [H, W, 3] and depth [H, W] in metres of every scene in a folder."""
    import cv2

    for truth in sorted(Path(scenes).glob("*/disp1_filled.png")):
        guide = cv2.cvtColor(cv2.imread(str(truth.parent / "rgb.png")), cv2.COLOR_BGR2RGB)
        disparity = cv2.imread(str(truth), cv2.IMREAD_UNCHANGED).astype("float32")
        yield truth.parent.name, guide, 3740 * 160 / (disparity + 200) / 1000


def run_scenes(options: argparse.Namespace) -> Rows:
    import torch

    rows: Rows = {}
    for name, image, truth in full_size(options.scenes):
        guide = torch.from_numpy(image).permute(2, 0, 1)[None].float() / 255
        depth = torch.from_numpy(truth)[None, None]
        for factor in FACTORS:
            rows |= solve_times(f"{name} x{factor}", *problem(guide, depth, factor), options.seconds, False)
    return rows


def run_embedded(options: argparse.Namespace) -> Rows:
    guide, depth = embedded(2048)
    rows: Rows = {}
    for factor in FACTORS:
        rows |= solve_times(f"embedded 2048 x{factor}", *problem(guide, depth, factor), 3 * options.seconds, False)
    return rows


def pair(height: int, width: int, factor: int) -> tuple[Any, Any]:
    """Source and guide of the embedded scene as arrays."""
    from dada.scene import render

    scene = render(height, width)
    cells = scene.depth.reshape(height // factor, factor, width // factor, factor)
    return cells.mean((1, 3)).astype("float32"), scene.guide


def crops_of(scenes: str) -> Iterator[tuple[str, Any, Any]]:
    """Name, guide and depth of the middle 256 x 256 pixels of full-size scenes."""
    for name, guide, depth in full_size(scenes):
        top, left = (depth.shape[0] - 256) // 2, (depth.shape[1] - 256) // 2
        yield name, guide[top : top + 256, left : left + 256], depth[top : top + 256, left : left + 256]


def run_upsample(options: argparse.Namespace) -> Rows:
    import dada

    rows: Rows = {}
    known = "precision" in inspect.signature(dada.upsample).parameters  # older versions have float32 alone
    float32 = {"precision": "float32"} if known else {}
    for name, guide, depth in crops_of(options.scenes) if options.scenes else ():
        for factor in FACTORS:
            source = depth.reshape(256 // factor, factor, 256 // factor, factor).mean((1, 3))
            rows[f"none {name} 256 x 256 x{factor}"] = least_time(
                lambda source=source, guide=guide: dada.upsample(source, guide, model="none"), options.seconds
            )
    for factor in FACTORS:
        given = pair(256, 256, factor)
        rows[f"none embedded 256 x 256 x{factor}"] = least_time(
            lambda given=given: dada.upsample(*given, model="none"), options.seconds
        )
    for height, width in ((256, 256), (480, 640), (1088, 1376)):
        given = pair(height, width, 8)
        rows[f"default {width} x {height} x8"] = least_time(
            lambda given=given: dada.upsample(*given), 3 * options.seconds
        )
        rows[f"default {width} x {height} x8 float32"] = least_time(
            lambda given=given: dada.upsample(*given, **float32), 3 * options.seconds
        )
    return rows


FIRST = """
import sys, json, time
begin = time.perf_counter()
sys.path.insert(0, {here!r})
from versions import pair
import dada
source, guide = pair(256, 256, 8)
dada.upsample(source, guide, model={model!r})
middle = time.perf_counter()
dada.upsample(pair(256, 256, 32)[0], guide, model={model!r})
print(json.dumps([middle - begin, time.perf_counter() - begin]))
"""


def fresh_process(code: str, cache: str) -> Any:
    environment = os.environ | {"NUMBA_CACHE_DIR": cache}
    ran = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return json.loads(ran.stdout.splitlines()[-1])


def run_first(options: argparse.Namespace) -> Rows:
    rows: Rows = {}
    for model in ("none", "default"):
        code = FIRST.format(here=str(Path(__file__).parent), model=model)
        with tempfile.TemporaryDirectory() as cache:
            rows[f"first {model} x8"], rows[f"first {model} x8 and x32"] = fresh_process(code, cache)
    return rows


def run_start(options: argparse.Namespace) -> Rows:
    rows: Rows = {}
    code = FIRST.format(here=str(Path(__file__).parent), model="default")
    with tempfile.TemporaryDirectory() as cache:
        fresh_process(code, cache)
        rows["start, default x8"] = min(fresh_process(code, cache)[0] for _ in range(3))
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        subprocess.run([sys.executable, "-m", "dada.cli", "--help"], capture_output=True, check=True)
        times.append(time.perf_counter() - begin)
    return rows | {"dada --help": min(times)}


# ---- both


def run_part(checkout: Path, part: str, options: argparse.Namespace) -> Rows:
    environment = os.environ | {"PYTHONPATH": str(checkout / "src")}
    command = [sys.executable, __file__, str(checkout), "--worker", part, "--seconds", str(options.seconds)]
    for name in ("vectors", "scenes"):
        if getattr(options, name):
            command += [f"--{name}", getattr(options, name)]
    ran = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(ran.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=0.5, help="to spend on each time")
    parser.add_argument("--vectors", help="folder of reference vectors")
    parser.add_argument("--scenes", help="folder of full-size scenes")
    parser.add_argument("--worker", choices=PARTS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(globals()[f"run_{options.worker}"](options)))
        return
    new = Path(__file__).resolve().parents[1]
    print(f"{'':38} {'old':>10} {'new':>10}  new / old")
    for part in options.parts:
        if part == "scenes" and not options.scenes:
            continue
        rounds = range(1 if part == "first" else options.rounds)
        found = [(run_part(options.old, part, options), run_part(new, part, options)) for _ in rounds]
        for row in found[0][0]:
            before, now = (min(both[k][row] for both in found) for k in (0, 1))
            print(f"{row:38} {1e3 * before:7.1f} ms {1e3 * now:7.1f} ms  {now / before:.2f}", flush=True)


if __name__ == "__main__":
    main()
