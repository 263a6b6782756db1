"""Jobs from the queue to their end: one at a time for each worker process, and no file is kept for long."""

from __future__ import annotations

import secrets
import shutil
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from dada.app.limits import Limits
from dada.app.processes import FailedError, RefusedError, Task, Worker
from dada.app.requests import Request

State = Literal["waiting", "running", "done", "refused", "failed"]
FINISHED = ("done", "refused", "failed")
SWEEP_SECONDS = 5.0


class FullError(Exception):
    """The queue is full."""


@dataclass(eq=False)
class Entry:
    """A job, as its owner asks after it."""

    id: str
    folder: Path
    request: Request
    state: State = "waiting"
    note: str = ""
    message: str = ""  # why it was refused or failed
    answer: dict[str, Any] = field(default_factory=dict)
    begun: float = 0.0
    touched: float = field(default_factory=time.monotonic)
    worker: Worker | None = None  # that is at it


class Jobs:
    """The queue, its worker processes and the folders of jobs."""

    def __init__(self, folder: Path, limits: Limits, workers: int) -> None:
        """Take a folder of one's own, limits, and the number of jobs at a time."""
        self.folder, self.limits, self.workers = folder, limits, workers
        self._entries: dict[str, Entry] = {}
        self._queue: deque[Entry] = deque()
        self._changed = threading.Condition()
        self._idle, self._warming = 0, 0  # workers that wait for a job, and that will soon
        self._loading = ""  # what the first worker is at, before it takes jobs
        self._slots: list[Worker] = []
        self._closed = False

    def start(self) -> None:
        """Start one worker, which loads what every job needs, and the sweeper."""
        with self._changed:
            self._add_worker(warm=True)
        threading.Thread(target=self._sweep, daemon=True).start()

    # ---- for those who ask

    def new_folder(self) -> Path:
        """A folder for the files of a request."""
        path = self.folder / secrets.token_urlsafe(12)
        path.mkdir(mode=0o700)
        return path

    def submit(self, folder: Path, request: Request) -> Entry:
        """Put a job at the end of the queue.

        Raises:
            FullError: too many are waiting.
        """
        entry = Entry(folder.name, folder, request)
        with self._changed:
            if len(self._queue) >= self.limits.waiting:
                raise FullError
            self._entries[entry.id] = entry
            self._queue.append(entry)
            if len(self._queue) > self._idle + self._warming and len(self._slots) < self.workers:
                self._add_worker(warm=False)
            self._changed.notify_all()
        return entry

    def find(self, name: str) -> Entry | None:
        """The job of an id."""
        with self._changed:
            entry = self._entries.get(name)
            if entry is not None:
                entry.touched = time.monotonic()
            return entry

    def status(self, entry: Entry) -> dict[str, Any]:
        """What its owner is told."""
        with self._changed:
            found: dict[str, Any] = {"id": entry.id, "state": entry.state}
            if entry.state == "waiting":
                found |= {"position": 1 + self._queue.index(entry), "note": self._loading}
            if entry.state == "running":
                found |= {"note": entry.note, "running_seconds": round(time.monotonic() - entry.begun, 1)}
            if entry.state in ("refused", "failed"):
                found |= {"error": {"message": entry.message, "file": blamed(entry)}}
            return found | entry.answer

    def wait(self, entry: Entry, seconds: float, until: Callable[[], bool] | None = None) -> None:
        """Wait until the job is finished, or until something else holds, but not longer than some seconds."""
        with self._changed:
            self._changed.wait_for(
                lambda: entry.state in FINISHED or self._closed or (until is not None and until()), seconds
            )

    def remove(self, entry: Entry) -> None:
        """Forget a job and delete its files; one that is under way is stopped."""
        with self._changed:
            self._entries.pop(entry.id, None)
            if entry in self._queue:
                self._queue.remove(entry)
            if entry.state not in FINISHED:
                entry.state, entry.message = "failed", "it was stopped."
            if entry.worker is not None:  # while we are here, it cannot turn to another job
                entry.worker.stop()
            self._changed.notify_all()
        shutil.rmtree(entry.folder, ignore_errors=True)

    def counts(self) -> dict[str, int]:
        """How many jobs wait, run and are kept."""
        with self._changed:
            states = [entry.state for entry in self._entries.values()]
        finished = sum(state in FINISHED for state in states)
        return {"waiting": states.count("waiting"), "running": states.count("running"), "finished": finished}

    def close(self) -> None:
        """Stop all workers."""
        with self._changed:
            self._closed = True
            for entry in self._entries.values():
                if entry.state not in FINISHED:
                    entry.state, entry.message = "failed", "the server was ended."
            self._changed.notify_all()
            slots = list(self._slots)
        for worker in slots:
            worker.stop()

    # ---- at work

    def _add_worker(self, warm: bool) -> None:
        self._warming += warm
        worker = Worker("solver", self.folder.parent)
        self._slots.append(worker)
        threading.Thread(target=self._serve, args=(worker, warm), daemon=True).start()

    def _serve(self, worker: Worker, warm: bool) -> None:
        """Do jobs, one after another."""
        if warm:
            self._warm(worker)
        while (entry := self._next(worker)) is not None:
            self._do(entry, worker)

    def _warm(self, worker: Worker) -> None:
        """Have a worker load what every job needs. Should it fail, the first job tells why."""
        self._tell_loading("loading the model")
        with suppress(FailedError):
            worker.prepare(self._tell_loading)
        self._tell_loading("")
        with self._changed:
            self._warming -= 1

    def _tell_loading(self, text: str) -> None:
        with self._changed:
            self._loading = text
            self._changed.notify_all()

    def _next(self, worker: Worker) -> Entry | None:
        with self._changed:
            self._idle += 1
            self._changed.wait_for(lambda: self._queue or self._closed)
            self._idle -= 1
            if self._closed:
                return None
            entry = self._queue.popleft()
            entry.state, entry.begun, entry.worker = "running", time.monotonic(), worker
            self._changed.notify_all()
            return entry

    def _do(self, entry: Entry, worker: Worker) -> None:
        def note(text: str) -> None:
            with self._changed:
                entry.note = text
                self._changed.notify_all()

        answer: dict[str, Any] = {}
        state: State = "done"
        message = ""
        try:
            answer = worker.run(Task("work", entry.folder, (entry.request,)), self.limits.seconds, note)
        except RefusedError as error:
            state, message = "refused", str(error)
        except FailedError as error:
            state, message = "failed", str(error)
        with self._changed:
            entry.worker, entry.touched = None, time.monotonic()
            if entry.state == "running":  # not stopped meanwhile
                entry.state, entry.answer, entry.message = state, answer, message
            self._changed.notify_all()
        if entry.id not in self._entries:
            shutil.rmtree(entry.folder, ignore_errors=True)

    def _sweep(self) -> None:
        """Delete what nobody has asked for in a while, and what is too much."""
        while not self._closed:
            with self._changed:
                self._changed.wait_for(lambda: self._closed, SWEEP_SECONDS)
            for entry in self.outdated():
                self.remove(entry)

    def outdated(self) -> list[Entry]:
        """Finished jobs that are not kept any longer."""
        with self._changed:
            finished = [entry for entry in self._entries.values() if entry.state in FINISHED]
        finished.sort(key=lambda entry: entry.touched)
        limit = time.monotonic() - 60 * self.limits.minutes
        many = len(finished) - self.limits.kept
        return [entry for number, entry in enumerate(finished) if number < many or entry.touched < limit]


def blamed(entry: Entry) -> str | None:
    """The field whose file a message is about, by the name that it begins with; None: no single one."""
    request = entry.request
    for name in ("source", "guide", "confidence"):
        file = getattr(request, name)
        if file is not None and entry.message.startswith(f"{file}:"):
            return name
    return None
