"""The equilibrium within torch: second derivatives, torch.func, torch.compile, autocast and half precision."""

import subprocess
import sys

import pytest
import torch

from dada.diffusion import Coefficients, ConvergenceWarning, coefficients, equilibrium, iterate

from .problems import random_mask, random_problem, random_weight

MODES = ["ratio", "shift"]
CASES = {
    "odd": ((5, 7), (2, 3), ()),
    "all at once": ((6, 7), (3, 3), ("mask", "coverage", "weight")),
}


def leaves(*tensors):
    return [t.detach().clone().requires_grad_() for t in tensors]


def solve(source, vertical, horizontal, **options):
    return equilibrium(source, Coefficients(vertical, horizontal), **options)


# ---- second derivatives


@pytest.mark.parametrize("adjust", MODES)
@pytest.mark.parametrize("name", CASES)
def test_second_derivatives_agree_with_central_differences(adjust, name):
    target, size, names = CASES[name]
    source, c = random_problem(target, size, low=1.0)
    mask = random_mask(source.shape) if "mask" in names else None
    coverage = random_mask((1, 1, *target)) if "coverage" in names else None
    weight = random_weight(source.shape) if "weight" in names else torch.full_like(source, torch.inf)
    soft = torch.isfinite(weight)

    def values(source, vertical, horizontal, firmness):
        given = weight.masked_scatter(soft, firmness) if "weight" in names else None
        options = {"mask": mask, "coverage": coverage, "weight": given, "tolerance": 1e-12, "max_iterations": 10_000}
        return solve(source, vertical, horizontal, adjust=adjust, warn=False, **options).values

    inputs = leaves(source, *c, weight[soft])
    assert torch.autograd.gradgradcheck(values, inputs, eps=1e-5, atol=1e-5, rtol=1e-4, fast_mode=True)


def test_a_second_derivative_of_a_gradient_that_is_linear_in_nothing_but_the_coefficients():
    """The gradient of a linear loss is a constant in `values` and still depends on the coefficients."""
    source, _ = random_problem((6, 6), (2, 2))
    features, probe = torch.rand(1, 2, 6, 6).double().requires_grad_(), torch.rand(1, 1, 6, 6).double()

    def gradient(features):
        values = equilibrium(source, coefficients(features, 0.3), adjust="shift", tolerance=1e-12).values
        return torch.autograd.grad((values * probe).sum(), features, create_graph=True)[0]

    direction = torch.randn(features.shape, generator=torch.Generator().manual_seed(1)).double()
    (second,) = torch.autograd.grad((gradient(features) * direction).sum(), features)
    ahead, behind = (gradient((features + t * direction).detach().requires_grad_()) for t in (1e-5, -1e-5))
    torch.testing.assert_close(second, ((ahead - behind) / 2e-5).detach(), rtol=1e-5, atol=1e-6)


def test_third_derivatives_are_refused():
    source, c = random_problem((6, 6), (2, 2))
    (source,) = leaves(source)
    gradient = source
    for _ in range(2):
        values = equilibrium(source, c).values if gradient is source else gradient
        (gradient,) = torch.autograd.grad(values.pow(3).sum(), source, create_graph=True)
    with pytest.raises(NotImplementedError, match="no further derivative"):
        torch.autograd.grad(gradient.sum(), source)


def test_second_derivatives_are_refused_where_coefficients_of_zero_cut_the_image():
    source, c = random_problem((6, 6), (2, 2))
    c.vertical[:, 2] = 0
    source, *edges = leaves(source, *c)
    (gradient,) = torch.autograd.grad(solve(source, *edges).values.pow(2).sum(), edges[0], create_graph=True)
    with pytest.raises(ValueError, match="coefficients above 0"):
        torch.autograd.grad(gradient.sum(), source)


# ---- torch.func


@pytest.mark.parametrize("adjust", MODES)
def test_torch_func_gives_the_gradients_of_autograd(adjust):
    source, _ = random_problem((8, 10), (2, 3), batch=3, low=1.0)
    kappa = torch.tensor(0.3).double()
    features = torch.rand(3, 2, 8, 10, generator=torch.Generator().manual_seed(2)).double()

    def loss(source, features, kappa):
        return equilibrium(source, coefficients(features, kappa), adjust=adjust, tolerance=1e-10).values.pow(2).sum()

    inputs = leaves(source, features, kappa)
    expected = torch.autograd.grad(loss(*inputs), inputs)
    found = torch.func.grad(loss, (0, 1, 2))(source, features, kappa)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=0)
    single = torch.func.grad(lambda *one: loss(*(t[None] for t in one), kappa), (0, 1))
    torch.testing.assert_close(torch.func.vmap(single)(source, features), expected[:2], rtol=1e-12, atol=0)
    losses = torch.func.vmap(lambda kappa: loss(source, features, kappa))(torch.tensor([0.1, 0.3]).double())
    torch.testing.assert_close(losses[1], loss(source, features, kappa))


def test_jacobians_and_hessians_by_reverse_mode():
    source, c = random_problem((6, 6), (2, 2))

    def values(source):
        return equilibrium(source, c, adjust="shift", tolerance=1e-10).values

    jacobian = torch.func.jacrev(values)(source)
    torch.testing.assert_close(jacobian.flatten(4).flatten(0, 3) @ source.flatten(), values(source).flatten())
    hessian = torch.func.jacrev(torch.func.jacrev(lambda s: values(s).pow(2).sum() / 2))(source)
    square = jacobian.reshape(36, 4)
    torch.testing.assert_close(hessian.reshape(4, 4), square.T @ square, rtol=1e-6, atol=1e-6)
    with pytest.raises(NotImplementedError, match="reverse mode"):
        torch.func.jacfwd(values)(source)


