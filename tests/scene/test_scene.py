import numpy as np
import pytest

from dada.errors import InputError
from dada.scene import render


@pytest.fixture(scope="module")
def scene():
    return render(240, 320)


def test_the_same_arguments_give_the_same_scene(scene):
    again = render(240, 320)
    assert np.array_equal(scene.guide, again.guide)
    assert np.array_equal(scene.depth, again.depth)


def test_the_seed_changes_the_noise_of_the_guide_and_never_the_depth(scene):
    other = render(240, 320, seed=1)
    difference = scene.guide.astype(int) - other.guide
    assert 0 < np.abs(difference).mean() < 3
    assert np.array_equal(scene.depth, other.depth)


def test_depth_is_finite_and_spans_about_one_to_five_metres(scene):
    assert np.isfinite(scene.depth).all()
    assert 0.8 < scene.depth.min() < 1.0
    assert 4.5 < scene.depth.max() < 5.0


def test_depth_has_sharp_jumps_and_smooth_surfaces(scene):
    jump = np.abs(np.diff(scene.depth, axis=1))
    assert 0.01 < (jump > 0.3).mean() < 0.1
    assert np.median(jump) < 0.005


def test_depth_is_one_ray_through_each_pixel_centre():
    # The centre of a pixel is the centre of the middle one of the 3 x 3 pixels that it splits into.
    coarse, fine = render(60, 80).depth, render(180, 240).depth
    np.testing.assert_allclose(coarse, fine[1::3, 1::3], rtol=1e-6)


def test_depth_of_a_flat_wall_is_a_plane(scene):
    inverse = 1 / scene.depth[:20, 230:270].astype(np.float64)  # wall right of the poster: a plane is linear in 1 / z
    rows, columns = np.mgrid[:20, :40]
    terms = np.stack([np.ones_like(rows), rows, columns], -1).reshape(-1, 3)
    fit = terms @ np.linalg.lstsq(terms, inverse.ravel(), rcond=None)[0]
    np.testing.assert_allclose(fit, inverse.ravel(), rtol=1e-6)


def test_the_poster_is_an_edge_in_colour_and_none_in_depth(scene):
    part = slice(8, 54), slice(108, 182)
    assert scene.guide[part].astype(float).std() > 40
    assert np.abs(np.diff(scene.depth[part], axis=0)).max() < 0.01
    assert np.abs(np.diff(scene.depth[part], axis=1)).max() < 0.01


def test_some_depth_edges_hardly_show_in_the_guide(scene):
    jump = np.abs(np.diff(scene.depth, axis=1)) > 0.1
    contrast = np.abs(np.diff(scene.guide.astype(int), axis=1)).max(-1)
    assert (jump & (contrast < 12)).sum() > 50


def test_the_guide_is_well_exposed_and_colourful(scene):
    assert scene.guide.mean() == pytest.approx(130, abs=40)
    assert (scene.guide == 255).mean() < 0.02
    assert np.ptp(scene.guide.astype(int), axis=2).max() > 150


@pytest.mark.parametrize(("height", "width"), [(1, 1), (7, 5), (61, 203), (203, 61), (1, 90)])
def test_any_size_can_be_rendered(height, width):
    scene = render(height, width)
    assert scene.guide.shape == (height, width, 3)
    assert scene.guide.dtype == np.uint8
    assert scene.depth.shape == (height, width)
    assert scene.depth.dtype == np.float32
    assert (scene.depth > 0.8).all()
    assert (scene.depth < 5).all()


@pytest.mark.parametrize("size", [(0, 4), (4, 0), (-1, 4)])
def test_a_size_without_pixels_is_refused(size):
    with pytest.raises(InputError, match="at least 1"):
        render(*size)
