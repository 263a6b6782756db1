"""Ctrl-C that is quiet wherever it strikes, and ends compiled code, which Python cannot interrupt, as well."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
from types import FrameType

INTERRUPTED = 130
GRACE = 1.0  # seconds for Python to end by itself, removing what is half written

interrupted = threading.Event()


def end_on_interrupt() -> None:
    """From now on an interrupt raises KeyboardInterrupt and ends this process within GRACE seconds in any case."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as under nohup
        return
    signal.signal(signal.SIGINT, _raise)
    sys.unraisablehook = _report_unraisable
    receiver, sender = socket.socketpair()
    sender.setblocking(False)
    signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)

    def watch() -> None:
        with sender:
            while signal.SIGINT not in receiver.recv(64):
                pass
            time.sleep(GRACE)
            os._exit(INTERRUPTED)

    threading.Thread(target=watch, daemon=True).start()


def _raise(number: int, frame: FrameType | None) -> None:
    interrupted.set()
    raise KeyboardInterrupt


def _report_unraisable(unraisable: sys.UnraisableHookArgs) -> None:
    """Keep quiet on an interrupt that struck within a callback of the compiler."""
    if not interrupted.is_set():
        sys.__unraisablehook__(unraisable)
