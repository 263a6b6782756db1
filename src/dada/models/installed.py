"""Methods of other packages: entry points of the group `dada.methods`, found by what is installed.

An entry point names a class, or a function, that is called without arguments and returns a method (see
`dada.sample.Method`) or a model (see `dada.models.model.Model`). Written NAME:FILE, its `load(path)` is called instead.
"""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from dada.errors import InputError
from dada.models.model import Model
from dada.sample import Method

GROUP = "dada.methods"


def installed_methods() -> dict[str, EntryPoint]:
    """The entry points of the group, by name."""
    return {point.name: point for point in entry_points(group=GROUP)}


def load_installed(point: EntryPoint, file: str = "") -> Model | Method:
    """Return the method of an entry point, with weights from a file where one is named.

    Raises:
        InputError: it cannot be imported or made, needs weights or takes none, or is no method.
    """
    where = f"method {point.name!r} ({point.value}{_package(point)})"
    if file and not Path(file).exists():
        raise InputError(f"{where}: there is no file {file}.")
    try:
        made: Any = point.load()
        if file and not hasattr(made, "load"):
            raise InputError(f"{where} takes no weights, for it has no load(path). Write {point.name} alone.")
        method: Any = made.load(file) if file else made()
    except InputError:
        raise
    except Exception as error:  # whatever the code of another package does
        raise InputError(
            f"{where} cannot be loaded ({type(error).__name__}: {error}). Mend the package, or its entry point in "
            f"the group {GROUP}."
        ) from error
    if not isinstance(method, Model | Method):
        raise InputError(
            f"{where} gives {type(method).__name__}, which is no method. It needs a `name`, and to be called with a "
            "sample (see dada.sample.Method), or what dada.models.model.Model has."
        )
    return method


def _package(point: EntryPoint) -> str:
    """What was installed, and in which version."""
    return f" of {point.dist.name} {point.dist.version}" if point.dist is not None else ""
