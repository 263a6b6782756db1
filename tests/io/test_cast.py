"""Results go back to the dtype of a file rounded, never wrapped; invalid stays invalid, valid stays valid."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dada.errors import InputError
from dada.io import cast

ALL = np.ones((1, 4), bool)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_integers_are_rounded_to_nearest(dtype):
    values = np.array([[0.6, 1.4, 2.5, 65535.2]], dtype)
    result, moved = cast(values, ALL, np.uint16, invalid=0)
    assert result.tolist() == [[1, 1, 2, 65535]]
    assert result.dtype == np.uint16
    assert moved == 0


def test_invalid_pixels_get_the_marker_whatever_they_held():
    values = np.array([[np.nan, np.inf, 1e9, 7.0]])
    valid = np.array([[False, False, False, True]])
    assert cast(values, valid, np.uint16, invalid=0)[0].tolist() == [[0, 0, 0, 7]]
    assert cast(values, valid, np.int16, invalid=-32768)[0].tolist() == [[-32768] * 3 + [7]]
    result = cast(values, valid, np.float32, invalid=np.nan)[0]
    assert np.isnan(result[0, :3]).all()


def test_a_valid_value_is_moved_off_the_marker_to_its_own_side():
    values = np.array([[0.3, 0.0, 0.5, 3.0]])
    result, moved = cast(values, ALL, np.uint16, invalid=0)
    assert result.tolist() == [[1, 1, 1, 3]]
    assert moved == 3
    values = np.array([[-9999.4, -9998.6, -9999.0, 1.0]])
    result, moved = cast(values, ALL, np.int16, invalid=-9999)
    assert result.tolist() == [[-10000, -9998, -9998, 1]]
    assert moved == 3
    result, _ = cast(np.array([[255.0, 254.8, 254.2, 0.0]]), ALL, np.uint8, invalid=255)
    assert result.tolist() == [[254, 254, 254, 0]]


@pytest.mark.parametrize(
    ("value", "dtype", "span"),
    [
        (70000.0, np.uint16, "5 to 70000"),
        (65535.6, np.uint16, "5 to 65536"),
        (-1.0, np.uint16, "-1 to 5"),
        (-0.6, np.uint8, "-1 to 5"),
        (2.0**63, np.int64, "5 to 9.22337e+18"),
        (1e6, np.float16, "5 to 1e+06"),
        (1e300, np.float32, "5 to 1e+300"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_range(value, dtype, span):
    with pytest.raises(InputError) as refused:
        cast(np.array([[5.0, value]]), np.ones((1, 2), bool), dtype, invalid=None)
    for said in (span, np.dtype(dtype).name, "-o out.tiff"):
        assert said in str(refused.value)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("dtype", [np.uint16, np.float32])
def test_valid_pixels_must_be_finite(value, dtype):
    with pytest.raises(InputError, match="1 pixels marked valid"):
        cast(np.array([[value, 1.0]]), np.ones((1, 2), bool), dtype, invalid=0)


@pytest.mark.parametrize("invalid", [None, np.nan, -1, 0.5, 70000])
def test_invalid_pixels_need_a_marker_the_dtype_holds(invalid):
    with pytest.raises(InputError, match="1 pixels are invalid"):
        cast(np.array([[1.0, 2.0]]), np.array([[True, False]]), np.uint16, invalid=invalid)
    assert cast(np.array([[1.0, 2.0]]), np.ones((1, 2), bool), np.uint16, invalid=invalid)[1] == 0


@given(
    hnp.arrays(np.float64, (3, 5), elements=st.floats(-1e5, 1e5)),
    hnp.arrays(bool, (3, 5)),
    st.sampled_from([np.uint8, np.uint16, np.int16, np.int32, np.float16, np.float32]),
    st.sampled_from([0, 1, 255]),
)
def test_valid_and_invalid_are_never_confused_and_values_never_wrap(values, valid, dtype, invalid):
    try:
        result, moved = cast(values, valid, dtype, invalid=invalid)
    except InputError:
        return
    assert ((result != dtype(invalid)) == valid).all()
    if np.dtype(dtype).kind in "ui":
        error = np.abs(result.astype(float) - values)[valid]
        assert (error <= nearest_error(values[valid], np.iinfo(dtype), invalid)).all()
        assert (error > 0.5).sum() <= moved


def nearest_error(values: np.ndarray, ends: np.iinfo, marker: int) -> np.ndarray:
    """How far each value is from the nearest one that the type holds and that is not the marker."""
    near = np.clip(np.rint(values)[:, None] + np.arange(-2, 3), ends.min, ends.max)
    return np.abs(np.where(near == marker, np.inf, near - values[:, None])).min(axis=1)
