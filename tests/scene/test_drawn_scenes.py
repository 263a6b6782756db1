"""Facts about the street front with temperatures and the town with heights."""

import numpy as np
import pytest

from dada.errors import InputError
from dada.scene.facade import draw_facade
from dada.scene.town import draw_town


@pytest.fixture(scope="module")
def facade():
    return draw_facade(240, 320)


@pytest.fixture(scope="module")
def town():
    return draw_town(240, 320)


@pytest.mark.parametrize("draw", [draw_facade, draw_town])
def test_the_seed_changes_the_noise_of_the_guide_and_nothing_else(draw):
    (guide, values), (same, _), (other, others) = draw(60, 80), draw(60, 80), draw(60, 80, seed=1)
    assert np.array_equal(guide, same)
    assert 0 < np.abs(guide.astype(int) - other).mean() < 5
    assert np.array_equal(values, others)


@pytest.mark.parametrize("draw", [draw_facade, draw_town])
@pytest.mark.parametrize(("height", "width"), [(1, 1), (7, 5), (61, 103), (103, 61)])
def test_any_size_can_be_drawn(draw, height, width):
    guide, values = draw(height, width)
    assert (guide.shape, guide.dtype) == ((height, width, 3), np.uint8)
    assert (values.shape, values.dtype) == ((height, width), np.float32)
    assert np.isfinite(values).all()


@pytest.mark.parametrize("draw", [draw_facade, draw_town])
def test_a_size_below_one_is_refused(draw):
    with pytest.raises(InputError, match="at least 1"):
        draw(0, 4)


@pytest.mark.parametrize("draw", [draw_facade, draw_town])
def test_values_are_exact_at_the_centre_of_each_pixel(draw):
    coarse, fine = draw(60, 80)[1], draw(180, 240)[1]
    # the middle one of the 3 x 3 pixels that a pixel splits into; outlines that pass through a centre may round
    assert np.isclose(coarse, fine[1::3, 1::3], rtol=1e-3, atol=0.05).mean() > 0.99


def test_temperatures_of_a_street_at_dusk(facade):
    assert -5 < facade.temperature.min() < 5
    assert 30 < facade.temperature.max() < 36  # a face


def test_bricks_and_posters_are_colour_without_temperature(facade):
    part = slice(150, 178), slice(105, 124)  # the poster
    assert facade.guide[part].astype(float).std() > 30
    assert np.abs(np.diff(facade.temperature[part], axis=1)).max() < 0.3


def test_a_floor_slab_is_temperature_without_colour(facade):
    column = facade.temperature[110:135, 140]
    assert np.abs(np.diff(column)).max() > 2


def test_heights_of_a_town(town):
    assert 400 < town.height.min() < 404
    assert 425 < town.height.max() < 440
    jump = np.abs(np.diff(town.height, axis=1))
    assert 0.01 < (jump > 2).mean() < 0.1


def test_a_field_is_colour_without_height(town):
    part = slice(4, 38), slice(240, 316)
    assert town.guide[part].astype(float).std() > 15
    assert np.abs(np.diff(town.height[part], axis=1)).max() < 0.5
