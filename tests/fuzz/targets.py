"""What is tried with hostile input, and what must hold whatever the input: each target runs one case.

A case ends by returning, or in InputError (which the command turns into a sentence and exit code 2). All else that
leaves a target is a finding. `FindingError` is raised for promises that are broken without an exception.
"""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dada.errors import InputError
from tests.fuzz.mutation import damage

MODELS = ("none", "dynamic", "default")
MOST = 2**27
"""Bytes that a damaged seed may be decoded to."""


HANG = 900.0
"""Seconds on the wall after which a case is taken to hang: compiling beside much other work takes minutes."""
COLD = 0.1
"""Share of processes that find nothing compiled."""
WATCHED = """
import faulthandler, sys
stacks = open(sys.argv.pop(1), "w")
faulthandler.dump_traceback_later(float(sys.argv.pop(1)), exit=True, file=stacks)
from dada.cli import main
sys.exit(main())
"""
"""The command, with a watchdog that writes the stack of every thread to a file and ends a process that hangs."""


class FindingError(Exception):
    """A promise that an input broke."""


class Target(NamedTuple):
    """A way in, with what a case of it may take."""

    run: Any
    share: float  # of the time
    seconds: float  # of the processor, for one case
    memory: int  # bytes by which the process may grow


def read(folder: Path, seeds: list[Path], random: np.random.Generator) -> None:
    """Read a damaged file as a guide or as a source: an image within bounds, or InputError."""
    from dada.io import read_image

    role = "guide" if random.random() < 0.6 else "source"
    images = [path for path in seeds if not path.name.startswith("weights_")]
    path = _damaged(folder, images[random.integers(len(images))], random)
    before = _printed()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            values = read_image(path, role=role).values
        except InputError as error:
            _check_message(str(error), path)
        else:
            if values.ndim not in ((2,) if role == "source" else (2, 3)) or values.size == 0:
                raise FindingError(f"read as {role}: shape {values.shape}")
            if values.nbytes > MOST:
                raise FindingError(f"read as {role}: {values.nbytes} bytes of {path.stat().st_size} stored")
            if values.dtype.kind not in "buif" or not values.dtype.isnative:
                raise FindingError(f"read as {role}: {values.dtype}")
    if _printed() != before:
        raise FindingError("a library printed something")


def weights(folder: Path, seeds: list[Path], random: np.random.Generator) -> None:
    """Load a model of a damaged file of weights or settings: a model, or InputError."""
    import dada

    files = [path for path in seeds if path.name.startswith("weights_")]
    path = _damaged(folder, files[random.integers(len(files))], random)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            dada.load_model(f"fdkn:{path}" if path.suffix != ".json" and random.random() < 0.5 else path)
        except InputError as error:
            _check_message(str(error), path)


def command(folder: Path, seeds: list[Path], random: np.random.Generator) -> None:
    """Run `dada upsample` on a pair with at least one damaged file: a result that can be read, or exit code 2."""
    from dada.cli import main

    arguments, output = _command_line(folder, seeds, random)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        code = main(arguments)
    _check_ended(code, output)


def process(folder: Path, seeds: list[Path], random: np.random.Generator) -> None:
    """The same in a process of its own, from its imports to its end; sometimes with nothing compiled before."""
    arguments, output = _command_line(folder, seeds, random)
    stacks, printed = folder / "stacks.txt", folder / "printed.txt"
    environment = os.environ | ({"NUMBA_CACHE_DIR": str(folder / "cache")} if random.random() < COLD else {})
    command = [sys.executable, "-c", WATCHED, str(stacks), str(HANG), *arguments]
    with printed.open("w") as file:
        code = subprocess.run(command, env=environment, stdout=file, stderr=file, check=False).returncode
    if stacks.read_text():
        raise FindingError(f"did not end within {HANG:g} s\n{stacks.read_text()}")
    if "Traceback" in printed.read_text():
        raise FindingError(printed.read_text())
    _check_ended(code, output)


def _command_line(folder: Path, seeds: list[Path], random: np.random.Generator) -> tuple[list[str], Path]:
    """Arguments of the command, with the files they name written, and where the result is to be."""
    sources = [path for path in seeds if path.name.startswith("source_")]
    guides = [path for path in seeds if path.name.startswith("guide_")]
    source, guide = sources[random.integers(len(sources))], guides[random.integers(len(guides))]
    which = random.integers(3)
    source = _damaged(folder, source, random) if which != 0 else source
    guide = _damaged(folder, guide, random) if which != 1 else guide
    output = folder / f"out.{('tiff', 'npy', 'png')[random.integers(3)]}"
    output.unlink(missing_ok=True)
    arguments = ["upsample", str(source), str(guide), "-o", str(output)]
    arguments += ["--model", MODELS[random.choice(3, p=(0.6, 0.3, 0.1))]]
    if random.random() < 0.2:
        arguments += ["--fill"]
    if random.random() < 0.1:
        arguments += ["--preview"]
    (folder / "arguments.txt").write_text(" ".join(arguments))
    return arguments, output


