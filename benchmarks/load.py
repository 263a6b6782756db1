"""Time `dada.upsample` (the learned default, 640 x 480, x8) alone, and beside other busy processes.

    python benchmarks/load.py                   # as the library is called
    python benchmarks/load.py --spins 300000    # threads wait as GNU's OpenMP has it by default
    python benchmarks/load.py --threads 1

Each setting runs in a process of its own; the median of the calls counts.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

CALLS = """
import json, sys, time
sys.path.insert(0, {here!r})
from versions import pair
import dada, torch
if {threads}:
    torch.set_num_threads({threads})
given = pair(480, 640, 8)
dada.upsample(*given)
times = []
for _ in range({calls}):
    begin = time.perf_counter()
    dada.upsample(*given)
    times.append(time.perf_counter() - begin)
print(json.dumps(times))
"""


def median_time(options: argparse.Namespace) -> float:
    environment = dict(os.environ)
    if options.spins:
        environment["GOMP_SPINCOUNT"] = str(options.spins)
    code = CALLS.format(here=str(Path(__file__).parent), threads=options.threads, calls=options.calls)
    ran = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return statistics.median(json.loads(ran.stdout.splitlines()[-1]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spins", type=int, default=0, help="turns that a waiting thread spins; 0: as dada sets it")
    parser.add_argument("--threads", type=int, default=0, help="of torch; 0: as it chooses")
    parser.add_argument("--others", type=int, default=3, help="busy processes")
    parser.add_argument("--calls", type=int, default=7)
    options = parser.parse_args()
    alone = median_time(options)
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(options.others)]
    try:
        beside = median_time(options)
    finally:
        for process in busy:
            process.kill()
            process.wait()
    print(
        f"alone {1e3 * alone:.0f} ms, beside {options.others} busy processes {1e3 * beside:.0f} ms: "
        f"{beside / alone:.1f} times (load before: {os.getloadavg()[0]:.1f})"
    )


if __name__ == "__main__":
    main()
