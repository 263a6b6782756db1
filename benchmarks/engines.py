"""Time the first graph of an exported model in ONNX Runtime against torch as `dada.upsample` runs it, in one process.

    python benchmarks/engines.py --threads 2

Both get the embedded scene at x8, in turn; the least time of each counts. Also printed: the largest difference of
their coefficients.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dada.diffusion import down
from dada.export import export
from dada.export.folder import network_of
from dada.machine import keep_memory
from dada.sample import Sample, bicubic
from dada.scene import render


def problem(height: int, width: int) -> Sample:
    """The embedded scene at x8."""
    scene = render(height, width)
    guide = torch.from_numpy(scene.guide).permute(2, 0, 1)[None].float() / 255
    source = down(torch.from_numpy(scene.depth)[None, None].float(), (height // 8, width // 8))
    mask = torch.ones_like(source, dtype=torch.bool)
    return Sample(guide, source, mask, bicubic(source, mask, (height, width)))


def onnx_runtime(folder: Path, sample: Sample, threads: int) -> Callable[[], list[Any]]:
    """A call of the first graph."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = onnxruntime.InferenceSession(str(folder / "first.onnx"), options, providers=["CPUExecutionProvider"])
    given = {"guide": sample.guide, "source": sample.source, "mask": sample.source_mask, "initial": sample.initial}
    arrays = {one.name: given[one.name].numpy() for one in session.get_inputs()}
    return lambda: list(session.run(None, arrays))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="default")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--size", type=int, nargs=2, default=(480, 640), metavar=("HEIGHT", "WIDTH"))
    parser.add_argument("--seconds", type=float, default=20)
    options = parser.parse_args()
    keep_memory()
    torch.set_num_threads(options.threads)
    network, sample = network_of(options.model), problem(*options.size)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "graphs"
        export(network, folder)
        run = onnx_runtime(folder, sample, options.threads)

    def eager() -> Any:
        with torch.no_grad():
            return network.prepare(sample).coefficients()

    found, expected = run(), eager()
    difference = max(float(np.abs(a - b.numpy()).max()) for a, b in zip(found, expected, strict=False))
    times: dict[str, list[float]] = {"torch": [], "ONNX Runtime": []}
    end = time.perf_counter() + options.seconds
    while time.perf_counter() < end:
        for name, call in (("torch", eager), ("ONNX Runtime", run)):
            begin = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - begin)
    height, width = options.size
    print(
        f"first.onnx of {network.name}, {width} x {height}, {options.threads} threads, {len(times['torch'])} calls each"
    )
    for name, each in times.items():
        print(f"{name:14} least {1e3 * min(each):6.1f} ms, median {1e3 * float(np.median(each)):6.1f} ms")
    largest = max(float(one.max()) for one in expected)
    print(f"largest difference of the coefficients: {difference:.1e}, the largest coefficient: {largest:.3g}")


if __name__ == "__main__":
    main()
