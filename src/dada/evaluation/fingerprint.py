"""A short text that changes whenever a result would: of methods with their settings and weights, of data, of code."""

from __future__ import annotations

import ast
import hashlib
from dataclasses import fields, is_dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
import torch

from dada.models.model import Model
from dada.sample import Method

PACKAGE = __name__.partition(".")[0]


def fingerprint(*values: Any) -> str:
    """A digest of what values hold: numbers, texts, arrays, dataclasses, networks with their weights, objects."""
    digest = hashlib.sha256()
    for value in values:
        _add(digest, value)
    return digest.hexdigest()[:32]


def method_fingerprint(method: Any) -> str:
    """A digest of a method: its class, its settings, its weights, and the code that they pass through."""
    inner = [getattr(method, f.name) for f in fields(method)] if is_dataclass(method) else []  # such as a model
    return fingerprint(method, sorted(code_fingerprint(_module(value), _home(value)) for value in [method, *inner]))


def _module(value: Any) -> str:
    """Where a function or the class of an object is written."""
    return str(getattr(value if hasattr(value, "__qualname__") else type(value), "__module__", ""))


def _home(value: Any) -> str:
    """The package whose code counts: that of a method or a model, ours for all else, such as layers of torch."""
    return _module(value).partition(".")[0] if isinstance(value, Model | Method) else PACKAGE


@cache
def code_fingerprint(module: str, home: str = PACKAGE) -> str:
    """A digest of a module of this package, or of another called `home`, and all modules of the two that it imports.

    Comments do not count.
    """
    trees = code_of(module, home)
    return fingerprint(sorted((name, hashlib.sha256(ast.dump(tree).encode()).hexdigest()) for name, tree in trees))


def code_of(module: str, home: str = PACKAGE) -> list[tuple[str, ast.Module]]:
    """The modules of this package, and of `home`, that a module leads to, itself among them, by name."""
    found: dict[str, ast.Module | None] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name in found or name.partition(".")[0] not in (PACKAGE, home) or name == home == PACKAGE:
            continue
        found[name] = tree = _parse(name)
        if tree is not None:
            waiting += _imports(tree, name)
    return [(name, tree) for name, tree in found.items() if tree is not None]


def _parse(module: str) -> ast.Module | None:
    """The syntax of a module; None if it is a name inside one, or not there."""
    try:
        spec = find_spec(module)
    except (ImportError, ValueError):  # the latter of modules that have no spec
        return None
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        return None
    return ast.parse(Path(spec.origin).read_bytes())


def _imports(tree: ast.Module, module: str) -> list[str]:
    """Names that may be modules: of `from a import b`, both a and a.b."""
    package = module.rpartition(".")[0]
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            origin = node.module or ""
            if node.level:  # relative, as in dada.diffusion
                above = module if _is_package(module) else package
                above = above.rsplit(".", node.level - 1)[0]
                origin = f"{above}.{origin}".rstrip(".")
            found += [origin, *(f"{origin}.{alias.name}" for alias in node.names)]
    return found


def _is_package(module: str) -> bool:
    spec = find_spec(module)
    return spec is not None and spec.submodule_search_locations is not None


def _add(digest: Any, value: Any) -> None:
    """Feed a value with its type, so that 1, "1" and [1] differ."""
    digest.update(f"<{type(value).__qualname__}>".encode())
    if value is None or isinstance(value, bool | int | float | complex | str | bytes):
        digest.update(repr(value).encode())
    elif isinstance(value, torch.nn.Module):
        _add_network(digest, value)
    elif isinstance(value, torch.Tensor):
        _add(digest, value.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy() if value.numel() else None)
        _add(digest, [str(value.dtype), *value.shape])
    elif isinstance(value, np.ndarray):
        digest.update(f"{value.dtype}{value.shape}".encode())
        digest.update(np.ascontiguousarray(value).data)
    elif isinstance(value, dict):
        for key in sorted(value, key=repr):
            _add(digest, key)
            _add(digest, value[key])
    elif isinstance(value, list | tuple | set | frozenset):
        for item in sorted(value, key=repr) if isinstance(value, set | frozenset) else value:
            _add(digest, item)
    elif is_dataclass(value) and not isinstance(value, type):
        _add(digest, {f.name: getattr(value, f.name) for f in fields(value)})
    elif hasattr(value, "__qualname__"):  # a function or a class
        digest.update(f"{value.__module__}.{value.__qualname__}".encode())
        if isinstance(value, FunctionType):  # two functions written in one place may differ in what they enclose
            _add(digest, [value.__code__.co_code, value.__defaults__, value.__kwdefaults__])
            _add(digest, [cell.cell_contents for cell in value.__closure__ or ()])
    else:
        _add(digest, getattr(value, "__dict__", {}))


def _add_network(digest: Any, network: torch.nn.Module) -> None:
    """Weights, and what else the layers are set to, such as strides and tolerances."""
    _add(digest, dict(network.state_dict()))
    for name, layer in network.named_modules():
        digest.update(f"{name}:{type(layer).__qualname__}".encode())
        own = {k: v for k, v in vars(layer).items() if not k.startswith("_") and k != "training"}
        _add(digest, {k: v for k, v in own.items() if not isinstance(v, torch.nn.Module | torch.Tensor)})
