"""Models turn a guide into diffusion coefficients. Here they are found by name."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

from torch import Tensor

from dada.errors import InputError
from dada.learning_free import Dynamic, LearningFree
from dada.sample import Method, Sample, Solve

LEAST_SHARE = 0.1  # of the least value of a source: how low "auto" lets a result go
BEYOND, HIDDEN = 0.05, 1024  # how far beyond its source "auto" lets a result go, see `bounds`
RUNAWAY = 4  # how many times the largest value of a source "auto" lets a result of ratio reach
RATIO_SPAN = 100  # how many times the least value the largest may be for "auto" to choose ratio


@runtime_checkable
class Model(Protocol):
    """What `dada.upsample` needs to know of a model whose result the diffusion computes."""

    @property
    def name(self) -> str:
        """What reports call it."""
        ...

    def diffuse(self, sample: Sample, solve: Solve) -> Tensor:
        """Compute coefficients of the H x W target grid and have them solved for, once or several times.

        Args:
            sample: the problem.
            solve: what solves; each call is reported as a round.

        Returns:
            What the last call returned.
        """
        ...


def preferred_adjust(model: object) -> str:
    """The adjustment that a network was trained with; "auto" where it does not matter."""
    return str(getattr(getattr(model, "config", None), "adjust", "auto"))


def auto_adjust(low: float, high: float, trained: str) -> Literal["ratio", "shift"]:
    """What "auto" is for a source from `low` to `high` and a model whose `preferred_adjust` is `trained`.

    Ratios of values near zero to large ones are ill-conditioned, and `shift` is as good there.
    """
    return "ratio" if low > 0 and high <= RATIO_SPAN * low and trained != "shift" else "shift"


def bounds(low: float, high: float, pixels: float) -> tuple[float, float]:
    """Between which values "auto" keeps a result.

    What lies beyond all measurements shares its cells with something else, and the fewer pixels a cell has, the less
    can hide in it. Where a cell holds a few pixels of a far hill and the coefficients leave it fewer still, these would
    have to be far beyond the hill to make up for the rest. Positive values stay positive.

    Args:
        low: least value of the source.
        high: its largest value.
        pixels: of a source cell.

    Returns:
        The least and the largest value: a twentieth of the source's range beyond it, and the whole range for each 1024
        pixels of a cell (x32); no lower than a tenth of the least value of a source that is nowhere below zero.
    """
    reach = (BEYOND + pixels / HIDDEN) * (high - low)
    return max(low - reach, LEAST_SHARE * low) if low >= 0 else low - reach, high + reach


def reconsidered(
    chosen: Literal["ratio", "shift"], low: float, high: float, least: float, most: float, converged: bool
) -> Literal["ratio", "shift"]:
    """What "auto" comes down to once a first result is there.

    Args:
        chosen: what the first result was adjusted by.
        low: least value of the source.
        high: its largest value.
        least: least value of the result.
        most: its largest value. A pixel that hardly any coefficient ties to its neighbours may run away under ratio.
        converged: whether its equilibrium was reached.
    """
    if chosen == "ratio":
        return "ratio" if converged and most <= RUNAWAY * high else "shift"  # convex: it always comes to its end
    # what was positive everywhere shall stay so
    return "shift" if least > 0 or auto_adjust(low, high, "auto") == "shift" else "ratio"


def load_model(name: str | os.PathLike[str] = "default") -> Model | Method:
    """Return the model of a name.

    Args:
        name: "default", which is "learned" where that fits and else "dynamic" (see `dada.default`); "learned", the
            network that comes with the package; "dynamic" or "none", which need no weights; a file or folder of
            weights of DADA; a JSON file of settings of a model without weights; or another method of the bench with
            its weights, as "msg:FILE".

    Raises:
        InputError: there is no such model, or the file is not one; the message says what there is.
    """
    chosen = str(name)
    if chosen in LEARNING_FREE:
        return LEARNING_FREE[chosen]()
    if chosen in ("default", "learned"):
        from dada.default import Default, learned

        return Default() if chosen == "default" else learned()
    path = Path(chosen)
    if path.suffix == ".json" and not path.is_dir():
        return _read_settings(path)
    from dada.methods import METHODS, NETWORKS, load_method

    if chosen.partition(":")[0] in (METHODS | NETWORKS):
        return load_method(chosen)
    if path.exists():
        return load_method(f"dada:{chosen}")
    raise InputError(
        f"model {chosen!r} is unknown. Use one of: default, learned, dynamic and none (which need no weights), a file "
        f"or folder of weights, a JSON file of settings such as {EXAMPLE}, or another method ({', '.join(METHODS)}, "
        f"{', '.join(f'{n}:FILE' for n in NETWORKS)})."
    )


LEARNING_FREE = {"none": LearningFree, "dynamic": Dynamic}
SETTINGS = {
    "none": ("kappa", "distance", "source_scale"),
    "dynamic": ("kappa", "source_weight", "result_weight", "rounds", "smooth_from"),
}
EXAMPLE = '{"model": "none", "kappa": 0.02, "distance": "euclidean"}'


def _read_settings(path: Path) -> LearningFree | Dynamic:
    """A variant without weights, with the settings of a JSON file."""
    try:
        settings = json.loads(path.read_bytes())
    except OSError as error:
        raise InputError(f"model {path}: cannot be read ({error.strerror}). Name a JSON file of settings.") from None
    except ValueError:
        raise InputError(f"model {path}: is not JSON. Write settings such as {EXAMPLE}.") from None
    kind = settings.pop("model", "none") if isinstance(settings, dict) else "none"
    if kind not in SETTINGS:
        raise InputError(f"model {path}: model must be none or dynamic, got {kind!r}.")
    allowed = SETTINGS[kind]
    if not isinstance(settings, dict) or not settings.keys() <= set(allowed):
        raise InputError(
            f"model {path}: settings of {kind} must be some of {', '.join(allowed)}, such as {EXAMPLE}; "
            f"got {json.dumps(settings)[:200]}."
        )
    for key, value in settings.items():
        if key != "distance" and (isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e9):
            raise InputError(f"model {path}: {key} must be a positive number, got {value!r}.")
    if settings.get("distance", "euclidean") not in ("euclidean", "mean_absolute"):
        raise InputError(f"model {path}: distance must be euclidean or mean_absolute, got {settings['distance']!r}.")
    if not isinstance(settings.get("rounds", 1), int):
        raise InputError(f"model {path}: rounds must be a whole number, got {settings['rounds']!r}.")
    return LEARNING_FREE[kind](**settings, name=path.name)
