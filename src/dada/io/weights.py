"""Files of weights, safetensors and torch's own: read without running anything that they hold, written whole.

safetensors holds numbers only, and torch's format is read with `weights_only=True`, which refuses everything but
tensors in plain containers. What the numbers belong to is up to the networks: `dada.models.files` and
`dada.baselines.learned`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from dada.errors import InputError
from dada.io.atomic import write_bytes_atomically

State = dict[str, Tensor]


def write_weights(path: Path, state: Mapping[str, Tensor], metadata: dict[str, str]) -> None:
    """Write a safetensors file, whole or not at all.

    Args:
        path: where to.
        state: tensors by name.
        metadata: what else the file shall hold, such as the settings of the network as JSON.

    Raises:
        InputError: the file cannot be written.
    """
    tensors = {key: tensor.detach().cpu().contiguous() for key, tensor in state.items()}
    write_bytes_atomically(path, save(tensors, metadata))


def read_safetensors(path: Path) -> tuple[State, dict[str, str]]:
    """Return the tensors of a file by name, on the CPU, and its metadata.

    Raises:
        InputError: the file cannot be read, or is damaged.
    """
    try:
        with safe_open(path, framework="pt") as file:
            return {key: file.get_tensor(key) for key in file.keys()}, file.metadata() or {}  # noqa: SIM118
    except (OSError, SafetensorError, ValueError) as error:
        raise InputError(f"weights {path}: is not a .safetensors file, or damaged ({error}). Get it anew.") from None


def read_torch(path: Path) -> Any:
    """Return what a file of torch holds.

    Raises:
        InputError: the file cannot be read safely.
    """
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except OSError as error:
        raise InputError(f"weights {path}: the file cannot be read ({error.strerror}).") from None
    except Exception as error:  # whatever a damaged or foreign file leads to within torch
        reason = "" if "weights_only" in str(error) else f" ({_first_line(error)})"  # torch advises to read it unsafely
        raise InputError(
            f"weights {path}: neither a .safetensors file nor a checkpoint of torch that can be read safely{reason}. "
            "Only files that hold tensors alone are read, since others could run code."
        ) from None


def read_state(path: Path) -> State:
    """Return the state dict of a file of torch, also of a checkpoint that holds one under `model`.

    Raises:
        InputError: the file cannot be read safely, or holds something else.
    """
    state = read_torch(path)
    if isinstance(state, dict) and isinstance(state.get("model"), dict):  # a checkpoint of a training
        state = state["model"]
    if not isinstance(state, dict) or not state or not all(isinstance(tensor, Tensor) for tensor in state.values()):
        raise InputError(
            f"weights {path}: the file holds no state dict, names with tensors, nor one under `model`. "
            "Save network.state_dict()."
        )
    return {str(key).removeprefix("module."): t for key, t in state.items()}  # "module.": trained on many GPUs


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
    own = network.state_dict()
    wrong = [f"{name} is missing" for name in own.keys() - state.keys()]
    wrong += [f"{name} is unknown" for name in state.keys() - own.keys()]
    wrong += [
        f"{name} has shape {tuple(state[name].shape)} instead of {tuple(own[name].shape)}"
        for name in own.keys() & state.keys()
        if own[name].shape != state[name].shape
    ]
    if wrong:
        more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        raise InputError(
            f"weights {path}: they are not of {type(network).__name__} with these settings: {min(wrong)}{more}. Name "
            "the method the file was made for."
        )
    for name, tensor in state.items():
        if not bool(torch.isfinite(tensor).all()):
            raise InputError(f"weights {path}: {name} holds numbers that are not finite. Get the file anew.")
    network.load_state_dict(state)


def check_sizes(settings: Mapping[str, Any], state: State, path: Path) -> None:
    """Refuse settings that would make a network far larger than its file, before it is made.

    Raises:
        InputError: a whole number in them exceeds how many numbers the file holds.
    """
    stored = sum(tensor.numel() for tensor in state.values())
    for name, value in settings.items():
        if isinstance(value, int) and value > max(stored, 1):
            raise InputError(
                f"weights {path}: its settings state {name} {value}, but the file holds {stored} numbers. Get it anew."
            )


def shape_of(state: State, key: str, path: Path) -> torch.Size:
    """Shape of a tensor that tells the size of a network, which must have two dimensions or more.

    Raises:
        InputError: there is none of that name, or it has fewer.
    """
    if key not in state or state[key].ndim < 2:
        raise InputError(f"weights {path}: the file has no weights named {key}. Name the method the file was made for.")
    return state[key].shape


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
