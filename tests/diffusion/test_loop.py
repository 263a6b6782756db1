import pytest
import torch

from dada.diffusion import Coefficients, down, equilibrium, iterate, up
from dada.diffusion.loop import adjustment, diffuse, start
from dada.diffusion.measurement import read_measurement

from .problems import random_mask, random_problem, random_weight

MODES = ["ratio", "shift"]


def plain_loop(source, c, adjust, steps, **options):
    """Eq. 1 and Eq. 3 in torch operations, one after the other."""
    names = ("mask", "coverage", "weight")
    measurement = read_measurement(source, c, adjust, *(options.get(name) for name in names))
    y = start(None, measurement)
    for _ in range(steps):
        y = adjustment(diffuse(y, c), measurement, adjust)
    return y.reshape(*source.shape[:2], *c.size)


def test_equation_1_by_hand():
    y = torch.tensor([[[1.0, 2.0], [4.0, 8.0]]])
    c = Coefficients(torch.tensor([[[0.5, 1.0]]]), torch.tensor([[[0.25], [0.0]]]))
    expected = y[0, 0, 0] + 0.2 * (0.5 * (4 - 1) + 0.25 * (2 - 1))
    torch.testing.assert_close(diffuse(y, c, 0.2)[0, 0, 0], expected)
    torch.testing.assert_close(diffuse(y, c, 0.2).sum(), y.sum())  # diffusion keeps the total


@pytest.mark.parametrize("adjust", MODES)
@pytest.mark.parametrize("target", [(12, 12), (13, 17), (1, 9), (9, 1)])
def test_the_compiled_loop_is_the_plain_loop(adjust, target):
    source, c = random_problem(target, (min(3, target[0]), min(4, target[1])), batch=2)
    torch.testing.assert_close(iterate(source, c, adjust=adjust, steps=30).values, plain_loop(source, c, adjust, 30))


@pytest.mark.parametrize("adjust", MODES)
def test_masks_coverage_and_weights_reach_the_compiled_loop(adjust):
    source, c = random_problem((13, 17), (3, 4), batch=2)
    options = {
        "mask": random_mask(source.shape),
        "coverage": random_mask((2, 1, 13, 17)),
        "weight": random_weight(source.shape),
    }
    values = iterate(source, c, adjust=adjust, steps=25, **options).values
    torch.testing.assert_close(values, plain_loop(source, c, adjust, 25, **options))


@pytest.mark.parametrize("adjust", MODES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_every_step_gives_back_the_source(adjust, dtype):
    source, c = random_problem((20, 30), (4, 5), dtype=dtype)
    for steps in (0, 1, 50):
        solution = iterate(source, c, adjust=adjust, steps=steps)
        assert solution.misfit_max.item() <= 4 * torch.finfo(dtype).eps * source.max().item()
        torch.testing.assert_close(down(solution.values, (4, 5)), source)


def test_a_soft_cell_ends_between_its_measurement_and_its_neighbours():
    source = torch.tensor([[[[1.0, 2.0]]]], dtype=torch.float64)
    c = Coefficients(torch.ones(1, 3, 8).double(), torch.ones(1, 4, 7).double())
    weight = torch.tensor([[[[torch.inf, 1.0]]]], dtype=torch.float64)
    mean = down(iterate(source, c, adjust="shift", steps=3000, weight=weight).values, (1, 2))
    assert mean[0, 0, 0, 0].item() == pytest.approx(1.0)
    assert 1.0 < mean[0, 0, 0, 1].item() < 2.0


@pytest.mark.parametrize("adjust", MODES)
def test_the_last_steps_are_differentiable(adjust):
    source, c = random_problem((6, 8), (2, 2))
    initial = up(source, (6, 8))

    def run(s, v, h):
        return iterate(s, Coefficients(v, h), adjust=adjust, steps=7, grad_steps=7, initial=initial).values

    inputs = tuple(t.clone().requires_grad_() for t in (source, *c))
    assert torch.autograd.gradcheck(run, inputs)


def test_the_earlier_steps_are_not():
    source, c = random_problem((6, 8), (2, 2))
    c = Coefficients(*(v.requires_grad_() for v in c))
    assert not iterate(source, c, steps=5).values.requires_grad
    few, all_ = (iterate(source, c, steps=6, grad_steps=n).values for n in (2, 6))
    torch.testing.assert_close(few, all_)
    assert not torch.allclose(*(torch.autograd.grad(v.square().sum(), c.vertical)[0] for v in (few, all_)))


def test_standing_still_is_reported():
    source, c = random_problem((4, 4), (1, 1))
    assert iterate(source, c, steps=3000).reason == ["stands still"]
    early = iterate(source, c, steps=3, initial=torch.rand(1, 1, 4, 4, dtype=torch.float64) + 1)
    assert early.reason == ["3 steps done"]
    assert not early.converged.item()


def test_channels_share_the_coefficients():
    source, c = random_problem((8, 8), (2, 2), channels=3)
    together = iterate(source, c, steps=20).values
    for k in range(3):
        torch.testing.assert_close(together[:, k : k + 1], iterate(source[:, k : k + 1], c, steps=20).values)


def test_mistakes_are_named():
    source, c = random_problem((8, 8), (2, 2))
    with pytest.raises(ValueError, match=r"step_size must lie in \(0, 1/4\)"):
        iterate(source, c, step_size=0.25)
    with pytest.raises(ValueError, match="grad_steps"):
        iterate(source, c, steps=3, grad_steps=4)
    with pytest.raises(ValueError, match="initial must be"):
        iterate(source, c, initial=torch.ones(1, 1, 7, 8, dtype=torch.float64))


@pytest.mark.parametrize("adjust", ["ratio", "shift"])
def test_coefficients_above_one_take_smaller_steps_to_the_same_end(adjust):
    torch.manual_seed(0)
    source = 1 + torch.rand(1, 1, 4, 4, dtype=torch.float64)
    c = Coefficients(torch.rand(1, 15, 16, dtype=torch.float64), torch.rand(1, 16, 15, dtype=torch.float64))
    strong = Coefficients(*(20 * edges for edges in c))
    end = iterate(source, strong, adjust=adjust, steps=40_000).values
    for same in (strong, c):
        solved = equilibrium(source, same, adjust=adjust, tolerance=1e-9).values
        torch.testing.assert_close(end, solved, rtol=0, atol=1e-6)
