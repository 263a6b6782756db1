"""Facts about the metrics: each formula by hand on tiny arrays, masks, units, and the averaging rules."""

from math import isnan, sqrt

import pytest
import torch

from dada.evaluation.metrics import Sums, Thresholds, average, measure
from dada.sample import Sample, make_sample
from dada.sample.jumps import jumps, widen


def sample_of(target, valid=None, factor=2, unit=1.0) -> Sample:
    truth = torch.tensor(target, dtype=torch.float64)[None, None]
    known = torch.ones_like(truth, dtype=torch.bool) if valid is None else torch.tensor(valid, dtype=bool)[None, None]
    guide = torch.zeros(1, 3, *truth.shape[-2:], dtype=torch.float64)
    return make_sample(guide, truth, known, factor, unit=unit, interpolation="torch")


def result_of(values) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)[None, None]


def test_errors_by_hand():
    sums = measure(result_of([[1.0, 2.0], [5.0, 4.0]]), sample_of([[1.0, 4.0], [4.0, 8.0]]))[0]
    assert sums.mse == (0 + 4 + 1 + 16) / 4
    assert sums.rmse == sqrt(21 / 4)
    assert sums.mae == (0 + 2 + 1 + 4) / 4
    assert sums.mape == (0 + 2 / 4 + 1 / 4 + 4 / 8) / 4


def test_the_unit_of_the_sample_scales_errors_but_not_shares():
    pairs = [(result_of([[1.0, 2.0], [5.0, 4.0]]), sample_of([[1.0, 4.0], [4.0, 8.0]], unit=u)) for u in (1.0, 1000.0)]
    one, thousand = (measure(*pair)[0] for pair in pairs)
    assert thousand.mse == pytest.approx(1e6 * one.mse)
    assert thousand.mae == pytest.approx(1e3 * one.mae)
    assert thousand.jump_mae == pytest.approx(1e3 * one.jump_mae)
    assert thousand.consistency_mse == pytest.approx(1e6 * one.consistency_mse)
    assert (thousand.mape, thousand.value_error, thousand.edge_error) == (one.mape, one.value_error, one.edge_error)


def test_millimetres_become_centimetres():
    scores = average(measure(result_of([[20.0, 0.0], [0.0, 0.0]]), sample_of([[0.0, 0.0], [0.0, 0.0]])), "pixels")
    scaled = scores.scaled(0.1)
    assert (scores.mse, scores.mae) == (100, 5)
    assert (scaled.mse, scaled.rmse, scaled.mae) == pytest.approx((1, 1, 0.5))
    assert scaled.consistency_mse == pytest.approx(0.25)
    assert scaled.consistency_max == pytest.approx(0.5)


def test_invalid_pixels_do_not_count():
    valid = [[True, True], [False, True]]
    sums = measure(result_of([[1.0, 2.0], [torch.nan, 4.0]]), sample_of([[1.0, 4.0], [9.0, 8.0]], valid))[0]
    assert (sums.pixels, sums.mse) == (3, (0 + 4 + 16) / 3)


def test_percentages_leave_out_values_that_are_not_positive():
    sums = measure(result_of([[1.0, 3.0], [-1.0, 4.0]]), sample_of([[0.0, 4.0], [-2.0, 4.0]]))[0]
    assert (sums.positive, sums.mape) == (2, (1 / 4) / 2)


def test_value_error_is_the_share_of_values_that_are_wrong():
    sums = measure(result_of([[1.04, 2.0], [3.0, 4.5]]), sample_of([[1.0, 2.0], [4.0, 4.0]]), Thresholds(value=0.05))[0]
    assert sums.value_error == 2 / 4


ROW = [[1.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0]] * 2  # a jump in the middle


def test_a_jump_has_two_sides():
    known = torch.ones(2, 8, dtype=torch.bool)
    found = jumps(torch.tensor(ROW), known, 0.5)
    assert found.tolist() == [[False, False, False, True, True, False, False, False]] * 2
    assert widen(found, 1).tolist() == [[False, False, True, True, True, True, False, False]] * 2


def test_no_jump_across_an_invalid_pixel():
    known = torch.ones(2, 8, dtype=torch.bool)
    known[:, 4] = False
    assert not jumps(torch.tensor(ROW), known, 0.5).any()


