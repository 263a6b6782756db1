"""The fields of a dataclass as rows: name, type, default and text, read from the code itself."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import textwrap
import typing
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, NamedTuple

from docstring_parser import parse


class Row(NamedTuple):
    """A field of a dataclass."""

    name: str
    type: Any
    extras: tuple[Any, ...]  # what `Annotated` adds to the type
    default: Any  # dataclasses.MISSING if it must be given
    text: str


def rows(cls: type) -> Iterator[Row]:
    """The fields of a dataclass, in their order, with the text that stands below each of them."""
    hints = typing.get_type_hints(cls, include_extras=True)
    for field in dataclasses.fields(cls):
        hint, extras = hints[field.name], ()
        if typing.get_origin(hint) is typing.Annotated:
            hint, *rest = typing.get_args(hint)
            extras = tuple(rest)
        default = field.default
        if field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        yield Row(field.name, hint, extras, default, text_of(cls, field.name))


def text_of(cls: type, name: str) -> str:
    """The text of a field: the string below it, or its entry among the attributes of the class or a class above."""
    for above in cls.__mro__[:-1]:
        if name in (documented := _documented(above)):
            return " ".join(documented[name].split())
    return ""


def type_name(hint: Any) -> str:
    """A type as a reader writes it: `text`, `number`, or the values to choose from."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Literal:
        return ", ".join(str(value) for value in arguments)
    if origin in (typing.Union, UnionType):
        return " or ".join(type_name(one) for one in arguments if one is not NoneType)
    if origin is tuple:
        if arguments[-1] is Ellipsis:
            return f"any number of: {type_name(arguments[0])}"
        return " and ".join(type_name(one) for one in arguments)
    names = {str: "text", float: "number", int: "whole number", bool: "yes or no", Path: "path"}
    return names.get(hint, getattr(origin or hint, "__name__", str(hint)))


def cell(text: str) -> str:
    """A text as it may stand in a cell of a table."""
    return text.replace("|", "\\|").replace("<", "&lt;")


@cache
def _documented(cls: type) -> dict[str, str]:
    """The texts of a class's own fields: entries among the attributes of its docstring, or strings below the fields."""
    texts = {}
    for entry in parse(inspect.cleandoc(cls.__doc__ or "")).meta:
        if entry.args[0] == "attribute" and entry.description:
            texts[entry.args[1]] = entry.description
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    assert isinstance(tree, ast.ClassDef)
    for field, below in pairwise(tree.body):
        match field, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                texts[name] = text
    return texts
