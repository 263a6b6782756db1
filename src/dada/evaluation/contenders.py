"""Which methods take part, by what users write: a name, weights, a model, and settings other than the defaults."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dada.default import Default
from dada.diffusion import Coefficients, equilibrium
from dada.diffusion.bounds import between
from dada.diffusion.measurement import Adjust
from dada.errors import InputError
from dada.methods import METHODS, NETWORKS, load_method
from dada.model import Model, auto_adjust, bounds, load_model, preferred_adjust, reconsidered
from dada.sample import Method, Sample, initialise, within

BICUBIC = "bicubic"
WEIGHTS = (".pt", ".pth", ".ckpt", ".safetensors")


@dataclass(frozen=True)
class Contender:
    """A method as a table knows it.

    Attributes:
        label: what its rows are called; says which settings are not the method's own.
        name: of the method itself, as in `dada.methods`: what the paper's numbers are found by.
        method: what runs.
    """

    label: str
    name: str
    method: Method


@dataclass(frozen=True)
class Diffusion:
    """A model of `dada.upsample` as a method of the bench, started from the same bicubic interpolation as there.

    Attributes:
        model: gives the coefficients.
        tolerance: of the equilibrium.
    """

    model: Model
    tolerance: float = 2e-4

    @property
    def name(self) -> str:
        """What tables call it."""
        return f"model {self.model.name}"

    def __call__(self, sample: Sample) -> Tensor:
        """Return [B, 1, H, W]; the batch is adjusted, and kept near its measurements, as by `dada.upsample`."""
        start = initialise(sample.source, sample.source_mask, sample.size, "torch")
        sample = replace(sample, initial=within(start, sample.source, sample.source_mask))
        if not bool(sample.source_mask.any()):
            raise InputError(f"{', '.join(sample.names) or 'the sample'}: there is no valid source cell to begin from.")
        low, high = (float(end) for end in sample.source[sample.source_mask].aminmax())
        options: dict[str, Any] = {"mask": sample.source_mask, "tolerance": self.tolerance, "warn": False}
        model = (
            self.model.suited(sample.guide.shape[1], sample.size)[0] if isinstance(self.model, Default) else self.model
        )
        adjust = auto_adjust(low, high, preferred_adjust(model))

        def run(adjust: Adjust) -> Tensor:
            reached.clear()
            return model.diffuse(sample, partial(solve, adjust))

        def solve(adjust: Adjust, c: Coefficients, start: Tensor) -> Tensor:
            c = Coefficients(*(part.to(sample.source.dtype) for part in c))
            solution = equilibrium(sample.source, c, initial=start, adjust=adjust, **options)
            reached.append(bool(solution.converged.all()))
            return solution.values

        reached: list[bool] = []
        result = run(adjust)
        least, most = (float(end) for end in result.detach().aminmax())
        other = reconsidered(adjust, low, high, least, most, reached[-1])
        if other != adjust:
            result = run(other)
        ends = bounds(low, high, sample.guide[0, 0].numel() / sample.source[0, 0].numel())
        means = torch.where(sample.source_mask, sample.source, torch.nan)
        return torch.stack([between(y[0], m[0], *ends)[None] for y, m in zip(result, means, strict=True)])


def resolve(text: str, settings: Sequence[str] = ()) -> Contender:
    """Return the method that a text names.

    Args:
        text: a method ("gf"), a network with its weights ("fdkn:FILE"), DADA's weights (a file or folder), or a
            model of `dada upsample` ("default", "none", a JSON file). Weights that know no unit but the image's own run
            as in `dada.upsample`, as the default does; "dada:FILE" runs any by the protocol alone.
        settings: such as "pixt.iterations=2000"; those of other methods are passed over.

    Raises:
        InputError: there is no such method, file or setting; the message says what there is.
    """
    name, _, file = text.partition(":")
    path = Path(text)
    label = f"{name}:{Path(file).name}" if file else text
    if name in METHODS or name in NETWORKS:
        method = load_method(text)
    elif path.suffix in WEIGHTS or path.is_dir():
        from dada.network import DADA

        name, label, method = "dada", f"dada:{path.name}", load_method(f"dada:{text}")
        if isinstance(method, DADA) and method.config.source == "own":
            method = Diffusion(method.eval())  # its unit is the image's own: it runs as in `dada.upsample`
    else:
        try:
            model = load_model(text)
            method = Diffusion(model) if isinstance(model, Model) else model
        except InputError as error:
            raise InputError(
                f"{text!r} is neither a method ({', '.join(METHODS)}), nor a network with its weights "
                f"({', '.join(f'{n}:FILE' for n in NETWORKS)}), nor a model. {error}"
            ) from None
        label = f"model {method.name.removeprefix('model ') if text == 'default' else path.name}"
    method, changed = _with_settings(method, name, settings)
    if isinstance(method, torch.nn.Module):
        method.eval()
    return Contender(f"{label} ({', '.join(changed)})" if changed else label, name, method)


def resolve_all(texts: Sequence[str], settings: Sequence[str] = ()) -> list[Contender]:
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