@pytest.mark.parametrize("transform", [torch.func.vmap, torch.func.grad])
def test_the_loop_says_that_torch_func_is_not_for_it(transform):
    source, c = random_problem((6, 6), (2, 2))
    given = source[None] if transform is torch.func.vmap else source
    with pytest.raises(NotImplementedError, match=r"torch\.func"):
        transform(lambda source: iterate(source, c, steps=3, grad_steps=1).values.sum())(given)


# ---- torch.compile

COMPILED = """
import torch
from dada.diffusion import coefficients, equilibrium

def run(source, features, **options):
    return equilibrium(source, coefficients(features, 0.3), tolerance=1e-6, **options)

def loss(source, features):
    return run(source, features).values.square().sum()

torch.manual_seed(0)
source, features = 1 + torch.rand(2, 1, 2, 3), torch.rand(2, 3, 8, 12)
inputs = [source.requires_grad_(), features.requires_grad_()]
expected = torch.autograd.grad(loss(*inputs), inputs)
found = torch.autograd.grad(torch.compile(loss, fullgraph=True, backend="aot_eager")(*inputs), inputs)
torch.testing.assert_close(found, expected)
options = {"adjust": "shift", "mask": source > 1.2, "weight": 10 * source, "initial": features[:, :1]}
compiled = torch.compile(run, fullgraph=True, backend="aot_eager")(*inputs, **options)
assert compiled.reason == run(*inputs, **options).reason
torch.testing.assert_close(compiled.values, run(*inputs, **options).values)
"""


def test_torch_compile_takes_it_whole():
    """In a process of its own: importing the compiler takes memory and changes torch."""
    ran = subprocess.run([sys.executable, "-c", COMPILED], capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr


def test_the_operators_are_sound():
    """torch's own checks: schema, fake results, and gradients through the dispatcher."""
    source, c = random_problem((6, 8), (2, 2), batch=2)
    given = (*leaves(source[:, 0], *c), None, None, None, None, None, "ratio", 1e-8, 100, True, True)
    tests = ("test_schema", "test_faketensor", "test_autograd_registration")
    torch.library.opcheck(torch.ops.dada.equilibrium.default, given, test_utils=tests)
    weight = leaves(random_weight(source[:, 0].shape))
    fields = leaves(torch.rand(2, 6, 8).double(), torch.rand(2, 6, 8).double() + 1)
    given = (*fields, *given[:3], *weight, None, None, None)
    torch.library.opcheck(torch.ops.dada.equilibrium_gradient.default, (*given, "shift", 1e-3, 100), test_utils=tests)


# ---- types


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_with_in_float32(dtype):
    source, features = leaves(1 + torch.rand(1, 1, 4, 4).to(dtype), torch.rand(1, 3, 16, 16).to(dtype))
    c = coefficients(features, 0.3)
    solution = equilibrium(source, c)
    assert c.vertical.dtype == solution.values.dtype == torch.float32
    assert solution.misfit_max.max() < 1e-6
    whole = equilibrium(source.detach().float(), coefficients(features.detach().float(), 0.3))
    assert torch.equal(solution.values.detach(), whole.values)
    solution.values.square().sum().backward()
    assert source.grad.dtype == features.grad.dtype == dtype
    assert iterate(source, c, steps=4, grad_steps=2).values.dtype == torch.float32
    assert equilibrium(source, c, initial=torch.ones(1, 1, 16, 16, dtype=dtype)).converged.all()


def test_under_autocast_the_network_has_half_precision_and_the_solver_has_not():
    network = torch.nn.Conv2d(3, 4, 3, padding=1)
    guide, source = torch.rand(1, 3, 16, 16), 1 + torch.rand(1, 1, 4, 4)
    with torch.autocast("cpu", torch.bfloat16):
        features = network(guide)
        solution = equilibrium(source, coefficients(features, 0.3))
        solution.values.square().mean().backward()
    assert features.dtype == torch.bfloat16
    assert solution.values.dtype == torch.float32
    assert solution.misfit_max.max() < 1e-6
    assert network.weight.grad.abs().max() > 0


# ---- what is said


def test_warnings_are_about_the_code_of_the_user():
    source, c = random_problem((16, 16), (4, 4))
    with pytest.warns(ConvergenceWarning, match="not reached") as caught:
        equilibrium(source, c, tolerance=1e-9, max_iterations=1)
    assert caught[0].filename == __file__


def test_a_result_that_leaves_its_type_is_told():
    """`ratio` over forty orders of magnitude, the least of which float32 cannot tell from 0."""
    lost = 0
    for seed in range(12):
        generator = torch.Generator().manual_seed(seed)
        source = 10 ** (40 * torch.rand(1, 1, 3, 4, generator=generator) - 37)
        features = 100 * torch.rand(1, 3, 14, 21, generator=generator)
        weight = 10 ** (8 * torch.rand(1, 1, 3, 4, generator=generator) - 4)
        solution = equilibrium(source, coefficients(features, 0.1), weight=weight, warn=False)
        if (solution.values <= 0).any():
            lost += 1
            assert not solution.converged.any()
            assert "values left the range of their type" in solution.reason[0]
    assert lost


def test_an_infinite_result_is_told():
    source, mask = torch.full((1, 1, 3, 3), 3e38), torch.ones(1, 1, 3, 3, dtype=torch.bool)
    mask[..., 1, 1] = False
    solution = equilibrium(source, coefficients(torch.rand(1, 3, 12, 12), 0.3), mask=mask, warn=False)
    assert not torch.isfinite(solution.values).all()
    assert "left the range" in solution.reason[0]
    assert not solution.converged.any()
