"""The network of a configuration: DADA or one of those it is compared with."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any, get_type_hints

import torch
from torch import Tensor, nn

from dada.errors import InputError
from dada.models.model import data_unit_of
from dada.models.registry import NETWORKS, network_class
from dada.sample import DataUnit, Sample
from dada.training import toml
from dada.training.config import TrainConfig


def build(config: TrainConfig, unit: DataUnit | None = None) -> nn.Module:
    """Make the network, with fresh weights or those of `config.start`.

    Args:
        config: of the training.
        unit: of its data, stored with the weights of networks that need it; None: not known.

    Raises:
        InputError: the method or one of its settings is unknown, or the weights do not fit.
    """
    if config.method not in NETWORKS:
        raise InputError(f"method {config.method!r} cannot be trained. Use one of {', '.join(NETWORKS)}.")
    kind: Any = network_class(config.method)
    if config.initial == "constant":
        from dada.training.constant_start import ConstantStart

        kind = ConstantStart
    network: nn.Module = kind(**_arguments(kind, config))
    if config.start:
        _begin_from(network, kind, config.start)
    if unit is not None and data_unit_of(network) is not None:
        network.carry(unit)  # type: ignore[operator]  # of those that state a unit
    return network


def training_forward(network: nn.Module, sample: Sample, config: TrainConfig) -> Tensor:
    """Return the network's images, [B, 1, H, W], with gradients by the configured scheme where it is DADA.

    With `config.loss.earlier` they are those of every round, [R, B, 1, H, W].
    """
    settings: dict[str, Any] = {}
    if config.method == "dada" and config.scheme == "implicit":
        settings = {"solver": "equilibrium"}
    elif config.method == "dada":
        # as in the released code, pre_steps itself is not drawn
        before = config.pre_steps if config.constant_steps else int(torch.randint(max(config.pre_steps, 1), ()))
        settings = {"solver": "iterate", "n_pre": before, "n_grad": config.grad_steps}
    if config.method == "dada" and config.loss.earlier:
        settings["every_round"] = True
    with torch.autocast("cpu", torch.bfloat16, enabled=config.bfloat16):
        images: Tensor = network(sample, **settings)
    return images


def save_weights(network: Any, path: Path) -> None:
    """Write the one .safetensors file that `load` of the network's class reads, whole or not at all."""
    from dada.models.dada import DADA
    from dada.models.files import save

    if isinstance(network, DADA):
        save(network, path)
    else:
        network.save(path)


def _arguments(kind: Any, config: TrainConfig) -> dict[str, Any]:
    """Keyword arguments of the network's class, from the settings."""
    if config.method == "dada":
        from dada.models.config import DadaConfig
        from dada.models.files import current_settings

        return {"config": toml.convert(current_settings(config.network), DadaConfig, "network")}
    names = [name for name in inspect.signature(kind.__init__).parameters if name != "self"]
    hints = get_type_hints(kind.__init__)
    for key in config.network:
        if key not in names:
            raise InputError(f"key network.{key} is unknown. {config.method} takes {', '.join(names) or 'none'}.")
    return {key: toml.convert(value, hints[key], f"network.{key}") for key, value in config.network.items()}


def with_infrared(state: dict[str, Tensor], network: nn.Module) -> dict[str, Tensor]:
    """The weights of a DADA for RGB, for one that takes near infrared too: its results for RGB are the same.

    The weights of the fourth band are 0. Other weights are returned as they are.
    """
    from dada.models.dada import DADA, INFRARED

    if not isinstance(network, DADA) or network.config.bands != INFRARED:
        return state
    wider = {}
    for name, weight in state.items():
        shape = network.state_dict()[name].shape if name in network.state_dict() else weight.shape
        more = shape[1] - weight.shape[1] if len(shape) == weight.ndim == 4 else 0  # one, or 2 x 2 of stacked pixels
        if more not in (1, 4) or shape[0] != weight.shape[0] or shape[2:] != weight.shape[2:]:
            wider[name] = weight
            continue
        colours, others = weight[:, : 3 * more], weight[:, 3 * more :]
        wider[name] = torch.cat([colours, torch.zeros_like(colours[:, :more]), others], dim=1)
    return wider


def _begin_from(network: nn.Module, kind: Any, path: str) -> None:
    if not Path(path).exists():
        raise InputError(f"start {path}: there is no such file or folder.")
    state = with_infrared(kind.load(path).state_dict(), network)
    try:
        network.load_state_dict(state)
    except RuntimeError as error:
        reason = str(error).splitlines()[-1].strip()
        raise InputError(f"start {path}: its weights do not fit the network of [network]: {reason}") from None
