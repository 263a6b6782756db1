"""A process that works for the server: what breaks it, or takes too long in it, does not touch the server."""

from __future__ import annotations

import gc
import logging
import multiprocessing
import os
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Literal, NamedTuple

Note = Callable[[str], None]
Kind = Literal["reader", "solver"]
START_SECONDS, STOP_SECONDS = 120, 5


class RefusedError(Exception):
    """The input cannot be used: the message is for the user."""


class FailedError(Exception):
    """The job did not come to its end: it took too long, or its process died."""


class Task(NamedTuple):
    """What to do, where, and with what."""

    name: Literal["warm", "work", "inspect", "example"]
    folder: Path
    arguments: tuple[Any, ...] = ()


class Worker:
    """One process, started when it is first needed and again after it was stopped."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self._process: Any = None
        self._pipe: Connection | None = None

    def run(self, task: Task, seconds: float, note: Note) -> dict[str, Any]:
        """Have a task done.

        Args:
            task: what to do.
            seconds: after which the process is stopped.
            note: told how far the task is.

        Raises:
            RefusedError: the input cannot be used.
            FailedError: anything else went wrong.
        """
        if self._process is None or not self._process.is_alive():
            self._start()
        pipe = self._pipe
        assert pipe is not None
        try:
            pipe.send(task)
            if not pipe.poll(START_SECONDS):  # it begins with a message, once all is loaded
                raise EOFError
            deadline = time.monotonic() + seconds
            while pipe.poll(max(0.0, deadline - time.monotonic())):
                what, content = pipe.recv()
                if what == "note":
                    note(content)
                elif what == "done":
                    answer: dict[str, Any] = content
                    return answer
                else:
                    raise RefusedError(content) if what == "refused" else FailedError(content)
        except (EOFError, OSError):
            self.stop()
            raise FailedError("its process died, perhaps for lack of memory. Try smaller images.") from None
        self.stop()
        raise FailedError(
            f"it took longer than {seconds:g} s, and was stopped. Try smaller images, or start the server with "
            "--max-seconds."
        )

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, self.kind), daemon=True)
        self._process.start()
        theirs.close()

    def stop(self) -> None:
        """End the process; another is started when it is needed."""
        process, pipe, self._process, self._pipe = self._process, self._pipe, None, None
        if process is not None:
            process.kill()
            process.join(STOP_SECONDS)
        if pipe is not None:
            pipe.close()


# ---- in the process ----------------------------------------------------------------------------------------


def _serve(pipe: Connection, kind: Kind) -> None:
    """Do tasks until the server goes."""
    from dada.pairs import workers

    if kind == "solver":
        workers.begin()
        from dada.app import working  # noqa: F401  (all that a job needs, before its time is counted)

        log = logging.getLogger("dada")
        log.addHandler(_Forward(pipe))
        log.setLevel(logging.INFO)
    else:
        workers.attach()
    home = os.getcwd()
    gc.freeze()  # what is loaded stays: to look for garbage after each task is then cheap
    with suppress(EOFError, OSError):
        while True:
            gc.collect()
            task = pipe.recv()
            pipe.send(("note", "starting"))
            pipe.send(_answer(task, lambda text: pipe.send(("note", text))))
            os.chdir(home)  # a folder that is to be deleted must not be in use


class _Forward(logging.Handler):
    """What the library logs, such as that it compiles, told to whoever waits."""

    def __init__(self, pipe: Connection) -> None:
        super().__init__()
        self.pipe = pipe

    def emit(self, record: logging.LogRecord) -> None:
        self.pipe.send(("note", record.getMessage()))


def _answer(task: Task, note: Note) -> tuple[str, Any]:
    from dada.errors import InputError

    try:
        return "done", _do(task, note)
    except InputError as error:
        return "refused", str(error)
    except MemoryError:
        return "failed", "there is not enough memory. Try smaller images."
    except Exception as error:
        return "failed", f"unexpected {type(error).__name__}: {error}"


def _do(task: Task, note: Note) -> dict[str, Any]:
    os.chdir(task.folder)
    match task.name:
        case "warm":
            from dada.app.working import warm

            return warm()
        case "work":
            from dada.app.working import work

            (request,) = task.arguments
            return work(request, note)
        case "inspect":
            from dada.app.inspecting import inspect

            path, role, options = task.arguments
            return inspect(path, role, options)
        case "example":
            from dada.app.examples import write_example

            (name,) = task.arguments
            write_example(name, Path())
            return {}
