"""The exported graphs compute what torch computes, at sizes that were not recorded."""

from functools import lru_cache

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from dada.diffusion import Coefficients
from dada.export.graphs import EXAMPLE, First, Graph, graphs_of
from dada.export.recording import recorded_graph
from dada.export.tensors import OUT, TensorInfo, tensors_of
from dada.models.dada import DADA
from dada.models.default import learned
from dada.models.model import Round
from dada.sample import Sample, bicubic

from .networks import CONFIGS, REFINED, network

pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

SIZES = [(1, (64, 96), (8, 12)), (3, (33, 47), (5, 6)), (1, (71, 123), (9, 15)), (2, (7, 5), (1, 1))]
EXACT = 2e-5  # of the largest number; coefficients are at most about 1 there
Session = onnxruntime.InferenceSession


def session_of(graph: Graph, tensors: dict[str, TensorInfo]) -> Session:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    file = recorded_graph(graph, tensors).SerializeToString()
    return Session(file, options, providers=["CPUExecutionProvider"])


@lru_cache
def model(name: str) -> DADA:
    return learned() if name == "learned" else network(name)


@lru_cache
def sessions(name: str) -> dict[str, Session]:
    tensors = tensors_of(model(name).config)
    return {graph.file: session_of(graph, tensors) for graph in graphs_of(model(name))}


def run(session: Session, given: dict[str, Tensor]) -> dict[str, Tensor]:
    found = session.run(None, {one.name: given[one.name].numpy() for one in session.get_inputs()})
    return {
        one.name.removesuffix(OUT): torch.from_numpy(np.asarray(values))
        for one, values in zip(session.get_outputs(), found, strict=True)
    }


def near(found: Tensor, expected: Tensor) -> None:
    assert found.shape == expected.shape
    torch.testing.assert_close(found, expected, rtol=0, atol=EXACT * max(1.0, float(expected.abs().max())))


def sample(bands: int, batch: int, size: tuple[int, int], cells: tuple[int, int]) -> Sample:
    torch.manual_seed(1)
    mask = torch.ones(batch, 1, *cells, dtype=torch.bool)
    mask[:, :, cells[0] // 2, 1:3] = False
    source = torch.where(mask, 1 + torch.rand(batch, 1, *cells), 0)
    return Sample(torch.rand(batch, bands, *size), source, mask, bicubic(source, mask, size))


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("name", [*CONFIGS, "learned"])
@torch.no_grad()
def test_coefficients_of_every_round_are_those_of_torch(name, size):
    network, graphs = model(name), sessions(name)
    problem = sample(network.config.bands, *size)
    given = {"guide": problem.guide, "source": problem.source, "mask": problem.source_mask, "initial": problem.initial}
    guidance, result, before = network.prepare(problem), problem.initial, None
    first = dict(zip(graphs_of(network)[-1 - (network.rounds > 1)].outputs, First(network)(**given), strict=True))
    for key, values in run(graphs["first.onnx"], given).items():
        near(values, first[key])
        given[key] = values
    for number in range(network.rounds):
        c = guidance.coefficients(before)
        if number:
            given |= {"round": torch.tensor(number - 1), "result": result}
            given |= run(graphs["later.onnx"], given)
        near(given["vertical"], c.vertical)
        near(given["horizontal"], c.horizontal)
        given |= c._asdict()
        result = result + torch.rand_like(result) / 4
        before = Round(number, Coefficients(*c), result)


@torch.no_grad()
def test_values_far_from_zero_lose_no_digits_beyond_their_own():
    """The mean that is taken off is found in float64: a sum of so many pixels in float32 would lose three digits."""
    network, size = model("one band"), (200, 320)
    initial = 1000 + torch.rand(1, 1, *size)
    source, mask = 1000 + torch.rand(1, 1, 25, 40), torch.ones(1, 1, 25, 40, dtype=torch.bool)
    given = {"guide": torch.rand(1, 1, *size), "source": source, "mask": mask, "initial": initial}
    found = run(sessions("one band")["first.onnx"], given)
    c = network.prepare(Sample(*given.values())).coefficients()
    near(found["vertical"], c.vertical)
    near(found["horizontal"], c.horizontal)


class Features(nn.Module):
    """What Eq. 2 compares, alone."""

    def __init__(self, network: DADA) -> None:
        super().__init__()
        self.network = network

    def forward(self, guide: Tensor, initial: Tensor) -> Tensor:
        return self.network.features(guide, initial)


@pytest.mark.parametrize("name", ["refined", "learned"])
@torch.no_grad()
def test_features_are_those_of_torch(name):
    network = model(name)
    (batch, *size), _ = EXAMPLE
    inputs = {"guide": torch.rand(batch, 3, *size), "initial": torch.rand(batch, 1, *size)}
    tensors = tensors_of(network.config)
    channels = network.config.features + 2 + 4
    tensors["features"] = TensorInfo(("batch", channels, "height", "width"), "")
    session = session_of(Graph("features.onnx", Features(network).eval(), inputs, ("features",), ""), tensors)
    for batch, size, _ in SIZES:
        given = {"guide": torch.rand(batch, 3, *size), "initial": torch.randn(batch, 1, *size)}
        near(run(session, given)["features"], network.features(*given.values()))


@pytest.mark.parametrize("size", SIZES, ids=str)
@torch.no_grad()
def test_the_start_is_that_of_torch(size):
    problem = sample(3, *size)
    source = torch.where(problem.source_mask, problem.source, 1.5)
    given = {"guide": problem.guide, "source": source, "mask": torch.ones_like(problem.source_mask)}
    near(run(sessions("refined")["start.onnx"], given)["initial"], bicubic(source, given["mask"], size[1]))


def test_a_network_that_needs_no_later_graph_has_none():
    assert list(sessions("published")) == ["first.onnx"]
    assert list(sessions("refined")) == ["start.onnx", "first.onnx", "later.onnx"]
    assert REFINED.rounds == 3
