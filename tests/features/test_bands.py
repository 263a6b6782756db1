"""Without gradients, networks compute in bands of rows and let oneDNN join operations: the result stays the same."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import interpolate
from torch.profiler import ProfilerActivity, profile

from dada import DADA
from dada.features import bands, build
from dada.features.convolution import convolve
from dada.models.config import DadaConfig
from dada.models.default import learned
from dada.sample import Sample

TOLERANCE = 1e-6


def near(found: torch.Tensor, expected: torch.Tensor) -> bool:
    """To rounding, as a share of the largest value."""
    return float((found - expected).abs().max()) <= 5 * TOLERANCE * float(expected.abs().max())


def sample(height: int, width: int, factor: int = 4) -> Sample:
    torch.manual_seed(0)
    source = 2 + torch.rand(1, 1, height // factor, width // factor)
    initial = interpolate(source, size=(height, width), mode="bicubic")
    return Sample(torch.rand(1, 3, height, width), source, torch.ones_like(source, dtype=torch.bool), initial)


@pytest.mark.parametrize("name", ["light", "lite0", "lite0-fine"])
@pytest.mark.parametrize("size", [(256, 64), (131, 77), (33, 40)])
def test_bands_give_the_features_of_the_whole(
    name: str, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    network = build(name, 4, 18, upsample=False).eval()
    image = torch.randn(2, 4, *size)
    whole = network(image).detach()  # with gradients: one band, plain torch
    monkeypatch.setattr(bands, "NUMBERS", 1)
    with torch.no_grad():
        assert near(network(image), whole)
        parts = list(network.in_bands(image))
    assert len(parts) == -(-size[0] // bands.LEAST)
    for start, rows in parts:
        stop = start + rows.shape[-2]
        assert stop == min(start + bands.LEAST + 1, size[0])
        assert near(rows, whole[..., start:stop, :])


@pytest.mark.parametrize("distance", ["euclidean", "mean_absolute"])
@pytest.mark.parametrize("size", [(132, 76), (68, 100)])
def test_bands_give_the_coefficients_of_the_whole(
    distance: str, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    feedback = "refinement" if distance == "euclidean" else "coefficients"
    config = DadaConfig(features=6, rounds=2, edges=True, direct=True, distance=distance, feedback=feedback)  # type: ignore[arg-type]
    network, problem = DADA(config).eval(), sample(*size)
    whole = network(problem).detach()
    monkeypatch.setattr(bands, "NUMBERS", 1)
    with torch.no_grad():
        assert near(network(problem), whole)


@pytest.mark.parametrize("after", ["none", "relu", "relu6"])
@pytest.mark.parametrize("added", [False, True])
@pytest.mark.parametrize("stride", [1, 2])
def test_a_joined_convolution_is_the_plain_one(after: str, added: bool, stride: int) -> None:
    if added and after == "relu6":
        pytest.skip("no network adds before a ReLU6")
    torch.manual_seed(0)
    x, weight, bias = torch.randn(2, 5, 17, 12), torch.randn(7, 5, 3, 3), torch.randn(7)
    plus = torch.randn(2, 7, -(-17 // stride), 12 // stride) if added else None
    kept = None if plus is None else plus.clone()
    plain = convolve(x, weight, bias, stride=stride, padding=1, after=after, plus=plus)  # type: ignore[arg-type]
    with torch.no_grad():
        joined = convolve(x, weight, bias, stride=stride, padding=1, after=after, plus=plus)  # type: ignore[arg-type]
        in_float64 = convolve(x.double(), weight.double(), bias.double(), stride=stride, padding=1)
    assert near(joined, plain)
    assert in_float64.dtype == torch.float64
    assert plus is None or torch.equal(plus, kept)  # type: ignore[arg-type]


def test_the_learned_default_makes_no_array_of_all_features() -> None:
    height, width = 384, 512
    problem = sample(height, width, 8)
    with torch.no_grad(), profile(activities=[ProfilerActivity.CPU], profile_memory=True) as events:
        learned().prepare(problem)
    largest = max(event.cpu_memory_usage for event in events.events())
    assert 0 < largest <= 64 * height * width  # bytes; 97 a pixel where whole arrays are made
