"""What is asked for: the fields of a form as options of the command."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, get_args

from dada.errors import InputError
from dada.pairs.options import Options, StoredType

FIELD_OF_VIEW = 60.0  # degrees across, of a camera that nobody stated
MODELS = ("default", "learned", "fast", "dynamic", "none")  # that the page offers; others by name, none from a file
FORMATS = ("png", "tiff", "pfm", "exr", "npy", "npz")
FACTORS = (2, 64)  # of a self-test
VIEW = "view"  # the folder, within that of a job, of what the page draws


@dataclass(frozen=True)
class Request:
    """Files by their names in the folder of the job, and what to do with them."""

    source: str
    guide: str
    confidence: str | None = None
    truth: str | None = None  # NPY of the result's size and unit, for the error
    options: Options = field(default_factory=Options)
    range: tuple[float, float] | None = None
    intrinsics: str | None = None
    field_of_view: float | None = None  # degrees across; None: FIELD_OF_VIEW
    format: str | None = None  # of the result; None: that of the source
    factor: int | None = None  # the source is fine: average it down first, and show the error
    label: str = ""  # of values without a metric unit
    megapixels: float = math.inf


class FieldError(InputError):
    """A field that cannot be used."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.field = name


def _text(text: str) -> str | None:
    return text or None


def _number(text: str) -> float | None:
    return float(text) if text else None


def _whole(text: str) -> int | None:
    return int(text) if text else None


def _yes(text: str) -> bool:
    return {"": False, "0": False, "false": False, "no": False, "1": True, "true": True, "yes": True, "on": True}[
        text.lower()
    ]


def _one_of(*names: str) -> Callable[[str], str | None]:
    def read(text: str) -> str | None:
        if text and text not in names:
            raise ValueError
        return text or None

    return read


def _range(text: str) -> tuple[float, float] | None:
    if not text:
        return None
    low, high = (float(part) for part in text.replace(",", " ").split())
    return low, high


FIELDS: dict[str, tuple[Callable[[str], Any], str]] = {
    "unit": (_text, "mm, cm, m, tum, raw, or stored units in a metre"),
    "output_unit": (_text, "mm, cm, m, tum, raw, or stored units in a metre"),
    "dtype": (_one_of(*get_args(StoredType)), ", ".join(get_args(StoredType))),
    "format": (_one_of(*FORMATS), ", ".join(FORMATS)),
    "invalid": (_number, "a number"),
    "fill": (_yes, "yes or no"),
    "model": (_text, ", ".join(MODELS)),
    "adjust": (_one_of("auto", "ratio", "shift"), "auto, ratio or shift"),
    "solver": (_one_of("equilibrium", "iterate"), "equilibrium or iterate"),
    "tolerance": (_number, "a number"),
    "steps": (_whole, "a whole number"),
    "source_key": (_text, "the name of an array or channel, or the number of a band"),
    "guide_key": (_text, "the name of an array or channel, or the number of a band"),
    "range": (_range, "two numbers, as 500,4000"),
    "intrinsics": (_text, "FX,FY,CX,CY in pixels of the guide"),
    "field_of_view": (_number, "degrees"),
    "factor": (_whole, "a whole number"),
}
"""Every field of text: how it is read, and what is expected of it. They are named as the options of the command."""


def read_fields(texts: dict[str, str]) -> dict[str, Any]:
    """The values of a form's texts; those that are empty are left out.

    Raises:
        FieldError: a field that is unknown or cannot be used.
    """
    values = {}
    for name, text in texts.items():
        if name not in FIELDS:
            raise FieldError(name, f"the field {name!r} is unknown. Known are {', '.join(FIELDS)}.")
        read, expected = FIELDS[name]
        try:
            value = read(text)
        except (ValueError, KeyError):
            raise FieldError(name, f"{name} is {text!r}, and {expected} was expected.") from None
        if value is not None:
            values[name] = value
    _check(values)
    return values


def _check(values: dict[str, Any]) -> None:
    """Refuse what can be refused without a look at the files."""
    from dada.io import parse_intrinsics, parse_unit

    view, factor = values.get("field_of_view"), values.get("factor")
    if view is not None and not 1 <= view <= 170:
        raise FieldError("field_of_view", f"field_of_view is {view:g}, and 1 to 170 degrees were expected.")
    if factor is not None and not FACTORS[0] <= factor <= FACTORS[1]:
        raise FieldError("factor", f"factor is {factor}, and {FACTORS[0]} to {FACTORS[1]} was expected.")
    checks: dict[str, Callable[[str], object]] = {
        "unit": parse_unit,
        "output_unit": parse_unit,
        "intrinsics": parse_intrinsics,
    }
    for name, check in checks.items():
        if name in values:
            try:
                check(values[name])
            except InputError as error:
                raise FieldError(name, str(error)) from None


def options_of(values: dict[str, Any]) -> Options:
    """The options of the command among the values of a form."""
    return Options(**{name: value for name, value in values.items() if name in Options.__dataclass_fields__})
