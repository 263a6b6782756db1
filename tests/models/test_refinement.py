"""Facts about the refinement network: how far it sees, what it changes, its gradients."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch.nn.functional import pixel_unshuffle
from torch.utils.flop_counter import FlopCounterMode

from dada.diffusion import Coefficients, equilibrium
from dada.models.dada import DADA
from dada.models.refinement import RefinementNetwork, measurement_pull
from dada.sample import Sample

from .samples import SMALL, cut, double, opinionated, random_sample, rounds_of


@pytest.mark.parametrize("size", ["wide", "narrow"])
@pytest.mark.parametrize(("edges", "direct"), [(False, False), (True, True)])
def test_it_changes_nothing_at_first(edges, direct, size) -> None:
    sample, config = random_sample(), replace(SMALL, rounds=3, edges=edges, direct=direct, refinement=size)
    plain, refined = DADA(config).eval(), DADA(replace(config, feedback="refinement")).eval()
    refined.load_state_dict(plain.state_dict(), strict=False)
    with torch.no_grad():
        assert torch.equal(refined(sample), plain(sample))


def test_it_changes_the_weight_of_the_result_and_the_coefficients() -> None:
    """Its outputs hold for a pixel's edges down and right: 1 / c = (1 / c_0 + (e^g w step / kappa)^2) / e^a."""
    sample = random_sample()
    model = DADA(replace(SMALL, rounds=2, feedback="refinement", source="own")).eval()
    outputs = torch.randn(1, 3, 20, 28) / 10  # small, so that they are hardly bounded
    model.refinement.register_forward_hook(lambda module, given, made: outputs)
    with torch.no_grad():
        (before, result), (after, _) = rounds_of(model, sample)
        share = model.log_result_weights.exp() / model.kappa / sample.deviation()[0, 0]
        for dim, (first, found) in enumerate(zip(before, after, strict=True)):
            down, right = (-1, None) if dim == 0 else (None, -1)
            step = result.diff(dim=dim - 2)[:, 0] * share
            a, g = (outputs[:, number, :down, :right] for number in (dim, 2))
            expected = a.exp() / (1 / first + (g.exp() * step).square())
            torch.testing.assert_close(found, expected.float(), rtol=1e-3, atol=1e-6)


def test_all_of_it_is_learned() -> None:
    model = opinionated(DADA(replace(SMALL, rounds=2, edges=True, direct=True, feedback="refinement")))
    model(random_sample()).square().mean().backward()
    assert all(weight.grad is not None and weight.grad.any() for weight in model.refinement.parameters())


def test_it_tells_the_pixels_of_a_stack_apart() -> None:
    network = RefinementNetwork(4)
    for conv in (network.out, *(residual.conv for residual in network.more)):
        torch.nn.init.normal_(conv.weight)
    result = torch.rand(1, 1, 51, 27)
    other = result.clone()
    other[..., 24, 13] += 1
    with torch.no_grad():
        prepared, pull = network.prepare(torch.rand(1, 4, 51, 27), torch.ones(4)), torch.rand(1, 2, 51, 27)
        made, changed = (network(prepared, image, result, pull) for image in (result, other))
    assert made.shape == (1, 3, 51, 27)
    change = (made - changed).abs().sum(1)[0]
    rows = change.any(dim=1).nonzero()
    assert (rows.min(), rows.max()) == (24 - 2 * 11, 25 + 2 * 11)  # the context, which sees farther, starts at 0
    assert len({float(x) for x in change[24:26, 12:14].flatten()}) == 4


def test_it_sees_so_far_and_takes_odd_sizes() -> None:
    network = RefinementNetwork(4)
    convolutions = (network.out, network.pull, network.context.out, *(residual.conv for residual in network.more))
    for conv in convolutions:
        torch.nn.init.normal_(conv.weight)
    result, pull = torch.rand(1, 1, 21, 401), torch.rand(1, 2, 21, 401)
    other = result.clone()
    other[..., 200] += 1
    with torch.no_grad():
        prepared = network.prepare(torch.rand(1, 4, 21, 401), torch.ones(4))
        made, changed = network(prepared, result, result, pull), network(prepared, other, result, pull)
        slack = network(prepared, result, result, torch.zeros(1, 2, 21, 401))
    assert made.shape == (1, 3, 21, 401)
    columns = (made != changed).any(dim=(0, 1, 2)).nonzero()
    assert 100 < columns.max() - columns.min() <= 152
    assert (made != slack).any()


def test_it_is_given_the_coefficients_of_the_last_solution(monkeypatch) -> None:
    config = replace(SMALL, rounds=3, edges=True, direct=True, feedback="refinement", source="own")
    model = opinionated(DADA(config)).eval()
    given: list[tuple[Coefficients, Tensor]] = []

    def watched(c: Coefficients, result: Tensor, *others: Tensor) -> Tensor:
        given.append((c, result))
        return measurement_pull(c, result, *others)

    monkeypatch.setattr("dada.models.learned_guidance.measurement_pull", watched)
    sample = random_sample()
    with torch.no_grad():
        solved = rounds_of(model, sample)
    assert len(given) == 2
    for (c, result), (passed, scaled) in zip(solved, given, strict=False):
        assert passed is c
        mean = sample.initial.mean()
        torch.testing.assert_close(scaled, (result - mean) / sample.deviation().float())