def _check_ended(code: int, output: Path) -> None:
    """A result that can be read, or none and exit code 2; nothing unfinished either way."""
    from dada.io import read_image

    if code not in (0, 2):
        raise FindingError(f"exit code {code}")
    if (code == 0) != output.exists():
        raise FindingError(f"exit code {code}, but the result {'is there' if output.exists() else 'is missing'}")
    if left := [path.name for path in output.parent.iterdir() if path.name.startswith(".dada-")]:
        raise FindingError(f"an unfinished file is left: {left}")
    if code == 0:
        read_image(output)


def arrays(folder: Path, seeds: list[Path], random: np.random.Generator) -> None:
    """Call `dada.upsample` with arrays of any type and size: cells are kept to rounding, every value is finite."""
    import dada

    h, w = (int(n) for n in random.integers(1, 9, size=2))
    H, W = h * int(random.integers(1, 6)) + int(random.integers(3)), w * int(random.integers(1, 6))
    source, guide = _numbers((h, w), random), _numbers((H, W, int(random.choice([1, 3, 4]))), random)
    options: dict[str, Any] = {"model": MODELS[random.choice(3, p=(0.6, 0.3, 0.1))]}
    if random.random() < 0.3:
        options["adjust"] = ("ratio", "shift")[random.integers(2)]
    if random.random() < 0.3:
        options["fill"] = True
    np.savez(folder / "arrays.npz", source=source, guide=guide)
    (folder / "arguments.txt").write_text(repr(options))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = dada.upsample(source, guide, **options)
        except InputError:
            return
    values, report = result.values[result.valid], result.report
    if not np.isfinite(values).all():
        raise FindingError("a valid pixel is not finite")
    known = source[np.isfinite(source)].astype(np.float64)
    largest = float(np.abs(known).max()) if known.size else 0.0
    kind = np.finfo(values.dtype)
    share = max(1e-4, 2 * float(kind.eps))  # the latter is rounding to the type of the source
    least = max(float(np.finfo(np.float32).tiny), float(kind.smallest_subnormal))  # and that of its smallest numbers
    if report.consistency_max is not None and report.consistency_max > share * largest + least:
        raise FindingError(f"cells differ by {report.consistency_max:g} of values up to {largest:g}")


TARGETS = {
    "read": Target(read, 0.45, 5.0, 2**30),
    "weights": Target(weights, 0.05, 5.0, 2**30),
    "command": Target(command, 0.25, 60.0, 3 * 2**30),
    "process": Target(process, 0.1, 60.0, 2**30),
    "arrays": Target(arrays, 0.15, 60.0, 2 * 2**30),
}


def _damaged(folder: Path, seed: Path, random: np.random.Generator) -> Path:
    path = folder / f"damaged_{seed.name}"
    path.write_bytes(damage(seed.read_bytes(), random))
    return path


def _printed() -> int:
    """Bytes on the standard output and error, which the runner sends to files."""
    return sum(os.fstat(number).st_size for number in (1, 2))


def _check_message(message: str, path: Path) -> None:
    if str(path) not in message or "\n" in message:
        raise FindingError(f"a message that names no file or has several lines: {message!r}")


def _numbers(shape: tuple[int, ...], random: np.random.Generator) -> np.ndarray:
    """Numbers of any type, near each other or over many orders, sometimes with holes and extremes."""
    dtype = np.dtype(random.choice(["uint8", "uint16", "int16", "int32", "float16", "float32", "float64", "bool"]))
    if dtype.kind in "bui":
        top = 1 if dtype.kind == "b" else min(np.iinfo(dtype).max, 2 ** int(random.integers(1, 32)))
        return random.integers(0, top, size=shape, endpoint=True).astype(dtype)
    values = random.normal(random.normal(0, 3), random.random() * 3, size=shape)
    match random.integers(5):
        case 0:
            values = np.abs(values) + 0.1
        case 1:
            values = 10.0 ** random.uniform(-30, 30, size=shape) if random.random() < 0.3 else np.exp(values)
    with np.errstate(over="ignore"):
        values = values.astype(dtype)
    if random.random() < 0.3:
        extremes = [np.nan, np.inf, -np.inf, 0, np.finfo(dtype).max, np.finfo(dtype).min, np.finfo(dtype).tiny]
        where = random.random(shape) < random.random() * 0.3
        values[where] = random.choice(np.array(extremes, dtype), size=int(where.sum()))
    return values
