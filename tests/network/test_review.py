"""Facts about the small network that looks at a result: what it sees, what it changes, its gradients."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch.nn.functional import pixel_unshuffle

from dada.diffusion import Coefficients, equilibrium
from dada.features.review import Review, hold
from dada.network import DADA
from dada.sample import Sample

from .samples import SMALL, cut, double, opinionated, random_sample

KINDS = ["near", "wide", "deep"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("edges", "direct"), [(False, False), (True, True)])
def test_a_review_says_nothing_at_first(edges, direct, kind) -> None:
    sample, config = random_sample(), replace(SMALL, rounds=3, edges=edges, direct=direct)
    plain, reviewed = DADA(config).eval(), DADA(replace(config, sees="review", review=kind)).eval()
    reviewed.load_state_dict(plain.state_dict(), strict=False)
    with torch.no_grad():
        assert torch.equal(reviewed(sample), plain(sample))


def test_a_review_changes_the_weight_of_the_result_and_the_coefficients() -> None:
    """What it says of a pixel holds for its edges down and right: 1 / c = (1 / c_0 + (e^g w step / kappa)^2) / e^a."""
    sample = random_sample()
    model = DADA(replace(SMALL, rounds=2, sees="review", source="own")).eval()
    said = torch.randn(1, 3, 20, 28) / 10  # small, so that it is hardly bounded
    model.review.register_forward_hook(lambda module, given, made: said)
    rounds: list[Coefficients] = []
    result = sample.initial + torch.rand(20, 28)

    def solve(c: Coefficients, start: Tensor) -> Tensor:
        rounds.append(c)
        return result

    with torch.no_grad():
        model.diffuse(sample, solve)
        share = model.logw.exp() / model.kappa / sample.deviation()[0, 0]
        for dim, (first, found) in enumerate(zip(rounds[0], rounds[1], strict=True)):
            down, right = (-1, None) if dim == 0 else (None, -1)
            step = result.diff(dim=dim - 2)[:, 0] * share
            a, g = (said[:, number, :down, :right] for number in (dim, 2))
            expected = a.exp() / (1 / first + (g.exp() * step).square())
            torch.testing.assert_close(found, expected.float(), rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_all_of_a_review_is_learned(kind) -> None:
    model = opinionated(DADA(replace(SMALL, rounds=2, edges=True, direct=True, sees="review", review=kind)))
    model(random_sample()).square().mean().backward()
    assert all(weight.grad is not None and weight.grad.any() for weight in model.review.parameters())


@pytest.mark.parametrize(("kind", "stacks"), [("near", 5), ("wide", 11)])
def test_a_review_tells_the_pixels_of_a_stack_apart_sees_so_far_and_takes_odd_sizes(kind, stacks) -> None:
    review = Review(4, kind)
    torch.nn.init.normal_(review.out.weight)
    for residual in review.more:
        torch.nn.init.normal_(residual.conv.weight)
    result = torch.rand(1, 1, 51, 27)
    other = result.clone()
    other[..., 24, 13] += 1
    with torch.no_grad():
        prepared = review.prepare(torch.rand(1, 4, 51, 27), torch.ones(4))
        said, changed = review(prepared, result, result), review(prepared, other, result)
    assert said.shape == (1, 3, 51, 27)
    change = (said - changed).abs().sum(1)[0]
    rows = change.any(dim=1).nonzero()
    assert (rows.min(), rows.max()) == (24 - 2 * stacks, 25 + 2 * stacks)  # so many to each side, no further
    assert len({float(x) for x in change[24:26, 12:14].flatten()}) == 4


def test_a_deep_review_sees_so_far_and_takes_odd_sizes() -> None:
    review = Review(4, "deep")
    for conv in (review.out, review.felt, review.around.out, *(residual.conv for residual in review.more)):
        torch.nn.init.normal_(conv.weight)
    result, held = torch.rand(1, 1, 21, 401), torch.rand(1, 2, 21, 401)
    other = result.clone()
    other[..., 200] += 1
    with torch.no_grad():
        prepared = review.prepare(torch.rand(1, 4, 21, 401), torch.ones(4))
        said, changed = review(prepared, result, result, held), review(prepared, other, result, held)
        felt = review(prepared, result, result, torch.zeros(1, 2, 21, 401))
    assert said.shape == (1, 3, 21, 401)
    columns = (said != changed).any(dim=(0, 1, 2)).nonzero()
    assert 100 < columns.max() - columns.min() <= 152
    assert (said != felt).any()


def test_a_review_feels_the_coefficients_of_the_last_solution(monkeypatch) -> None:
    model = opinionated(DADA(replace(SMALL, rounds=3, edges=True, direct=True, sees="review", review="deep"))).eval()
    solved: list[tuple[Coefficients, Tensor]] = []
    felt: list[tuple[Coefficients, Tensor]] = []

    def watched(c: Coefficients, result: Tensor, mask: Tensor) -> Tensor:
        felt.append((c, result))
        return hold(c, result, mask)

    def solve(c: Coefficients, start: Tensor) -> Tensor:
        solved.append((c, start + torch.rand(20, 28)))
        return solved[-1][1]

    monkeypatch.setattr("dada.network.hold", watched)
    sample = random_sample()
    with torch.no_grad():
        model.diffuse(sample, solve)
    assert len(felt) == 2
    for (c, result), (given, seen) in zip(solved, felt, strict=False):
        assert given is c
        mean = sample.initial.mean()
        torch.testing.assert_close(seen, (result - mean) / sample.deviation().float())


def test_a_review_starts_alike_in_every_turn_and_can_learn_to_differ() -> None:
    torch.manual_seed(0)
    review = Review(4, turns=2)
    torch.nn.init.normal_(review.out.weight)
    result, prepared = torch.rand(1, 1, 8, 8), torch.rand(1, 32, 4, 4)
    with torch.no_grad():
        first, second = (review(prepared, result, result, turn=turn) for turn in (0, 1))
        assert torch.equal(first, second)
        review.turn[1] += 1
        assert torch.equal(review(prepared, result, result, turn=0), first)
        assert not torch.equal(review(prepared, result, result, turn=1), second)


def test_each_round_has_its_own_turn() -> None:
    model = opinionated(DADA(replace(SMALL, rounds=4, direct=True, sees="review"))).eval()
    turns: list[int] = []
    forward = model.review.forward
    model.review.forward = lambda *args: turns.append(args[-1]) or forward(*args)  # type: ignore[method-assign]
    with torch.no_grad():
        model(random_sample())
    assert turns == [0, 1, 2]
    assert model.review.turn.shape[0] == 3


def test_what_a_review_prepares_is_a_convolution_of_scaled_stacks() -> None:
    review, known, scale = Review(4), torch.rand(1, 4, 6, 8), torch.tensor([0.5, 1.0, 2.0, 3.0])
    stacks = pixel_unshuffle(known * scale[:, None, None], 2)
    torch.testing.assert_close(review.prepare(known, scale), review.known(stacks))


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_through_a_review_are_those_of_central_differences(real: Sample, kind) -> None:
    crop = double(cut(real, 24))
    config = replace(SMALL, rounds=3, edges=True, direct=True, sees="review", source="own", adjust="shift", review=kind)
    model = opinionated(DADA(replace(config, tolerance=1e-13)).double().eval())
    left = (model(crop) - crop.target).square().mean()
    left.backward()
    review = model.review
    weights = [review.out.bias, review.seen.weight, review.known.weight, model.logw]
    for weight in weights if review.felt is None else [*weights, review.felt.weight]:
        way = torch.randn_like(weight)
        values = []
        with torch.no_grad():
            for step in (1e-6, -2e-6):  # short, as there are kinks
                weight += step * way
                values.append((model(crop) - crop.target).square().mean())
            weight += 1e-6 * way
        torch.testing.assert_close((weight.grad * way).sum(), (values[0] - values[1]) / 2e-6, rtol=1e-5, atol=1e-9)


def test_measurements_hold_nothing_where_edges_are_in_place_and_pull_where_one_is_missing() -> None:
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
        found.append(hold(c, result, mask))
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
    held = hold(c, result, torch.tensor([[[[True, True], [False, True]]]]))
    sag = pull * 8 / 8 * torch.tensor([7.5, 7.5 - 15], dtype=torch.float64)
    assert held[0, :, 8:, :8].abs().max() == 0  # nothing was measured there
    torch.testing.assert_close(held[0, 1, 0, ::8], (sag / 0.1).asinh())
