"""One process that tries one target for a while: `python -m tests.fuzz.worker TARGET FOLDER SEED SECONDS`.

The inputs of the present case lie in FOLDER/case, so that they are there also if the process dies. A case that does
not end is shown by a dump of every thread's stack in FOLDER/stacks.txt, after which the process ends.
"""

from __future__ import annotations

import faulthandler
import resource
import shutil
import sys
import time
import traceback
from pathlib import Path
from typing import Any

import numpy as np

from tests.fuzz.make_seeds import SEEDS
from tests.fuzz.targets import HANG, TARGETS, FindingError, Target

FOUND = 3  # exit code
KIBIBYTE = 1024 if sys.platform != "darwin" else 1


def main(name: str, folder: Path, number: int, seconds: float) -> int:
    """Run cases until the time is over or something is found; return the exit code."""
    target, case = TARGETS[name], folder / "case"
    case.mkdir(parents=True, exist_ok=True)
    seeds = sorted(SEEDS.iterdir())
    end, peak, count, slowest = time.monotonic() + seconds, 0, 0, 0.0
    with (folder / "stacks.txt").open("w") as stacks:
        sys.unraisablehook = _UNRAISABLE.append
        while time.monotonic() < end:
            random = np.random.default_rng([number, count])
            for path in case.iterdir():
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            faulthandler.dump_traceback_later(2 * HANG, exit=True, file=stacks)  # a process has a watchdog of its own
            begin = time.monotonic()
            found = _run(target, case, seeds, random, peak or sys.maxsize)
            faulthandler.cancel_dump_traceback_later()
            count += 1
            peak = peak or (_memory() if count == WARM_UP else 0)
            (folder / "count.txt").write_text(str(count))
            if time.monotonic() - begin > slowest:
                slowest = time.monotonic() - begin
                (folder / "slowest.txt").write_text(f"{slowest:.1f}")
            if found is not None:
                (folder / "finding.txt").write_text(f"{name}, seed {number}, case {count - 1}\n{found}\n")
                return FOUND
    return 0


_UNRAISABLE: list[Any] = []
WARM_UP = 20  # cases that also import and compile; memory is not counted in them


def _run(target: Target, case: Path, seeds: list[Path], random: np.random.Generator, peak: int) -> str | None:
    """Run a case; return what it broke."""
    begin = time.process_time()
    try:
        target.run(case, seeds, random)
    except FindingError as finding:
        return str(finding)
    except Exception:
        return traceback.format_exc()
    if _UNRAISABLE:
        return f"an exception that nobody can catch: {_UNRAISABLE[0].exc_value!r}"
    took, grown = time.process_time() - begin, _memory() - peak
    if took > target.seconds and peak != sys.maxsize:
        return f"took {took:.1f} s of the processor"
    if grown > target.memory:
        return f"grew by {grown / 2**20:.0f} MiB"
    return None


def _memory() -> int:
    """The largest resident memory of the process so far, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * KIBIBYTE


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])))
