"""Pairs of guide and target: published data sets, folders of images, painted scenes; crops and augmentation."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path

from dada.datasets.pair import DEPTH, Dataset, Pair, Split
from dada.errors import InputError

__all__ = ["DATASETS", "DEPTH", "Dataset", "Pair", "Split", "load_dataset"]

DATASETS = ("middlebury", "nyuv2", "diml", "scenes", "folder")
"""Kinds of data sets that are read from files."""


def load_dataset(text: str, split: str = "test") -> Dataset:
    """Return the data set of a text KIND:PATH, such as "middlebury:/data" or "scenes:/data/middlebury_2005_full".

    Options follow after a question mark: "nyuv2:/data?index=split.json", "scenes:/data?without=Art,Books". Those of
    each kind are the keyword arguments of its reader; `split=NAME` takes another split than asked for, and
    `cache=FOLDER` keeps decoded images of any kind as memory-mapped arrays. Painted scenes are "painted:SEED" or
    "painted:SEED,COUNT", the same for every split, with the options `size` (pixels a side), `textures` (a folder of
    photographs) and `far` (share of scenes that open to the distance).

    Args:
        text: kind, path and options.
        split: "train", "val" or "test".

    Raises:
        InputError: the kind or an option is unknown, or files are missing; the message names the files, where to
            get them and how to lay them out.
    """
    kind, _, rest = text.partition(":")
    place, _, query = rest.partition("?")
    options = _options(text, query)
    if kind == "painted":
        return _painted(text, place, options)
    if kind not in DATASETS or not place:
        listed = ", ".join(f"{name}:PATH" for name in DATASETS)
        raise InputError(f"data set {text!r} is unknown. Use one of {listed}, painted:SEED or painted:SEED,COUNT.")
    cache, split = options.pop("cache", None), options.pop("split", split)
    reader = _reader(kind)
    own = [p.name for p in inspect.signature(reader).parameters.values() if p.kind is p.KEYWORD_ONLY]
    _check_options(text, options, ["cache", "split", *own])
    dataset = reader(place, split, **options)
    if cache is None:
        return dataset
    from dada.datasets.cache import Cached

    return Cached(dataset, Path(cache), key=f"{kind}:{Path(place).resolve()} {split} {sorted(options.items())}")


def _reader(kind: str) -> Callable[..., Dataset]:
    """The class of a kind, imported when it is asked for: readers need OpenCV, and some of them torch."""
    match kind:
        case "middlebury":
            from dada.datasets.middlebury import Middlebury

            return Middlebury
        case "nyuv2":
            from dada.datasets.nyuv2 import Nyuv2

            return Nyuv2
        case "diml":
            from dada.datasets.diml import Diml

            return Diml
        case "scenes":
            from dada.datasets.scenes import Scenes

            return Scenes
        case _:
            from dada.datasets.folder import Folder

            return Folder


def _painted(text: str, place: str, options: dict[str, str]) -> Dataset:
    from dada.datasets.painted import Painted

    _check_options(text, options, ["size", "textures", "far"])
    try:
        seed, count = (int(part) for part in (place if "," in place else f"{place},{Painted.count}").split(","))
        size = int(options.get("size", Painted.size[0]))
        far = float(options.get("far", Painted.far))
    except ValueError:
        raise InputError(
            f"data set {text!r}: write painted:SEED or painted:SEED,COUNT, such as painted:0,5000, and options as "
            "painted:0?size=384&textures=FOLDER&far=0.5."
        ) from None
    textures = Path(options["textures"]) if "textures" in options else None
    return Painted(seed=seed, size=(size, size), count=count, textures=textures, far=far)


def _options(text: str, query: str) -> dict[str, str]:
    options: dict[str, str] = {}
    for part in filter(None, query.split("&")):
        name, equals, value = part.partition("=")
        if not (name and equals and value):
            raise InputError(f"data set {text!r}: the option {part!r} is not of the form NAME=VALUE.")
        options[name] = value
    return options


def _check_options(text: str, options: dict[str, str], known: list[str]) -> None:
    if unknown := [name for name in options if name not in known]:
        raise InputError(f"data set {text!r}: there is no option {', '.join(unknown)}, but {', '.join(known)}.")
