"""The threads that work on one image together: how they come, are told what to do, and leave."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from time import perf_counter, sleep

import numpy as np

from . import _numba_joined
from ._numba_joined import LEAVE, Levels, State
from ._numba_team import ALL, Band, bands
from .engine import one_team


class Team:
    """This thread and those that follow it, one for each part of the block rows.

    Nobody waits for long for a thread to come: it may have other things to do, or no core that is free. Until all are
    here this one works alone, and finds the same. Of one executor at most one team uses the threads at a time: two that
    each wait for the rest of their threads would wait forever.
    """

    def __init__(
        self,
        pool: ThreadPoolExecutor | None,
        edges: np.ndarray,
        state: State,
        levels: Levels | None,
        patience: float,  # seconds
    ):
        self.state, self.levels, self.patience = state, levels, patience
        (self.alone,) = bands(edges, 1)
        self.band, self.followers = self.alone, list[Future]()
        self.lock = one_team(pool) if pool is not None and len(edges) > 2 else None
        if pool is None or self.lock is None or not self.lock.acquire(blocking=False):
            self.lock = None
            return
        try:
            self.band, *others = bands(edges, len(edges) - 1, self.alone.meeting)
            for band in others:
                self.followers.append(pool.submit(self._follow, band))
        except BaseException:
            self.disband(wait=True)
            raise

    def _follow(self, band: Band) -> None:
        try:
            _numba_joined.work(self.state, self.levels, band)
        finally:
            self._release()  # nobody shall wait for a thread that failed

    @property
    def here(self) -> bool:
        """Whether all others have come, and wait for what to do."""
        size, met = self.band.size, int(self.band.meeting[0])
        if size > 1 and met >= ALL:
            self._blame()
        return size > 1 and met % size == size - 1

    def act(self, task: int, *numbers: float) -> tuple[float, float, float, float]:
        """Do one of the tasks of `_numba_joined`, with the numbers it takes; up to four come back."""
        band = self.band if self._complete() else self.alone
        band.words[0] = task
        band.words[1 : 1 + len(numbers)] = numbers
        try:
            out = _numba_joined.work(self.state, self.levels, band)
        except BaseException:
            self.disband(wait=True)
            raise
        if band.size > 1 and band.meeting[0] >= ALL:
            self._blame()
        return out

    def _complete(self) -> bool:
        """Whether all are here, before patience ends."""
        if self.here or not self.followers:
            return self.here
        end = perf_counter() + self.patience
        while not self.here and perf_counter() < end:
            sleep(0)  # a thread needs the interpreter to come
        return self.here

    def _blame(self) -> None:
        """Raise what another thread has failed with: what was done is not whole."""
        for follower in self.followers:
            follower.result()

    def disband(self, wait: bool = False) -> None:
        """Let the others go. They touch nothing any more, unless a task was broken off: then `wait` for them."""
        self._release()
        for follower in self.followers:
            if not follower.cancel() and wait:
                follower.exception()
        self.followers = []
        if self.lock is not None:
            self.lock.release()
            self.lock = None

    def _release(self) -> None:
        self.band.words[0] = LEAVE
        self.band.meeting[0] = ALL
