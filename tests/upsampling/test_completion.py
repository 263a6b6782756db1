"""Sparse measurements made dense: exact at the points, finite everywhere."""

import numpy as np
import pytest

import dada
from dada.cli import main
from dada.errors import InputError
from dada.io import read_image, write_image
from dada.upsampling.completion import contradictions

SIZE = (72, 96)


@pytest.fixture(scope="module")
def scene():
    row, col = np.mgrid[: SIZE[0], : SIZE[1]]
    depth, guide = 4.0 + 0.01 * col + 0.004 * row, np.full((*SIZE, 3), 200, np.uint8)
    depth[20:50, 30:70], guide[20:50, 30:70] = 2.0, 80
    return depth, guide


def sparse_of(depth, share, seed=0):
    known = np.random.default_rng(seed).random(depth.shape) < share
    return np.where(known, depth, np.nan), known


@pytest.mark.parametrize("share", [0.002, 0.05, 0.5])
@pytest.mark.parametrize("model", ["none", "default"])
def test_the_result_is_exact_at_the_points_and_finite_everywhere(scene, share, model):
    sparse, known = sparse_of(scene[0], share)
    result = dada.complete(sparse, scene[1], model=model)
    assert np.isfinite(result.values).all()
    assert np.abs(result.values - scene[0])[known].max() < 1e-5
    assert result.report.consistency_max < 1e-5
    assert result.report.sampling == "point"


def test_it_leaves_far_less_than_the_nearest_point_would(scene):
    from scipy.interpolate import NearestNDInterpolator

    depth, guide = scene
    sparse, known = sparse_of(depth, 0.02)
    nearest = NearestNDInterpolator(np.argwhere(known), depth[known])(*np.mgrid[: SIZE[0], : SIZE[1]])
    result = dada.complete(sparse, guide, model="none").values
    assert np.square(result - depth).mean() < 0.2 * np.square(nearest - depth).mean()


def test_a_list_of_points_is_the_same_as_an_image_of_them(scene):
    sparse, known = sparse_of(scene[0], 0.03)
    row, col = np.nonzero(known)
    points = np.column_stack([col, row, scene[0][known]])
    image, listed = (dada.complete(given, scene[1], model="none").values for given in (sparse, points))
    assert np.array_equal(image, listed)


def test_outliers_are_found_counted_and_hardly_followed(scene):
    depth, guide = scene
    sparse, known = sparse_of(depth, 0.1)
    at = np.argwhere(known)[[5, 60, 200]]
    sparse[tuple(at.T)] = 9.0
    plain, robust = (dada.complete(sparse, guide, model="none", robust=flag) for flag in (False, True))
    assert robust.report.outliers == 3
    errors = [np.square(result.values - depth).mean() for result in (plain, robust)]
    assert errors[1] < 0.4 * errors[0]


def test_points_beside_a_jump_do_not_contradict_their_neighbours(scene):
    sparse, known = sparse_of(scene[0], 0.1)
    assert not contradictions(np.nan_to_num(sparse), known).any()


def test_another_size_and_points_outside_are_explained(scene):
    with pytest.raises(InputError, match="grid of the guide"):
        dada.complete(scene[0][::2], scene[1])
    with pytest.raises(InputError, match="outside the guide"):
        dada.complete(np.array([[200.0, 3, 1]]), scene[1])


def test_the_command_reads_images_as_kitti_writes_them(scene, tmp_path, capsys):
    depth, guide = scene
    _, known = sparse_of(depth, 0.05)
    stored = np.where(known, np.round(depth * 256), 0).astype(np.uint16)
    write_image(tmp_path / "lidar.png", stored)
    write_image(tmp_path / "rgb.png", guide)
    files = [str(tmp_path / "lidar.png"), str(tmp_path / "rgb.png")]
    assert main(["complete", *files, "--unit", "kitti", "--model", "none"]) == 0
    dense = read_image(tmp_path / "lidar_completed.png").values
    assert dense.dtype == np.uint16
    assert np.array_equal(dense[known], stored[known])
    assert (dense > 0).all()
    assert "measured pixels" in capsys.readouterr().out


def test_zero_is_no_measurement_also_in_a_sparse_image_of_floats(scene, tmp_path, capsys):
    depth, guide = scene
    _, known = sparse_of(depth, 0.05)
    write_image(tmp_path / "sparse.tiff", np.where(known, depth, 0).astype(np.float32))
    write_image(tmp_path / "rgb.png", guide)
    files = [str(tmp_path / "sparse.tiff"), str(tmp_path / "rgb.png")]
    assert main(["complete", *files, "--model", "none"]) == 0
    assert f", {known.sum()} measured pixels" in capsys.readouterr().out
    assert read_image(tmp_path / "sparse_completed.tiff").values.min() > 0.5 * depth.min()


def test_points_of_float64_are_met_to_all_digits(scene):
    depth, guide = scene
    _, known = sparse_of(depth, 0.02)
    sparse = np.where(known, depth.astype(np.float64) + 1 / 3, 0)
    result = dada.complete(sparse, guide, model="none")
    assert np.abs(result.values - sparse)[known].max() < 1e-14


def test_the_command_reads_lists_of_points(scene, tmp_path):
    depth, guide = scene
    _, known = sparse_of(depth, 0.05)
    lines = [f"{col},{row},{depth[row, col]}" for row, col in np.argwhere(known)]
    (tmp_path / "points.csv").write_text("\n".join(["x,y,depth", *lines]))
    write_image(tmp_path / "rgb.png", guide)
    arguments = [str(tmp_path / "points.csv"), str(tmp_path / "rgb.png"), "-o", str(tmp_path / "out.tiff")]
    assert main(["complete", *arguments, "--model", "none", "--robust"]) == 0
    dense = read_image(tmp_path / "out.tiff").values
    assert (np.abs(dense - depth)[known] < 1e-5).mean() > 0.99  # a lone point on a corner may count as an outlier
    (tmp_path / "points.csv").write_text("1,2,3\n4,5\n")
    assert main(["complete", *arguments]) == 2
