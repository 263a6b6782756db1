"""Who runs the tasks: this process, or workers of dask.distributed on this machine or another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any, Protocol

from dada.errors import InputError
from dada.machine import THREAD_VARIABLES, keep_memory
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

    def __init__(self, connected: Future[Any], completed: Callable[[], Any], started: int | None = None) -> None:
        """Take a client that will be connected, what makes an iterator over finished futures, and our own workers."""
        self._connected, self._completed, self._started = connected, completed, started

    @property
    def client(self) -> Any:
        """The client; waits for it."""
        return self._connected.result()

    @property
    def workers(self) -> int:
        """How many we started, or how many there are now, with their threads."""
        return self._started or max(1, int(sum(self.client.nthreads().values())))

    @property
    def memory(self) -> float | None:
        """Bytes of the smallest worker, for each of its threads."""
        known = [w for w in self.client.scheduler_info(n_workers=-1)["workers"].values() if w.get("memory_limit")]
        return min((w["memory_limit"] / max(1, w["nthreads"]) for w in known), default=None)

    def run(self, folder: str, tasks: Sequence[Task], done: Done) -> None:
        """See `Engine`."""
        waiting = list(reversed(tasks))
        attempts: dict[Any, tuple[Task, int]] = {}
        client, results = self.client, self._completed()

        def submit(task: Task, attempt: int) -> None:
            future = client.submit(run_in_worker, folder, task, pure=False)
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
                client.cancel(list(attempts))
                raise failure(task, error)
            more()


@cache
def prepared() -> Callable[[str, Task], dict[str, Any]]:
    """What runs tasks, in a process that has nothing else to do; the first call takes a while."""
    keep_memory()
    from dada.rasters.tasks import run_task

    return run_task


def run_in_worker(folder: str, task: Task) -> dict[str, Any]:
    """Run a task in a worker."""
    return prepared()(folder, task)


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
        known: Future[Any] = Future()
        with dask.config.set(options), _connected(distributed, scheduler) as client:
            known.set_result(client)
            yield Dask(known, distributed.as_completed)
        return
    limit = None if memory is None else int(memory / workers)
    options["distributed.nanny.pre-spawn-environ"] = dict.fromkeys(THREAD_VARIABLES, 1)
    options |= {f"distributed.worker.memory.{name}": False for name in ("target", "spill", "pause")}
    options["distributed.worker.profile.enabled"] = False  # looks at a worker's stack every 10 ms
    with dask.config.set(options), ExitStack() as closing, ThreadPoolExecutor(1) as aside:
        started = aside.submit(_started, distributed, workers, limit, closing)
        yield Dask(started, distributed.as_completed, workers)


def _started(distributed: Any, workers: int, limit: int | None, closing: ExitStack) -> Any:
    """Start workers on this machine and have them made ready; return the client."""
    cluster = closing.enter_context(
        distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=True, memory_limit=limit,
            dashboard_address="127.0.0.1:0", silence_logs=50,
        )
    )  # fmt: skip
    client = distributed.Client(cluster)
    closing.callback(client.close)  # as a context it would have to end in the thread that began it
    for address in client.nthreads():
        distributed.fire_and_forget(client.submit(prepared, workers=[address], pure=False))
    return client


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