def test_errors_at_and_near_jumps():
    wrong = [[9.0, 1.3, 1.2, 1.0, 1.0, 2.0, 2.0, 2.0], [9.0, 1.3, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0]]
    sums = measure(result_of(wrong), sample_of(ROW), Thresholds(edge=0.5, jump=0.5, reach=2))[0]
    assert (sums.edges, sums.edge_error) == (4, 1 / 4)
    assert sums.near == 8
    assert sums.jump_mae == pytest.approx((0.2 + 1.0) / 8)


def test_consistency_is_the_misfit_of_the_averaged_result():
    sample = sample_of([[1.0, 3.0, 5.0, 5.0], [1.0, 3.0, 5.0, 5.0]])  # source 2, 5
    sums = measure(result_of([[2.0, 2.0, 5.0, 5.0], [2.0, 2.0, 5.0, 9.0]]), sample)[0]
    assert (sums.cells, sums.consistency_mse, sums.consistency_mae) == (2, 1 / 2, 1 / 2)
    assert (sums.consistency_max, sums.consistency_max_squared) == (1, 1)


def test_consistency_leaves_out_cells_without_a_measurement():
    valid = [[True, True, False, False]] * 2
    sums = measure(result_of([[2.0, 2.0, 7.0, 7.0]] * 2), sample_of([[2.0, 2.0, 0.0, 0.0]] * 2, valid))[0]
    assert (sums.cells, sums.consistency_max) == (1, 0)


def test_a_border_does_not_count_in_any_error():
    target = [[1.0] * 6 for _ in range(6)]
    wrong = [[5.0] * 6 for _ in range(6)]
    for row in range(2, 4):
        wrong[row][2:4] = [2.0, 2.0]
    sums = measure(result_of(wrong), sample_of(target), border=2, averaged=False)[0]
    assert (sums.pixels, sums.mae) == (4, 1)
    assert isnan(sums.consistency_mse)


def test_sums_are_kept_in_float64():
    size = 512
    truth = torch.full((1, 1, size, size), 3.0)
    sample = make_sample(
        torch.zeros(1, 3, size, size), truth, torch.ones_like(truth, dtype=torch.bool), 8, interpolation="torch"
    )
    sums = measure(truth + 1e-3, sample)[0]
    exact = float((truth[0, 0, 0, 0] + 1e-3).double() - 3.0)
    assert sums.mse == pytest.approx(exact**2, rel=1e-12)


def test_a_result_that_is_no_result_is_refused():
    sample = sample_of([[1.0, 2.0], [3.0, 4.0]])
    with pytest.raises(ValueError, match="expected"):
        measure(torch.zeros(1, 1, 4, 4), sample)
    with pytest.raises(ValueError, match="not finite at 1 of 4"):
        measure(result_of([[1.0, torch.nan], [3.0, 4.0]]), sample)


# ---- averages ----------------------------------------------------------------------------------------------

THREE = [
    Sums(pixels=100, squared=100, absolute=100),
    Sums(pixels=300, squared=900, absolute=600),
    Sums(pixels=10, squared=160, absolute=40),
]


def test_every_pixel_weighs_the_same():
    scores = average(THREE, "pixels")
    assert (scores.mse, scores.mae) == (1160 / 410, 740 / 410)
    assert scores.rmse == sqrt(1160 / 410)


def test_batches_weigh_the_same_whatever_their_pixels_and_the_last_may_be_smaller():
    scores = average(THREE, "batches", batch=2)
    assert scores.mse == (1000 / 400 + 160 / 10) / 2
    assert scores.mae == (700 / 400 + 40 / 10) / 2
    assert scores.rmse == sqrt(scores.mse)


def test_one_batch_is_the_mean_over_pixels():
    assert average(THREE, "batches").mse == average(THREE, "pixels").mse


def test_images_weigh_the_same_and_their_rmse_is_averaged():
    scores = average(THREE, "images")
    assert scores.mse == (1 + 3 + 16) / 3
    assert scores.rmse == (1 + sqrt(3) + 4) / 3


def test_the_worst_misfit_is_the_worst_of_all_under_every_rule():
    images = [Sums(pixels=1, cells=1, cell_worst=w, cell_squared=w * w) for w in (1.0, 5.0, 2.0)]
    for rule in ("pixels", "batches", "images"):
        assert average(images, rule).consistency_max == 5
        assert average(images, rule).consistency_max_squared == 25


def test_images_without_a_jump_have_no_say_in_the_error_near_jumps():
    images = [Sums(pixels=1, near=0), Sums(pixels=1, near=2, near_absolute=6)]
    assert average(images, "images").jump_mae == 3
    assert isnan(average(images[:1], "images").jump_mae)
