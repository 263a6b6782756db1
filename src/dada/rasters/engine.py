"""Who runs the tasks: this process, or workers of dask.distributed on this machine or another."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from dada.errors import InputError
from dada.rasters.state import Task

ATTEMPTS = 2  # a task that fails is tried once more
AHEAD = 3  # tasks in hand for each worker
PATIENCE = "20s"  # with a scheduler that does not answer
DEATHS = 20  # workers that a task may outlive before it is given up

Done = Callable[[Task, dict[str, Any]], None]


class Engine(Protocol):
    """Runs tasks."""

    @property
    def workers(self) -> int:
        """Tasks at a time."""
        ...

    @property
    def memory(self) -> float | None:
        """Bytes for each of them, where that is known."""
        ...

    def run(self, folder: str, tasks: Sequence[Task], done: Done) -> None:
        """Run tasks in any order and hand over what each found.

        Raises:
            InputError: a task failed twice; the message names it and the reason.
        """
        ...


class Here:
    """One task after another, in this process."""

    workers = 1
    memory: float | None = None

    def run(self, folder: str, tasks: Sequence[Task], done: Done) -> None:
        """See `Engine`."""
        from dada.rasters.tasks import run_task

        for task in tasks:
            for attempt in range(1, ATTEMPTS + 1):
                try:
                    found = run_task(folder, task)
                    break
                except Exception as error:
                    if attempt == ATTEMPTS:
                        raise failure(task, error) from error
            done(task, found)


class Dask:
    """Workers of dask.distributed. They read and write files in the same places as this process."""

    def __init__(self, client: Any, completed: Callable[[], Any]) -> None:
        """Take a client that is connected, and what makes an iterator over finished futures."""
        self.client, self.completed = client, completed

    @property
    def workers(self) -> int:
        """How many there are now, with their threads."""
        return max(1, int(sum(self.client.nthreads().values())))

    @property
    def memory(self) -> float | None:
        """Bytes of the smallest worker, for each of its threads."""
        known = [w for w in self.client.scheduler_info(n_workers=-1)["workers"].values() if w.get("memory_limit")]
        return min((w["memory_limit"] / max(1, w["nthreads"]) for w in known), default=None)

    def run(self, folder: str, tasks: Sequence[Task], done: Done) -> None:
        """See `Engine`."""
        from dada.rasters.tasks import run_task

        waiting = list(reversed(tasks))
        attempts: dict[Any, tuple[Task, int]] = {}
        results = self.completed()

        def submit(task: Task, attempt: int) -> None:
            future = self.client.submit(run_task, folder, task, pure=False)
            attempts[future.key] = task, attempt
            results.add(future)

        def more() -> None:
            while waiting and len(attempts) < AHEAD * self.workers:
                submit(waiting.pop(), 1)

        more()
        while attempts:
            future = next(results)
            task, attempt = attempts.pop(future.key)
            error = future.exception()
            if error is None:
                done(task, future.result())
            elif attempt < ATTEMPTS:
                submit(task, attempt + 1)
            else:
                self.client.cancel(list(attempts))
                raise failure(task, error)
            more()


def failure(task: Task, error: BaseException) -> InputError:
    """What to say of a task that failed twice."""
    reason = str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}"
    what = "tile" if task.kind in ("tile", "store") else "seam"
    return InputError(
        f"{what} in row {task.row + 1}, column {task.col + 1} failed twice: {reason} What is done is kept: run the "
        "same command again to go on from there."
    )


@contextmanager
def engine(workers: int, memory: float | None, scheduler: str | None) -> Iterator[Engine]:
    """Start an engine.

    Args:
        workers: processes on this machine; with 1, the work is done in this process.
        memory: bytes for all of them together, on this machine.
        scheduler: address of a scheduler that the user runs, such as tcp://10.0.0.1:8786.

    Raises:
        InputError: dask is not installed, or the scheduler does not answer.
    """
    if scheduler is None and workers == 1:
        yield Here()
        return
    distributed = _distributed()
    import dask

    options = {"distributed.scheduler.allowed-failures": DEATHS, "distributed.logging.distributed": "error"}
    if scheduler is not None:
        with dask.config.set(options), _connected(distributed, scheduler) as client:
            yield Dask(client, distributed.as_completed)
        return
    limit = None if memory is None else int(memory / workers)
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
    options["distributed.nanny.pre-spawn-environ"] = dict.fromkeys(names, 1)
    options |= {f"distributed.worker.memory.{name}": False for name in ("target", "spill", "pause")}
    with (
        dask.config.set(options),
        distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=True, memory_limit=limit, dashboard_address=None,
            silence_logs=50,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):  # fmt: skip
        yield Dask(client, distributed.as_completed)


def _distributed() -> Any:
    try:
        import distributed
    except ImportError:
        raise InputError(
            "several processes and clusters need dask. Run pip install 'dada-sr[rasters]', or use --workers 1."
        ) from None
    return distributed


def _connected(distributed: Any, scheduler: str) -> Any:
    try:
        client = distributed.Client(scheduler, timeout=PATIENCE)
    except (OSError, ValueError) as error:
        raise InputError(
            f"the scheduler {scheduler} does not answer ({error}). Start it with dask scheduler, and give the address "
            "that it prints, such as tcp://10.0.0.1:8786."
        ) from None
    if not client.nthreads():
        client.close()
        raise InputError(f"the scheduler {scheduler} has no workers. Start some with dask worker {scheduler}.")
    return client


def cores() -> int:
    """Number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
