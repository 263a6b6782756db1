"""Many jobs on all cores, each in a process with one thread; one that fails does not stop the others."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Generator, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import TYPE_CHECKING, NamedTuple

from dada.errors import InputError
from dada.machine import THREAD_VARIABLES, keep_memory

if TYPE_CHECKING:
    from dada.pairs.job import Job


class Done(NamedTuple):
    """A finished job."""

    job: Job
    failure: str | None  # why it failed
    warnings: list[str]


def run_all(jobs: list[Job], count: int) -> Iterator[Done]:
    """Run jobs in `count` processes; yield each when it is done, in any order."""
    waiting = list(reversed(jobs))
    doubtful: list[Job] = []
    while waiting:
        doubtful += yield from _drain(waiting, count, ahead=2 * count)
    while doubtful:  # a job that takes its process down takes its neighbours along: find out which it was
        for job in (yield from _drain(doubtful, 1, ahead=1)):
            yield Done(job, "its process died, perhaps for lack of memory. Try it alone with dada upsample.", [])


def _drain(waiting: list[Job], count: int, ahead: int) -> Generator[Done, None, list[Job]]:
    """Run jobs, `ahead` of them in hand, until none is left or a process dies; return those in hand then."""
    running: dict[Future[Done], Job] = {}
    pool = ProcessPoolExecutor(count, multiprocessing.get_context("spawn"), begin)
    try:
        while waiting or running:
            while waiting and len(running) < ahead:
                future = pool.submit(run_one, waiting[-1])  # may fail: only then is the job taken
                running[future] = waiting.pop()
            finished, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                if isinstance(future.exception(), BrokenProcessPool):
                    return list(running.values())
                del running[future]
                yield future.result()
    except BrokenProcessPool:  # a process died between two jobs
        return list(running.values())
    finally:
        _stop(pool)
    return []


def run_one(job: Job) -> Done:
    """Run a job in a worker; no exception leaves it."""
    from dada.pairs.job import run_job

    try:
        return Done(job, None, run_job(job).warnings)
    except InputError as error:
        return Done(job, str(error), [])
    except MemoryError:
        return Done(job, "there is not enough memory. Use fewer --jobs, or cut the images into tiles.", [])
    except Exception as error:
        return Done(job, f"unexpected {type(error).__name__}: {error}", [])


def begin() -> None:
    """Prepare a worker that computes: as `attach` does, with one thread."""
    attach()
    use_threads(1)


def attach() -> None:
    """Prepare a worker: memory kept, the keyboard's interrupt left to the parent, and never an orphan."""
    keep_memory()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()

    def follow() -> None:
        if parent is not None:
            parent.join()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=follow, daemon=True).start()


def use_threads(count: int) -> None:
    """Have this process compute with so many threads; the last bits of a network's result depend on their number."""
    for name in THREAD_VARIABLES:  # for what is not loaded yet
        os.environ[name] = str(count)
    import torch

    torch.set_num_threads(count)


def _stop(pool: ProcessPoolExecutor) -> None:
    """End the processes at once if any is still at work; what they were writing is not yet in place."""
    for process in list((pool._processes or {}).values()):
        process.terminate()
    pool.shutdown(wait=True, cancel_futures=True)
