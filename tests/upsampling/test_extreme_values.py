"""Floats near the ends of their type, in a guide or a source: an explanation, or a finite result; never NaN."""

import numpy as np
import pytest
import torch

import dada
from dada.errors import InputError
from dada.sample.guide import unit_range

MOST = float(np.finfo(np.float32).max)
SOURCE = np.arange(1, 13, dtype=np.float32).reshape(3, 4)


def guide(low: float, high: float) -> np.ndarray:
    values = np.linspace(low / 2, high / 2, 12 * 16).reshape(12, 16) * 2
    return values.astype(np.float32)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_range_that_float32_cannot_hold_is_explained(dtype):
    with pytest.raises(InputError, match=r"the guide ranges from -3\.\d+e\+38 to 3\.\d+e\+38.*nodata"):
        dada.upsample(SOURCE, guide(-MOST, MOST).astype(dtype), model="none")


@pytest.mark.parametrize(("low", "high"), [(0, MOST), (-MOST, 0), (MOST / 2, MOST), (-1e-45, 1e-45), (-1e-40, 3e-40)])
def test_any_other_range_is_brought_to_zero_to_one(low, high):
    values, _ = unit_range(guide(low, high)[None], torch.device("cpu"), lambda text: None)
    assert torch.isfinite(values).all()
    assert values.min() >= 0
    assert values.max() <= 1
    assert torch.isfinite(torch.from_numpy(dada.upsample(SOURCE, guide(low, high), model="none").values)).all()


def test_a_source_whose_differences_leave_its_type_is_explained():
    source = np.array([[1.0, MOST], [2.0, -MOST]], np.float32)
    for model in ("none", "dynamic"):
        with pytest.raises(InputError, match=r"the source ranges from -3\.4\S+ to 3\.4\S+, .*--invalid"):
            dada.upsample(source, np.eye(8, dtype=np.float32), model=model)


def test_a_ratio_over_more_orders_than_float32_has_is_explained():
    source = np.array([[1e-29, 1.0], [3.0, 1e28]], np.float32)
    with pytest.raises(InputError, match=r"from 1e-29 to 1e\+28"):
        dada.upsample(source, np.eye(8, dtype=np.float32), model="none", adjust="ratio")


def test_a_round_that_leaves_the_range_of_its_type_ends_the_rounds():
    """Coefficients of what is not finite would not be finite either."""
    source = np.array([[1.2e-27], [2.3e-3], [1e-9], [4e-20]])
    guide = np.random.default_rng(0).random((16, 1, 3)).astype(np.float32)
    try:
        values = dada.upsample(source, guide, model="dynamic", adjust="ratio").values
    except InputError as error:
        assert "too far to be computed with" in str(error)  # noqa: PT017 (either is right)
    else:
        assert np.isfinite(values).all()
