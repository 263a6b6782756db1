"""A process that works for the server: what breaks it, or takes too long in it, does not touch the server."""

from __future__ import annotations

import gc
import logging
import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Literal, NamedTuple

Note = Callable[[str], None]
Kind = Literal["reader", "solver"]
START_SECONDS, STOP_SECONDS = 300, 5  # the first time, kernels are compiled


class RefusedError(Exception):
    """The input cannot be used: the message is for the user."""


class FailedError(Exception):
    """The job did not come to its end: it took too long, or its process died."""


class Task(NamedTuple):
    """What to do, where, and with what."""

    name: Literal["work", "inspect", "example"]
    folder: Path
    arguments: tuple[Any, ...] = ()


class Worker:
    """One process, started when it is first needed and again after it was stopped."""

    def __init__(self, kind: Kind, scratch: Path) -> None:
        """Take what it does, and a folder for temporary files."""
        self.kind, self.scratch = kind, scratch
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
        pipe = self.prepare(note)
        deadline = time.monotonic() + seconds
        try:
            pipe.send(task)
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

    def prepare(self, note: Note) -> Connection:
        """Start the process unless it runs, and wait until it has loaded all that a task needs.

        Raises:
            FailedError: it could not be started.
        """
        if self._pipe is not None and self._process is not None and self._process.is_alive():
            return self._pipe
        self.stop()
        context = multiprocessing.get_context("spawn")
        pipe, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(theirs, self.kind, self.scratch), daemon=True)
        self._process, self._pipe = process, pipe
        process.start()
        theirs.close()
        try:
            while pipe.poll(START_SECONDS):
                what, content = pipe.recv()
                if what == "ready":
                    return pipe
                note(content)
        except (EOFError, OSError):
            pass
        self.stop()
        raise FailedError("its process could not be started, perhaps for lack of memory. Close other programs.")

    def stop(self) -> None:
        """End the process; another is started when it is needed."""
        process, pipe, self._process, self._pipe = self._process, self._pipe, None, None
        if process is not None:
            process.kill()
            process.join(STOP_SECONDS)
        if pipe is not None:
            pipe.close()


# ---- in the process ----------------------------------------------------------------------------------------


def _serve(pipe: Connection, kind: Kind, scratch: Path) -> None:
    """Do tasks until the server goes."""
    from dada.pairs import workers

    if kind == "solver":
        workers.begin()
        log = logging.getLogger("dada")
        log.addHandler(_Forward(pipe))
        log.setLevel(logging.INFO)
        _warm(scratch)
    else:
        workers.attach()
    home = os.getcwd()
    gc.freeze()  # what is loaded stays: to look for garbage after each task is then cheap
    with suppress(EOFError, OSError):
        pipe.send(("ready", None))
        while True:
            gc.collect()
            task = pipe.recv()
            pipe.send(_answer(task, lambda text: pipe.send(("note", text))))
            os.chdir(home)  # a folder that is to be deleted must not be in use


def _warm(scratch: Path) -> None:
    """Do a tiny job, which loads the model, the kernels and what draws. Should it fail, the first job tells why."""
    from dada.app.working import warm

    home = os.getcwd()
    with suppress(Exception), tempfile.TemporaryDirectory(dir=scratch) as folder:
        os.chdir(folder)
        try:
            warm()
        finally:
            os.chdir(home)


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
