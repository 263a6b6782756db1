"""The API of `dada app` from Python; it needs neither torch nor the rest of the package to compute."""

from __future__ import annotations

import json
import os
import secrets
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Self
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

from dada.errors import InputError

WAIT = 20  # seconds that one question after a job is kept open
TIMEOUT = 60.0


class ServerError(RuntimeError):
    """The server did not do what it was asked, though the input is not to blame: it is full, or took too long."""


class Client:
    """A server of `dada app`.

        with Client("http://127.0.0.1:7860") as server:
            job = server.submit("depth.png", "rgb.png", unit="mm")
            status = server.wait(job)
            server.download(job, "fine.png")

    Jobs that it submitted are deleted from the server at the end of the block.
    """

    def __init__(self, url: str = "http://127.0.0.1:7860") -> None:
        """Take the address that `dada app` prints."""
        self.url = url.rstrip("/")
        self._jobs: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for job in list(self._jobs):
            self.delete(job)

    def about(self) -> dict[str, Any]:
        """Version, limits, examples and fields of the server."""
        return self._json("GET", "/api")

    def inspect(self, **file: str | os.PathLike[str]) -> dict[str, Any]:
        """What a file holds: `inspect(source="depth.png")` or `inspect(guide="rgb.png")`."""
        return self._json("POST", "/api/inspect", _form({}, {name: Path(path) for name, path in file.items()}))

    def submit(
        self,
        source: str | os.PathLike[str] | None = None,
        guide: str | os.PathLike[str] | None = None,
        *,
        confidence: str | os.PathLike[str] | None = None,
        **fields: object,
    ) -> str:
        """Put a pair into the queue; return the id of the job.

        Args:
            source: the coarse file.
            guide: the fine file.
            confidence: file of the source's size.
            fields: as the options of `dada upsample`, and `example`, `factor` and `field_of_view`; see
                docs/how-to/page.md.

        Raises:
            InputError: the server refused it, and says why.
            ServerError: the server is full.
        """
        files = {"source": source, "guide": guide, "confidence": confidence}
        given = {name: Path(path) for name, path in files.items() if path is not None}
        status = self._json("POST", "/api/jobs", _form(fields, given))
        self._jobs.append(status["id"])
        return str(status["id"])

    def status(self, job: str, wait: float = 0) -> dict[str, Any]:
        """The state of a job, at the latest after `wait` seconds if it does not change before."""
        return self._json("GET", f"/api/jobs/{quote(job)}?wait={wait:g}")

    def wait(self, job: str, seconds: float = 600) -> dict[str, Any]:
        """Wait for the end of a job; return its report.

        Raises:
            InputError: the files or options cannot be used.
            ServerError: it failed, or is not done in time.
        """
        end = time.monotonic() + seconds
        status = self.status(job)
        while status["state"] in ("waiting", "running"):
            left = end - time.monotonic()
            if left <= 0:
                raise ServerError(f"the job {job} is {status['state']} after {seconds:g} s.")
            status = self.status(job, min(WAIT, left))
        if status["state"] == "refused":
            raise InputError(status["error"]["message"])
        if status["state"] != "done":
            raise ServerError(status["error"]["message"])
        return status

    def download(self, job: str, path: str | os.PathLike[str], what: str = "result") -> None:
        """Write a file of a job: its "result", "preview", "point cloud", "report" or "averaged source"."""
        names = {file["what"]: file["name"] for file in self.status(job).get("files", [])}
        if what not in names:
            raise InputError(f"the job {job} has no {what}. It has {', '.join(names) or 'no file yet'}.")
        Path(path).write_bytes(self._ask("GET", f"/api/jobs/{quote(job)}/files/{quote(names[what])}"))

    def delete(self, job: str) -> None:
        """Delete a job and its files; one that is under way is stopped."""
        if job in self._jobs:
            self._jobs.remove(job)
        with suppress(InputError):  # the server has deleted it already
            self._ask("DELETE", f"/api/jobs/{quote(job)}")

    def _json(self, method: str, path: str, form: tuple[str, bytes] | None = None) -> dict[str, Any]:
        content: dict[str, Any] = json.loads(self._ask(method, path, form))
        return content

    def _ask(self, method: str, path: str, form: tuple[str, bytes] | None = None) -> bytes:
        headers = {} if form is None else {"Content-Type": form[0]}
        request = Request(self.url + path, None if form is None else form[1], headers, method=method)
        try:
            with urlopen(request, timeout=TIMEOUT) as answer:
                data: bytes = answer.read()
                return data
        except HTTPError as error:
            with error:
                message = json.loads(error.read())["error"]["message"]
            raise (ServerError(message) if error.code >= 500 else InputError(message)) from None
        except OSError as error:
            raise ServerError(f"{self.url} does not answer ({error}). Is dada app running there?") from None


def _form(fields: dict[str, Any], files: dict[str, Path]) -> tuple[str, bytes]:
    """The content type and the body of a form."""
    boundary = secrets.token_hex(16)
    parts = [
        f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
        for name, value in fields.items()
        if value is not None
    ]
    for name, path in files.items():
        file = path.name.replace('"', "_")
        head = f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"; filename="{file}"\r\n\r\n'
        parts += [head.encode(), path.read_bytes(), b"\r\n"]
    return f"multipart/form-data; boundary={boundary}", b"".join([*parts, f"--{boundary}--\r\n".encode()])
