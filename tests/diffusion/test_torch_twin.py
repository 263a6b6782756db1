"""On a device other than the CPU the same solver runs in torch operations; here both run on the CPU and agree."""

import pytest
import torch

from dada.diffusion import Coefficients, equilibrium, system
from dada.diffusion.torch_backend import TorchBackend

from .problems import random_mask, random_problem, random_weight

CASES = {
    "square": ((16, 16), (4, 4), ()),
    "odd": ((23, 31), (5, 7), ()),
    "wide blocks": ((64, 96), (2, 3), ()),
    "wide blocks, all at once": ((50, 70), (2, 2), ("mask", "weight", "coverage")),
    "large hole": ((64, 64), (16, 16), ("hole",)),
    "one row": ((1, 20), (1, 5), ()),
}


def run(source, c, probe, **options):
    inputs = [t.clone().requires_grad_() for t in (source, *c)]
    solution = equilibrium(inputs[0], Coefficients(*inputs[1:]), tolerance=1e-8, **options)
    return solution, torch.autograd.grad((solution.values * probe).sum(), inputs)


@pytest.mark.parametrize("adjust", ["ratio", "shift"])
@pytest.mark.parametrize("name", CASES)
def test_both_agree_in_values_and_gradients(adjust, name, monkeypatch):
    target, size, names = CASES[name]
    source, c = random_problem(target, size, batch=2, low=1.0)
    made = {
        "mask": random_mask(source.shape),
        "coverage": random_mask((2, 1, *target)),
        "weight": random_weight(source.shape),
    }
    options = {key: made[key] for key in names if key in made}
    if "hole" in names:
        options["mask"] = torch.ones_like(source, dtype=torch.bool)
        options["mask"][..., :14, :14] = False
    probe = torch.rand(2, 1, *target, dtype=torch.float64, generator=torch.Generator().manual_seed(5))
    compiled, compiled_gradients = run(source, c, probe, adjust=adjust, **options)
    monkeypatch.setattr(system, "backend_of", lambda tensor: TorchBackend)
    plain, plain_gradients = run(source, c, probe, adjust=adjust, **options)
    torch.testing.assert_close(compiled.values, plain.values, rtol=1e-6, atol=1e-6)
    for a, b in zip(compiled_gradients, plain_gradients, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5 * (1 + b.abs().max().item() if b.numel() else 1))
    assert plain.converged.all()
    assert plain.misfit_max.max() < 10  # soft cells may differ from their measurement; hard ones do not:
    if "weight" not in names:
        assert plain.misfit_max.max() < 1e-14
