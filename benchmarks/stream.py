"""What `dada.Upsampler` saves for a camera that stands still, and whether its memory stays steady.

    python benchmarks/stream.py --frames 200 --size 480 640 --factor 8

The embedded room is seen through a camera with noise: of the guide in steps of 1/255, of the depth as a share of it.
Two of ten frames are also computed by `dada.upsample`. Printed are processor seconds of a frame, frames whose
coefficients were kept, the mean |difference| between both results beside that between separate results of neighbouring
frames, flicker (mean |change| from frame to frame where nothing moved), and the memory of the process after a tenth of
the frames and after all of them.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np

import dada
from dada.scene import render

APART = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--frames", type=int, default=200)
    parser.add_argument("--size", type=int, nargs=2, default=[480, 640])
    parser.add_argument("--factor", type=int, default=8)
    parser.add_argument("--model", default="default")
    parser.add_argument("--guide-noise", type=float, default=1.0)
    parser.add_argument("--depth-noise", type=float, default=0.003)
    parser.add_argument("--temporal-weight", type=float, default=0.0)
    args = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    guide, depth = render(*args.size)
    h, w = (n // args.factor for n in args.size)
    source = depth.reshape(h, args.factor, w, args.factor).mean((1, 3), dtype=np.float64).astype(np.float32)
    rng = np.random.default_rng(0)
    upsampler = dada.Upsampler(model=args.model, temporal_weight=args.temporal_weight)
    ours, theirs, near, apart, flicker, before = [], [], [], [], [], None
    kept, early = 0, 0.0
    for number in range(args.frames):
        image = np.uint8((guide + args.guide_noise * rng.normal(size=guide.shape)).round().clip(0, 255))
        cells = source * (1 + args.depth_noise * rng.normal(size=source.shape)).astype(np.float32)
        begin = time.process_time()
        result = upsampler(cells, image)
        ours += [time.process_time() - begin]
        kept += upsampler.frame.kept
        if number:
            flicker.append((upsampler.frame.flicker_before, upsampler.frame.flicker))
        if number % APART in (0, 1):
            begin = time.process_time()
            separate = dada.upsample(cells, image, model=args.model).values
            theirs += [time.process_time() - begin]
            near.append(np.abs(result.values - separate).mean())
            if number % APART == 1:
                apart.append(np.abs(separate - before).mean())
            before = separate
        if number == args.frames // 10:
            early = _memory()
    shown = [pair for pair in flicker if pair[0] is not None]
    print(f"{kept} of {args.frames} frames kept")
    print(f"processor time: {1000 * np.mean(ours[1:]):.0f} ms a frame, separate calls {1000 * np.mean(theirs[1:]):.0f}")
    print(f"ratio: {np.mean(theirs[1:]) / np.mean(ours[1:]):.2f}")
    near, apart = 1000 * np.mean(near), 1000 * np.mean(apart)
    print(f"difference to separate calls: {near:.2f} mm; of these to each other: {apart:.2f}")
    print(f"flicker: {1000 * np.mean(shown, axis=0)[0]:.2f} mm before, {1000 * np.mean(shown, axis=0)[1]:.2f} after")
    print(f"memory: {early:.0f} MB after {args.frames // 10} frames, {_memory():.0f} MB at the end")


def _memory() -> float:
    """Resident memory of this process in MB."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) / 1024 for line in file if line.startswith("VmRSS"))


if __name__ == "__main__":
    main()
