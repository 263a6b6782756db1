"""Which methods take part, by what users write: a name, weights, a model, and settings other than the defaults."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

from dada.errors import InputError
from dada.evaluation.diffusion import Diffusion
from dada.models.model import Model
from dada.models.registry import METHODS, NETWORKS, foreign_methods, load_model, split_settings
from dada.sample import Method

BICUBIC = "bicubic"
WEIGHTS = (".pt", ".pth", ".ckpt", ".safetensors")


@dataclass(frozen=True)
class Entry:
    """A method as a table of the bench knows it.

    Attributes:
        label: what its rows are called; says which settings are not the method's own.
        name: of the method itself, as in `dada.models.registry`: what the paper's numbers are found by.
        method: what runs.
    """

    label: str
    name: str
    method: Method

    @property
    def batch(self) -> int:
        """Problems that the method takes at a time; see `dada.sample.Method`."""
        return int(getattr(self.method, "together", 1))


def resolve(text: str, settings: Sequence[str] = ()) -> Entry:
    """Return the method that a text names.

    Args:
        text: a method ("gf"), a network with its weights ("fdkn:FILE"), a method of another package (see
            `dada.models.installed`), DADA's weights (a file or folder), or a model of `dada upsample` ("default",
            "none", a JSON file). Weights that know no unit but the image's own run as in `dada.upsample`, as the
            default does; "dada:FILE" runs any by the protocol alone.
        settings: such as "pixt.iterations=2000"; those of other methods are passed over.

    Raises:
        InputError: there is no such method, file or setting; the message says what there is.
    """
    name, _, file = text.partition(":")
    path, _ = split_settings(text)
    ours = name in METHODS + NETWORKS
    named = ours or name in foreign_methods()
    try:
        method: Any = load_model(text)
    except InputError as error:
        if named or path.exists():
            raise
        raise InputError(
            f"{text!r} is neither a method ({', '.join(METHODS)}), nor a network with its weights "
            f"({', '.join(f'{n}:FILE' for n in NETWORKS)}), nor a model. {error}"
        ) from None
    weights = not named and (path.suffix in WEIGHTS or path.is_dir())
    if isinstance(method, Model) and not ours and not _by_protocol(method):
        method = Diffusion(method)
    if weights:
        name, label = "dada", f"dada:{Path(text).name}"
    elif named:
        label = f"{name}:{Path(file).name}" if file else text
    else:
        label = f"model {'default' if text == 'default' else path.name}"
    method, changed = _with_settings(method, name, settings)
    return Entry(f"{label} ({', '.join(changed)})" if changed else label, name, method)


def _by_protocol(model: Model) -> bool:
    """Whether a network takes the unit of a data set, and so runs by the protocol alone, not as in `dada.upsample`."""
    from dada.models.dada import DADA

    return isinstance(model, DADA) and model.config.source == "dataset"


def resolve_all(texts: Sequence[str], settings: Sequence[str] = ()) -> list[Entry]:
    """Resolve several methods; bicubic, by which errors are judged, comes first if it is not named.

    Raises:
        InputError: as `resolve`; also for a setting of a method that does not take part, and a method named twice.
    """
    names = [text.partition(":")[0] for text in texts]
    for setting in settings:
        if setting.partition(".")[0] not in names:
            raise InputError(f"setting {setting!r} is of no method here. Begin it with one of {', '.join(names)}.")
    if twice := {text for text in texts if list(texts).count(text) > 1}:
        raise InputError(f"method {twice.pop()!r} is named twice. Name it once.")
    every = list(texts) if BICUBIC in texts else [BICUBIC, *texts]
    return [resolve(text, settings) for text in every]


def _with_settings(method: Any, name: str, settings: Sequence[str]) -> tuple[Any, list[str]]:
    """The method with its own of the settings, and these as text."""
    changes = {}
    for setting in settings:
        owner, dot, rest = setting.partition(".")
        key, equals, value = rest.partition("=")
        if not (dot and equals and key):
            raise InputError(f"setting {setting!r} is not understood. Write METHOD.SETTING=VALUE, as {EXAMPLE}.")
        if owner == name:
            changes[key] = value
    if not changes:
        return method, []
    known = [f.name for f in fields(method) if f.init] if is_dataclass(method) else []
    for key in changes:
        if key not in known:
            has = f"it has {', '.join(known)}" if known else "it has none"
            raise InputError(f"method {name} has no setting {key!r}: {has}.")
    typed = {key: _value(f"{name}.{key}", value, getattr(method, key)) for key, value in changes.items()}
    try:
        return replace(method, **typed), [f"{key}={value}" for key, value in typed.items()]
    except ValueError as error:
        raise InputError(f"{name} cannot be set so: {error}.") from None


EXAMPLE = "pixt.iterations=2000"


def _value(name: str, text: str, now: Any) -> Any:
    """The text as the type of the present value."""
    try:
        value = json.loads(text)
    except ValueError:
        value = text
    if isinstance(now, float) and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if isinstance(now, tuple) and isinstance(value, list):
        value = tuple(value)
    if now is not None and type(value) is not type(now):
        raise InputError(f"{name} must be {_ARTICLE.get(type(now), type(now).__name__)}, as {now!r}; got {text!r}.")
    return value


_ARTICLE = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}
