"""Every model and method by name: ours, the paper's, and those it is compared with.

Imports are written out, each in its place: a method is imported when it is first used, and tools see what is imported.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

from dada.errors import InputError
from dada.models.installed import installed_methods, load_installed
from dada.models.learning_free import Dynamic, LearningFree
from dada.models.model import Model
from dada.models.settings import EXAMPLE, read_settings
from dada.sample import Method

MODELS = ("default", "learned", "fast", "dynamic", "none")
"""Models that come with the package."""

METHODS = ("bicubic", "bicubic-torch", "gf", "sd", "pixt", "lgr-free", "dada-free", "jbu", "fgs", "gf-opencv")
"""Methods that learn nothing from other images."""

NETWORKS = ("msg", "dkn", "fdkn", "pmba", "fdsr", "lgr", "dada")
"""Methods with weights, written NAME:FILE; each class reads its own with `load(path)`."""


def load_model(name: str | os.PathLike[str] = "default") -> Model | Method:
    """Return the model of a name.

    Args:
        name: "default", which is "learned" where that fits and else "dynamic" (see `dada.models.default`); "learned",
            the network that comes with the package; "fast", the same without its last round; "dynamic" or "none",
            which need no weights; a file or folder of weights of DADA; a JSON file of settings of a model without
            weights; or another method of the bench with its weights, as "msg:FILE", also of another package (see
            `dada.models.installed`). What a file of weights does not tell follows after a question mark, as in
            "best_model.pth?unit=middlebury" (see `DADA.accept`) or "lgr:FILE?solver=equilibrium".

    Raises:
        InputError: there is no such model, or the file is not one; the message says what there is.
    """
    chosen, path = str(name), Path(name)
    match chosen:
        case "none":
            return LearningFree()
        case "dynamic":
            return Dynamic()
        case "default":
            from dada.models.default import Default

            return Default()
        case "learned":
            from dada.models.default import learned

            return learned()
        case "fast":
            from dada.models.default import Default, fast

            return Default(fast(), name="fast")
    if path.suffix == ".json" and not path.is_dir():
        return read_settings(path)
    owner = chosen.partition(":")[0]
    if owner in METHODS + NETWORKS:
        return load_method(chosen)
    if owner in (foreign := foreign_methods()):
        return load_installed(foreign[owner], chosen[len(owner) + 1 :])
    if split_settings(chosen)[0].exists():
        return load_method(f"dada:{chosen}")
    if path.suffix or len(path.parts) > 1:
        raise InputError(f"model {chosen}: there is no such file or folder. Check the path to the weights.")
    raise InputError(
        f"model {chosen!r} is unknown. Use one of: default, learned, fast, dynamic and none (which need no weights), a "
        f"file or folder of weights, a JSON file of settings such as {EXAMPLE}, or another method "
        f"({', '.join(METHODS)}, {', '.join(f'{n}:FILE' for n in NETWORKS)}){_others(foreign)}."
    )


def foreign_methods() -> dict[str, EntryPoint]:
    """Methods of other packages by name; a name of ours stays ours."""
    return {n: point for n, point in installed_methods().items() if n not in MODELS + METHODS + NETWORKS}


def _others(foreign: Iterable[str]) -> str:
    """Names of methods of other packages, for a message."""
    names = ", ".join(sorted(foreign))
    return f", or one of another package ({names})" if names else ""


def load_method(text: str) -> Method:
    """Return the method of a name such as "gf", or of a name and a file of weights such as "fdkn:weights.pt".

    Raises:
        InputError: there is no such method or file; the message says what there is.
    """
    name, _, file = text.partition(":")
    if name in METHODS and not file:
        method: Method = _method_class(name)()
        return method
    if name in NETWORKS and file:
        path, settings = split_settings(file)
        if not path.exists():
            raise InputError(f"method {text!r}: there is no file {path}.")
        network: Any = network_class(name).load(path)
        if settings:
            network.accept(**settings)
        found: Method = network
        return found
    if name in NETWORKS:
        raise InputError(f"method {name!r} needs weights: write {name}:FILE.")
    raise InputError(
        f"method {text!r} is unknown. Use one of {', '.join(METHODS)}, or a network with its weights: "
        f"{', '.join(f'{n}:FILE' for n in NETWORKS)}."
    )


def split_settings(text: str) -> tuple[Path, dict[str, str]]:
    """A file of weights and what is said of it after a question mark; a file whose name holds one is that file.

    Raises:
        InputError: a setting is not of the form NAME=VALUE.
    """
    file, _, query = text.partition("?")
    if not query or Path(text).exists():
        return Path(text), {}
    parts = [part.partition("=") for part in query.split("&")]
    for name, equals, value in parts:
        if not (name.isidentifier() and equals and value):
            raise InputError(f"model {text!r}: write settings as FILE?NAME=VALUE, such as best_model.pth?unit=nyuv2.")
    return Path(file), {name: value for name, _, value in parts}


def network_class(name: str) -> Any:
    """The class of a method with weights, by its name in NETWORKS."""
    match name:
        case "msg":
            from dada.baselines.msg import Msg

            return Msg
        case "dkn":
            from dada.baselines.dkn import Dkn

            return Dkn
        case "fdkn":
            from dada.baselines.fdkn import Fdkn

            return Fdkn
        case "pmba":
            from dada.baselines.pmba import Pmba

            return Pmba
        case "fdsr":
            from dada.baselines.fdsr import Fdsr

            return Fdsr
        case "lgr":
            from dada.baselines.lgr import Lgr

            return Lgr
        case "dada":
            from dada.models.dada import DADA

            return DADA
    raise KeyError(name)


def _method_class(name: str) -> Any:
    match name:
        case "bicubic":
            from dada.baselines.bicubic import Bicubic

            return Bicubic
        case "bicubic-torch":
            from dada.baselines.bicubic import Convolution

            return Convolution
        case "gf":
            from dada.baselines.guided_filter import GuidedFilter

            return GuidedFilter
        case "sd":
            from dada.baselines.static_dynamic import StaticDynamic

            return StaticDynamic
        case "pixt":
            from dada.baselines.pixtransform import PixTransform

            return PixTransform
        case "lgr-free":
            from dada.baselines.lgr import LgrFree

            return LgrFree
        case "dada-free":
            from dada.baselines.dada_free import DadaFree

            return DadaFree
        case "jbu":
            from dada.baselines.opencv import JointBilateral

            return JointBilateral
        case "fgs":
            from dada.baselines.opencv import FastGlobalSmoother

            return FastGlobalSmoother
        case "gf-opencv":
            from dada.baselines.opencv import OpencvGuidedFilter

            return OpencvGuidedFilter
    raise KeyError(name)
