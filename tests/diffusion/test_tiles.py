"""Large images are solved tile by tile before they are solved as a whole; here small ones are, so as to see it."""

import numpy as np
import pytest
import torch

from dada.diffusion import Coefficients, _cpu_descent, _cpu_tiles, _tiles, down, equilibrium, partition, solver, up
from dada.diffusion._cpu_descent import Measurement
from dada.diffusion._cpu_system import CpuSystem

from .problems import random_mask, random_problem, random_weight

MODES = ["ratio", "shift"]
SIZES = [  # target, source
    ((96, 128), (24, 32)),
    ((128, 96), (16, 12)),
    ((131, 97), (23, 17)),
    ((256, 192), (8, 6)),
    ((40, 200), (40, 50)),
]


@pytest.fixture
def small(monkeypatch):
    """Tiles of some 32 pixels, in images of any size."""
    monkeypatch.setattr(_cpu_tiles, "LARGE", 0)
    monkeypatch.setattr(_cpu_descent, "KEPT_PIXELS", 0)
    monkeypatch.setattr(_tiles, "SIDE", 32)
    monkeypatch.setattr(_tiles, "WIDE_SIDE", 64)
    monkeypatch.setattr(_tiles, "MARGIN", 4)
    monkeypatch.setattr(_cpu_tiles, "tiles", _tiles.tiles.__wrapped__)


@pytest.fixture
def counted(monkeypatch):
    """How many tiles were solved."""
    seen = []
    kept = _cpu_tiles._measured
    monkeypatch.setattr(_cpu_tiles, "_measured", lambda whole, tile: seen.append(tile) or kept(whole, tile))
    return seen


@pytest.mark.parametrize("sizes", SIZES)
class TestCuts:
    def test_each_pixel_is_used_once(self, small, sizes):
        target, source = sizes
        for parts in _cpu_tiles.tiles(partition(source, target)):
            count = np.zeros(target, int)
            for tile in parts:
                count[tile.core] += 1
                assert tile.blocks.target_size == np.empty(target)[tile.pixels].shape
                assert tile.blocks.source_size == np.empty(source)[tile.cells].shape
                marked = np.zeros(target, bool)
                marked[tile.core] = True
                assert marked[tile.pixels][tile.inner].all()
                assert marked[tile.pixels].sum() == marked.sum()
            assert (count == 1).all()

    def test_cells_are_never_cut(self, small, sizes):
        target, source = sizes
        blocks = partition(source, target)
        for tile in sum(_cpu_tiles.tiles(blocks), ()):
            rows, cols = (
                starts[cells.start : cells.stop + 1]
                for starts, cells in zip((blocks.rows, blocks.cols), tile.cells, strict=True)
            )
            np.testing.assert_array_equal(tile.blocks.rows, rows - rows[0])
            np.testing.assert_array_equal(tile.blocks.cols, cols - cols[0])
            assert (tile.pixels[0].start, tile.pixels[1].stop) == (rows[0], cols[-1])

    def test_first_tiles_have_margins_and_the_second_lie_across_their_seams(self, small, sizes):
        target, source = sizes
        first, second = _cpu_tiles.tiles(partition(source, target))[:2]
        for tile in first:
            for core, cut, end in zip(tile.core, tile.pixels, target, strict=True):
                assert cut.start == 0 or core.start - cut.start >= 4
                assert cut.stop == end or cut.stop - core.stop >= 4
        for direction in (0, 1):
            seams, others = ({tile.core[direction].start for tile in parts} - {0} for parts in (first, second))
            assert not seams & others


def test_of_wide_blocks_a_third_set_has_inside_what_lies_on_the_borders_of_both_others():
    narrow, wide = _tiles.tiles(partition((128, 160), (1024, 1280))), _tiles.tiles(partition((32, 40), (1024, 1280)))
    assert len(narrow) == 2
    assert len(wide) == 3
    for direction, end in ((0, 1024), (1, 1280)):
        borders = [{tile.core[direction].start for tile in parts} - {0} for parts in wide]
        assert len(borders[2]) == len(borders[0]) + 1
        assert min(abs(x - y) for x in borders[2] for y in borders[0] | borders[1] | {0, end}) >= 64
    assert all(tile.pixels == tile.core for tile in wide[2])


