"""The server of `dada app`: files of the page, and the API that the page itself uses (docs/how-to/page.md)."""

from __future__ import annotations

import json
import socket
import threading
import time
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

from dada.app.desk import Desk, ProblemError
from dada.app.forms import Form, MalformedError, read_form
from dada.app.jobs import FINISHED, Entry
from dada.app.requests import VIEW

PAGE = Path(__file__).parent / "page"
BINARY = "application/octet-stream"
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".json": "application/json",
    ".png": "image/png",
    ".tiff": "image/tiff",
}
POLICY = (  # nothing is loaded from elsewhere, and no other page can show this one
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
LOOPBACK = ("127.0.0.1", "localhost", "[::1]", "::1")
DRAIN_SECONDS = 10.0
MAX_WAIT = 30.0  # seconds that a question after a job is kept open
CHUNK = 1 << 18
BUSY_WORDS = b'{"error": {"message": "there are too many connections. Try again in a while.", "file": null}}\n'
BUSY = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nConnection: close\r\nContent-Type: application/json\r\n"
    b"Content-Length: %d\r\n\r\n%s" % (len(BUSY_WORDS), BUSY_WORDS)
)
STATUS = {"refused": HTTPStatus.UNPROCESSABLE_ENTITY, "failed": HTTPStatus.INTERNAL_SERVER_ERROR}


