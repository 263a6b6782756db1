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
LOOKS = 4000  # at the counter, some microseconds, before other threads of the machine may go first
APART = LINE // 8  # numbers of 8 bytes after which another line of the cache begins


class Band(NamedTuple):
    """The block rows that are one thread's, and what it shares with the others."""

    lo: int
    hi: int
    me: int  # 0 leads
    size: int  # of the team
    meeting: np.ndarray  # [1] int64: how often any of them has come to a meeting
    turns: np.ndarray  # [size, APART] int64: how often each has brought numbers to `agree`
    sums: np.ndarray  # [2, size, APART]: these numbers, in two places by turns
    words: np.ndarray  # what the leader wants done


def bands(pairs: list[tuple[int, int]]) -> list[Band]:
    """A team, one thread for each pair of block rows; the block rows of the image in all."""
    size = len(pairs)
    shared = (
        np.zeros(1, np.int64), np.zeros((size, APART), np.int64), np.zeros((2, size, APART)), np.zeros(APART),
    )  # fmt: skip
    return [Band(lo, hi, me, size, *shared) for me, (lo, hi) in enumerate(pairs)]


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


arrive: Any = intrinsic(_arrive)
look: Any = intrinsic(_look)
give_way: Any = intrinsic(_give_way)


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
def _bring(band, a, b, c):
    """Meet, each with three numbers; returns where those of all threads are.

    Of two places one is free: who comes to the next meeting but one has seen all others leave this one.
    """
    place = band.turns[band.me, 0] % 2
    band.turns[band.me, 0] += 1
    numbers = band.sums[place]
    numbers[band.me, 0], numbers[band.me, 1], numbers[band.me, 2] = a, b, c
    meet(band)
    return numbers


@compiled
def agree(band, a, b, c):
    """The sums over the team of three numbers that each thread brings, the same to the last digit in all of them."""
    if band.size == 1:
        return a, b, c
    numbers = _bring(band, a, b, c)
    a, b, c = 0.0, 0.0, 0.0
    for other in range(band.size):
        a += numbers[other, 0]
        b += numbers[other, 1]
        c += numbers[other, 2]
    return a, b, c


@compiled
def largest(band, a):
    """The largest of the numbers that each thread brings."""
    if band.size == 1:
        return a
    numbers = _bring(band, a, 0.0, 0.0)
    for other in range(band.size):
        a = max(a, numbers[other, 0])
    return a


@compiled
def gathered(meeting, others, most):
    """Whether that many have come to the first meeting by the time one has given way `most` times."""
    for _ in range(most):
        for _ in range(LOOKS):
            if look(meeting) >= others:
                return True
        give_way()
    return look(meeting) >= others
