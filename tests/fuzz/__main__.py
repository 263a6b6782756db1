"""Hostile input for a while: `python -m tests.fuzz --minutes 10`, or `make fuzz MINUTES=10`.

Each target runs in processes of its own. What a case breaks (an exception other than InputError, a crash, a hang, too
much time or memory) is kept with its input in a folder, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.fuzz.targets import HANG, TARGETS
from tests.fuzz.worker import FOUND

RECORDS = ("count.txt", "slowest.txt")
SLICE = 90.0  # seconds that a process lives
GRACE = 120.0  # seconds beyond a hang after which the runner ends a process itself
ROOT = Path(__file__).parents[2]


class Tally:
    """What was run and what was found."""

    def __init__(self, findings: Path, targets: Sequence[str] = tuple(TARGETS)) -> None:
        self.targets = targets
        self.findings, self.cases, self.spent, self.found = findings, Counter[str](), Counter[str](), Counter[str]()
        self.slowest: dict[str, float] = {}

    def next_target(self) -> str:
        """The target that has had the least of its share of time; it is charged for a slice at once."""
        name = min(self.targets, key=lambda name: self.spent[name] / TARGETS[name].share)
        self.spent[name] += 1
        return name

    def count(self, target: str, work: Path) -> None:
        """Add what a process has done."""
        cases, slowest = ((work / name).read_text() if (work / name).exists() else "" for name in RECORDS)
        self.cases[target] += int(cases or 0)
        self.slowest[target] = max(self.slowest.get(target, 0.0), float(slowest or 0))

    def keep(self, target: str, work: Path, reason: str) -> None:
        """Keep the input of a case, one folder for each place in the code that it ended in."""
        places = re.findall(r'File "(.+?)", line (\d+)', reason) or [("", re.sub(r"[\d.]+", "#", reason))]
        kind = hashlib.sha256(f"{target}{places[-1]}".encode()).hexdigest()[:10]
        self.found[f"{target}-{kind}"] += 1
        folder = self.findings / f"{target}-{kind}"
        if not folder.exists():
            shutil.copytree(work / "case", folder)
            (folder / "finding.txt").write_text(reason)
            print(f"found: {folder}: {reason.strip().splitlines()[-1][:200]}", flush=True)


def main() -> int:
    """Read the command line, run, and say what was found."""
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m tests.fuzz")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at a time")
    parser.add_argument("--targets", nargs="+", choices=TARGETS, default=list(TARGETS), help="by default all")
    parser.add_argument("--findings", type=Path, default=Path("fuzz-findings"), help="folder for what is found")
    parser.add_argument("--seed", type=int, default=secrets.randbits(32), help="of the random numbers")
    options = parser.parse_args()
    tally, end = Tally(options.findings, options.targets), time.monotonic() + 60 * options.minutes
    with ThreadPoolExecutor(options.jobs) as pool:
        for job in range(options.jobs):
            pool.submit(_keep_running, tally, end, options.seed + (job << 32))
    counts = ", ".join(
        f"{name} {tally.cases[name]:,} (slowest {seconds:.0f} s)" for name, seconds in tally.slowest.items()
    )
    found = sum(tally.found.values())
    print(f"{sum(tally.cases.values()):,} cases in {options.minutes:g} minutes, {found} findings: {counts}")
    for name, count in tally.found.most_common():
        print(f"  {options.findings / name}: {count} times")
    return 1 if found else 0


def _keep_running(tally: Tally, end: float, seed: int) -> None:
    """Start one process after another until the time is over."""
    while (left := end - time.monotonic()) > 1:
        seed += 1
        target = tally.next_target()
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # files in memory, where the system has such
        with tempfile.TemporaryDirectory(prefix="dada-fuzz-", dir=memory, ignore_cleanup_errors=True) as name:
            work = Path(name)
            reason = _run_worker(target, work, seed, min(SLICE, left))
            tally.count(target, work)
            if reason is not None:
                tally.keep(target, work, reason)


def _run_worker(target: str, work: Path, seed: int, seconds: float) -> str | None:
    """Run a process; return what was found."""
    command = [sys.executable, "-m", "tests.fuzz.worker", target, str(work), str(seed), str(seconds)]
    (work / "case").mkdir()
    output = work / "output.txt"
    with output.open("wb") as file:
        try:
            code = subprocess.run(
                command, cwd=ROOT, stdout=file, stderr=file, check=False, timeout=seconds + 2 * HANG + GRACE
            ).returncode
        except subprocess.TimeoutExpired:
            return f"{target}: did not end, and left no stacks"
    if code == 0:
        return None
    if code == FOUND:
        return (work / "finding.txt").read_text()
    stacks = (work / "stacks.txt").read_text() if (work / "stacks.txt").exists() else ""
    if stacks:
        return f"{target}: a case did not end within {2 * HANG:g} s\n{stacks}"
    return f"{target}: exit code {code}\n{output.read_text(errors='replace')[-4000:]}"


if __name__ == "__main__":
    sys.exit(main())
