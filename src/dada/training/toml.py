"""Typed dataclasses from TOML and back: unknown keys and wrong types are refused by name."""

from __future__ import annotations

import dataclasses
import json
import tomllib
import types
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from dada.errors import InputError

T = TypeVar("T")


def read(path: Path, kind: type[T]) -> T:
    """Read a TOML file as a dataclass.

    Raises:
        InputError: the file cannot be read or is not TOML, a key is unknown, or a value has the wrong type.
    """
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: the configuration cannot be read ({error.strerror}). Name a TOML file.") from None
    except ValueError as error:  # not UTF-8, or not TOML
        raise InputError(f"{path}: the configuration is not TOML: {error}.") from None
    try:
        config: T = convert(tables, kind)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    return config


def write(config: Any) -> str:
    """Return a dataclass as TOML that `read` gives back equal."""
    return "\n".join(_lines(config, ""))


def convert(value: Any, kind: Any, where: str = "") -> Any:
    """Turn a value read from TOML into one of the given type.

    Args:
        value: as `tomllib` gives it.
        kind: a dataclass, bool, int, float, str, Literal, a union of these, tuple or dict of them.
        where: key of the value, for messages.

    Raises:
        InputError: it is not of that type.
    """
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return convert(value, inner[0], where)
    if dataclasses.is_dataclass(kind) and isinstance(value, dict):
        return _dataclass(value, kind, where)
    if origin is tuple and isinstance(value, list):
        kinds = inner[:1] * len(value) if inner[1:] == (...,) else inner
        if len(kinds) == len(value):
            return tuple(convert(v, k, f"{where}[{i}]") for i, (v, k) in enumerate(zip(value, kinds, strict=True)))
    if origin is dict and isinstance(value, dict):
        return {key: convert(v, inner[1], f"{where}.{key}") for key, v in value.items()}
    if origin in (Union, types.UnionType) and type(value) in inner:
        return value
    if origin is Literal and value in inner:
        return value
    if kind is float and type(value) in (int, float):
        return float(value)
    if kind in (bool, int, str) and type(value) is kind:
        return value
    raise InputError(f"{where or 'the file'} is {value!r}: expected {_describe(kind)}.")


def _dataclass(table: dict[str, Any], kind: Any, where: str) -> Any:
    hints = get_type_hints(kind, include_extras=True)
    prefix = f"{where}." if where else ""
    for key in table:
        if key not in hints:
            raise InputError(f"key {prefix}{key} is unknown. Use some of {', '.join(hints)}.")
    values = {key: convert(value, hints[key], f"{prefix}{key}") for key, value in table.items()}
    try:
        return kind(**values)
    except TypeError:  # a key without default
        needed = [f.name for f in dataclasses.fields(kind) if f.default is f.default_factory is dataclasses.MISSING]
        raise InputError(f"{where or 'the file'} lacks {', '.join(k for k in needed if k not in table)}.") from None


def _describe(kind: Any) -> str:
    origin, inner = get_origin(kind), get_args(kind)
    if dataclasses.is_dataclass(kind) or origin is dict:
        return "a table"
    if origin is Literal:
        return f"one of {', '.join(inner)}"
    if origin is tuple:
        of = _describe(inner[0])
        return f"a list of {of}s" if inner[1:] == (...,) else f"{len(inner)} of: {of}"
    if origin in (Union, types.UnionType):
        return " or ".join(_describe(k) for k in inner)
    return {bool: "true or false", int: "whole number", float: "number", str: "text"}[kind]


def _lines(config: Any, prefix: str) -> list[str]:
    """Plain values first: what follows a table's header belongs to the table."""
    plain, tables = [], []
    for f in dataclasses.fields(config):
        value = getattr(config, f.name)
        if dataclasses.is_dataclass(value):
            tables += ["", f"[{prefix}{f.name}]", *_lines(value, f"{prefix}{f.name}.")]
        elif isinstance(value, tuple) and value and dataclasses.is_dataclass(value[0]):
            for entry in value:
                tables += ["", f"[[{prefix}{f.name}]]", *_lines(entry, f"{prefix}{f.name}.")]
        elif isinstance(value, dict):
            tables += ["", f"[{prefix}{f.name}]", *(f"{_text(k)} = {_text(v)}" for k, v in value.items())]
        else:
            plain.append(f"{f.name} = {_text(value)}")
    return plain + tables


def _text(value: Any) -> str:
    """A value as TOML: JSON, but for numbers such as 1e+16, which Python writes the way TOML reads."""
    if isinstance(value, tuple):
        return f"[{', '.join(_text(v) for v in value)}]"
    if type(value) is float:
        return repr(value)
    return json.dumps(value, ensure_ascii=False)


def flag_of_tables(kind: type) -> Any:
    """How the command line reads a tuple of dataclasses: each one text, its first field, then `; key=value` in TOML."""
    import tyro

    first = dataclasses.fields(kind)[0].name
    return tyro.constructors.PrimitiveConstructorSpec(
        nargs="*",
        metavar=f"{first.upper()} ...",
        instance_from_str=lambda texts: tuple(_table(text, kind, first) for text in texts),
        is_instance=lambda value: isinstance(value, tuple) and all(isinstance(v, kind) for v in value),
        str_from_instance=lambda tables: [_table_text(table, first) for table in tables],
    )


def flag_of_settings() -> Any:
    """How the command line reads a dictionary: KEY=VALUE, each value as in TOML or a bare word."""
    import tyro

    return tyro.constructors.PrimitiveConstructorSpec(
        nargs="*",
        metavar="KEY=VALUE ...",
        instance_from_str=lambda texts: dict(_setting(text) for text in texts),
        is_instance=lambda value: isinstance(value, dict),
        str_from_instance=lambda values: [f"{key}={_text(value)}" for key, value in values.items()],
    )


def _table(text: str, kind: type, first: str) -> Any:
    name, *settings = text.split(";")
    try:
        table = tomllib.loads("\n".join(settings))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{text!r}: what follows the first ; must be key=value as in TOML: {error}.") from None
    return convert({first: name.strip(), **table}, kind, name.strip())


def _table_text(table: Any, first: str) -> str:
    changed = [
        f"{f.name}={_text(getattr(table, f.name))}"
        for f in dataclasses.fields(table)
        if f.name != first and getattr(table, f.name) != f.default
    ]
    return "; ".join([getattr(table, first), *changed])


def _setting(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise InputError(f"{text!r} is not a setting: write KEY=VALUE.")
    try:
        return key, tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:  # a bare word
        return key, value
