"""The passes of conjugate gradients on the CPU: by one thread and by a team, the same steps as plain torch makes."""

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from dada.diffusion import Coefficients, _numba_descent, _numba_joined, _numba_team, partition
from dada.diffusion._cpu_descent import Measurement
from dada.diffusion._cpu_system import CpuSystem
from dada.diffusion._cpu_team import Team
from dada.diffusion._numba_rows import BORDER
from dada.diffusion._numba_team import bands
from dada.diffusion._torch import TorchSystem
from dada.diffusion.measurement import Constraint

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


def in_torch(given: CpuSystem) -> TorchSystem:
    """The same system in plain torch operations."""
    m = given.measurement
    source, slack, count = (torch.from_numpy(v)[None] for v in (m.source, m.slack, m.count))
    measured = None if m.measured is None else torch.from_numpy(m.measured)[None].bool()
    out = TorchSystem(
        Coefficients(torch.from_numpy(given.cv)[None], torch.from_numpy(given.ch)[None]),
        Constraint(m.blocks, source, 1 / slack, count, measured),
        "shift",
    )
    if given.hierarchy is None:
        out.grids = ()
    out.assemble(None)
    out.r = torch.from_numpy(given.r.copy())[None]
    return out


def plain_steps(given: CpuSystem, steps: int) -> tuple[float, np.ndarray]:
    """r'z and x after some iterations in plain torch."""
    plain = in_torch(given)
    first = plain.begin()
    rz, count = plain.descend(first, torch.zeros_like(first), steps)
    assert int(count) == steps
    return float(rz), plain.x[0].numpy()


@pytest.fixture(scope="module")
def pool():
    with ThreadPoolExecutor(4) as threads, pytest.MonkeyPatch.context() as patch:
        insist(patch)
        yield threads


def insist(patch: pytest.MonkeyPatch, come: bool = True) -> None:
    """Let each team wait until all its threads are here, on whatever core; or let it never see that they are."""
    here = Team.here.fget
    patch.setattr(_numba_team, "QUICK", 0)

    def wait(team: Team) -> bool:
        end = time.monotonic() + 60
        while come and team.followers and not here(team):
            assert time.monotonic() < end
            time.sleep(0)
        return come and here(team)

    patch.setattr(Team, "here", property(wait))


def few_steps(size: tuple[int, int]) -> int:
    """Fewer than would solve a tiny image."""
    return min(6, size[0] * size[1] // 4)


@pytest.mark.parametrize("kind", CELLS)
@pytest.mark.parametrize(("cells", "size"), SIZES)
@pytest.mark.parametrize("threads", [1, 2, 4])
def test_the_steps_are_those_of_plain_conjugate_gradients(cells, size, kind, threads, pool):
    """By Jacobi and, where blocks are wide or holes are, by the V-cycle."""
    with system(cells, size, kind, threads, pool) as given:
        rz, x = plain_steps(given, few_steps(size))
        found, count = given.descend(given.begin(), 0.0, few_steps(size))
        assert count == few_steps(size)
        assert found == pytest.approx(rz, rel=1e-8)
        np.testing.assert_allclose(given._settle(), x, rtol=0, atol=1e-9 * np.abs(x).max())


@pytest.mark.parametrize("kind", CELLS)
@pytest.mark.parametrize(("cells", "size"), SIZES)
def test_a_team_builds_the_system_that_one_thread_builds(cells, size, kind, pool):
    names, built = ("wv", "wh", "sd", "g", "s0", "inverse"), []
    for threads in (1, 3):
        with system(cells, size, kind, threads, pool) as given:
            built.append([getattr(given, name).copy() for name in names])
            if given.hierarchy:
                levels = given.hierarchy.levels
                built[-1] += [
                    getattr(level, name).copy() for level in levels for name in (*names[:4], "isd", "inverse")
                ]
    for alone, together in zip(*built, strict=True):
        np.testing.assert_array_equal(together, alone)


@pytest.mark.parametrize("kind", CELLS)
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("sure", [1e-2, 0.3, float("inf")])  # as it is; look now and then; never foresee, always look
@pytest.mark.parametrize("steps", range(1, 10))
def test_what_is_foreseen_is_what_it_turns_out_to_be(kind, threads, sure, steps, pool):
    """Of r, from which r'z and directions follow, and of x, which follows every second direction and misses none."""
    given = system((6, 5), (48, 40), kind, threads, pool)
    given.disband()  # or it would go on with what it knows
    given.hierarchy, given.sure = None, sure
    with given:
        rz, x = plain_steps(given, steps)
        assert given.descend(given.begin(), 0.0, steps)[0] == pytest.approx(rz, rel=1e-9)
        assert bool(given.owed) <= (kind == "hard" and steps > 1 and np.isfinite(sure))
        np.testing.assert_allclose(given._settle(), x, rtol=0, atol=1e-12 * np.abs(x).max())


def test_a_solution_waits_only_where_the_direction_before_can_be_told():
    assert _numba_descent.owe(2.0, 0.5, 0.0, False) == (0, 0, 4)
    assert _numba_descent.owe(2.0, 0.5, 4.0, False) == (6, -4, 0)  # catches up
    assert _numba_descent.owe(2.0, 0.05, 0.0, False) == (2, 0, 0)  # digits would be lost
    assert _numba_descent.owe(2.0, 0.5, 0.0, True) == (2, 0, 0)  # z is not r where cells are not hard


@pytest.mark.parametrize("kind", ["holes", "soft"])
def test_what_the_cells_foresee_loses_no_digits_in_many_iterations(kind):
    given = system((24, 20), (96, 80), kind)
    given.hierarchy = None
    given.descend(given.begin(), 0.0, 60)
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
    _numba_joined._next_direction(given._state(), given._levels(), bands(np.array([0, 3]), 1)[0], True, 0.0, 0.0)
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
        with given:
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
    with given:
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
        with given:
            given.descend(given.linearise(), 0.0, steps)
            assert bool(given.owed) == (steps == 3)  # beta is too small before
            if finish:
                given._settle()
            given.retract()
        results.append(y)
    np.testing.assert_allclose(*results, rtol=1e-13)
