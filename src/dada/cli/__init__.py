"""The `dada` command: one file for each subcommand, nothing heavy imported before it is needed."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NoReturn

from dada.cli.interrupt import INTERRUPTED, end_on_interrupt, interrupted
from dada.errors import InputError
from dada.memory import keep_memory

DESCRIPTION = """Make a coarse image (depth, height, temperature) as fine as a guide image of the same scene. \
Averaged back down, the result is the source.

For example: `dada upsample depth.png rgb.png -o fine.png`

Without files of your own: `dada demo`"""

USER_ERROR = 2


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command: that of the process, which it ends, or the one given, whose exit code it returns.

    Exit codes: 0 done, 1 some pairs of a batch failed, 2 unusable input, 130 interrupted.
    """
    if argv is not None:
        return _run(list(argv))
    gc.disable()  # a short life with much to import: 0.3 s less
    keep_memory()  # for as long as the process lives
    end_on_interrupt()
    try:
        _leave(_run(sys.argv[1:]))
    except Exception:
        if not interrupted.is_set():
            raise
        _leave(INTERRUPTED)  # what an interrupt becomes within libraries


def _run(arguments: list[str]) -> int:
    if arguments in (["--version"], ["-V"]):
        from dada import __version__

        print(f"dada {__version__}")
        return 0
    try:
        return _parse(arguments or ["--help"]).run()
    except SystemExit as parsed:  # help, or a mistake in the arguments that is already explained
        return int(parsed.code or 0)
    except InputError as error:
        return _complain(str(error))
    except KeyboardInterrupt:
        return INTERRUPTED
    except MemoryError:
        return _complain("there is not enough memory. Cut source and guide into tiles, or close other programs.")
    except BrokenPipeError:  # the reader of our output has gone, as with `| head`; the files are written
        return 0


def _parse(arguments: list[str]) -> Any:
    """One of the commands, with its options."""
    import tyro

    from dada.cli.batch import Batch
    from dada.cli.benchmark import Benchmark
    from dada.cli.demo import Demo
    from dada.cli.evaluate import Evaluate
    from dada.cli.options import check_unit_once
    from dada.cli.reproduce import Reproduce
    from dada.cli.train import Train, parse
    from dada.cli.upsample import Upsample

    if arguments[0] == "train":  # its flags are read on top of a file
        return parse(arguments[1:])
    check_unit_once(arguments)
    return tyro.extras.subcommand_cli_from_dict(
        {
            "upsample": Upsample,
            "batch": Batch,
            "demo": Demo,
            "train": Train,
            "evaluate": Evaluate,
            "benchmark": Benchmark,
            "reproduce": Reproduce,
        },
        prog="dada",
        description=DESCRIPTION,
        args=arguments,
        config=(tyro.conf.FlagCreatePairsOff,),
    )


def _complain(message: str) -> int:
    print(f"error: {message}", file=sys.stderr)
    return USER_ERROR


def _leave(code: int) -> NoReturn:
    """End the process without taking torch and numba apart, which lasts a second; all files are closed by now."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, AttributeError):  # closed, or none at all
            stream.flush()
    os._exit(code)
