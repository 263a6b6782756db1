"""Files of a trained DADA: a folder or one .safetensors file of ours, or a checkpoint as the authors release them."""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor

from dada.errors import InputError
from dada.io.atomic import write_bytes_atomically
from dada.network import DADA, PAPER, DadaConfig

WEIGHTS, CONFIG = "model.safetensors", "config.json"
AUTHORS_PREFIX = "feature_extractor.1."  # 0 and 2 are the enlargement and the averaging around it
AUTHORS_STRAYS = {"logk2", "mean_guide", "std_guide"}  # in their files, not in their network


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
    metadata = {"format": "pt", "dada": json.dumps(asdict(model.config))}
    write_bytes_atomically(path, to_bytes(tensors, metadata))


def save_folder(model: DADA, folder: Path) -> None:
    """Write weights and config.json to a folder that exists; see `DADA.save_pretrained`."""
    save(model, folder / WEIGHTS)
    write_bytes_atomically(folder / CONFIG, json.dumps(asdict(model.config), indent=2).encode())


def load(path: Path) -> DADA:
    """Read a network in evaluation mode; see `DADA.load`."""
    if path.is_dir():
        if not (path / WEIGHTS).exists():
            raise InputError(f"model {path}: the folder holds no {WEIGHTS}. Name one written by save_pretrained.")
        model = _load_safetensors(path / WEIGHTS, path / CONFIG)
    elif not path.exists():
        raise InputError(f"model {path}: there is no such file or folder.")
    elif path.suffix == ".safetensors":
        model = _load_safetensors(path, None)
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
    if not isinstance(settings, dict) or not settings.keys() <= set(known):
        found = (
            f"unknown {', '.join(sorted(settings.keys() - set(known)))}" if isinstance(settings, dict) else "no table"
        )
        raise InputError(f"{where}: settings of a model expected, found {found}. There are: {', '.join(known)}.")
    try:
        return DadaConfig(**settings)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def _load_safetensors(path: Path, config: Path | None) -> DADA:
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise InputError(f"model {path}: is not a .safetensors file, or damaged ({error}).") from None
    text = config.read_bytes() if config and config.exists() else metadata.get("dada")
    if text is None:
        raise InputError(f"model {path}: holds weights, but not the config of a DADA. Put its {CONFIG} beside it.")
    try:
        settings = json.loads(text)
    except ValueError:
        raise InputError(f"model {path}: its config is not JSON.") from None
    return _filled(read_config(settings, f"model {path}"), tensors, path)


def _load_authors(path: Path) -> DADA:
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except OSError as error:
        raise InputError(f"model {path}: cannot be read ({error.strerror}).") from None
    except (RuntimeError, EOFError, ValueError, pickle.UnpicklingError):  # torch advises to read it unsafely: never
        raise InputError(
            f"model {path}: is neither a .safetensors file nor a checkpoint that holds tensors alone. Nothing else is "
            "read, since other files could run code."
        ) from None
    weights = content.get("model") if isinstance(content, dict) else None
    if not isinstance(weights, Mapping) or "logk" not in weights or not _prefixed(weights):
        raise InputError(
            f"model {path}: a checkpoint of the authors holds `model` with `{AUTHORS_PREFIX}*` and `logk`; "
            f"this one holds {_summary(content)}."
        )
    tensors = {"extractor.net." + name.removeprefix(AUTHORS_PREFIX): weights[name] for name in _prefixed(weights)}
    others = {name: weights[name] for name in weights.keys() - set(_prefixed(weights)) - AUTHORS_STRAYS}
    return _filled(PAPER, tensors | others, path)


def _filled(config: DadaConfig, tensors: dict[str, Tensor], path: Path) -> DADA:
    """Make the network of a config with these weights."""
    model = DADA(replace(config, pretrained=False))  # its weights are about to be replaced
    model.config = config
    own = model.state_dict()
    wrong = [
        f"{name} is {tuple(tensors[name].shape)} instead of {tuple(own[name].shape)}"
        for name in own.keys() & tensors.keys()
        if own[name].shape != tensors[name].shape
    ]
    wrong += [f"{name} is missing" for name in own.keys() - tensors.keys()]
    wrong += [f"{name} is unknown" for name in tensors.keys() - own.keys()]
    if wrong:
        more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        raise InputError(f"model {path}: is not that of {config.extractor!r}: {min(wrong)}{more}.")
    model.load_state_dict(tensors)
    return model


def _stored(value: Tensor, half: bool) -> Tensor:
    value = value.detach().cpu().contiguous()
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
