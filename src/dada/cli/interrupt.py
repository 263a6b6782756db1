"""Ctrl-C that also ends compiled code, where Python cannot raise KeyboardInterrupt until it returns."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time

INTERRUPTED = 130
GRACE = 1.0  # seconds for Python to end by itself, removing what is half written


def end_on_interrupt() -> None:
    """From now on an interrupt ends this process within GRACE seconds, whatever it is doing."""
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
