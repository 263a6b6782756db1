"""The unit that a data set's values are given to a network in: its mean and its standard deviation."""

from __future__ import annotations

import math
from typing import NamedTuple

from dada.errors import InputError


class DataUnit(NamedTuple):
    """Mean and standard deviation of a data set, in millimetres; 0 where it is not known."""

    mean: float
    deviation: float


MIDDLEBURY, NYUV2, DIML = DataUnit(2296.78, 1122.7), DataUnit(2796.32, 1386.05), DataUnit(2749.64, 1154.29)
PUBLISHED = {"middlebury": MIDDLEBURY, "nyuv2": NYUV2, "diml": DIML}
"""Those of the paper's data sets, from the released code."""


def with_mean(deviation: float) -> DataUnit:
    """The published unit of this deviation; of another deviation, with a mean that is not known."""
    return next((unit for unit in PUBLISHED.values() if unit.deviation == deviation), DataUnit(0.0, deviation))


def parse_data_unit(text: str) -> DataUnit:
    """Return the unit of a data set's name, or of its standard deviation in millimetres.

    Raises:
        InputError: it is neither.
    """
    if text in PUBLISHED:
        return PUBLISHED[text]
    try:
        deviation = float(text)
    except ValueError:
        deviation = math.nan
    if not 0 < deviation < math.inf:
        raise InputError(
            f"unit {text!r} is not that of a data set. Use {', '.join(PUBLISHED)}, or the standard deviation of the "
            "training data in millimetres, such as 1122.7."
        )
    return with_mean(deviation)
