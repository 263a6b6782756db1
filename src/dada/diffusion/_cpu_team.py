"""The threads that work on one image together: how they come, are told what to do, and leave."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor

from . import _numba_joined
from ._numba_joined import LEAVE, Levels, State
from ._numba_team import ALL, Band, bands, gathered
from .engine import one_team

WAIT = 5000  # how often this thread gives way before it goes on without others, which have something else to do


class Team:
    """This thread and those that follow it, one for each pair of block rows; or this one alone, if they are busy.

    Of one executor at most one team uses the threads at a time: two that each wait for the rest of their threads would
    wait forever.
    """

    def __init__(
        self, pool: ThreadPoolExecutor | None, pairs: list[tuple[int, int]], state: State, levels: Levels | None
    ):
        self.state, self.levels = state, levels
        self.followers: list[Future] = []
        self.lock = one_team(pool) if pool is not None and len(pairs) > 1 else None
        if pool is None or self.lock is None or not self.lock.acquire(blocking=False):
            self.lock = None
            self._alone(pairs)
            return
        self.band, *others = bands(pairs)
        try:
            for band in others:
                self.followers.append(pool.submit(self._follow, band))
            if not gathered(self.band.meeting, len(others), WAIT):
                gone = [follower.cancel() for follower in self.followers]  # all who have not begun
                if any(gone):
                    self.disband()
                    self._alone(pairs)
        except BaseException:
            self.disband(wait=True)
            raise

    def _alone(self, pairs: list[tuple[int, int]]) -> None:
        (self.band,) = bands([(pairs[0][0], pairs[-1][1])])

    def _follow(self, band: Band) -> None:
        try:
            _numba_joined.work(self.state, self.levels, band)
        finally:
            self._release()  # nobody shall wait for a thread that failed

    def act(self, task: int, *numbers: float) -> tuple[float, float, float, float]:
        """Do one of the tasks of `_numba_joined`, with the numbers it takes; up to four come back."""
        words = self.band.words
        words[0] = task
        words[1 : 1 + len(numbers)] = numbers
        try:
            out = _numba_joined.work(self.state, self.levels, self.band)
        except BaseException:
            self.disband(wait=True)
            raise
        if self.band.meeting[0] >= ALL:  # a thread has failed, and what was done is not whole
            for follower in self.followers:
                follower.result()
        return out

    def disband(self, wait: bool = False) -> None:
        """Let the others go. They touch nothing any more, unless a task was broken off: then `wait` for them."""
        self._release()
        if wait:
            for follower in self.followers:
                if not follower.cancelled():
                    follower.exception()
        self.followers = []
        if self.lock is not None:
            self.lock.release()
            self.lock = None

    def _release(self) -> None:
        self.band.words[0] = LEAVE
        self.band.meeting[0] = ALL
