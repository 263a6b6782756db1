"""The grids of the V-cycle: where there are some, which, and what they are worth."""

import numpy as np
import pytest
import torch

from dada.diffusion import coefficients, down, equilibrium, multigrid, partition, system
from dada.scene import render


def test_a_cycle_is_chosen_for_wide_blocks_and_for_wide_holes() -> None:
    def chosen(cells: int, factor: int, hole: int = 0) -> bool:
        hard = np.ones((1, cells, cells), bool)
        hard[:, :hole, :hole] = False
        return multigrid.worth_it(partition((cells, cells), (cells * factor, cells * factor)), hard)

    assert chosen(8, 32)
    assert not chosen(16, 16)
    assert not chosen(32, 8)
    assert chosen(32, 8, hole=16)
    assert not chosen(32, 4, hole=1)


def test_enlarged_corrections_save_iterations_around_a_hole_and_leave_soft_cells_alone(monkeypatch) -> None:
    scene = render(128, 128)
    guide = torch.from_numpy(scene.guide).permute(2, 0, 1)[None].float() / 255
    source = down(torch.from_numpy(scene.depth)[None, None], (8, 8))
    c = coefficients(4 * guide, 0.1)
    known = torch.ones_like(source, dtype=torch.bool)
    known[..., :7, :7] = False
    counts = {}
    for enlargement in (1.0, 1.3):
        monkeypatch.setattr(system, "ENLARGEMENT", enlargement)
        hole = equilibrium(source, c, mask=known)
        soft = equilibrium(source, c, weight=torch.full_like(source, 10.0))
        counts[enlargement] = int(hole.iterations), int(soft.iterations)
    (plain, soft), (enlarged, same) = counts.values()
    assert enlarged < plain
    assert same == soft


def test_the_first_grid_takes_four_by_four_pixels_in_wide_blocks() -> None:
    sizes = {}
    for factor in (8, 24, 30, 32):
        blocks = partition((3, 2), (3 * factor, 2 * factor))
        sizes[factor] = [
            tuple(np.array(grid.blocks.target_size) // (3, 2)) for grid in multigrid.grids(blocks, loose=False)
        ]
    assert sizes[8] == [(4, 4), (2, 2)]
    assert sizes[24] == [(6, 6), (3, 3), (2, 2)]
    assert sizes[30] == [(8, 8), (4, 4), (2, 2)]
    assert sizes[32] == [(8, 8), (4, 4), (2, 2)]


@pytest.mark.parametrize("size", [(12, 20), (13, 9), (1, 30)])
def test_groups_stay_within_their_block_and_cover_every_pixel(size) -> None:
    blocks = partition((max(1, size[0] // 6), max(1, size[1] // 7)), size)
    rows = blocks.rows
    for grid in multigrid.grids(blocks, loose=True):
        assert grid.groups.rows[0] == 0
        assert (np.diff(grid.groups.rows) > 0).all()
        if grid.kind == "within":
            assert set(rows) <= set(grid.groups.rows)  # no group crosses the border of a block
            assert len(grid.blocks.rows) == len(blocks.rows)
            rows = grid.blocks.rows
