"""Every method by name: ours, the paper's, and those it is compared with. One line each; imported when first used."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from dada.errors import InputError
from dada.sample import Method

METHODS = {
    "bicubic": "dada.baselines.bicubic:Bicubic",
    "bicubic-torch": "dada.baselines.bicubic:Convolution",
    "gf": "dada.baselines.guided_filter:GuidedFilter",
    "sd": "dada.baselines.static_dynamic:StaticDynamic",
    "pixt": "dada.baselines.pixtransform:PixTransform",
    "lgr-free": "dada.baselines.lgr:LgrFree",
    "dada-free": "dada.baselines.dada_free:DadaFree",
    "jbu": "dada.baselines.opencv:JointBilateral",
    "fgs": "dada.baselines.opencv:FastGlobalSmoother",
    "gf-opencv": "dada.baselines.opencv:OpencvGuidedFilter",
}
"""Methods that learn nothing from other images, and where they live."""

NETWORKS = {
    "msg": "dada.baselines.msg:Msg",
    "dkn": "dada.baselines.dkn:Dkn",
    "fdkn": "dada.baselines.fdkn:Fdkn",
    "pmba": "dada.baselines.pmba:Pmba",
    "fdsr": "dada.baselines.fdsr:Fdsr",
    "lgr": "dada.baselines.lgr:Lgr",
    "dada": "dada.network:DADA",
}
"""Methods with weights, written NAME:FILE; each class reads its own with `load(path)`."""


def load_method(text: str) -> Method:
    """Return the method of a name such as "gf", or of a name and a file of weights such as "fdkn:weights.pt".

    Raises:
        InputError: there is no such method or file; the message says what there is.
    """
    name, _, file = text.partition(":")
    if name in METHODS and not file:
        return _class(METHODS[name])()
    if name in NETWORKS and file:
        if not Path(file).exists():
            raise InputError(f"method {text!r}: there is no file {file}.")
        return _class(NETWORKS[name]).load(file)
    if name in NETWORKS:
        raise InputError(f"method {name!r} needs weights: write {name}:FILE.")
    raise InputError(
        f"method {text!r} is unknown. Use one of {', '.join(METHODS)}, or a network with its weights: "
        f"{', '.join(f'{n}:FILE' for n in NETWORKS)}."
    )


def _class(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)
