"""The passes of conjugate gradients on the CPU: in bands as in one piece, and what they foresee as it turns out."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from dada.diffusion import _cpu_descent, _numba_descent, partition
from dada.diffusion._cpu_descent import Measurement
from dada.diffusion._cpu_system import CpuSystem
from dada.diffusion._numba_rows import BORDER

# cells, pixels: even and odd blocks, many at once (more rows than are made at a time), and blocks one row high
SIZES = [
    ((6, 5), (48, 40)),
    ((6, 5), (45, 38)),
    ((70, 3), (330, 12)),
    ((3, 3), (96, 96)),
    ((5, 4), (5, 16)),
    ((1, 1), (3, 3)),
    ((280, 2), (1320, 8)),  # so high that each of two bands is made in pieces
]
CELLS = ["hard", "holes", "soft"]


def system(cells, size, kind, threads=1, pool=None, adjust="shift", seed=0) -> CpuSystem:
    """A random system of `shift`, built, with a random right-hand side. One at a time: all use the same memory."""
    rng = np.random.default_rng(seed)
    cv, ch = rng.random((size[0] - 1, size[1])) + 0.01, rng.random((size[0], size[1] - 1)) + 0.01
    blocks = partition(cells, size)
    count = np.outer(np.diff(blocks.rows), np.diff(blocks.cols)).astype(float)
    slack = np.zeros(cells)
    if kind == "soft":
        slack[rng.random(cells) < 0.5] = 0.1
    if kind == "holes":
        hole = rng.random(cells) < 0.5
        hole[0, 0] = False
        count[hole], slack[hole] = 0, np.inf
    measured = np.repeat(np.repeat(count > 0, np.diff(blocks.rows), 0), np.diff(blocks.cols), 1).astype(float)
    measurement = Measurement(blocks, rng.random(cells) + 1, slack, count, measured if kind == "holes" else None)
    out = CpuSystem(cv, ch, measurement, adjust, pool, threads)
    out.assemble(None)
    out.r[:] = rng.standard_normal(size)
    return out


@pytest.fixture(scope="module")
def pool():
    with ThreadPoolExecutor(4) as threads:
        yield threads


def iterate(given: CpuSystem, steps: int) -> list[float]:
    """Every r'z of some iterations, made pass by pass."""
    rz, beta = given.begin(), 0.0
    out = [rz]
    for _ in range(steps):
        energy, rz = given.direction(beta, rz)
        new = given.step(given.divide(rz, energy))
        beta, rz = given.divide(new, rz), new
        out.append(rz)
    return out


def system_and_steps(*given, steps: int) -> dict[str, np.ndarray]:
    """What a system is made of, each r'z, and the solution after some iterations."""
    made = system(*given)
    out = {name: getattr(made, name).copy() for name in ("wv", "wh", "sd", "g", "inverse")}
    return out | {"rz": np.array(iterate(made, steps)), "x": made._settle().copy()}