class Server(ThreadingHTTPServer):
    """Serves one desk, each connection in a thread of its own, and not more of them than the limits say."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], desk: Desk) -> None:
        """Bind to (host, port); port 0 is any free one.

        Raises:
            OSError: the address is in use or not of this machine.
        """
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        super().__init__(address, Handler)
        self.desk = desk
        self._free = threading.BoundedSemaphore(desk.limits.connections)

    @property
    def url(self) -> str:
        """Where the page is."""
        host, port = str(self.server_address[0]), self.server_address[1]
        return f"http://{f'[{host}]' if ':' in host else host}:{port}"

    @property
    def local(self) -> bool:
        """Whether only this machine reaches it."""
        return str(self.server_address[0]) in LOOPBACK

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection unless there are too many."""
        if not self._free.acquire(blocking=False):
            with suppress(OSError):
                request.sendall(BUSY)
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve a connection, in its thread."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a client that went away."""


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    server_version, sys_version = "dada", ""
    timeout = 30  # seconds without a byte
    server: Server

    def do_GET(self) -> None:
        self._answer(self._get)

    def do_HEAD(self) -> None:
        self._answer(self._get)

    def do_POST(self) -> None:
        self._answer(self._post)

    def do_DELETE(self) -> None:
        self._answer(self._delete)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Requests are nobody's business."""

    # ---- routes

    def _get(self, parts: list[str], query: dict[str, str]) -> None:
        match parts:
            case []:
                self._send_file(PAGE / "index.html")
            case [name] if (PAGE / name).is_file():
                self._send_file(PAGE / name)
            case ["api"]:
                self._send_json(self.server.desk.about() | {"local": _is_loopback(str(self.client_address[0]))})
            case ["api", "examples", name, file]:
                self._send_within(self.server.desk.example(name), file, attach=True)
            case ["api", "jobs", name]:
                self._send_json(self._status(self._entry(name), query))
            case ["api", "jobs", name, "view"]:
                self._send_within(self._done(name).folder / VIEW, "view.json")
            case ["api", "jobs", name, "layers", layer]:
                self._send_within(self._done(name).folder / VIEW, f"{layer}.bin")
            case ["api", "jobs", name, "files", file]:
                entry = self._done(name)
                if file not in [found["name"] for found in entry.answer["files"]]:
                    raise _missing(f"the job has no file {file!r}.")
                self._send_within(entry.folder, file, attach="shown" not in query)
            case _:
                raise _missing(f"there is nothing at {self.path}.")

    def _post(self, parts: list[str], query: dict[str, str]) -> None:
        desk = self.server.desk
        if parts not in (["api", "jobs"], ["api", "upsample"], ["api", "inspect"]):
            raise _missing(f"nothing is taken at {self.path}. Send to /api/jobs, /api/upsample or /api/inspect.")
        with desk.scratch() as folder:
            form = self._form(folder)
            if parts[1] == "inspect":
                self._send_json(desk.inspect(form, folder))
                return
            entry = desk.submit(form, folder)
            if parts[1] == "jobs":
                self._send_json(desk.jobs.status(entry), HTTPStatus.ACCEPTED)
                return
            try:
                self._send_result(entry)
            finally:
                desk.jobs.remove(entry)

    def _delete(self, parts: list[str], query: dict[str, str]) -> None:
        match parts:
            case ["api", "jobs", name]:
                self.server.desk.jobs.remove(self._entry(name))
                self._send_json({"id": name, "state": "deleted"})
            case _:
                raise _missing(f"there is nothing to delete at {self.path}.")

    # ---- jobs

    def _entry(self, name: str) -> Entry:
        entry = self.server.desk.jobs.find(name)
        if entry is None:
            minutes = self.server.desk.limits.minutes
            raise _missing(f"there is no job {name!r}. Jobs are deleted {minutes:g} minutes after they were last used.")
        return entry

    def _done(self, name: str) -> Entry:
        entry = self._entry(name)
        if entry.state != "done":
            message = f"the job {name!r} is {entry.state}, so that it has no files. Ask /api/jobs/{name} for its state."
            raise ProblemError(HTTPStatus.CONFLICT, message)
        return entry

    def _status(self, entry: Entry, query: dict[str, str]) -> dict[str, Any]:
        """The state of a job; with wait=SECONDS, once it differs from what the client was told before."""
        jobs = self.server.desk.jobs
        try:
            seconds = min(max(float(query.get("wait", "0")), 0.0), MAX_WAIT)
        except ValueError:
            raise ProblemError(
                HTTPStatus.BAD_REQUEST, f"wait is {query['wait']!r}, and seconds were expected."
            ) from None
        if seconds and entry.state not in FINISHED:
            before = _told(jobs.status(entry))
            jobs.wait(entry, seconds, lambda: _told(jobs.status(entry)) != before)
        return jobs.status(entry)

    def _send_result(self, entry: Entry) -> None:
        """Wait for a job and send its result."""
        jobs = self.server.desk.jobs
        while entry.state not in FINISHED:
            jobs.wait(entry, MAX_WAIT)
        status = jobs.status(entry)
        if entry.state != "done":
            raise ProblemError(STATUS[entry.state], status["error"]["message"], status["error"]["file"])
        self._send_within(entry.folder, entry.answer["files"][0]["name"], attach=True)

    # ---- requests

    def _answer(self, route: Any) -> None:
        """Route a request; whatever goes wrong is answered."""
        self.unread = int(length) if (length := self.headers.get("content-length", "0")).isdigit() else 0
        try:
            self._check_origin()
            address = urlsplit(self.path)
            parts = [unquote(part) for part in address.path.split("/") if part]
            if any(part in (".", "..") or "/" in part or "\\" in part or "\0" in part for part in parts):
                raise _missing(f"there is nothing at {self.path}.")
            route(parts, {name: values[-1] for name, values in parse_qs(address.query, keep_blank_values=True).items()})
        except ProblemError as problem:
            self._refuse(problem.status, str(problem), problem.field)
        except MalformedError as error:
            self._refuse(HTTPStatus.BAD_REQUEST, str(error))
        except (BrokenPipeError, ConnectionResetError, TimeoutError):
            self.close_connection = True
        except Exception as error:
            self._refuse(HTTPStatus.INTERNAL_SERVER_ERROR, f"unexpected {type(error).__name__}: {error}")

    def _check_origin(self) -> None:
        """Refuse what another page sends, and names that another machine has made point here."""
        host = self.headers.get("host", "")
        if self.server.local and urlsplit(f"//{host}").hostname not in LOOPBACK:
            raise ProblemError(
                HTTPStatus.FORBIDDEN, f"this server is for this machine alone, and was asked for as {host!r}."
            )
        origin = self.headers.get("origin")
        if origin is not None and urlsplit(origin).netloc != host:
            raise ProblemError(HTTPStatus.FORBIDDEN, f"this server takes nothing from the page {origin!r}.")

    def _form(self, folder: Path) -> Form:
        text, most = self.headers.get("content-length"), self.server.desk.limits.megabytes
        if text is None or not text.isdigit():
            raise ProblemError(HTTPStatus.LENGTH_REQUIRED, "the request does not say its length. Send Content-Length.")
        if int(text) > most * 1e6:
            raise ProblemError(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                f"the request has {int(text) / 1e6:.0f} MB, and this server takes {most:g} MB. Use dada upsample, "
                "which has no such limit, or start the server with --max-megabytes.",
            )
        self.unread = 0
        try:
            return read_form(self.rfile, int(text), self.headers.get("content-type", ""), folder)
        except MalformedError:
            self.close_connection = True
            raise

    # ---- answers

    def _refuse(self, status: HTTPStatus, message: str, field: str | None = None) -> None:
        if self.unread:  # a body that is not read would be taken for the next request
            self.close_connection = True
        extra = {"Retry-After": "5"} if status == HTTPStatus.SERVICE_UNAVAILABLE else {}
        try:
            self._send_json({"error": {"message": message, "file": field}}, status, extra)
            self._drain()
        except OSError:
            self.close_connection = True

    def _drain(self) -> None:
        """Read what a refused client is still sending, for a while: else it would not see the answer."""
        end = time.monotonic() + DRAIN_SECONDS
        self.connection.settimeout(1)
        while self.unread > 0 and time.monotonic() < end and (chunk := self.rfile.read1(CHUNK)):
            self.unread -= len(chunk)
        self.connection.settimeout(self.timeout)

    def _send_json(self, content: Any, status: HTTPStatus = HTTPStatus.OK, extra: dict[str, str] | None = None) -> None:
        data = (json.dumps(content) + "\n").encode()
        self._head(status, "application/json", len(data), extra or {})
        if self.command != "HEAD":
            self.wfile.write(data)

    def _send_within(self, folder: Path, name: str, attach: bool = False) -> None:
        """Send a file of a folder, whatever a client made of its name."""
        path = folder / name
        if path.parent != folder or not path.is_file():
            raise _missing(f"there is no file {name!r}.")
        self._send_file(path, attach)

    def _send_file(self, path: Path, attach: bool = False) -> None:
        try:
            file = path.open("rb")
        except OSError:
            raise _missing(f"the file {path.name!r} is gone.") from None
        with file:
            length = path.stat().st_size
            extra = {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(path.name)}"} if attach else {}
            self._head(HTTPStatus.OK, TYPES.get(path.suffix, BINARY), length, extra)
            while self.command != "HEAD" and (chunk := file.read(CHUNK)):
                self.wfile.write(chunk)

    def _head(self, status: HTTPStatus, kind: str, length: int, extra: dict[str, str]) -> None:
        self.send_response(status)
        headers = {
            "Content-Type": kind,
            "Content-Length": str(length),
            "Cache-Control": "no-store",
            "Content-Security-Policy": POLICY,
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
        }
        if self.close_connection:
            headers["Connection"] = "close"
        for name, value in (headers | extra).items():
            self.send_header(name, value)
        self.end_headers()


def _told(status: dict[str, Any]) -> tuple[Any, ...]:
    """What of a status is news."""
    return status["state"], status.get("position"), status.get("note")


def _is_loopback(address: str) -> bool:
    return address in LOOPBACK or address.startswith(("127.", "::ffff:127."))


def _missing(message: str) -> ProblemError:
    return ProblemError(HTTPStatus.NOT_FOUND, message)
