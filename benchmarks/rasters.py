"""Rasters in tiles: how near they come to the solve in memory, how fast they are, and whether kills matter.

    python benchmarks/rasters.py --scene SHARED/data/middlebury_2005_full/Art --parts speed
    python benchmarks/rasters.py --scene ... --parts kills --size 2048 --tile 256
    python benchmarks/rasters.py --scene ... --parts accuracy

Parts:
  accuracy   the scene in 3 x 3 tiles against `dada.upsample` of the whole; protocol P1, depth averaged over blocks, or
             sampled or resized (--sampling)
  speed      the scene repeated to size x size pixels, with changes; one worker, two workers, and 2048 x 2048 in memory
  kills      workers killed at random, and the command killed at random (also before its first tile and after its last
             one): are the bytes those of an undisturbed run?
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import psutil
import rasterio
import torch
from rasterio.transform import Affine, from_origin
from rasterio.windows import Window

import dada
from dada.io import read_image
from dada.rasters import Settings, upsample_raster
from dada.sample import Sampling

PLACE = from_origin(500_000, 4_600_000, 0.5, 0.5)
NODATA = -9999.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scene", type=Path, required=True, help="folder with rgb.png and disp1_filled.png")
    parser.add_argument("--parts", nargs="+", default=["accuracy", "speed", "kills"])
    parser.add_argument("--models", nargs="+", default=["none", "dynamic", "learned"])
    parser.add_argument("--factors", nargs="+", type=int, default=[4, 8, 32])
    parser.add_argument("--sampling", nargs="+", default=["mean"], help="of accuracy")
    parser.add_argument("--size", type=int, default=20_000, help="pixels a side, of speed and kills")
    parser.add_argument("--factor", type=int, default=8, help="of speed and kills")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--tile", type=int, help="pixels a side; by the memory by default")
    parser.add_argument("--memory", default="3GB", help="for each worker")
    parser.add_argument("--folder", type=Path, help="for the rasters; a temporary one by default")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    depth, colour = read_scene(options.scene)
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        if "accuracy" in options.parts:
            accuracy(folder, depth, colour, options)
        if {"speed", "kills"} & set(options.parts):
            pair = write_large(folder, depth, colour, options.size, options.factor)
            if "speed" in options.parts:
                speed(folder, pair, options)
            if "kills" in options.parts:
                kills(folder, pair, options)


def read_scene(scene: Path) -> tuple[np.ndarray, np.ndarray]:
    """Depth [H, W] in millimetres and colour [H, W, 3]; H and W are multiples of 32."""
    disparity = read_image(scene / "disp1_filled.png").values.astype(np.float64)
    colour = read_image(scene / "rgb.png", role="guide").values
    height, width = (n // 32 * 32 for n in disparity.shape)
    return 3740 * 160 / (disparity[:height, :width] + 100), colour[:height, :width]


def average(image: np.ndarray, factor: int) -> np.ndarray:
    h, w = (n // factor for n in image.shape)
    return image.reshape(h, factor, w, factor).mean(axis=(1, 3))


def write(path: Path, bands: np.ndarray, place: Affine, nodata: float | None = None) -> Path:
    bands = bands if bands.ndim == 3 else bands[None]
    count, height, width = bands.shape
    profile = {"driver": "GTiff", "count": count, "height": height, "width": width, "dtype": bands.dtype}
    with rasterio.open(path, "w", **profile, crs="EPSG:32633", transform=place, nodata=nodata, tiled=True) as file:
        file.write(bands)
    return path


# ---- accuracy


def accuracy(folder: Path, depth: np.ndarray, colour: np.ndarray, options: argparse.Namespace) -> None:
    height, width = depth.shape
    print(f"3 x 3 tiles of {width} x {height} against the solve in memory, tolerance 2e-4; differences over the range")
    print("finer: a solve in memory with tolerance 1e-6; jumps: across seams over beside them")
    print("misfit: of the written file to the source")
    print("                       | tiles to memory | tiles to finer  | memory to finer | jumps")
    print("sampling model   holes | mean    largest | mean    largest | mean    largest | tiles memory ratio | misfit")
    for sampling in options.sampling:
        for model in options.models:
            for factor in options.factors:
                for holes in (False, True):
                    compare(folder, depth, colour, (sampling, model, factor, holes))


def compare(folder: Path, depth: np.ndarray, colour: np.ndarray, case: tuple[str, str, int, bool]) -> None:
    sampling, model, factor, holes = case
    cells = depth.shape[0] // factor, depth.shape[1] // factor
    source = Sampling.of(sampling).down(torch.from_numpy(depth), cells).numpy().astype(np.float32)
    if holes:
        h, w = source.shape
        source[int(0.28 * h) : int(0.4 * h), int(0.2 * w) : int(0.75 * w)] = NODATA
        source[int(0.6 * h) : int(0.9 * h), int(0.6 * w) : int(0.7 * w)] = NODATA
    valid = source != NODATA
    pair = write(folder / "s.tif", source, PLACE * Affine.scale(factor), NODATA), folder / "g.tif"
    write(pair[1], np.moveaxis(colour, -1, 0), PLACE)
    settings = Settings(model=model, tile=400, sampling=sampling)
    report = upsample_raster(*pair, folder / "o.tif", settings=settings, workers=1)
    with rasterio.open(folder / "o.tif") as file:
        out = file.read(1, masked=True).astype(np.float64).filled(np.nan)
    kwargs = {"model": model, "invalid": NODATA, "sampling": sampling}
    whole = dada.upsample(source, colour, **kwargs)
    assert whole.report.adjust == report.adjust
    memory = whole.values
    finer = dada.upsample(source, colour, tolerance=1e-6, **kwargs).values
    span = float(np.ptp(source[valid]))
    apart = (difference(a, b, span) for a, b in ((out, memory), (out, finer), (memory, finer)))
    columns = " | ".join(f"{mean:.1e} {most:.1e}" for mean, most in apart)
    jumps = seam_ratio(out, report.tiles, factor), seam_ratio(memory, report.tiles, factor)
    print(
        f"{sampling:7} {model:7} x{factor:<2} {'yes' if holes else 'no':3} | {columns} | "
        f"{jumps[0]:.3f} {jumps[1]:.3f} {jumps[0] / jumps[1]:.3f} | {report.measured.consistency_max / span:.1e}",
        flush=True,
    )


def difference(a: np.ndarray, b: np.ndarray, span: float) -> tuple[float, float]:
    apart = np.abs(a - b)[np.isfinite(b)] / span
    return float(apart.mean()), float(apart.max())


def seam_ratio(values: np.ndarray, tiles: tuple[int, int], factor: int) -> float:
    at, beside = [], []
    for image, count in ((values, tiles[0]), (values.T, tiles[1])):
        cells = len(image) // factor
        for number in range(1, count):
            for off, to in ((-1, beside), (0, at), (1, beside)):
                row = (cells * number // count + off) * factor
                to.append(np.abs(image[row] - image[row - 1]))
    return float(np.nanmean(np.concatenate(at)) / np.nanmean(np.concatenate(beside)))


# ---- speed


def write_large(folder: Path, depth: np.ndarray, colour: np.ndarray, size: int, factor: int) -> tuple[Path, Path]:
    """The scene repeated, mirrored and changed in brightness and height, to about size x size pixels."""
    size = size // factor * factor
    profile = {"driver": "GTiff", "crs": "EPSG:32633", "tiled": True, "compress": "deflate", "bigtiff": "if_safer"}
    tall, wide = depth.shape
    coarse = {"height": size // factor, "width": size // factor, "count": 1, "dtype": "float32"}
    fine = {"height": size, "width": size, "count": 3, "dtype": "uint8"}
    chance = np.random.default_rng(0)
    paths = folder / "source.tif", folder / "guide.tif"
    with (
        rasterio.open(paths[0], "w", **profile, **coarse, transform=PLACE * Affine.scale(factor)) as source,
        rasterio.open(paths[1], "w", **profile, **fine, transform=PLACE) as guide,
    ):
        for top in range(0, size, tall):
            for left in range(0, size, wide):
                flip = np.s_[:: chance.choice((-1, 1)), :: chance.choice((-1, 1))]
                height, width = min(tall, size - top), min(wide, size - left)
                lit = np.clip(colour[flip] * chance.uniform(0.7, 1.2), 0, 255).astype(np.uint8)[:height, :width]
                far = (depth[flip] + chance.uniform(0, 500))[:height, :width]
                guide.write(np.moveaxis(lit, -1, 0), window=Window(left, top, width, height))
                cells = average(far, factor).astype(np.float32)
                place = Window(left // factor, top // factor, width // factor, height // factor)
                source.write(cells, 1, window=place)
    return paths


def speed(folder: Path, pair: tuple[Path, Path], options: argparse.Namespace) -> None:
    with rasterio.open(pair[1]) as file:
        side = min(2048, file.width)
        pixels = file.width * file.height
        guide = np.moveaxis(file.read(window=Window(0, 0, side, side)), 0, -1)
    with rasterio.open(pair[0]) as file:
        source = file.read(1, window=Window(0, 0, side // options.factor, side // options.factor))
    dada.upsample(source[:64, :64], guide[: 64 * options.factor, : 64 * options.factor], model="dynamic")
    begin, spent = time.perf_counter(), time.process_time()
    dada.upsample(source, guide, model="dynamic")
    memory = (time.perf_counter() - begin) / side**2, (time.process_time() - spent) / side**2
    print(f"in memory, {side} x {side}: {1e6 * memory[0]:.2f} s a Mpixel, {1e6 * memory[1]:.2f} s of processor")
    runs = {}
    for workers in (1, 2):
        runs[workers] = run = timed_command(folder, pair, workers, options)
        print(
            f"{workers} worker(s), {pixels / 1e6:.0f} Mpixel: {run[0]:.1f} s, {1e6 * run[0] / pixels:.2f} s a Mpixel; "
            f"{1e6 * run[1] / pixels:.2f} s of processor a Mpixel (x{run[1] / pixels / memory[1]:.2f} of in memory)",
            flush=True,
        )
    same = (folder / "out1.tif").read_bytes() == (folder / "out2.tif").read_bytes()
    print(f"the bytes of both are {'the same' if same else 'NOT THE SAME'}")
    print(f"memory of a process: at most {max(run[2] for run in runs.values()) / 1e9:.2f} GB (wanted: below 3)")
    print(f"time for a pixel, one worker over in memory: {runs[1][0] / pixels / memory[0]:.2f} (wanted: at most 1.6)")
    print(f"one worker over two: {runs[1][0] / runs[2][0]:.2f} (wanted: at least 1.7)")


def command(pair: tuple[Path, Path], output: Path, workers: int, options: argparse.Namespace) -> list[str]:
    memory = float(options.memory.removesuffix("GB")) * workers
    made = [sys.executable, "-m", "dada.cli", "raster", *map(str, pair), "-o", str(output), "--model", "dynamic"]
    made += ["--tile", str(options.tile)] if options.tile else []
    return [*made, "--workers", str(workers), "--memory", f"{memory:g}GB", "-q"]


def timed_command(
    folder: Path, pair: tuple[Path, Path], workers: int, options: argparse.Namespace
) -> tuple[float, float, int]:
    """Seconds, seconds of processor, and the most memory of one process."""
    begin = time.perf_counter()
    before = os.times()
    one_thread = os.environ | {"NUMBA_NUM_THREADS": "1"}  # as workers have it, so that one worker is one core
    running = subprocess.Popen(command(pair, folder / f"out{workers}.tif", workers, options), env=one_thread)
    most = 0
    while running.poll() is None:
        most = max([most, *(memory_of(p) for p in family(running.pid))])
        time.sleep(0.2)
    if running.returncode:
        raise SystemExit(f"the command failed with {running.returncode}")
    after = os.times()
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    return time.perf_counter() - begin, spent, most


def family(pid: int) -> list[psutil.Process]:
    try:
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def memory_of(process: psutil.Process) -> int:
    """Without the pages of files."""
    try:
        info = process.memory_info()
        return info.rss - getattr(info, "shared", 0)
    except psutil.NoSuchProcess:
        return 0


# ---- kills


def kills(folder: Path, pair: tuple[Path, Path], options: argparse.Namespace) -> None:
    calm = folder / "calm.tif"
    running = subprocess.Popen(command(pair, calm, 2, options))
    total = 0
    while running.poll() is None:
        total = max(total, tasks_of(calm))
        time.sleep(0.01)
    chance = random.Random(0)
    shaken = folder / "shaken.tif"
    killed = kill_workers(command(pair, shaken, 2, options), shaken, moments(total, options.kills, chance), chance)
    same = shaken.read_bytes() == calm.read_bytes()
    print(f"{killed} workers killed at random: {'the same bytes' if same else 'OTHER BYTES'}", flush=True)
    stopped = folder / "stopped.tif"
    ends = [0, *moments(total, options.kills - 2, chance), total]
    killed = sum(kill_command(command(pair, stopped, 2, options), stopped, moment) for moment in ends)
    subprocess.run(command(pair, stopped, 2, options), check=True)
    same = stopped.read_bytes() == calm.read_bytes()
    print(
        f"the command killed {killed} times: {'the same bytes' if same else 'OTHER BYTES'} after resuming", flush=True
    )


def tasks_of(output: Path) -> int:
    """Tiles and seams that are done: files of a run that is going on; -1 before its plan is made."""
    folder = output.with_name(f"{output.name}.tiles")
    return len(list(folder.glob("*-*-*.npz"))) if (folder / "manifest.json").exists() else -1


def moments(total: int, count: int, chance: random.Random) -> list[int]:
    """Numbers of finished tasks at which something is killed, in order."""
    return sorted(chance.sample(range(1, max(int(0.9 * total), count + 1)), count))


def kill_workers(run: list[str], output: Path, at: list[int], chance: random.Random) -> int:
    """Kill a worker of a run whenever so many tasks are done; return how many were."""
    running, killed = subprocess.Popen(run), 0
    while running.poll() is None:
        if killed < len(at) and tasks_of(output) >= at[killed]:
            workers = [p for p in family(running.pid)[1:] if memory_of(p) > 100e6]
            if workers:
                chance.choice(workers).kill()
                killed += 1
        time.sleep(0.01)
    if running.returncode:
        raise SystemExit(f"the command failed with {running.returncode}")
    return killed


def kill_command(run: list[str], output: Path, moment: int) -> bool:
    """Kill a run, and not its workers, once so many tasks are done; return whether it was alive."""
    running = subprocess.Popen(run)
    while running.poll() is None:
        if tasks_of(output) >= moment:
            running.kill()
            running.wait()
            return True
        time.sleep(0.01)
    return False


if __name__ == "__main__":
    main()