def few_steps(size: tuple[int, int]) -> int:
    """Fewer than would solve a tiny image."""
    return min(6, size[0] * size[1] // 4)


@pytest.mark.parametrize("kind", CELLS)
@pytest.mark.parametrize(("cells", "size"), SIZES)
@pytest.mark.parametrize("threads", [2, 4])
def test_bands_make_the_same_iterations_as_one_piece(cells, size, kind, threads, pool, monkeypatch):
    monkeypatch.setattr(_cpu_descent, "MANY_CELLS", 4)
    whole = system_and_steps(cells, size, kind, steps=few_steps(size))
    banded = system_and_steps(cells, size, kind, threads, pool, steps=few_steps(size))
    for name, values in whole.items():
        np.testing.assert_allclose(banded[name], values, rtol=1e-8, atol=1e-10, err_msg=name)


@pytest.mark.parametrize("kind", CELLS)
@pytest.mark.parametrize(("cells", "size"), [pair for pair in SIZES if pair[0] != (3, 3)])
def test_one_compiled_call_makes_the_same_iterations(cells, size, kind):
    """By Jacobi; with a cycle it makes half a step more, and `test_equilibrium.py` compares results."""
    piecewise = system_and_steps(cells, size, kind, steps=few_steps(size))
    at_once = system(cells, size, kind)
    rz, count = at_once.descend(at_once.begin(), 0.0, few_steps(size))
    assert count == few_steps(size)
    assert rz == pytest.approx(piecewise["rz"][-1], rel=1e-8)
    np.testing.assert_allclose(at_once._settle(), piecewise["x"], rtol=0, atol=1e-10)


@pytest.mark.parametrize("kind", CELLS)
@pytest.mark.parametrize(("cells", "size"), SIZES[:4])
def test_what_is_foreseen_of_the_residual_is_what_it_turns_out_to_be(cells, size, kind, monkeypatch):
    guesses = {}
    for sure in (_cpu_descent.SURE, float("inf")):  # as it is; never foresee, always look
        monkeypatch.setattr(_cpu_descent, "SURE", sure)
        given = system(cells, size, kind)
        given.hierarchy = None
        guesses[sure] = iterate(given, 8)
        assert given.ahead == np.isfinite(sure)
    foreseen, computed = guesses.values()
    np.testing.assert_allclose(foreseen, computed, rtol=1e-9)


@pytest.mark.parametrize("kind", CELLS)
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("looks", [(), range(9), (2,), (3,), (3, 4, 6)])
def test_a_solution_that_follows_every_second_direction_misses_none(kind, threads, looks, pool, monkeypatch):
    """x, against the sum of all steps along all directions; in some iterations r is computed rather than foreseen."""
    sure = _cpu_descent.SURE
    for steps in range(1, 9):
        given = system((6, 5), (48, 40), kind, threads, pool)
        given.hierarchy = None
        rz, beta, x, owed = given.begin(), 0.0, np.zeros((48, 40)), []
        for number in range(steps):
            monkeypatch.setattr(_cpu_descent, "SURE", float("inf") if number in looks else sure)
            energy, rz = given.direction(beta, rz)
            alpha = given.divide(rz, energy)
            x += alpha * given.p[1:-1, BORDER:-BORDER]
            new = given.step(alpha)
            beta, rz = given.divide(new, rz), new
            owed.append(given.owed)
        assert any(owed) == (kind == "hard" and steps > 1 and len(looks) < 9)
        np.testing.assert_allclose(given._settle(), x, rtol=0, atol=1e-12 * np.abs(x).max())


def test_a_solution_waits_only_where_the_direction_before_can_be_told():
    assert _numba_descent.owe(2.0, 0.5, 0.0, False) == (0, 0, 4)
    assert _numba_descent.owe(2.0, 0.5, 4.0, False) == (6, -4, 0)  # catches up
    assert _numba_descent.owe(2.0, 0.05, 0.0, False) == (2, 0, 0)  # digits would be lost
    assert _numba_descent.owe(2.0, 0.5, 0.0, True) == (2, 0, 0)  # z is not r where cells are not hard


@pytest.mark.parametrize("kind", ["holes", "soft"])
def test_what_the_cells_foresee_loses_no_digits_in_many_iterations(kind):
    given = system((24, 20), (96, 80), kind)
    if given.cycles:
        given.hierarchy = None
    iterate(given, 60)
    assert given.ahead
    coming = given.r - given.alpha * given.q
    blocks = given.measurement.blocks
    sums = np.add.reduceat(np.add.reduceat(given.g * coming, blocks.rows[:-1], 0), blocks.cols[:-1], 1)
    far = ~given.hard
    np.testing.assert_allclose(given.s1[far], sums[far], rtol=0, atol=1e-13 * np.abs(coming).max())


@pytest.mark.parametrize("kind", CELLS)
def test_the_product_of_residual_and_cycle_is_known_before_the_way_up(kind):
    """r'z by `cycled`, against z itself, which is the first direction."""
    given = system((3, 3), (96, 96), kind)
    assert given.cycles
    rz = given.begin()
    given.direction(0.0, rz)
    z = given.p[1:-1, BORDER:-BORDER]
    assert (given.r * z).sum() == pytest.approx(rz, rel=1e-10)


@pytest.mark.parametrize(("cells", "size"), [((6, 5), (48, 40)), ((3, 3), (96, 96))])
@pytest.mark.parametrize("threads", [1, 3])
def test_memory_of_earlier_images_does_not_matter(cells, size, threads, pool):
    results = []
    for left in (0.0, np.nan):
        given = system(cells, size, "hard", threads, pool)
        for image in (given.x, given.q, given.t, given.p[1:-1, BORDER:-BORDER]):
            image[:] = left
        given.descend(given.begin(), 0.0, 4)
        results.append(given._settle().copy())
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("threads", [1, 3])
def test_without_an_iteration_nothing_moves(threads, pool):
    given = system((6, 5), (48, 40), "hard", threads, pool, adjust="ratio")
    given.measurement.source[:] = 2
    y = np.full((48, 40), 2.0)
    given.hold(y)
    given.x[:], given.p[1:-1, BORDER:-BORDER] = np.nan, np.nan
    rz = given.linearise()
    given.descend(rz, rz, 5)  # it is there already
    given.retract()
    np.testing.assert_array_equal(y, 2)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("steps", [1, 2, 3, 4])
def test_a_newton_step_takes_all_of_the_solution(steps, threads, pool):
    """Whether x was finished by a pass of its own, or what it lacks is added on the way."""
    results = []
    for finish in (False, True):
        given = system((6, 5), (48, 40), "hard", threads, pool, adjust="ratio")
        y = np.random.default_rng(1).random((48, 40)) + 1
        given.hold(y)
        given.descend(given.linearise(), 0.0, steps)
        assert bool(given.owed) == (steps == 3)  # beta is too small before
        if finish:
            given._settle()
        given.retract()
        results.append(y)
    np.testing.assert_allclose(*results, rtol=1e-13)