def test_few_tiles_are_not_worth_it(monkeypatch):
    assert _tiles.tiles(partition((32, 32), (256, 256))) == ()
    assert len(_tiles.tiles(partition((64, 64), (512, 512)))[0]) == 4


@pytest.mark.parametrize("adjust", MODES)
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("sizes", SIZES)
def test_values_and_gradients_are_those_of_the_whole(small, counted, adjust, threads, sizes, monkeypatch):
    target, size = sizes
    source, c = random_problem(target, size, low=1.0)
    probe = torch.rand(1, 1, *target, dtype=torch.float64, generator=torch.Generator().manual_seed(5))
    monkeypatch.setattr("dada.diffusion.engine.LARGE", 0)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    results = []
    try:
        for tiled in (True, False):
            monkeypatch.setattr(_cpu_tiles, "LARGE", 0 if tiled else 1 << 40)
            inputs = [t.clone().requires_grad_() for t in (source, *c)]
            solution = equilibrium(inputs[0], Coefficients(*inputs[1:]), adjust=adjust, tolerance=1e-9)
            gradients = torch.autograd.grad((solution.values * probe).sum(), inputs)
            results.append((solution, gradients))
            assert solution.converged.all()
            torch.testing.assert_close(down(solution.values, size), source, rtol=0, atol=1e-13)
            assert bool(counted) == tiled
            counted.clear()
    finally:
        torch.set_num_threads(before)
    (tiled, with_tiles), (whole, without) = results
    torch.testing.assert_close(tiled.values, whole.values, rtol=1e-7, atol=1e-8)
    for a, b in zip(with_tiles, without, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6 * b.abs().max().item())


@pytest.mark.parametrize("adjust", MODES)
def test_threads_do_not_change_the_tiles(small, adjust, monkeypatch):
    source, c = random_problem((128, 96), (16, 12), dtype=torch.float32)
    monkeypatch.setattr("dada.diffusion.engine.LARGE", 0)
    monkeypatch.setattr("dada.diffusion.solver.ROUNDS", 0)  # nothing but the tiles
    before, values = torch.get_num_threads(), []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        try:
            out = []
            monkeypatch.setattr(_cpu_tiles, "_each", spy(_cpu_tiles._each, out))
            equilibrium(source, c, adjust=adjust, warn=False)
        finally:
            torch.set_num_threads(before)
        values.append(out[0])
    np.testing.assert_array_equal(*values)


def spy(each, out):
    def run(system, image, *rest):
        done = each(system, image, *rest)
        out.append(image.copy())
        return done

    return run


@pytest.mark.parametrize("adjust", MODES)
@pytest.mark.parametrize("sizes", [SIZES[1], SIZES[2]])
def test_tiles_alone_come_near_to_the_solution_and_to_its_adjoint(small, sizes, adjust, monkeypatch):
    monkeypatch.setattr(_tiles, "MARGIN", 12)
    target, size = sizes
    source, c = random_problem(target, size, low=1.0, high=2.0)
    y = equilibrium(source, c, adjust=adjust, tolerance=1e-9).values
    probe = np.random.default_rng(3).standard_normal(target)
    cv, ch = (v[0].numpy() for v in c)
    blocks = partition(size, target)
    cells = source[0, 0].numpy()
    m = Measurement(blocks, cells, np.zeros(size), blocks.area.astype(float), None)

    def adjoint(tolerance, spied):
        system, a = CpuSystem(cv, ch, m, adjust), np.zeros(target)
        tiled = _cpu_tiles.approach_adjoint(system, y[0, 0].numpy(), probe, 5000)
        seen = []
        monkeypatch.setattr(_cpu_tiles, "_each", spy(kept, seen))
        if adjust == "ratio":
            solver.ratio_adjoint(system, y[0, 0].numpy().copy(), probe, a, tolerance, 5000, tiled)
        else:
            solver.shift_adjoint(system, probe, a, tolerance, 5000, tiled)
        return seen[0] if spied else a

    kept, seen = _cpu_tiles._each, []
    monkeypatch.setattr(_cpu_tiles, "_each", spy(kept, seen))
    equilibrium(source, c, adjust=adjust, tolerance=1e-6)
    centre = 0 if adjust == "ratio" else cells.mean()
    start = up(source, target)[0, 0].numpy()
    error, before = (np.abs(given - y[0, 0].numpy()).mean() for given in (seen[0] + centre, start))
    assert error < 2e-3 * before

    true = adjoint(1e-9, spied=False)
    assert np.abs(adjoint(1e-6, spied=True) - true).mean() < 2e-3 * np.abs(true).mean()


