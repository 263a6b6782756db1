"""The `dada` command: one file for each subcommand, nothing heavy imported before it is needed."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from dada.errors import InputError
from dada.machine import keep_memory

DESCRIPTION = """Make a coarse image (depth, height, temperature) as fine as a guide image of the same scene. \
Averaged back down, the result is the source.

For example: `dada upsample depth.png rgb.png -o fine.png`

Without files of your own: `dada demo`"""

USER_ERROR, INTERRUPTED = 2, 130
OLD_NAMES = {"--method": "--solver"}  # of options of `dada upsample` and `dada batch`; go in a later version


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command, that of the process unless one is given, and return its exit code.

    Exit codes: 0 done, 1 some pairs of a batch failed, 2 unusable input, 130 interrupted.
    """
    if argv is not None:
        return _run(list(argv))
    keep_memory()  # for as long as the process lives
    _show_log()
    code = _run(sys.argv[1:])
    try:
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of our output has gone, as with `| head`: let Python not complain at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code


def _show_log() -> None:
    """What the library logs, such as that it compiles, on the standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(message)s"))
    log = logging.getLogger("dada")
    log.addHandler(handler)
    log.setLevel(logging.INFO)


def _run(arguments: list[str]) -> int:
    if arguments in (["--version"], ["-V"]):
        from dada import __version__

        print(f"dada {__version__}")
        return 0
    try:
        code: int = parse(arguments or ["--help"]).run()
        return code
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


def commands() -> dict[str, type]:
    """The commands by their names: each a dataclass of its options, whose `run` returns the exit code."""
    from dada.cli.align import Align
    from dada.cli.app import App
    from dada.cli.batch import Batch
    from dada.cli.benchmark import Benchmark
    from dada.cli.complete import Complete
    from dada.cli.demo import Demo
    from dada.cli.evaluate import Evaluate
    from dada.cli.export import Export
    from dada.cli.raster import Raster
    from dada.cli.reproduce import Reproduce
    from dada.cli.train import Train
    from dada.cli.upsample import Upsample
    from dada.cli.video import Video

    return {
        "upsample": Upsample,
        "batch": Batch,
        "complete": Complete,
        "align": Align,
        "video": Video,
        "raster": Raster,
        "demo": Demo,
        "app": App,
        "train": Train,
        "evaluate": Evaluate,
        "export": Export,
        "benchmark": Benchmark,
        "reproduce": Reproduce,
    }


def parse(arguments: list[str]) -> Any:
    """One of the commands, with its options."""
    import tyro

    from dada.cli.train import parse as parse_training
    from dada.pairs.options import check_unit_once

    if arguments[0] == "train":  # its flags are read on top of a file
        return parse_training(arguments[1:])
    if arguments[0] in ("upsample", "batch"):
        arguments = [_current_name(text) for text in arguments]
    check_unit_once(arguments)
    known: dict[str, Callable[..., Any]] = {**commands()}
    return tyro.extras.subcommand_cli_from_dict(
        known, prog="dada", description=DESCRIPTION, args=arguments, config=(tyro.conf.FlagCreatePairsOff,)
    )


def _current_name(argument: str) -> str:
    """An option by its name of today, with its value where it is joined by an equals sign."""
    name, equals, value = argument.partition("=")
    return f"{OLD_NAMES.get(name, name)}{equals}{value}"


def _complain(message: str) -> int:
    print(f"error: {message}", file=sys.stderr)
    return USER_ERROR
