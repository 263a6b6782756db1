"""What holds for every shape, ratio, mask, coefficient and dtype."""

import warnings

import torch
from hypothesis import given
from hypothesis import strategies as st

from dada.diffusion import Coefficients, ConvergenceWarning, down, equilibrium

MODES = ["ratio", "shift"]


@st.composite
def problems(draw, dtype=None):
    """A random source with coefficients over 1 to 6 orders of magnitude, and perhaps a mask."""
    h, w = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    H, W = h + draw(st.integers(0, 6 * h)), w + draw(st.integers(0, 6 * w))
    dtype = dtype or draw(st.sampled_from([torch.float32, torch.float64]))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    orders = draw(st.integers(0, 6))

    def random(*shape):
        return torch.rand(1, *shape, generator=generator, dtype=torch.float64)

    c = Coefficients(*((10 ** (-orders * random(*s))).to(dtype) for s in ((H - 1, W), (H, W - 1))))
    source = (random(1, h, w) + 0.5).to(dtype)
    mask = None
    if draw(st.booleans()):
        mask = random(1, h, w) > 0.4
        mask[..., draw(st.integers(0, h - 1)), draw(st.integers(0, w - 1))] = True
    return source, c, mask


def solve(source, c, mask, adjust, tolerance=1e-9, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return equilibrium(source, c, mask=mask, adjust=adjust, tolerance=tolerance, **options)


@given(problems(), st.sampled_from(MODES), st.sampled_from([1, 5, 2000]))
def test_down_gives_back_the_source(problem, adjust, limit):
    source, c, mask = problem
    solution = solve(source, c, mask, adjust, tolerance=2e-4, max_iterations=limit)
    misfit = (down(solution.values.double(), source.shape[-2:]) - source).abs()
    misfit = misfit if mask is None else misfit[mask]
    eps = torch.finfo(source.dtype).eps
    assert misfit.max() <= 4 * eps * max(source.max(), solution.values.abs().max())
    assert solution.values.isfinite().all()


@given(problems(torch.float64), st.sampled_from(MODES), st.floats(0.1, 100))
def test_a_constant_source_gives_a_constant_target(problem, adjust, value):
    source, c, mask = problem
    values = solve(torch.full_like(source, value), c, mask, adjust).values
    torch.testing.assert_close(values, torch.full_like(values, value))


@given(problems(torch.float64))
def test_one_measured_cell_fills_everything_with_its_value(problem):
    source, c, _ = problem
    mask = torch.zeros_like(source, dtype=torch.bool)
    mask[..., -1, -1] = True
    for adjust in MODES:
        values = solve(source, c, mask, adjust, tolerance=1e-10).values
        torch.testing.assert_close(values, source[..., -1:, -1:].expand_as(values), rtol=1e-4, atol=0)


@given(problems(torch.float64), st.sampled_from(MODES), st.floats(1e-3, 1e3))
def test_equivariance_to_scale(problem, adjust, scale):
    source, c, mask = problem
    a = solve(source * scale, c, mask, adjust)
    b = solve(source, c, mask, adjust)
    if a.converged.all() and b.converged.all():
        torch.testing.assert_close(a.values, b.values * scale, rtol=1e-4, atol=1e-6 * scale)


@given(problems(torch.float64), st.floats(-1e3, 1e3))
def test_equivariance_to_shift(problem, offset):
    source, c, mask = problem
    a = solve(source + offset, c, mask, "shift").values
    torch.testing.assert_close(a, solve(source, c, mask, "shift").values + offset, rtol=0, atol=1e-5)


@given(problems(torch.float64), st.sampled_from(MODES))
def test_symmetry_under_transposition(problem, adjust):
    source, c, mask = problem
    turned = Coefficients(c.horizontal.mT.contiguous(), c.vertical.mT.contiguous())
    a = solve(source, c, mask, adjust)
    b = solve(source.mT.contiguous(), turned, None if mask is None else mask.mT.contiguous(), adjust)
    if a.converged.all() and b.converged.all():
        torch.testing.assert_close(b.values.mT, a.values, rtol=1e-4, atol=1e-6)


@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 9), st.integers(0, 2**31), st.sampled_from(MODES))
def test_symmetry_under_flips(h, w, factor, seed, adjust):
    generator = torch.Generator().manual_seed(seed)
    H, W = h * factor, w * factor
    source = torch.rand(1, 1, h, w, generator=generator, dtype=torch.float64) + 0.5
    v, s = (torch.rand(1, *size, generator=generator, dtype=torch.float64) for size in ((H - 1, W), (H, W - 1)))
    a = solve(source, Coefficients(v, s), None, adjust)
    for axes in ((-1,), (-2,), (-2, -1)):
        b = solve(source.flip(axes), Coefficients(v.flip(axes), s.flip(axes)), None, adjust)
        torch.testing.assert_close(b.values.flip(axes), a.values, rtol=1e-4, atol=1e-6)


@given(problems(torch.float64))
def test_shift_stays_within_the_source_where_every_pixel_is_free_or_fixed(problem):
    """Maximum principle: with one pixel for each measured cell, no value leaves the range of the measurements."""
    source, c, mask = problem
    H, W = c.size
    generator = torch.Generator().manual_seed(0)
    source = torch.rand(1, 1, H, W, generator=generator, dtype=torch.float64)
    mask = torch.rand(1, 1, H, W, generator=generator) > 0.7
    mask[..., 0, 0] = True
    values = solve(source, c, mask, "shift", tolerance=1e-10).values
    assert values.max() <= source[mask].max() + 1e-6
    assert values.min() >= source[mask].min() - 1e-6
