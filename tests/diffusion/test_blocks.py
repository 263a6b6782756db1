import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dada.diffusion import down, partition, up

sizes = st.tuples(st.integers(1, 12), st.integers(1, 12))


@st.composite
def grids(draw):
    source = draw(sizes)
    target = tuple(n + draw(st.integers(0, 4 * n)) for n in source)
    return source, target


@given(grids())
def test_every_pixel_belongs_to_exactly_one_cell_and_every_cell_has_a_pixel(grid):
    source, target = grid
    blocks = partition(source, target)
    assert blocks.rows[0] == blocks.cols[0] == 0
    assert (blocks.rows[-1], blocks.cols[-1]) == target
    assert np.diff(blocks.rows).min() >= 1
    assert np.diff(blocks.cols).min() >= 1
    assert blocks.area.sum() == target[0] * target[1]
    assert np.ptp(np.diff(blocks.rows)) <= 1


@given(grids())
def test_a_pixel_belongs_to_the_cell_that_holds_its_centre(grid):
    (h, _), (H, _) = grid
    rows = partition(*grid).rows
    for i in range(H):
        assert np.searchsorted(rows, i, side="right") - 1 == ((2 * i + 1) * h) // (2 * H)


def test_integer_ratios_give_the_usual_blocks():
    blocks = partition((3, 2), (12, 10))
    assert blocks.uniform == (4, 5)
    assert blocks.rows.tolist() == [0, 4, 8, 12]


def test_phone_lidar_has_blocks_of_seven_and_eight():
    blocks = partition((192, 256), (1440, 1920))
    assert blocks.uniform is None
    assert set(np.diff(blocks.rows)) == {7, 8}


@given(grids(), st.booleans())
def test_down_undoes_up(grid, double):
    source_size, target_size = grid
    source = torch.rand(2, 1, *source_size, dtype=torch.float64 if double else torch.float32)
    torch.testing.assert_close(down(up(source, target_size), source_size), source)


def test_down_counts_only_covered_pixels():
    target = torch.tensor([[1.0, 3.0, 5.0, 7.0], [1.0, 3.0, 5.0, 7.0]])
    coverage = torch.tensor([[True, False, True, True], [True, False, False, False]])
    torch.testing.assert_close(down(target, (1, 2), coverage), torch.tensor([[1.0, 6.0]]))


def test_down_says_nan_where_no_pixel_is_covered():
    coverage = torch.tensor([[True, True, False, False]])
    assert down(torch.ones(1, 4), (1, 2), coverage).isnan().tolist() == [[False, True]]


def test_down_is_differentiable():
    target = torch.rand(1, 5, 7, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda t: down(t, (2, 3)), target)


@pytest.mark.parametrize("target", [(3, 8), (8, 3), (0, 4)])
def test_a_target_smaller_than_the_source_is_refused(target):
    with pytest.raises(ValueError, match=r"smaller|positive"):
        partition((4, 4), target)
