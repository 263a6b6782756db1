"""A server from its start to its end."""

from __future__ import annotations

import signal
import threading
from types import FrameType

from dada.app.desk import Desk
from dada.app.limits import Limits
from dada.app.server import Server
from dada.errors import InputError
from dada.machine import cores


def serve(host: str, port: int, limits: Limits, *, jobs: int | None = None, show: bool = False) -> int:
    """Serve the page until the process is interrupted or asked to end; return the exit code.

    Args:
        host: address to listen at.
        port: to listen at; 0 is any free one.
        limits: what is taken on.
        jobs: how many at a time; None: one for each core.
        show: also open the page in a browser.

    Raises:
        InputError: the address cannot be listened at.
    """
    if jobs is not None and jobs < 1:
        raise InputError(f"jobs {jobs} is not a number of processes. Use 1 or more.")
    desk = Desk(limits, jobs or cores())
    try:
        server = _bound(host, port, desk)
        desk.start()
        for text in announcement(server):
            print(text, flush=True)
        if show:
            import webbrowser

            webbrowser.open(server.url)
        _until_told(server)
    finally:
        desk.close()
    return 0


def _bound(host: str, port: int, desk: Desk) -> Server:
    if not 0 <= port <= 65535:
        raise InputError(f"port {port} is none. Use 1 to 65535, or 0 for any free one.")
    try:
        return Server((host, port), desk)
    except OSError as error:
        raise InputError(
            f"{host} port {port} cannot be listened at ({error.strerror or error}). Name another port with --port, 0 "
            "for any free one, or another address of this machine with --host."
        ) from None


def announcement(server: Server) -> list[str]:
    """What whoever started the server should know."""
    if server.local:
        return [f"{server.url}  (this machine alone; Ctrl-C ends it and deletes its files)"]
    return [
        f"{server.url}  (Ctrl-C ends it and deletes its files)",
        "Every machine that reaches this address can send files, use this machine's cores and memory up to the limits, "
        "and read a result if it knows its id. There is no password, and what is sent is not encrypted.",
    ]


def _until_told(server: Server) -> None:
    """Serve until SIGINT or SIGTERM."""

    def stop(number: int, frame: FrameType | None) -> None:
        threading.Thread(target=server.shutdown, daemon=True).start()

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        server.serve_forever(poll_interval=0.1)
    finally:
        server.server_close()
        for number, handler in before.items():
            signal.signal(number, handler)
