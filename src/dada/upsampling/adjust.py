"""The choice of adjustment: ratio (Eq. 3) or shift, before a result is there and once it is."""

from __future__ import annotations

from typing import Literal

from dada.diffusion.measurement import Adjust
from dada.errors import InputError
from dada.models.model import TrainedAdjust

Choice = Literal["auto", "ratio", "shift"]

RUNAWAY = 4  # how many times the largest value of a source "auto" lets a result of ratio reach
WIDEST = 1e30  # how many times the least value the largest may be for ratio to be asked for
RATIO_SPAN = 100  # how many times the least value the largest may be for "auto" to choose ratio


def chosen_adjust(wanted: Choice, low: float, high: float, trained: TrainedAdjust) -> Adjust:
    """Return how a source is adjusted at first.

    Args:
        wanted: what the user asked for.
        low: least value of the source.
        high: its largest value.
        trained: what the model was trained with; "auto" where it does not matter.

    Raises:
        InputError: ratio was asked for, and cannot be.
    """
    if wanted == "auto":
        return auto_adjust(low, high, trained)
    if wanted not in ("ratio", "shift"):
        raise InputError(f"adjust {wanted!r} is unknown. Use auto, ratio or shift.")
    if wanted == "ratio" and not low > 0:
        raise InputError(
            f"adjust ratio needs positive values, and the least valid source value is {low:g}. Use adjust "
            "shift, which takes any value, or auto; or mark cells whose value means no measurement as "
            "invalid."
        )
    if wanted == "ratio" and high > WIDEST * low:
        raise InputError(
            f"adjust ratio scales cells to their measurements, and the source ranges from {low:g} to {high:g}, more "
            "than single precision can hold of one problem. Use adjust shift or auto, or mark the outliers as invalid."
        )
    return wanted


def auto_adjust(low: float, high: float, trained: TrainedAdjust) -> Adjust:
    """What "auto" is for a source from `low` to `high` and a model trained with `trained`.

    Ratios of values near zero to large ones are ill-conditioned, and `shift` is as good there.
    """
    return "ratio" if low > 0 and high <= RATIO_SPAN * low and trained != "shift" else "shift"


def reconsidered(chosen: Adjust, high: float, most: float, converged: bool) -> Adjust:
    """What "auto" comes down to once a first result is there.

    Args:
        chosen: what the first result was adjusted by. `shift` stays: it always comes to its end.
        high: largest value of the source.
        most: that of the result. A pixel that hardly any coefficient ties to its neighbours may run away under ratio.
        converged: whether its equilibrium was reached.
    """
    return "ratio" if chosen == "ratio" and converged and most <= RUNAWAY * high else "shift"
