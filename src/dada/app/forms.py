"""Forms with files (multipart/form-data), read to the disk: a request never lies in memory as a whole."""

from __future__ import annotations

import mmap
from dataclasses import dataclass, field
from email.message import Message
from email.parser import BytesHeaderParser
from io import BufferedIOBase
from pathlib import Path

CHUNK = 1 << 20
MAX_HEADER, MAX_FIELD, MAX_PARTS = 8192, 8192, 64  # bytes, bytes, number
NAME_LENGTH = 100


class MalformedError(ValueError):
    """A request that is no form; the message says why."""


@dataclass
class Form:
    """Texts and files by the names of their fields."""

    texts: dict[str, str] = field(default_factory=dict)
    files: dict[str, Path] = field(default_factory=dict)


def read_form(stream: BufferedIOBase, length: int, content_type: str, folder: Path) -> Form:
    """Read a form of `length` bytes; its files are written into a folder under the names that they came with.

    Raises:
        MalformedError: it is not such a form, or it ends too early.
    """
    header = Message()
    header["content-type"] = content_type
    boundary = header.get_boundary()
    if header.get_content_type() != "multipart/form-data" or not boundary:
        raise MalformedError(
            f"the request has the content type {content_type or 'none'!r}, and multipart/form-data was expected. Send "
            "files as curl does with -F source=@depth.png."
        )
    body = folder / ".body"
    try:
        _save(stream, length, body)
        if not length:
            raise MalformedError("the request is empty. Send a source and a guide.")
        with body.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _split(data, b"--" + boundary.encode("latin-1"), folder)
    finally:
        body.unlink(missing_ok=True)


def _save(stream: BufferedIOBase, length: int, path: Path) -> None:
    left = length
    with path.open("wb") as file:
        while left:
            chunk = stream.read(min(left, CHUNK))
            if not chunk:
                raise MalformedError(f"the request ended {left} of {length} bytes too early. Send it again.")
            file.write(chunk)
            left -= len(chunk)


def _split(data: mmap.mmap, boundary: bytes, folder: Path) -> Form:
    form = Form()
    at = data.find(boundary)
    if at < 0:
        raise MalformedError("the boundary that the content type names is not in the request. Send it again.")
    for _ in range(MAX_PARTS):
        begin = at + len(boundary)
        if data[begin : begin + 2] == b"--":
            return form
        at = data.find(b"\r\n" + boundary, begin)
        if at < 0:
            raise MalformedError("the last part of the form has no end: the request was cut off. Send it again.")
        _read_part(data, begin + 2, at, form, folder)
        at += 2
    raise MalformedError(f"the form has more than {MAX_PARTS} parts. Send one source and one guide at a time.")


def _read_part(data: mmap.mmap, begin: int, end: int, form: Form, folder: Path) -> None:
    split = data.find(b"\r\n\r\n", begin, min(end, begin + MAX_HEADER))
    if split < 0:
        raise MalformedError("a part of the form has no header. Send it as curl does with -F.")
    header = BytesHeaderParser().parsebytes(data[begin:split])
    name = header.get_param("name", header="content-disposition")
    if not isinstance(name, str) or not name:
        raise MalformedError("a part of the form has no name. Send it as curl does with -F name=value.")
    if name in form.texts or name in form.files:
        raise MalformedError(f"the field {name!r} comes twice. Send it once.")
    content, file = split + 4, header.get_filename()
    if file is None:
        if end - content > MAX_FIELD:
            raise MalformedError(
                f"the field {name!r} has {end - content} bytes of text. Send files as -F {name}=@FILE."
            )
        form.texts[name] = data[content:end].decode("utf-8", "replace").strip()
        return
    if not file and content == end:
        return  # a field for a file, left empty
    path = folder / distinct(clean_name(file), {p.name for p in form.files.values()})
    with path.open("wb") as target:
        for start in range(content, end, CHUNK):
            target.write(data[start : min(start + CHUNK, end)])
    form.files[name] = path


def clean_name(text: str) -> str:
    """The last part of a path, of letters that no system objects to; never hidden, never taken for an option."""
    name = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace").replace("\\", "/").rpartition("/")[2]
    name = "".join(c if c.isprintable() and c not in '<>:"|?*/\ufffd' else "_" for c in name).strip().lstrip(".-")
    stem, dot, suffix = name.rpartition(".")
    return f"{(stem if dot else suffix)[:NAME_LENGTH]}{dot}{suffix[:10] if dot else ''}" or "file"


def distinct(name: str, taken: set[str]) -> str:
    """The name, with a number before it if it is taken."""
    number, candidate = 1, name
    while candidate in taken:
        number += 1
        candidate = f"{number}_{name}"
    return candidate
