"""Time `dada.upsample` by models of the package: the embedded scene, x8, the least of some calls.

python benchmarks/calls.py --models learned fast dynamic none [--threads 2] [--calls 9]
"""

from __future__ import annotations

import argparse
import time

import dada
from versions import pair

SIZES = ((256, 256), (480, 640), (1088, 1376))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=["learned", "fast"])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--calls", type=int, default=9)
    options = parser.parse_args()
    import torch

    torch.set_num_threads(options.threads)
    for height, width in SIZES:
        given = pair(height, width, 8)
        for model in options.models:
            report = dada.upsample(*given, model=model).report
            times = []
            for _ in range(options.calls):
                begin = time.perf_counter()
                dada.upsample(*given, model=model)
                times.append(time.perf_counter() - begin)
            print(f"{width:5} x {height:<5} {model:>8}  {1e3 * min(times):6.0f} ms  ({report.precision})", flush=True)


if __name__ == "__main__":
    main()
