"""Every compiled operator does what its plain twin in torch does, on even and odd blocks, holes and soft cells."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from dada.diffusion import Coefficients, system
from dada.diffusion.conjugate_gradients import conjugate_gradients
from dada.diffusion.cpu.backend import CpuBackend
from dada.diffusion.measurement import read_measurement
from dada.diffusion.torch_backend import TorchBackend

from .problems import random_mask, random_problem, random_weight

# target, source: even and odd blocks, several bands, wide blocks, blocks one row high, few pixels
SIZES = [
    ((48, 40), (6, 5)),
    ((45, 38), (6, 5)),
    ((330, 12), (70, 3)),
    ((96, 96), (3, 3)),
    ((5, 16), (5, 4)),
    ((3, 3), (1, 1)),
    ((1, 7), (1, 2)),
    ((7, 1), (2, 1)),
]
KINDS = ["hard", "holes", "partly covered", "soft"]


@pytest.fixture(params=SIZES, ids=str)
def size(request):
    return request.param


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


def both(size, kind, monkeypatch, adjust="ratio"):
    """The same systems of two images on both backends: that of `shift`, and for the second image that of a state y."""
    target, cells = size
    source, c = random_problem(target, cells, batch=2)
    options = {
        "mask": random_mask(source.shape) if kind == "holes" else None,
        "coverage": random_mask((2, 1, *target)) if kind == "partly covered" else None,
        "weight": random_weight(source.shape) if kind == "soft" else None,
    }
    measurement = read_measurement(source, c, adjust, *options.values())
    y = torch.rand(2, *target, dtype=torch.float64, generator=torch.Generator().manual_seed(4)) + 0.5
    made = []
    for backend in (CpuBackend, TorchBackend):
        monkeypatch.setattr(system, "backend_of", lambda tensor, backend=backend: backend)
        one = system.System(Coefficients(*c), measurement, adjust)
        second = torch.tensor([False, True])
        state = one.backend.field(y)
        second = second.numpy() if backend is CpuBackend else second
        with np.errstate(all="ignore"):
            one.assemble(None, one.all_images)
            one.assemble(state, second)
        made.append(SimpleNamespace(system=one, y=state, second=second))
    return made


def same(a, b, scale=1e-11):
    a, b = torch.as_tensor(a), torch.as_tensor(b)
    torch.testing.assert_close(a, b, rtol=1e-10, atol=scale * (1 + float(b.abs().max()) if b.numel() else 1))


def random_field(made, seed):
    values = torch.rand(made.y.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)) - 0.5
    return made.system.backend.field(values)


def test_the_system_on_every_grid(size, kind, monkeypatch):
    compiled, plain = both(size, kind, monkeypatch)
    assert len(compiled.system.levels) == len(plain.system.levels)
    for a, b in zip(compiled.system.levels, plain.system.levels, strict=True):
        for name in ("wv", "wh", "sd", "g", "inverse"):
            same(getattr(a, name), getattr(b, name))


def test_only_the_images_asked_for_are_built(size, kind, monkeypatch):
    for made in both(size, kind, monkeypatch):
        before = torch.as_tensor(made.system.levels[0].wh).clone()
        made.system.assemble(2 * made.y, made.second)
        after = torch.as_tensor(made.system.levels[0].wh)
        assert torch.equal(after[0], before[0])


def test_flows_and_sums(size, kind, monkeypatch):
    found = []
    for made in both(size, kind, monkeypatch):
        one, backend = made.system, made.system.backend
        a, f = random_field(made, 1), random_field(made, 2)
        flow = backend.flow(a, f, one.all_images)
        mu = backend.block_sums(a, f)
        pushed = flow + 0
        backend.add(pushed, a, mu, made.second)
        backend.add(pushed, None, 2 * mu, None)
        found.append((flow, backend.flow(a, None, one.all_images), mu, backend.block_sums(a), pushed, one.isolated()))
    for x, y in zip(*found, strict=True):
        same(1.0 * torch.as_tensor(x), 1.0 * torch.as_tensor(y))


def test_values_are_changed_alike(size, kind, monkeypatch):
    found = []
    for made in both(size, kind, monkeypatch):
        one = made.system
        largest = one.backend.update(made.y, random_field(made, 3), one.levels[0].sd, made.second)
        updated = made.y + 0
        one.adjust(made.y, one.used)
        found.append((largest[1:], updated, made.y))
    for x, y in zip(*found, strict=True):
        same(x, y)


def test_conjugate_gradients_take_the_same_steps(size, kind, monkeypatch):
    """By the diagonal and, where blocks are wide or holes are, by the V-cycle."""
    found = []
    for made in both(size, kind, monkeypatch):
        one = made.system
        one.r[:] = random_field(made, 5)
        steps = min(6, made.y[0].shape[0] * made.y[0].shape[1] // 4)
        with np.errstate(all="ignore"):
            first = one.start(one.all_images)
            rz, count = conjugate_gradients(one, first, 0 * first, steps)
        found.append((first, rz, count, one.solution()))
    for x, y in zip(*found, strict=True):
        same(x, y, 1e-7)
