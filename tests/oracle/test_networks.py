"""The networks of other authors, filled by rule."""

import pytest
import torch

from dada.baselines.caffe import CaffeLayer
from dada.baselines.dkn import Dkn
from dada.baselines.fdkn import Fdkn
from dada.baselines.fdsr import Fdsr
from dada.baselines.msg import Msg, state_of
from dada.baselines.pmba import Pmba

from .vectors import FOLDER, entries, filled, load, relative


def run(network, name: str) -> float:
    vector = load(name)
    with torch.inference_mode():
        return relative(network.network(vector["in0"], vector["in1"]), vector["out"])


@pytest.mark.parametrize(
    ("name", "network"),
    [("fdkn_filled_x8", Fdkn), ("dkn_filled_x8", Dkn), ("fdsr_filled_x8", Fdsr), ("pmba_filled_x8", Pmba)],
)
def test_filled_weights_give_the_authors_numbers(name, network):
    state = filled(entries(name))
    loaded = network.of_state(state, network.config_of(state, FOLDER), FOLDER)
    assert list(loaded.state_dict()) == list(state)
    assert run(loaded, name) < 2e-6


@pytest.mark.parametrize("factor", [4, 8])
def test_msg_has_the_layers_of_its_description(factor):
    name = f"msg_filled_x{factor}"
    state = filled(entries(name))
    layers = {}
    for key in dict.fromkeys(key.rpartition(".")[0] for key in state):
        blobs = tuple(state[f"{key}.{part}"].numpy() for part in ("weight", "bias") if f"{key}.{part}" in state)
        layers[key] = CaffeLayer(key, key.rstrip("-YD"), blobs)
    network = Msg.of_state(state_of(layers, factor, FOLDER), {"factor": factor}, FOLDER)
    assert run(network, name) < 2e-6
