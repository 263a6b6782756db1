"""The equilibrium is where the loop ends, for every kind of measurement."""

import math
import warnings

import pytest
import torch

from dada import compiling
from dada.diffusion import (
    Coefficients,
    ConvergenceWarning,
    down,
    equilibrium,
    iterate,
    multigrid,
    newton,
    system,
)

from .problems import random_mask, random_problem, random_weight

MODES = ["ratio", "shift"]
# name: target, source, which options
PROBLEMS = {
    "square": ((16, 16), (4, 4), ()),
    "odd": ((17, 23), (3, 5), ()),
    "holes": ((16, 20), (4, 5), ("mask",)),
    "partly covered": ((13, 17), (3, 4), ("coverage",)),
    "soft": ((12, 12), (3, 3), ("weight",)),
    "all at once": ((13, 18), (4, 3), ("mask", "coverage", "weight")),
    "wide blocks": ((52, 60), (2, 2), ()),
    "wide blocks, soft": ((52, 60), (2, 2), ("weight",)),
    "one row": ((1, 20), (1, 5), ()),
    "one column": ((20, 1), (5, 1), ()),
    "one cell": ((9, 7), (1, 1), ()),
    "one pixel": ((1, 1), (1, 1), ()),
    "no upsampling": ((6, 6), (6, 6), ()),
}


def options_of(names, source, target):
    made = {
        "mask": random_mask(source.shape),
        "coverage": random_mask((*source.shape[:2], *target)),
        "weight": random_weight(source.shape),
    }
    return {name: made[name] for name in names}


@pytest.mark.parametrize("adjust", MODES)
@pytest.mark.parametrize("name", PROBLEMS)
def test_the_loop_ends_at_the_equilibrium(adjust, name):
    target, size, names = PROBLEMS[name]
    source, c = random_problem(target, size, batch=2)
    options = options_of(names, source, target)
    solution = equilibrium(source, c, adjust=adjust, tolerance=1e-10, **options)
    assert solution.converged.all()
    # starting there, the loop stays there
    after = iterate(source, c, adjust=adjust, initial=solution.values, steps=200, **options)
    torch.testing.assert_close(after.values, solution.values, rtol=0, atol=1e-7)
    if "wide" not in name:  # and from elsewhere it gets there
        far = iterate(source, c, adjust=adjust, steps=40_000, **options)
        torch.testing.assert_close(far.values, solution.values, rtol=0, atol=2e-5)


@pytest.mark.parametrize("adjust", MODES)
@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_down_gives_back_the_source_converged_or_not(adjust, name, dtype):
    target, size, names = PROBLEMS[name]
    source, c = random_problem(target, size, dtype=dtype, batch=2)
    options = options_of(names, source, target)
    hard = torch.isinf(options.get("weight", torch.tensor(torch.inf))) & options.get("mask", torch.tensor(True))
    for limit in (1, 3, 2000):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            values = equilibrium(source, c, adjust=adjust, max_iterations=limit, **options).values
        misfit = (down(values.double(), size, options.get("coverage")) - source).abs()
        misfit = misfit[hard.expand_as(misfit) & misfit.isfinite()]
        assert misfit.max() <= 4 * torch.finfo(dtype).eps * source.max()


