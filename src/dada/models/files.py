"""Files of a trained DADA: a folder or one .safetensors file of ours, or a checkpoint as the authors release them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

from torch import Tensor

from dada.errors import InputError
from dada.io.atomic import write_bytes_atomically
from dada.io.weights import State, check_sizes, fill_network, read_safetensors, read_torch, write_weights
from dada.models.config import PAPER, DadaConfig
from dada.models.dada import DADA

WEIGHTS, CONFIG, CARD = "model.safetensors", "config.json", "README.md"
CARD_TEXT = """---
library_name: dada
tags:
- guided-super-resolution
---

A network for [dada](https://pypi.org/project/dada-sr/), guided super-resolution that never contradicts the measurement.
Read it with `dada.DADA.from_pretrained("OWNER/NAME")`, or save the files to a folder and use
`dada upsample --model FOLDER`. The first of these takes `pip install "dada-sr[hub]"`.
"""
AUTHORS_PREFIX = "feature_extractor.1."  # 0 and 2 are the enlargement and the averaging around it
AUTHORS_STRAYS = {"logk2", "mean_guide", "std_guide"}  # in their files, not in their network

OLD_SETTINGS = {"sees": "feedback", "method": "solver"}
OLD_TENSORS = {
    "logg": "log_guide_weight",
    "logs": "log_source_weight",
    "logw": "log_result_weights",
    "review.turn": "refinement.offsets",
    "review.seen.": "refinement.look.",
    "review.felt.": "refinement.pull.",
    "review.around.": "refinement.context.",
    "review.": "refinement.",
}
"""What files of before name otherwise: settings, and how names of tensors begin (the first that fits counts)."""


def save(model: DADA, path: Path, half: bool = False) -> None:
    """Write one .safetensors file that holds the weights and, in its metadata, the config.

    Args:
        model: what to write.
        path: of the file.
        half: store the weights of convolutions as float16, for half the size.

    Raises:
        InputError: the file cannot be written.
    """
    tensors = {name: _stored(value, half) for name, value in model.state_dict().items()}
    write_weights(path, tensors, {"format": "pt", "dada": json.dumps(asdict(model.config))})


def save_folder(model: DADA, folder: Path) -> None:
    """Write weights, config.json and a model card to a folder, which is made; see `DADA.save_pretrained`."""
    folder.mkdir(parents=True, exist_ok=True)
    write_bytes_atomically(folder / CARD, CARD_TEXT.encode())
    save(model, folder / WEIGHTS)
    write_bytes_atomically(folder / CONFIG, json.dumps(asdict(model.config), indent=2).encode())


def load(path: Path) -> DADA:
    """Read a network in evaluation mode; see `DADA.load`."""
    if path.is_dir():
        if not (path / WEIGHTS).exists():
            raise InputError(f"model {path}: the folder holds no {WEIGHTS}. Name one written by save_pretrained.")
        model = _load_ours(path / WEIGHTS, path / CONFIG)
    elif not path.exists():
        raise InputError(f"model {path}: there is no such file or folder.")
    elif path.suffix == ".safetensors":
        model = _load_ours(path, None)
    else:
        model = _load_authors(path)
    model.name = path.name
    return model.eval()


def read_config(settings: object, where: str) -> DadaConfig:
    """Turn what a JSON file held into a config.

    Raises:
        InputError: it holds something else; the message begins with `where`.
    """
    known = [field.name for field in fields(DadaConfig)]
    try:
        named = current_settings(settings) if isinstance(settings, dict) else None
        if named is None or not named.keys() <= set(known):
            found = "no table" if named is None else f"unknown {', '.join(sorted(named.keys() - set(known)))}"
            raise InputError(f"settings of a model expected, found {found}. There are: {', '.join(known)}.")
        return DadaConfig(**named)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def current_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a DADA by their names of today, whichever version they were written for.

    Raises:
        InputError: they ask for what earlier versions had and this one has not.
    """
    named = {OLD_SETTINGS.get(name, name): value for name, value in settings.items()}
    kind = named.pop("review", "near")  # which kind of refinement network: only "deep" has stayed
    if named.get("feedback") == "review" and kind == "deep":
        named["feedback"] = "refinement"
    elif named.get("feedback") in ("review", "features"):
        raise InputError(
            f"sees {named['feedback']!r} (review {kind!r}) is of an earlier version, and no longer there. Use feedback "
            '"refinement" and train anew.'
        )
    return named


def _load_ours(path: Path, config: Path | None) -> DADA:
    tensors, metadata = read_safetensors(path)
    text = config.read_bytes() if config and config.exists() else metadata.get("dada")
    if text is None:
        raise InputError(f"model {path}: holds weights, but not the config of a DADA. Put its {CONFIG} beside it.")
    try:
        settings = json.loads(text)
    except (ValueError, RecursionError):
        raise InputError(f"model {path}: its config is not JSON.") from None
    named = {_current_name(name): tensor for name, tensor in tensors.items()}
    stated = read_config(settings, f"model {path}")
    check_sizes({name: getattr(stated, name) for name in ("features", "bands", "rounds")}, named, path)
    return _filled(stated, named, path)


def _current_name(tensor: str) -> str:
    for old, new in OLD_TENSORS.items():
        if tensor.startswith(old):
            return new + tensor.removeprefix(old)
    return tensor


def _load_authors(path: Path) -> DADA:
    content = read_torch(path)
    weights = content.get("model") if isinstance(content, dict) else None
    if not isinstance(weights, Mapping) or "logk" not in weights or not _prefixed(weights):
        raise InputError(
            f"model {path}: a checkpoint of the authors holds `model` with `{AUTHORS_PREFIX}*` and `logk`; "
            f"this one holds {_summary(content)}."
        )
    tensors = {"extractor.net." + name.removeprefix(AUTHORS_PREFIX): weights[name] for name in _prefixed(weights)}
    others = {name: weights[name] for name in weights.keys() - set(_prefixed(weights)) - AUTHORS_STRAYS}
    return _filled(PAPER, tensors | others, path)


def _filled(config: DadaConfig, tensors: State, path: Path) -> DADA:
    """Make the network of a config with these weights."""
    model = DADA(replace(config, pretrained=False))  # its weights are about to be replaced
    model.config = config
    fill_network(model, tensors, path)
    return model


def _stored(value: Tensor, half: bool) -> Tensor:
    # single numbers, offsets and statistics are few, and their digits and range count
    return value.half() if half and value.dim() > 1 and value.is_floating_point() else value


def _prefixed(weights: Mapping[Any, Any]) -> list[str]:
    return [n for n, v in weights.items() if str(n).startswith(AUTHORS_PREFIX) and isinstance(v, Tensor)]


def _summary(content: object) -> str:
    """A few words on what a file holds."""
    if not isinstance(content, dict):
        return f"a {type(content).__name__}"
    inner = content.get("model")
    shown = inner if isinstance(inner, dict) else content
    names = ", ".join(f"`{name}`" for name in list(shown)[:3])
    return f"{len(shown)} entries{' in `model`' if shown is inner else ''}, such as {names}"