@pytest.mark.parametrize("adjust", MODES)
def test_the_third_set_comes_nearer(small, adjust, monkeypatch):
    target, size = SIZES[3]
    source, c = random_problem(target, size, low=1.0, high=2.0)
    y = equilibrium(source, c, adjust=adjust, tolerance=1e-9).values[0, 0].numpy()
    centre = 0 if adjust == "ratio" else source.mean().item()
    kept, cut, errors = _cpu_tiles._each, _cpu_tiles.tiles, []
    for sets in (2, 3):
        seen: list[np.ndarray] = []
        monkeypatch.setattr(_cpu_tiles, "tiles", lambda blocks, sets=sets: cut(blocks)[:sets])
        monkeypatch.setattr(_cpu_tiles, "_each", spy(kept, seen))
        monkeypatch.setattr(_cpu_tiles, "LEFT", {2: (1e-4, 1e-4), 3: (1e-4, 1e-4, 1e-4)})
        equilibrium(source, c, adjust=adjust, tolerance=1e-4)
        errors.append(np.abs(seen[0] + centre - y).mean())
    assert errors[1] < 0.5 * errors[0]


@pytest.mark.parametrize("adjust", MODES)
def test_a_hard_part_does_not_cost_iterations_elsewhere(small, adjust, monkeypatch):
    monkeypatch.setattr(_tiles, "SIDE", 128)
    monkeypatch.setattr(_tiles, "MARGIN", 16)
    source, maze = random_problem((512, 512), (64, 64), dtype=torch.float32, kappa=1.0, low=1.8, high=2.2)
    source[..., :20, :], source[..., 28:, :], source[..., :20], source[..., 28:] = 2, 2, 2, 2
    c = Coefficients(*(torch.ones_like(edges) for edges in maze))
    for easy, hard in zip(c, maze, strict=True):  # many walls in one place
        easy[:, 160:224, 160:224] = (hard > hard.mean())[:, 160:224, 160:224] + 1e-3
    tiled = equilibrium(source, c, adjust=adjust)
    monkeypatch.setattr(_cpu_tiles, "LARGE", 1 << 40)
    whole = equilibrium(source, c, adjust=adjust)
    assert tiled.converged.all()
    assert tiled.iterations.item() < 0.7 * whole.iterations.item()


