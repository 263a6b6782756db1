"""The compiled passes on their own: what the solver relies on beside the results, which other files test."""

import numba
import numpy as np
import pytest
import torch

from dada.diffusion import (
    _levels,
    _numba_values,
    coefficients,
    down,
    equilibrium,
    partition,
    up,
)
from dada.diffusion._numba_rows import arrays_apart, compiled
from dada.scene import render


def test_a_promise_that_arrays_lie_apart_reaches_the_compiler() -> None:
    @numba.njit
    def promised(a, b):
        arrays_apart()
        b[:] = a

    @numba.njit
    def plain(a, b):
        b[:] = a

    a, b = np.arange(4.0), np.zeros(4)
    promised(a, b)
    plain(a, b)
    assert (a == b).all()
    marked, bare = (next(iter(f.inspect_llvm().values())).count("noalias") for f in (promised, plain))
    assert marked > bare


@pytest.mark.parametrize(
    ("cells", "size"),
    [((3, 4), (12, 16)), ((3, 4), (13, 18)), ((1, 5), (4, 11)), ((1, 1), (3, 3))],
)
def test_the_energy_of_the_nearest_neighbour_image_is_that_of_the_edges_between_blocks(cells, size) -> None:
    rng = np.random.default_rng(0)
    source, cv, ch = rng.random(cells), rng.random((size[0] - 1, size[1])), rng.random((size[0], size[1] - 1))
    image = up(torch.from_numpy(source)[None, None], size)[0, 0].numpy()
    expected = (cv * np.diff(image, axis=0) ** 2).sum() + (ch * np.diff(image, axis=1) ** 2).sum()
    blocks = partition(cells, size)
    assert _numba_values.nearest_energy(source, cv, ch, blocks.rows, blocks.cols) == pytest.approx(expected, rel=1e-12)


def test_a_cycle_is_chosen_for_wide_blocks_and_for_wide_holes() -> None:
    def chosen(cells: int, factor: int, hole: int = 0) -> bool:
        hard = np.ones((cells, cells), bool)
        hard[:hole, :hole] = False
        return _levels.worth_it(partition((cells, cells), (cells * factor, cells * factor)), hard)

    assert chosen(8, 32)
    assert not chosen(16, 16)
    assert not chosen(32, 8)
    assert chosen(32, 8, hole=16)
    assert not chosen(32, 4, hole=1)


def test_compiled_functions_are_kept_for_the_next_process() -> None:
    assert compiled(lambda x: x)._cache is not None


def test_enlarged_corrections_save_iterations_around_a_hole_and_leave_soft_cells_alone(monkeypatch) -> None:
    scene = render(128, 128)
    guide = torch.from_numpy(scene.guide).permute(2, 0, 1)[None].float() / 255
    source = down(torch.from_numpy(scene.depth)[None, None], (8, 8))
    c = coefficients(4 * guide, 0.1)
    known = torch.ones_like(source, dtype=torch.bool)
    known[..., :7, :7] = False
    counts = {}
    for over in (1.0, 1.3):
        monkeypatch.setattr(_levels, "OVER", over)
        hole = equilibrium(source, c, mask=known)
        soft = equilibrium(source, c, weight=torch.full_like(source, 10.0))
        counts[over] = int(hole.iterations), int(soft.iterations)
    (plain, soft), (enlarged, same) = counts.values()
    assert enlarged < plain
    assert same == soft
    assert _levels.enlargement(loose=False, soft=False) == 1  # takes as many iterations either way


def test_the_first_grid_takes_four_by_four_pixels_in_wide_blocks() -> None:
    sizes = {}
    for factor in (8, 24, 30, 32):
        blocks = partition((3, 2), (3 * factor, 2 * factor))
        sizes[factor] = [(grid.rows[-1] // 3, grid.cols[-1] // 2) for grid in _levels.grids(blocks, loose=False)]
    assert sizes[8] == [(4, 4), (2, 2)]
    assert sizes[24] == [(6, 6), (3, 3), (2, 2)]
    assert sizes[30] == [(8, 8), (4, 4), (2, 2)]
    assert sizes[32] == [(8, 8), (4, 4), (2, 2)]
