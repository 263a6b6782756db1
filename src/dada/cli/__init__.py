"""The `dada` command: one file for each subcommand, nothing heavy imported before it is needed."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

from dada.cli.interrupt import INTERRUPTED, end_on_interrupt
from dada.errors import InputError

DESCRIPTION = """Make a coarse image (depth, height, temperature) as fine as a guide image of the scene. \
Averaged back down, the result is the source.

For example: `dada upsample depth.png rgb.png -o fine.png`

Without files of your own: `dada demo`"""

USER_ERROR = 2


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 0 done, 1 some pairs of a batch failed, 2 unusable input."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments in (["--version"], ["-V"]):
        from dada import __version__

        print(f"dada {__version__}")
        return 0
    try:
        command = _parse(arguments or ["--help"])
        if argv is None:
            end_on_interrupt()
        return command.run()
    except SystemExit as parsed:  # help, or a mistake in the arguments that is already explained
        return int(parsed.code or 0)
    except InputError as error:
        return _complain(str(error))
    except KeyboardInterrupt:
        return INTERRUPTED
    except SystemError as error:  # how an interrupt leaves compiled code
        if isinstance(error.__cause__, KeyboardInterrupt):
            return INTERRUPTED
        raise
    except MemoryError:
        return _complain("there is not enough memory. Cut source and guide into tiles, or close other programs.")
    except BrokenPipeError:  # the reader of our output has gone, as with `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _parse(arguments: list[str]) -> Any:
    import tyro

    from dada.cli.batch import Batch
    from dada.cli.demo import Demo
    from dada.cli.upsample import Upsample

    return tyro.extras.subcommand_cli_from_dict(
        {"upsample": Upsample, "batch": Batch, "demo": Demo},
        prog="dada",
        description=DESCRIPTION,
        args=arguments,
        config=(tyro.conf.FlagCreatePairsOff,),
    )


def _complain(message: str) -> int:
    print(f"error: {message}", file=sys.stderr)
    return USER_ERROR
