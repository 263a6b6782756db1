"""Variants of the models without weights, with the settings of a JSON file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dada.errors import InputError
from dada.models.learning_free import Dynamic, LearningFree

SETTINGS = {
    "none": ("kappa", "distance", "source_scale"),
    "dynamic": ("kappa", "source_weight", "result_weight", "rounds", "smooth_from"),
}
EXAMPLE = '{"model": "none", "kappa": 0.02, "distance": "euclidean"}'


def read_settings(path: Path) -> LearningFree | Dynamic:
    """Return the model that a JSON file describes.

    Raises:
        InputError: the file cannot be read, or a setting in it cannot be.
    """
    try:
        settings = json.loads(path.read_bytes())
    except OSError as error:
        raise InputError(f"model {path}: cannot be read ({error.strerror}). Name a JSON file of settings.") from None
    except (ValueError, RecursionError):
        raise InputError(f"model {path}: is not JSON. Write settings such as {EXAMPLE}.") from None
    kind = settings.pop("model", "none") if isinstance(settings, dict) else "none"
    if not isinstance(kind, str) or kind not in SETTINGS:
        raise InputError(f"model {path}: model must be none or dynamic, got {kind!r}.")
    if not isinstance(settings, dict) or not settings.keys() <= set(SETTINGS[kind]):
        raise InputError(
            f"model {path}: settings of {kind} must be some of {', '.join(SETTINGS[kind])}, such as {EXAMPLE}; "
            f"got {json.dumps(settings)[:200]}."
        )
    _check_values(settings, path)
    model = LearningFree if kind == "none" else Dynamic
    return model(**settings, name=path.name)


def _check_values(settings: dict[str, Any], path: Path) -> None:
    for key, value in settings.items():
        if key != "distance" and (isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e9):
            raise InputError(f"model {path}: {key} must be a positive number, got {value!r}.")
    if settings.get("distance", "euclidean") not in ("euclidean", "mean_absolute"):
        raise InputError(f"model {path}: distance must be euclidean or mean_absolute, got {settings['distance']!r}.")
    if not isinstance(settings.get("rounds", 1), int):
        raise InputError(f"model {path}: rounds must be a whole number, got {settings['rounds']!r}.")