def test_it_starts_alike_in_every_round_and_can_learn_to_differ() -> None:
    torch.manual_seed(0)
    network = RefinementNetwork(4, results=2)
    torch.nn.init.normal_(network.out.weight)
    result, prepared, pull = torch.rand(1, 1, 8, 8), torch.rand(1, 32, 4, 4), torch.rand(1, 2, 8, 8)
    with torch.no_grad():
        first, second = (network(prepared, result, result, pull, number) for number in (0, 1))
        assert torch.equal(first, second)
        network.offsets[1] += 1
        assert torch.equal(network(prepared, result, result, pull, 0), first)
        assert not torch.equal(network(prepared, result, result, pull, 1), second)


def test_each_round_is_told_its_number() -> None:
    model = opinionated(DADA(replace(SMALL, rounds=4, direct=True, feedback="refinement"))).eval()
    numbers: list[int] = []
    forward = model.refinement.forward
    model.refinement.forward = lambda *args: numbers.append(args[-1]) or forward(*args)  # type: ignore[method-assign]
    with torch.no_grad():
        model(random_sample())
    assert numbers == [0, 1, 2]
    assert model.refinement.offsets.shape[0] == 3


def test_what_it_prepares_is_a_convolution_of_scaled_stacks() -> None:
    network, known, scale = RefinementNetwork(4), torch.rand(1, 4, 6, 8), torch.tensor([0.5, 1.0, 2.0, 3.0])
    stacks = pixel_unshuffle(known * scale[:, None, None], 2)
    torch.testing.assert_close(network.prepare(known, scale), network.known(stacks))


def test_gradients_through_it_are_those_of_central_differences(real: Sample) -> None:
    crop = double(cut(real, 24))
    config = replace(SMALL, rounds=3, edges=True, direct=True, feedback="refinement", source="own", adjust="shift")
    model = opinionated(DADA(replace(config, tolerance=1e-13)).double().eval())
    left = (model(crop) - crop.target).square().mean()
    left.backward()
    network = model.refinement
    weights = [network.out.bias, network.look.weight, network.known.weight, network.pull.weight]
    for weight in [*weights, model.log_result_weights]:
        way = torch.randn_like(weight)
        values = []
        with torch.no_grad():
            for step in (1e-6, -2e-6):  # short, as there are kinks
                weight += step * way
                values.append((model(crop) - crop.target).square().mean())
            weight += 1e-6 * way
        torch.testing.assert_close((weight.grad * way).sum(), (values[0] - values[1]) / 2e-6, rtol=1e-5, atol=1e-9)


def test_measurements_do_not_pull_where_edges_are_in_place_and_do_where_one_is_missing() -> None:
    """Two surfaces that meet inside the cells of the second column, at 1 and at 3; the cells are 4 pixels wide."""
    truth = torch.ones(1, 1, 8, 16)
    truth[..., 6:] = 3.0
    source = truth.reshape(1, 1, 2, 4, 4, 4).mean(dim=(3, 5))
    mask = torch.ones_like(source, dtype=torch.bool)
    closed = Coefficients(torch.ones(1, 7, 16), torch.ones(1, 8, 15))
    closed.horizontal[..., 5] = 0.0
    missing = Coefficients(torch.ones(1, 7, 16), torch.ones(1, 8, 15))
    found = []
    for c in (closed, missing):
        result = equilibrium(source, c, adjust="shift", tolerance=1e-7).values
        found.append(measurement_pull(c, result, mask))
    above, pull = found[0][0]
    expected = (truth - source.repeat_interleave(4, -1).repeat_interleave(4, -2)) / 0.1
    torch.testing.assert_close(above, expected.asinh()[0, 0], rtol=0, atol=1e-3)
    assert pull.abs().max() < 1e-2
    pull = found[1][0, 1]
    assert (pull[:, ::4].diff(dim=-1).abs() > 1).all()  # each cell has its own
    assert all(len(cell.unique()) == 1 for cell in pull.unfold(0, 4, 4).unfold(1, 4, 4).flatten(0, 1))


def test_a_pull_bends_an_image_without_edges_by_as_much_as_it_says() -> None:
    """y'' = p over a cell s wide lets y sag by p s^2 / 8 in its middle; half a pixel's flow is lost at the border."""
    columns = torch.arange(16, dtype=torch.float64)
    pull = 0.02
    result = (pull / 2 * columns.square()).expand(1, 1, 16, 16)
    c = Coefficients(torch.ones(1, 15, 16, dtype=torch.float64), torch.ones(1, 16, 15, dtype=torch.float64))
    pulled = measurement_pull(c, result, torch.tensor([[[[True, True], [False, True]]]]))
    sag = pull * 8 / 8 * torch.tensor([7.5, 7.5 - 15], dtype=torch.float64)
    assert pulled[0, :, 8:, :8].abs().max() == 0  # nothing was measured there
    torch.testing.assert_close(pulled[0, 1, 0, ::8], (sag / 0.1).asinh())


def test_the_narrow_one_takes_at_most_six_tenths_of_the_operations_and_is_kept_by_files(tmp_path) -> None:
    counts = {}
    for size in ("wide", "narrow"):
        model = DADA(replace(SMALL, rounds=2, feedback="refinement", refinement=size)).eval()
        sample = random_sample()
        with torch.no_grad(), FlopCounterMode(display=False) as counter:
            model(sample)  # counted operations are not joined, and round in another way
        counts[size] = counter.get_flop_counts()["DADA.refinement"].values()
        model.save_pretrained(tmp_path / size)
        with torch.no_grad():
            assert torch.equal(DADA.load(tmp_path / size)(sample), model(sample))
    assert sum(counts["narrow"]) < 0.6 * sum(counts["wide"])