@pytest.mark.parametrize("adjust", MODES)
@pytest.mark.parametrize("names", [(), ("weight",), ("mask", "coverage", "weight")])
def test_the_start_changes_the_time_not_the_result(adjust, names):
    source, c = random_problem((16, 24), (4, 4))
    options = options_of(names, source, (16, 24))
    far = torch.rand(1, 1, 16, 24, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 9
    a = equilibrium(source, c, adjust=adjust, tolerance=1e-9, **options)
    b = equilibrium(source, c, adjust=adjust, tolerance=1e-9, initial=far, **options)
    torch.testing.assert_close(a.values, b.values, rtol=0, atol=1e-6)
    if names:
        return
    again = equilibrium(source, c, adjust=adjust, initial=a.values, tolerance=1e-6)
    assert again.iterations.item() == 0


def test_shift_minimises_the_energy_it_says():
    source, c = random_problem((10, 10), (2, 2))
    weight = torch.full_like(source, 3.0)

    def energy(y):
        smooth = (c.vertical * y.diff(dim=-2)[0] ** 2).sum() + (c.horizontal * y.diff(dim=-1)[0] ** 2).sum()
        return 0.5 * smooth + 0.5 * (weight * (down(y, (2, 2)) - source) ** 2).sum()

    y = equilibrium(source, c, adjust="shift", weight=weight, tolerance=1e-10).values
    least = energy(y)
    for seed in range(5):
        nearby = y + 1e-3 * torch.randn(y.shape, generator=torch.Generator().manual_seed(seed), dtype=y.dtype)
        assert energy(nearby) > least


def test_weights_lead_from_no_measurement_to_an_exact_one():
    source, c = random_problem((12, 12), (3, 3))
    soft = [torch.full_like(source, w) for w in (1e-6, 1.0, 1e3, 1e9)]
    misfit = [equilibrium(source, c, adjust="shift", weight=w).misfit_mean.item() for w in soft]
    assert misfit == sorted(misfit, reverse=True)
    for adjust in MODES:
        exact = equilibrium(source, c, adjust=adjust, tolerance=1e-9).values
        firm = equilibrium(source, c, adjust=adjust, tolerance=1e-9, weight=soft[-1]).values
        torch.testing.assert_close(firm, exact, rtol=0, atol=1e-5)


@pytest.mark.parametrize("adjust", MODES)
@pytest.mark.parametrize("factor", [2, 8, 32])
def test_a_hole_of_nine_tenths_is_filled_in_few_iterations(adjust, factor):
    size = 256 // factor
    source, c = random_problem((256, 256), (size, size), low=1.0, high=2.0)
    mask = torch.ones_like(source, dtype=torch.bool)
    side = math.ceil(0.95 * size) if factor < 32 else 7
    mask[..., :side, :side] = False
    source[~mask] = torch.nan
    solution = equilibrium(source, c, adjust=adjust, mask=mask)
    assert solution.converged.all()
    assert solution.iterations.item() < 250
    if adjust == "shift":  # harmonic inside the hole: no value beyond the others
        inside = solution.values[..., : side * factor, : side * factor]
        assert inside.max() <= solution.values[..., side * factor :, :].max().clamp(min=solution.values.max() - 1e-6)
    assert solution.values.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("factor", [4, 8, 32])
def test_coefficients_over_twelve_orders_of_magnitude(dtype, factor):
    generator = torch.Generator().manual_seed(factor)
    exponent = [-12 * torch.rand(1, *size, generator=generator, dtype=torch.float64) for size in ((63, 64), (64, 63))]
    c = Coefficients(*((10**e).to(dtype) for e in exponent))
    source = (torch.rand(1, 1, 64 // factor, 64 // factor, generator=generator) + 1).to(dtype)
    solution = equilibrium(source, c, adjust="shift")
    assert solution.converged.all()
    with warnings.catch_warnings():  # `ratio` may say that it did not get there, but stays exact, finite and positive
        warnings.simplefilter("ignore", ConvergenceWarning)
        other = equilibrium(source, c, adjust="ratio")
    for s in (solution, other):
        assert s.values.isfinite().all()
        assert s.misfit_max.item() <= 1e3 * torch.finfo(dtype).eps
    assert (other.values > 0).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("factor", [4, 32])
def test_isolated_pixels_and_blocks(dtype, factor):
    _, c = random_problem((64, 64), (1, 1), dtype=dtype)
    vertical, horizontal = c
    for i, j in ((5, 5), (20, 33), (40, 12)):  # single pixels
        vertical[:, i - 1 : i + 1, j] = 0
        horizontal[:, i, j - 1 : j + 1] = 0
    vertical[:, 31, :32] = 0  # a quarter of the image
    horizontal[:, :32, 31] = 0
    source = (torch.rand(1, 1, 64 // factor, 64 // factor, generator=torch.Generator().manual_seed(0)) + 1).to(dtype)
    solution = equilibrium(source, c, adjust="shift")
    assert solution.converged.all()
    assert solution.values.isfinite().all()
    assert solution.misfit_max.item() <= 1e3 * torch.finfo(dtype).eps
    nothing = Coefficients(torch.zeros_like(vertical), torch.zeros_like(horizontal))
    for adjust in MODES:  # no edge at all: the start stands
        solution = equilibrium(source, nothing, adjust=adjust)
        torch.testing.assert_close(solution.values, source.repeat_interleave(factor, 2).repeat_interleave(factor, 3))


@pytest.mark.parametrize("adjust", MODES)
def test_a_constant_image_stays_constant(adjust):
    _, c = random_problem((16, 16), (1, 1))
    source = torch.full((1, 1, 4, 4), 3.0, dtype=torch.float64)
    solution = equilibrium(source, c, adjust=adjust)
    assert solution.iterations.item() == 0
    torch.testing.assert_close(solution.values, torch.full_like(solution.values, 3.0))


def test_values_near_zero_and_below_need_shift():
    source, c = random_problem((8, 8), (2, 2), low=-2.0, high=1.0)
    with pytest.raises(ValueError, match='use adjust="shift"'):
        equilibrium(source, c, adjust="ratio")
    assert equilibrium(source, c, adjust="shift").converged.all()
    tiny = source.abs() * 1e-12 + 1e-13
    assert equilibrium(tiny, c, adjust="ratio").converged.all()


@pytest.mark.parametrize("adjust", MODES)
def test_not_converging_is_said_three_ways(adjust):
    source, c = random_problem((32, 32), (2, 2))
    with pytest.warns(ConvergenceWarning, match="equilibrium not reached: stopped after"):
        solution = equilibrium(source, c, adjust=adjust, max_iterations=2, tolerance=1e-8)
    assert not solution.converged.any()
    assert "residual" in solution.reason[0]
    assert solution.residual.item() > 1e-8


@pytest.mark.parametrize("seed", [4, 30, 42, 49, 168, 189])
def test_rounding_is_not_taken_for_convergence(seed):
    """Soft cells over six orders of magnitude in float32: r'z once came out negative, and was taken for zero."""
    generator = torch.Generator().manual_seed(seed)

    def random(*shape):
        return torch.rand(*shape, generator=generator)

    source = random(1, 1, 3, 3) * 5 + 1
    c = Coefficients(10 ** (-6 * random(1, 11, 12)), 10 ** (-6 * random(1, 12, 11)))
    weight = 10 ** (random(1, 1, 3, 3) * 6 - 3)
    solution = equilibrium(source, c, weight=weight, warn=False)
    wide = equilibrium(source.double(), Coefficients(*(v.double() for v in c)), weight=weight.double(), warn=False)
    if solution.converged.all() and wide.converged.all():
        assert (solution.values - wide.values).abs().mean() < 0.02 * wide.values.abs().mean()
    if not solution.converged.all():
        assert solution.residual.item() > 2e-4


@pytest.mark.parametrize("adjust", MODES)
@pytest.mark.parametrize("limit", [1, 5, 50])
def test_max_iterations_is_a_limit(adjust, limit):
    source, c = random_problem((96, 96), (6, 6), kappa=0.03)
    solution = equilibrium(source, c, adjust=adjust, max_iterations=limit, tolerance=1e-8, warn=False)
    assert solution.iterations.item() <= limit


@pytest.mark.parametrize(("group", "wide"), [(2, (25, 15)), (4, (24, 18))])  # more iterations of less time each
def test_iteration_counts_stay_what_they_are(group, wide, monkeypatch):
    monkeypatch.setattr(multigrid, "FIRST_GROUP", group)
    monkeypatch.setattr(system, "grids", multigrid.grids.__wrapped__)  # not those of other groups
    counts = {}
    for factor in (4, 8, 16, 32):
        source, c = random_problem((128, 128), (128 // factor, 128 // factor), dtype=torch.float32, kappa=0.1)
        counts[factor] = tuple(equilibrium(source, c, adjust=adjust).iterations.item() for adjust in MODES)
    pinned = {4: (38, 23), 8: (56, 35), 16: (94, 58), 32: wide}
    for factor, (ratio, shift) in pinned.items():
        assert counts[factor][0] <= 1.1 * ratio, counts
        assert counts[factor][1] <= 1.1 * shift, counts


def test_a_batch_is_solved_image_by_image():
    source, c = random_problem((16, 16), (4, 4), batch=3, channels=2)
    together = equilibrium(source, c)
    assert together.values.shape == (3, 2, 16, 16)
    assert together.iterations.shape == (3, 2)
    one = equilibrium(source[1:2, :1], Coefficients(*(v[1:2] for v in c)))
    torch.testing.assert_close(together.values[1, 0], one.values[0, 0])


@pytest.mark.parametrize(
    ("adjust", "given", "factor"), [("ratio", (), 4), ("ratio", ("mask", "coverage", "weight"), 32), ("shift", (), 32)]
)
def test_threads_give_what_one_thread_gives_to_the_last_digit(monkeypatch, adjust, given, factor):
    source, c = random_problem((256, 96), (256 // factor, 96 // factor), batch=2, dtype=torch.float32)
    options = options_of(given, source, (256, 96)) | {"adjust": adjust}
    alone = equilibrium(source, c, **options)
    monkeypatch.setattr(compiling, "LARGE", 1)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert compiling.threads_for(source.numel()) == 2
        shared = equilibrium(source, c, **options)
    finally:
        torch.set_num_threads(before)
    assert torch.equal(shared.iterations, alone.iterations)
    assert torch.equal(shared.values, alone.values)


@pytest.mark.parametrize("factor", [4, 32])
def test_a_newton_system_is_kept_while_little_changes(monkeypatch, factor):
    source, c = random_problem((96, 96), (96 // factor, 96 // factor), low=2.0, high=2.2)
    built, solutions = [], {}
    assemble = system.System.assemble
    monkeypatch.setattr(system.System, "assemble", lambda *given: built.append(1) or assemble(*given))
    for still in (0.0, newton.STILL):
        monkeypatch.setattr(newton, "STILL", still)
        built.clear()
        solutions[still] = (equilibrium(source, c, tolerance=1e-9), len(built))
    (anew, many), (kept, few) = solutions.values()
    assert few < many
    assert kept.converged.all()
    torch.testing.assert_close(kept.values, anew.values, rtol=0, atol=1e-8)


def test_the_half_step_after_the_last_cycle_brings_the_result_nearer(monkeypatch):
    source, c = random_problem((128, 96), (4, 3))
    true = equilibrium(source, c, adjust="shift", tolerance=1e-10).values
    near = equilibrium(source, c, adjust="shift", tolerance=1e-2).values
    monkeypatch.setattr(system.System, "half_step", lambda *given: None)
    without = equilibrium(source, c, adjust="shift", tolerance=1e-2).values
    assert (near - true).square().mean() < 0.9 * (without - true).square().mean()


def test_mistakes_are_named():
    source, c = random_problem((8, 8), (2, 2))
    cases = [
        ({"adjust": "add"}, '"ratio" or "shift", got'),
        ({"tolerance": 0.0}, "tolerance > 0"),
        ({"mask": torch.zeros_like(source, dtype=torch.bool)}, "no measured cell"),
        ({"mask": torch.ones(3, 3, dtype=torch.bool)}, "mask must broadcast to"),
        ({"weight": -torch.ones_like(source)}, "weight must be >= 0"),
        ({"initial": torch.full((1, 1, 8, 8), torch.nan, dtype=torch.float64)}, "initial holds NaN"),
    ]
    for options, message in cases:
        with pytest.raises(ValueError, match=message):
            equilibrium(source, c, **options)
    with pytest.raises(ValueError, match="NaN or infinite; leave them out with mask"):
        equilibrium(torch.full_like(source, torch.nan), c)
    with pytest.raises(ValueError, match="float32 or float64"):
        equilibrium(source.long(), c)
    with pytest.raises(ValueError, match="convert one to the other"):
        equilibrium(source.float(), c)
    with pytest.raises(ValueError, match=r"source must be \[B, K, h, w\]"):
        equilibrium(source[0], c)
    with pytest.raises(ValueError, match="with B = 1 as in source"):
        equilibrium(source, Coefficients(c.vertical[:, :-1], c.horizontal))
    with pytest.raises(ValueError, match="finite and >= 0"):
        equilibrium(source, Coefficients(-c.vertical, c.horizontal))


def test_an_image_does_not_depend_on_those_beside_it():
    """Holes and soft cells of one image call for grids that another must not be solved with."""
    source, c = random_problem((64, 64), (8, 8), batch=6)
    mask = torch.ones_like(source, dtype=torch.bool)
    mask[1, :, :6, :6] = False
    mask[4:, :, :5, :7] = False  # solved together, with as many iterations as each needs
    source[5] *= torch.linspace(0.1, 2, 8, dtype=source.dtype)
    weight = torch.full_like(source, torch.inf)
    weight[2, :, ::2] = 3.0
    together = equilibrium(source, c, mask=mask, weight=weight)
    for n in range(6):
        alone = equilibrium(
            source[n : n + 1], Coefficients(*(v[n : n + 1] for v in c)), mask=mask[n : n + 1], weight=weight[n : n + 1]
        )
        assert torch.equal(together.values[n], alone.values[0])
        assert torch.equal(together.iterations[n], alone.iterations[0])


@pytest.mark.parametrize("adjust", MODES)
def test_nothing_is_read_beside_the_coefficients_of_one_row(adjust):
    """An image of one row has no vertical edge; whatever lies in memory there must not matter."""
    source, c = random_problem((1, 20), (1, 5))
    garbage = torch.full((1, 3, 20), torch.nan, dtype=source.dtype)[:, 1:1]
    solution = equilibrium(source, Coefficients(garbage, c.horizontal), adjust=adjust)
    assert torch.equal(solution.values, equilibrium(source, c, adjust=adjust).values)
    assert solution.values.isfinite().all()
