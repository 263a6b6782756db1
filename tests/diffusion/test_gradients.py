"""Implicit gradients against central differences, in float64."""

import pytest
import torch

from dada.diffusion import Coefficients, coefficients, equilibrium, iterate

from .problems import random_mask, random_problem, random_weight

MODES = ["ratio", "shift"]
CASES = {
    "square": ((16, 16), (4, 4), ()),
    "odd": ((17, 23), (3, 5), ()),
    "holes": ((16, 20), (4, 5), ("mask",)),
    "partly covered": ((13, 17), (3, 4), ("coverage",)),
    "soft": ((12, 12), (3, 3), ("weight",)),
    "all at once": ((13, 18), (4, 3), ("mask", "coverage", "weight")),
    "wide blocks": ((52, 60), (2, 2), ()),
    "wide blocks, all at once": ((52, 60), (2, 2), ("mask", "coverage", "weight")),
    "two channels": ((12, 10), (3, 5), ()),
}


def central_difference(function, inputs, index, direction, step=1e-3):
    """Of fourth order: a step large enough that the solver's own rounding does not show."""

    def at(t):
        moved = [x.detach() for x in inputs]
        moved[index] = torch.where(direction == 0, moved[index], moved[index] + t * direction)
        return function(*moved).item()

    return (8 * (at(step) - at(-step)) - (at(2 * step) - at(-2 * step))) / (12 * step)


@pytest.mark.parametrize("adjust", MODES)
@pytest.mark.parametrize("name", CASES)
def test_gradients_agree_with_central_differences(adjust, name):
    target, size, names = CASES[name]
    channels = 2 if name == "two channels" else 1
    low, high = (0.5, 3.5) if adjust == "ratio" else (-2.0, 2.0)
    source, _ = random_problem(target, size, batch=2, channels=channels, low=low, high=high)
    generator = torch.Generator().manual_seed(7)
    features = torch.rand(2, 3, *target, generator=generator, dtype=torch.float64)
    kappa = torch.tensor(0.3, dtype=torch.float64)
    mask = random_mask(source.shape) if "mask" in names else None
    coverage = random_mask((2, channels, *target)) if "coverage" in names else None
    probe = torch.rand(2, channels, *target, generator=generator, dtype=torch.float64)

    def loss(source, features, kappa, weight=None):
        c = coefficients(features, kappa)
        options = {"mask": mask, "coverage": coverage, "weight": weight}
        return (
            equilibrium(source, c, adjust=adjust, tolerance=1e-12, max_iterations=10_000, **options).values * probe
        ).sum()

    inputs = [source, features, kappa] + ([random_weight(source.shape)] if "weight" in names else [])
    inputs = [x.requires_grad_() for x in inputs]
    gradients = torch.autograd.grad(loss(*inputs), inputs)
    for index, (x, gradient) in enumerate(zip(inputs, gradients, strict=True)):
        direction = torch.randn(x.shape, generator=generator, dtype=torch.float64) * torch.isfinite(x.detach())
        expected = central_difference(loss, inputs, index, direction)
        assert (gradient * direction).sum().item() == pytest.approx(expected, rel=1e-6), f"input {index}"


@pytest.mark.parametrize("adjust", MODES)
def test_implicit_gradients_are_those_of_the_unrolled_loop(adjust):
    source, c = random_problem((12, 12), (3, 3))
    probe = torch.rand(1, 1, 12, 12, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    found = []
    for solve in (lambda *a: equilibrium(*a, adjust=adjust, tolerance=1e-10), lambda *a: unrolled(*a, adjust)):
        inputs = [t.clone().requires_grad_() for t in (source, *c)]
        values = solve(inputs[0], Coefficients(*inputs[1:])).values
        found.append(torch.autograd.grad((values * probe).sum(), inputs))
    for implicit, explicit in zip(*found, strict=True):
        torch.testing.assert_close(implicit, explicit, rtol=1e-3, atol=1e-5)


def unrolled(source, c, adjust):
    return iterate(source, c, adjust=adjust, steps=6000, grad_steps=3000)


def test_no_gradient_no_adjoint_solve():
    source, c = random_problem((8, 8), (2, 2))
    assert not equilibrium(source, c).values.requires_grad


def test_constant_images_have_finite_gradients():
    source = torch.full((1, 1, 2, 2), 2.0, dtype=torch.float64, requires_grad=True)
    c = Coefficients(*(torch.ones(1, *size).double().requires_grad_() for size in ((7, 8), (8, 7))))
    equilibrium(source, c).values.square().sum().backward()
    torch.testing.assert_close(source.grad, torch.full_like(source, 2 * 2.0 * 16))
    assert c.vertical.grad is not None
    assert c.vertical.grad.abs().max() == 0


def test_a_float32_training_step_moves_the_features():
    source, _ = random_problem((32, 32), (4, 4), dtype=torch.float32, batch=2)
    features = torch.rand(2, 4, 32, 32, requires_grad=True)
    log_kappa = torch.tensor(-2.0, requires_grad=True)
    equilibrium(source, coefficients(features, log_kappa.exp())).values.square().mean().backward()
    for x in (features, log_kappa):
        assert x.grad is not None
        assert x.grad.isfinite().all()
        assert x.grad.abs().max() > 0
