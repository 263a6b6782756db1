"""Weights of the learned methods in files: ours (safetensors with the settings inside) and their authors' state dicts.

Nothing in a file is ever executed: safetensors holds numbers only, and torch's own format is read with
`weights_only=True`, which refuses everything but tensors in plain containers.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from dada.errors import InputError
from dada.io.atomic import atomic_path

State = dict[str, Tensor]


def write_weights(path: Path, state: State, method: str, config: dict[str, Any]) -> None:
    """Write a safetensors file, whole or not at all, with the method's name and settings in its metadata.

    Args:
        path: where to.
        state: tensors by name.
        method: name in `dada.methods.NETWORKS`.
        config: arguments that build the network anew; must be JSON.
    """
    metadata = {"method": method, "config": json.dumps(config)}
    tensors = {key: tensor.detach().cpu().contiguous() for key, tensor in state.items()}
    with atomic_path(path) as temporary:
        save_file(tensors, temporary, metadata)


def read_weights(path: Path, method: str) -> tuple[State, dict[str, Any] | None]:
    """Read a safetensors file of ours, a torch state dict, or a torch checkpoint with one under `model`.

    Returns:
        The tensors by name, on the CPU, and the settings; None where the file has none.

    Raises:
        InputError: the file cannot be read, is damaged, or holds another method's weights.
    """
    if is_safetensors(path):
        return _read_safetensors(path, method)
    return _read_torch(path), None


def is_safetensors(path: Path) -> bool:
    """Whether a file begins as safetensors do: eight bytes of length, then JSON."""
    return first_bytes(path, 9)[8:] == b"{"


def first_bytes(path: Path, count: int) -> bytes:
    """How a file begins.

    Raises:
        InputError: it cannot be opened.
    """
    try:
        with path.open("rb") as file:
            return file.read(count)
    except OSError as error:
        raise InputError(
            f"weights {path}: the file cannot be read ({error.strerror}). Name a file of weights."
        ) from None


def fill_network(network: nn.Module, state: State, path: Path) -> None:
    """Load tensors into a network whose keys and shapes must be the same.

    Raises:
        InputError: they are not, or some numbers are not finite.
    """
    wanted = network.state_dict()
    for what, keys in (
        ("lacks", wanted.keys() - state.keys()),
        ("has, beyond the network,", state.keys() - wanted.keys()),
    ):
        if keys:
            shown = ", ".join(sorted(keys)[:3]) + (", ..." if len(keys) > 3 else "")
            raise InputError(
                f"weights {path}: the file {what} {len(keys)} tensors ({shown}), so it is not of "
                f"{type(network).__name__} with these settings. Name the method the file was made for."
            )
    for key, tensor in state.items():
        if tensor.shape != wanted[key].shape:
            raise InputError(
                f"weights {path}: {key} has shape {tuple(tensor.shape)}, expected {tuple(wanted[key].shape)}. "
                f"Name the method the file was made for."
            )
        if not bool(torch.isfinite(tensor).all()):
            raise InputError(f"weights {path}: {key} holds numbers that are not finite. Get the file anew.")
    network.load_state_dict(state)


def shape_of(state: State, key: str, path: Path) -> torch.Size:
    """Shape of a tensor that tells the size of a network, which must have two dimensions or more.

    Raises:
        InputError: there is none of that name, or it has fewer.
    """
    if key not in state or state[key].ndim < 2:
        raise InputError(f"weights {path}: the file has no weights named {key}. Name the method the file was made for.")
    return state[key].shape


def _read_safetensors(path: Path, method: str) -> tuple[State, dict[str, Any] | None]:
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            state = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118 - not a dict
        config = json.loads(metadata["config"]) if "config" in metadata else None
    except (SafetensorError, OSError, ValueError) as error:
        raise InputError(f"weights {path}: the safetensors file is damaged ({error}). Get it anew.") from None
    if metadata.get("method", method) != method:
        raise InputError(f"weights {path}: they are of {metadata['method']}. Write {metadata['method']}:{path}.")
    if config is not None and not isinstance(config, dict):
        raise InputError(f"weights {path}: the settings inside are {config!r}, expected names and values. Get it anew.")
    return state, config


def _read_torch(path: Path) -> State:
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # whatever a damaged or foreign file leads to within torch
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(
            f"weights {path}: neither safetensors nor a torch state dict that can be read safely ({reason})."
        ) from None
    if isinstance(state, dict) and isinstance(state.get("model"), dict):  # a checkpoint of a training
        state = state["model"]
    if not isinstance(state, dict) or not state or not all(isinstance(tensor, Tensor) for tensor in state.values()):
        raise InputError(
            f"weights {path}: the file holds no state dict, names with tensors, nor one under `model`. "
            "Save network.state_dict()."
        )
    return {
        str(key).removeprefix("module."): tensor for key, tensor in state.items()
    }  # "module.": trained on many GPUs
