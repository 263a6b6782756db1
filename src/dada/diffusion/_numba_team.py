"""Threads that work on one image in step: where they wait for each other, and how they add up what each has found.

A thread that sleeps takes as long to wake as half an iteration at 256 x 256 takes. These watch a counter instead, which
takes a tenth of a microsecond, and give way to other threads of the machine where it does not move for long.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from ._numba_rows import LINE, compiled

ALL = 1 << 62  # more than ever come to a meeting: set, nobody waits any more
BRIEF, QUICK = 20_000, 200  # nanoseconds, and how often in a row giving way takes no longer on a core that is free
LOOKS = 4000  # at the counter, some microseconds, before other threads of the machine may go first
APART = LINE // 8  # numbers of 8 bytes after which another line of the cache begins


class Band(NamedTuple):
    """What is one thread's, and what it shares with the others.

    The block rows of an image are divided into parts. In a team each thread has one of them; a thread alone has all of
    them, one after the other, so that it finds the same to the last digit.
    """

    edges: np.ndarray  # [parts + 1]: the block rows at which parts begin, and the end of the last
    first: int  # the parts of this thread: first, first + 1, ... last - 1
    last: int
    me: int  # 0 leads
    size: int  # of the team
    meeting: np.ndarray  # [1] int64: how often any of them has come to a meeting
    turns: np.ndarray  # [size, APART] int64: how often each has taken a page
    pages: np.ndarray  # [2, parts, APART]: numbers that are to be added, on two pages by turns
    words: np.ndarray  # what the leader wants done
    quick: int  # how often in a row giving way must take no time before a thread comes


def bands(edges: np.ndarray, size: int, meeting: np.ndarray | None = None) -> list[Band]:
    """A team of that many threads: as many as there are parts, or one that has all and can see the others `meeting`."""
    parts = len(edges) - 1
    shared = (
        np.zeros(1, np.int64) if meeting is None else meeting,
        np.zeros((size, APART), np.int64), np.zeros((2, parts, APART)), np.zeros(APART),
    )  # fmt: skip
    return [Band(edges, me, parts if size == 1 else me + 1, me, size, *shared, QUICK) for me in range(size)]


def _arrive(typing_context: Any, counter: Any) -> Any:
    """Add one to the counter, in one piece; return what it was before."""

    def add(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        return builder.atomic_rmw("add", array.data, ir.Constant(ir.IntType(64), 1), "seq_cst")

    return types.int64(counter), add


def _look(typing_context: Any, counter: Any) -> Any:
    """What the counter is now, whoever counts; all that was written before it was counted can be read."""

    def load(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        return builder.load_atomic(array.data, "seq_cst", 8)

    return types.int64(counter), load


def _give_way(typing_context: Any) -> Any:
    """Let another thread have this core, if there is one that waits."""
    name = "SwitchToThread" if sys.platform == "win32" else "sched_yield"

    def call(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = ir.FunctionType(ir.IntType(32), [])
        builder.call(cgutils.get_or_insert_function(builder.module, kind, name), [])
        return context.get_dummy_value()

    return types.void(), call


def _read_clock(typing_context: Any, time: Any) -> Any:
    """Write seconds and nanoseconds of a clock that never goes back; where there is none, nothing."""
    kind = {"linux": 1, "darwin": 6}.get(sys.platform)  # CLOCK_MONOTONIC

    def call(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if kind is not None:
            array = context.make_array(signature.args[0])(context, builder, arguments[0])
            place = builder.bitcast(array.data, cgutils.voidptr_t)
            function = ir.FunctionType(ir.IntType(32), [ir.IntType(32), cgutils.voidptr_t])
            clock = cgutils.get_or_insert_function(builder.module, function, "clock_gettime")
            builder.call(clock, [ir.Constant(ir.IntType(32), kind), place])
        return context.get_dummy_value()

    return types.void(time), call


arrive: Any = intrinsic(_arrive)
look: Any = intrinsic(_look)
give_way: Any = intrinsic(_give_way)
read_clock: Any = intrinsic(_read_clock)


@compiled
def meet(band):
    """Wait until all threads of the team are here. What they wrote before can be read after."""
    if band.size == 1:
        return
    before = arrive(band.meeting)
    due = (before // band.size + 1) * band.size
    looks = 0
    while before < ALL and look(band.meeting) < due:
        looks += 1
        if looks > LOOKS:
            give_way()


@compiled
def find_core(band):
    """Wait until this thread has a core of its own, that is until nobody takes it when it gives way; or is released.

    After torch has computed in threads, these keep their cores busy for some milliseconds, waiting for more. A team
    with a thread that shares its core takes longer than one thread alone.
    """
    time = np.zeros(2, np.int64)
    quick = 0
    while quick < band.quick and look(band.meeting) < ALL:
        read_clock(time)
        before = time[0] * 1_000_000_000 + time[1]
        give_way()
        read_clock(time)
        quick = quick + 1 if time[0] * 1_000_000_000 + time[1] - before < BRIEF else 0


@compiled
def others_wait(band):
    """Whether a thread that works alone could have others: all are here but this one."""
    parts = band.pages.shape[1]
    return band.size == 1 and parts > 1 and look(band.meeting) % parts == parts - 1


@compiled
def page(band):
    """Where to put the numbers of each part.

    Of two pages one is free: who comes to the next meeting but one has seen all others leave this one.
    """
    turn = band.turns[band.me, 0]
    band.turns[band.me, 0] = turn + 1
    return band.pages[turn % 2]


@compiled
def put(numbers, part, a, b, c):
    """Put three numbers of one part on a page."""
    numbers[part, 0], numbers[part, 1], numbers[part, 2] = a, b, c


@compiled
def agree(band, numbers):
    """Meet, and return the sums of the numbers over all parts, the same to the last digit in all threads."""
    meet(band)
    a, b, c = 0.0, 0.0, 0.0
    for part in range(numbers.shape[0]):
        a += numbers[part, 0]
        b += numbers[part, 1]
        c += numbers[part, 2]
    return a, b, c