@pytest.mark.parametrize("adjust", MODES)
def test_a_tile_that_does_not_get_there_is_left_to_the_whole(small, counted, adjust, monkeypatch):
    monkeypatch.setattr(_cpu_tiles, "SHARES", {2: (1e-3, 1e-3), 3: (1e-3, 1e-3, 1e-3)})
    source, c = random_problem((128, 96), (16, 12))
    seen: list[np.ndarray] = []
    monkeypatch.setattr(_cpu_tiles, "_each", spy(_cpu_tiles._each, seen))
    solution = equilibrium(source, c, adjust=adjust, tolerance=1e-8)
    assert counted
    centre = 0 if adjust == "ratio" else source.mean().item()
    np.testing.assert_allclose(seen[0] + centre, up(source, (128, 96))[0, 0], rtol=1e-12)
    assert solution.converged.all()
    monkeypatch.setattr(_cpu_tiles, "LARGE", 1 << 40)
    whole = equilibrium(source, c, adjust=adjust, tolerance=1e-8)
    torch.testing.assert_close(solution.values, whole.values, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("adjust", MODES)
@pytest.mark.parametrize("limit", [5, 99, 100, 130])
@pytest.mark.parametrize("sizes", SIZES)
def test_the_limit_of_iterations_holds_with_tiles(small, counted, adjust, limit, sizes):
    target, size = sizes
    source, c = random_problem(target, size, kappa=0.05)
    solution = equilibrium(source, c, adjust=adjust, tolerance=1e-14, max_iterations=limit, warn=False)
    assert bool(counted) == (limit >= 100)
    assert solution.iterations.item() <= limit
    torch.testing.assert_close(down(solution.values, size), source, rtol=0, atol=1e-13)


@pytest.mark.parametrize("adjust", MODES)
def test_a_region_tied_to_no_measurement_stays_within_its_start(small, counted, adjust):
    source, c = random_problem((128, 96), (16, 12), low=1.0, high=2.0)
    mask = torch.ones_like(source, dtype=torch.bool)
    mask[..., 4:9, 3:8] = False  # pixels 32..72 x 24..64, in several tiles
    c.vertical[:, [31, 71], 24:64] = 0
    c.horizontal[:, 32:72, [23, 63]] = 0
    start = up(source, (128, 96)) + torch.linspace(0, 1, 96, dtype=torch.float64)
    solution = equilibrium(source, c, initial=start, adjust=adjust, mask=mask, tolerance=1e-8)
    assert bool(counted) == (adjust == "shift")
    assert solution.converged.all()
    region, begun = (image[..., 32:72, 24:64] for image in (solution.values, start))
    assert region.max() - region.min() < 1e-5
    assert begun.min() <= region.min()
    assert region.max() <= begun.max()


@pytest.mark.parametrize("adjust", MODES)
def test_a_near_start_needs_no_tiles(small, counted, adjust):
    source, c = random_problem((128, 96), (16, 12))
    there = equilibrium(source, c, adjust=adjust).values
    assert counted
    counted.clear()
    assert equilibrium(source, c, adjust=adjust, initial=there).converged.all()
    assert not counted


def test_soft_cells_and_wide_holes_are_left_to_the_whole(small, counted, monkeypatch):
    source, c = random_problem((128, 96), (16, 12))
    assert equilibrium(source, c, weight=random_weight(source.shape), adjust="shift").converged.all()
    assert not counted
    mask = torch.ones_like(source, dtype=torch.bool)
    mask[..., 3:12, 2:11] = False
    assert equilibrium(source, c, mask=mask, adjust="shift").converged.all()
    assert not counted  # some tile has no measurement at all
    mask[..., 5:9, 6] = True
    monkeypatch.setattr(_cpu_tiles, "WIDEST_HOLE", 16)
    assert equilibrium(source, c, mask=mask, adjust="shift").converged.all()
    assert not counted


@pytest.mark.parametrize("adjust", MODES)
@pytest.mark.parametrize("sizes", SIZES[:4])
@pytest.mark.parametrize("kind", ["mask", "coverage"])
def test_small_holes_are_solved_in_tiles_with_shift(small, counted, kind, sizes, adjust, monkeypatch):
    target, size = sizes
    source, c = random_problem(target, size, low=1.0)
    given = random_mask(source.shape if kind == "mask" else (1, 1, *target), share=0.1)
    probe = torch.rand(1, 1, *target, dtype=torch.float64, generator=torch.Generator().manual_seed(5))
    results = []
    for tiled in (True, False):
        monkeypatch.setattr(_cpu_tiles, "LARGE", 0 if tiled else 1 << 40)
        inputs = [t.clone().requires_grad_() for t in (source, *c)]
        solution = equilibrium(inputs[0], Coefficients(*inputs[1:]), adjust=adjust, tolerance=1e-9, **{kind: given})
        results.append((solution.values, *torch.autograd.grad((solution.values * probe).sum(), inputs)))
        assert solution.converged.all()
        assert solution.misfit_max.max() < 1e-13
        assert bool(counted) == (tiled and adjust == "shift")
        counted.clear()
    for a, b in zip(*results, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6 * b.abs().max().item())


@pytest.mark.parametrize("adjust", MODES)
@pytest.mark.parametrize("sizes", SIZES)
def test_the_equilibrium_stands_still_in_a_tile_that_sees_beyond_its_border(small, sizes, adjust):
    """What flows over the border, and the diagonal, are those of the whole image."""
    target, size = sizes
    source, c = random_problem(target, size)
    y = equilibrium(source, c, adjust=adjust, tolerance=1e-10, max_iterations=20_000).values[0, 0].numpy()
    cv, ch = (v[0].numpy() for v in c)
    blocks = partition(size, target)
    cells = source[0, 0].numpy()
    m = Measurement(blocks, cells, np.zeros(size), blocks.area.astype(float), None)
    whole = CpuSystem(cv, ch, m, adjust)
    whole.assemble(y if adjust == "ratio" else None)
    for tile in _cpu_tiles.tiles(blocks)[1]:
        left = []
        for sees in (False, True):
            part = CpuSystem(*tile.edges(cv, ch), _cpu_tiles._measured(m, tile), adjust)
            if sees:
                part.beyond = tile.beyond(cv, ch, y)
            part.hold(np.ascontiguousarray(y[tile.pixels]))
            left.append(part.linearise(as_shift=adjust == "shift"))
        np.testing.assert_allclose(part.sd, whole.sd[tile.pixels], rtol=1e-12)
        assert left[1] < 1e-10 * left[0]


@pytest.mark.parametrize("adjust", MODES)
def test_coarse_grids_of_a_tile_keep_its_edges_beyond_the_border(small, adjust):
    """On every grid, the diagonal of a group is that of its pixels less the edges within it."""
    target, size = (256, 192), (8, 6)
    source, c = random_problem(target, size)
    cv, ch = (v[0].numpy() for v in c)
    y = up(source, target)[0, 0].numpy()
    cells = source[0, 0].numpy()
    m = Measurement(partition(size, target), cells, np.zeros(size), np.full(size, 32.0 * 32), None)
    for tile in _cpu_tiles.tiles(m.blocks)[1]:
        part = CpuSystem(*tile.edges(cv, ch), _cpu_tiles._measured(m, tile), adjust)
        part.beyond = tile.beyond(cv, ch, y)
        part.assemble(np.ascontiguousarray(y[tile.pixels]) if adjust == "ratio" else None)
        wv, wh, sd = part.wv, part.wh, part.sd
        assert part.hierarchy is not None
        for grid, level in zip(part.hierarchy.grids, part.hierarchy.levels, strict=True):
            diagonal = sd**2
            inner_v, inner_h = wv[1:-1] * sd[:-1] * sd[1:], wh[:, 1:-1] * sd[:, :-1] * sd[:, 1:]
            rows, cols = np.arange(1, sd.shape[0]), np.arange(1, sd.shape[1])
            inner_v = np.where(np.isin(rows, grid.prow)[:, None], 0, inner_v)
            inner_h = np.where(np.isin(cols, grid.pcol), 0, inner_h)
            diagonal[1:] -= 2 * inner_v
            diagonal[:, 1:] -= 2 * inner_h
            expected = np.add.reduceat(np.add.reduceat(diagonal, grid.prow[:-1], 0), grid.pcol[:-1], 1)
            np.testing.assert_allclose(level.sd**2, expected, rtol=1e-9)
            wv, wh, sd = level.wv, level.wh, level.sd


@pytest.mark.parametrize("adjust", MODES)
@pytest.mark.parametrize("sizes", SIZES)
def test_the_adjoint_of_a_tile_sees_beyond_its_border_too(small, counted, sizes, adjust, monkeypatch):
    """Its diagonal is that of the whole image."""
    target, size = sizes
    source, c = random_problem(target, size, low=1.0)
    cv, ch = (v[0].numpy() for v in c)
    y = equilibrium(source, c, adjust=adjust).values[0, 0].numpy().copy()
    blocks = partition(size, target)
    m = Measurement(blocks, source[0, 0].numpy(), np.zeros(size), blocks.area.astype(float), None)
    whole = CpuSystem(cv, ch, m, adjust)
    whole.assemble(y if adjust == "ratio" else None)
    parts: list[CpuSystem] = []

    def made(*given):
        parts.append(CpuSystem(*given))
        return parts[-1]

    monkeypatch.setattr(_cpu_tiles, "CpuSystem", made)
    counted.clear()
    approach = _cpu_tiles.approach_adjoint(whole, y, np.ones(target), 1000)
    assert approach is not None
    approach(np.zeros(target), 1e-3)
    sets = _cpu_tiles.tiles(blocks)
    assert len(parts) == len(counted) == sum(len(tiles) for tiles in sets)
    for tile, part in list(zip(counted, parts, strict=True))[len(sets[0]) :]:
        np.testing.assert_allclose(part.sd, whole.sd[tile.pixels], rtol=1e-10)
