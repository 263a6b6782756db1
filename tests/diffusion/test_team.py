"""Threads that share an image: they find what one thread finds, come and go, and never wait for one that will not."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from dada.diffusion import Coefficients, _cpu_team, _numba_joined, _numba_team, down, engine, equilibrium
from dada.diffusion._numba_team import agree, bands, page, put

from .problems import random_mask, random_problem, random_weight
from .test_passes import insist, system

MODES = ["ratio", "shift"]


@pytest.fixture
def threads(monkeypatch):
    """Three threads, for images of any size."""
    monkeypatch.setattr(engine, "SHARE", 1)
    monkeypatch.setattr(_numba_team, "QUICK", 0)  # tests may share their cores
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield engine.pool()[0]
    torch.set_num_threads(before)


@pytest.fixture
def tasks(monkeypatch):
    """The number of threads of each task that was done."""
    sizes, work = [], _numba_joined.work

    def counted(state, levels, band):
        if band.me == 0:
            sizes.append(band.size)
        return work(state, levels, band)

    monkeypatch.setattr(_numba_joined, "work", counted)
    return sizes


def solve(adjust, size, cells, **options):
    """Values, iterations and gradients of a random problem, in float64."""
    source, c = random_problem(size, cells, low=1.0)
    inputs = [v.clone().requires_grad_() for v in (source, *c)]
    solution = equilibrium(inputs[0], Coefficients(*inputs[1:]), adjust=adjust, tolerance=1e-9, **options)
    probe = torch.rand(solution.values.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(5))
    return solution, torch.autograd.grad((solution.values * probe).sum(), inputs)


@pytest.mark.parametrize("adjust", MODES)
@pytest.mark.parametrize("given", [(), ("mask",), ("weight",), ("mask", "weight")])
@pytest.mark.parametrize(("size", "cells"), [((96, 80), (24, 20)), ((97, 83), (11, 9)), ((128, 96), (4, 3))])
def test_a_team_finds_what_one_thread_finds(adjust, given, size, cells, threads, tasks, monkeypatch):
    """To the last digit, whether threads come or not; and with another number of threads, but for rounding."""
    source, _ = random_problem(size, cells, low=1.0)
    made = {"mask": random_mask, "weight": random_weight}
    options = {name: made[name](source.shape) for name in given}
    results = []
    for come in (True, False):
        with monkeypatch.context() as patch:
            insist(patch, come)
            results.append(solve(adjust, size, cells, **options))
            assert set(tasks) == {3 if come else 1}
            tasks.clear()
    (together, gradients), (alone, same) = results
    assert torch.equal(together.values, alone.values)
    assert all(map(torch.equal, gradients, same))
    torch.set_num_threads(1)
    single, similar = solve(adjust, size, cells, **options)
    assert together.converged.all()
    assert abs(together.iterations - single.iterations) <= 0.05 * single.iterations  # sums are rounded in another order
    torch.testing.assert_close(together.values, single.values, rtol=0, atol=1e-8)
    for a, b in zip(gradients, similar, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6 * b.abs().max().item())
    if not given:
        torch.testing.assert_close(down(together.values, cells), source, rtol=0, atol=1e-13)


def test_threads_that_come_late_change_nothing(threads, tasks):
    """As they come: some tasks are done alone, the others together."""
    source, c = random_problem((128, 96), (4, 3), dtype=torch.float32)
    gate = threading.Event()
    first = equilibrium(source, c).values
    tasks.clear()
    for seconds in (0.0, 1e-3, 3e-3, 1e-2, 1.0):
        busy = [threads.submit(gate.wait, seconds) for _ in range(3)]
        for _ in range(3):
            assert torch.equal(equilibrium(source, c).values, first)
        for done in busy:
            done.result()
    assert 1 in tasks


def test_small_images_are_one_thread_s(threads, monkeypatch):
    made = []
    monkeypatch.setattr(engine, "SHARE", 1 << 14)
    kept = _cpu_team.bands
    monkeypatch.setattr(_cpu_team, "bands", lambda edges, *more: made.append(len(edges) - 1) or kept(edges, *more))
    for size, parts in ((64, 1), (127, 1), (128, 2), (256, 3)):
        made.clear()
        equilibrium(*random_problem((size, size), (8, 8)))
        assert set(made) == {parts}


def test_threads_agree_on_sums():
    edges = np.arange(4)
    team, (alone,) = bands(edges, 3), bands(edges, 1)

    def sums(band) -> list[tuple]:
        out = []
        for k in range(500):
            numbers = page(band)
            for part in range(band.first, band.last):
                put(numbers, part, float(k), part * 0.1, 1.0)
            out.append(agree(band, numbers))
        return out

    with ThreadPoolExecutor(3) as pool:
        results = list(pool.map(sums, team))
    assert results[0] == results[1] == results[2] == sums(alone)
    assert results[0][7] == (21.0, pytest.approx(0.3), 3.0)


def test_nobody_is_kept_when_a_solve_ends(threads):
    source, c = random_problem((96, 80), (24, 20))
    equilibrium(source, c)
    lock = engine.one_team(threads)
    assert lock.acquire(blocking=False)
    lock.release()
    gate = threading.Barrier(3)  # passes only if all three threads are free
    for done in [threads.submit(gate.wait, 10) for _ in range(3)]:
        done.result()


def test_while_threads_are_busy_one_goes_on_alone(threads, tasks):
    gate = threading.Event()
    busy = [threads.submit(gate.wait, 60) for _ in range(3)]
    source, c = random_problem((96, 80), (24, 20))
    try:
        solution = equilibrium(source, c)
    finally:
        gate.set()
    for done in busy:
        done.result()
    assert set(tasks) == {1}
    assert solution.converged.all()
    assert threads.submit(lambda: 1).result() == 1  # nothing else waits there


def test_two_teams_do_not_wait_for_each_other_s_threads(threads):
    """Four callers at once, of whom one at a time has the threads."""
    problems = [random_problem((96, 80), (24, 20), dtype=torch.float32, seed=seed) for seed in range(4)]
    true = [equilibrium(*problem).values for problem in problems]
    found: dict[int, list] = {n: [] for n in range(4)}

    def run(n: int) -> None:
        torch.set_num_threads(3)
        found[n].extend(equilibrium(*problems[n]).values for _ in range(10))

    callers = [threading.Thread(target=run, args=(n,), daemon=True) for n in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(60)
        assert not caller.is_alive()
    for n, values in found.items():
        for value in values:
            assert torch.equal(value, true[n])


@pytest.mark.parametrize("who", [0, 1, 2])
def test_a_thread_that_fails_lets_the_others_go(who, threads, monkeypatch):
    work = _numba_joined.work

    def fail(state, levels, band):
        if band.me == who:
            raise MemoryError(f"thread {who}")
        return work(state, levels, band)

    source, c = random_problem((96, 80), (24, 20))
    monkeypatch.setattr(_numba_joined, "work", fail)
    insist(monkeypatch)
    with pytest.raises(MemoryError, match=f"thread {who}"):
        equilibrium(source, c)
    monkeypatch.undo()
    test_nobody_is_kept_when_a_solve_ends(threads)


def test_threads_that_cannot_come_are_an_error_and_nobody_waits():
    pool = ThreadPoolExecutor(2)
    pool.shutdown()
    with pytest.raises(RuntimeError, match="shutdown"):
        system((6, 5), (48, 40), "hard", 2, pool)
    assert engine.one_team(pool).acquire(blocking=False)


def test_arrays_that_are_replaced_are_noticed(threads):
    with system((6, 5), (48, 40), "hard", 3, threads) as given:
        team = given.team
        given.begin()
        assert given.team is team
        given.hold(np.ones((48, 40)))
        given.begin()
        assert given.team is not team
