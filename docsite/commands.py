"""The reference of commands, from the dataclasses that the help is made from."""

from __future__ import annotations

import dataclasses
from inspect import cleandoc
from typing import Any

from dada.cli import DESCRIPTION, commands
from docsite.fields import Row, cell, rows, type_name

HEAD = """# Commands

This page is made from the code when the site is built. `dada COMMAND --help` prints the same.

"""


def commands_page() -> str:
    """A section for each command."""
    parts = [HEAD, cleandoc(DESCRIPTION), "\n\n"]
    for name, cls in commands().items():
        parts.append(_section(name, cls))
    return "".join(parts)


def _section(name: str, cls: type) -> str:
    own = list(rows(cls))
    places = [row for row in own if positional(row)]
    usage = " ".join(_place(row) for row in places)
    call = " ".join(part for part in ("dada", name, usage, "[OPTIONS]") if part)
    lines = [f"## dada {name}", "", f"    {call}"]
    lines += ["", cleandoc(cls.__doc__ or ""), ""]
    if places:
        lines += ["| argument | meaning |", "| --- | --- |"]
        lines += [f"| `{_place(row)}` | {_meaning(row)} |" for row in places] + [""]
    lines += ["| option | value | meaning |", "| --- | --- | --- |"]
    for row in own:
        if not positional(row):
            lines += _option(row, "--")
    return "\n".join(lines) + "\n\n"


def _option(row: Row, prefix: str) -> list[str]:
    """The line of an option; of a group of settings, a line for each of them."""
    flag = prefix + row.name.replace("_", "-")
    if isinstance(row.type, type) and dataclasses.is_dataclass(row.type):
        return [line for inner in rows(row.type) for line in _option(inner, f"{flag}.")]
    aliases = [alias for extra in row.extras for alias in getattr(extra, "aliases", None) or ()]
    names = ", ".join(f"`{name}`" for name in (flag, *aliases))
    return [f"| {names} | {_value(row)} | {_meaning(row)} |"]


def _value(row: Row) -> str:
    metavar = _told(row, "metavar")
    if metavar:
        return f"`{metavar}`"
    return "" if row.type is bool else cell(type_name(row.type))


def _meaning(row: Row) -> str:
    """The text, with the default."""
    hint = _told(row, "help_behavior_hint")
    if hint is None and row.default not in (dataclasses.MISSING, None, "", (), {}, False):
        value = " ".join(map(str, row.default)) if isinstance(row.default, tuple) else row.default
        hint = f"(default: {value})"
    return cell(f"{row.text} {hint or ''}".strip())


def _place(row: Row) -> str:
    name = _told(row, "metavar") or row.name.upper()
    return name if row.default is dataclasses.MISSING else f"[{name}]"


def _told(row: Row, name: str) -> Any:
    return next((getattr(extra, name) for extra in row.extras if getattr(extra, name, None) is not None), None)


def positional(row: Row) -> bool:
    """Whether it is an argument without a flag."""
    return any("POSITIONAL" in repr(extra).upper() for extra in row.extras if not hasattr(extra, "metavar"))
