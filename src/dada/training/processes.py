"""Training in several processes started by `torchrun`, and signals that end a training."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from types import FrameType

import torch
import torch.distributed as dist
from torch import Tensor, nn

from dada.errors import InputError

PATIENCE = timedelta(days=7)  # for the others: a training may be paused (SIGSTOP); one that ends is noticed at once
ENDS = (signal.SIGINT, signal.SIGTERM)
"""Signals that end a training."""


@dataclass(frozen=True)
class Processes:
    """This process among those of the training.

    Attributes:
        rank: number of this process, from 0; process 0 writes the files.
        count: number of processes.
    """

    rank: int = 0
    count: int = 1

    @property
    def first(self) -> bool:
        """Whether this is the one that writes and reports."""
        return self.rank == 0

    def share(self, network: nn.Module) -> nn.Module:
        """A network whose gradients are averaged over the processes."""
        if self.count == 1:
            return network
        idle = bool(getattr(network, "unused", ()))  # parameters that no output depends on
        return nn.parallel.DistributedDataParallel(network, find_unused_parameters=idle)

    def align(self, network: nn.Module) -> None:
        """Copy the buffers (batch statistics) of the first process to all others."""
        if self.count > 1:
            for buffer in network.buffers():
                dist.broadcast(buffer, 0)

    def total(self, values: Tensor) -> Tensor:
        """The sum over the processes."""
        if self.count > 1:
            dist.all_reduce(values)
        return values

    def any(self, flag: bool) -> bool:
        """Whether the flag is set in any process: all stop at the same step or none."""
        return flag if self.count == 1 else bool(self.total(torch.tensor(float(flag))) > 0)

    def wait(self) -> None:
        """Wait for all processes."""
        if self.count > 1:
            dist.barrier()


@contextmanager
def processes() -> Iterator[Processes]:
    """Join the processes started by `torchrun`, or run as the only one."""
    if "RANK" not in os.environ or "WORLD_SIZE" not in os.environ:
        yield Processes()
        return
    try:
        dist.init_process_group("gloo", timeout=PATIENCE)
    except (RuntimeError, ValueError) as error:
        raise InputError(f"the processes of torchrun cannot find each other: {error}") from None
    try:
        yield Processes(dist.get_rank(), dist.get_world_size())
    finally:
        dist.destroy_process_group()


class Stop:
    """Records a request to end, by Ctrl-C or SIGTERM; a second Ctrl-C ends at once."""

    def __init__(self) -> None:
        self.asked = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal."""
        if self.asked and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.asked = True


@contextmanager
def stop_on_signals() -> Iterator[Stop]:
    """Within the block SIGINT and SIGTERM only set a flag; afterwards the handlers are restored."""
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():  # only the main thread can handle signals
        yield stop
        return
    wakeup = signal.set_wakeup_fd(-1)  # the command line's own quick end on Ctrl-C
    before = {number: signal.signal(number, stop) for number in ENDS}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(wakeup)


@contextmanager
def signals_held() -> Iterator[None]:
    """Block signals to end within the block; processes started in it inherit the mask and never receive them.

    A worker needs seconds for its imports, and Ctrl-C must not end it in that time.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # otherwise it is started with the first worker and unblocks the signals
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDS)
