"""`figure-errors` and `figure-qualitative`: what all methods make of a few crops, and where they are wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dada.evaluation.files import save_figure
from dada.evaluation.paper import paper
from dada.evaluation.tables import Table, number
from dada.pictures.colours import Scale
from dada.pictures.gallery import GalleryRow, Image, gallery
from dada.pictures.values import checked, guide_painter, pick, whole_window
from dada.reproduce.findings import Findings, Row
from dada.reproduce.found import TestSet
from dada.reproduce.reports import about_pixtransform
from dada.reproduce.shown import DEFAULT, Shown, crop_to_show, show
from dada.reproduce.study import Study
from dada.reproduce.trainings import about_training

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ERRORS = ("pixt", "msg", "fdkn", "pmba", "fdsr", "lgr", "dada", DEFAULT)
QUALITATIVE = ("pixt", "lgr-free", "dada-free", "msg", "fdkn", "pmba", "fdsr", "lgr", "dada", DEFAULT)
TITLES = {
    "pixt": "PixT", "lgr-free": "LGR-free", "dada-free": "DADA-free", "msg": "MSG", "fdkn": "FDKN", "pmba": "PMBA",
    "fdsr": "FDSR", "lgr": "LGR", "dada": "DADA", DEFAULT: "default (ours)",
}  # fmt: skip
SCALE = (
    "Red: too far, blue: too near. The error maps of a row have one scale, at its right, which ends at the 97th "
    "percentile of bicubic's errors; each map tells its MAE."
)


def error_grid(study: Study) -> Findings:
    """Figure 5: error maps on a crop of each data set at two factors, DADA's prediction and the truth."""
    shown: list[tuple[TestSet, Shown]] = []
    for test in study.sets():
        for order, factor in enumerate(study.effort.figure_factors):
            shown.append((test, _shown(study, test, factor, order, ERRORS, "errors")))
    names = _present([s for _, s in shown], ERRORS)
    columns = ["guide", "source", *(TITLES[name] for name in names), "DADA, result", "truth"]
    rows = []
    for test, crop in shown:
        guide, source, truth = _inputs(crop)
        prediction = _value(crop, crop.results.get("dada"))
        errors = [_error(crop, name) for name in names]
        texts = ["", "", *(_mae(crop, name) for name in names), "", ""]
        images = [guide, source, *errors, prediction, truth]
        rows.append(GalleryRow(images, f"{test.title} x{crop.factor}", _scale_note(crop), texts))
    numbers = [row for test, crop in shown for row in _rows(test, crop)]
    summary = [_least(numbers), *_about(study), *_missing([s for _, s in shown])]
    factors = ", ".join(f"x{f}" for f in study.effort.figure_factors)
    return Findings(
        summary, _protocol(study), numbers, gallery(columns, rows),
        f"Guide, source, error maps of the methods, DADA's result and the truth, at {factors}. {SCALE}",
        [_table(numbers)], {"factors": list(study.effort.figure_factors), "networks": about_training(study)},
    )  # fmt: skip


def qualitative(study: Study) -> Findings:
    """The supplement's three pages: for each data set, results and error maps at every factor."""
    drawn: dict[str, Figure] = {}
    numbers: list[Row] = []
    every: list[Shown] = []
    for test in study.sets():
        crops = [
            _shown(study, test, factor, order, QUALITATIVE, "qualitative")
            for order, factor in enumerate(study.effort.qualitative_factors)
        ]
        drawn[test.title] = _page(crops)
        numbers += [row for crop in crops for row in _rows(test, crop)]
        every += crops
    first, *others = drawn
    files = {}
    study.folder.mkdir(parents=True, exist_ok=True)
    for name in others:
        save_figure(drawn[name], study.folder / f"qualitative_{name}")
        files[f"qualitative_{name}.png"] = f"the same on {name}"
    summary = [
        _least(numbers),
        *_about(study),
        *(f"[qualitative_{name}.png](qualitative_{name}.png) shows the same on {name}." for name in others),
        *_missing(every),
    ]
    return Findings(
        summary, _protocol(study), numbers, drawn[first],
        f"{first}: at each factor the results of the methods, and below them their errors. {SCALE}",
        [_table(numbers)],
        {"factors": list(study.effort.qualitative_factors), "networks": about_training(study)}, files,
    )  # fmt: skip


def _page(crops: Sequence[Shown]) -> Figure:
    """Two rows for each factor: results, and their errors."""
    names = _present(crops, QUALITATIVE)
    rows = []
    for crop in crops:
        guide, source, truth = _inputs(crop)
        results = [_value(crop, crop.results.get(name)) for name in names]
        rows.append(GalleryRow([guide, source, *results, truth], f"x{crop.factor}", _range_note(crop)))
        errors = [_error(crop, name) for name in names]
        texts = ["", "", *(_mae(crop, name) for name in names), ""]
        rows.append(GalleryRow([None, None, *errors, None], "", _scale_note(crop), texts))
    return gallery(["guide", "source", *(TITLES[name] for name in names), "truth"], rows)


def _shown(study: Study, test: TestSet, factor: int, order: int, names: Sequence[str], figure: str) -> Shown:
    own = paper()["figure_crops"][figure].get(test.title, {}).get(str(factor))
    study.say(f"{test.title} x{factor}", None)
    return show(study, test, crop_to_show(study, test, own, order), factor, names)


def _present(crops: Sequence[Shown], names: Sequence[str]) -> list[str]:
    """Methods that ran on at least one of the crops."""
    return [name for name in names if any(name in crop.results for crop in crops)]


def _depths(crop: Shown) -> Scale:
    return Scale.robust(*checked(crop.truth, None, "truth"), None, "viridis")


def _value(crop: Shown, values: np.ndarray | None) -> Image | None:
    return None if values is None else _paint(_depths(crop), values)


def _error(crop: Shown, name: str) -> Image | None:
    error = crop.error(name)
    return None if error is None else _paint(Scale.symmetric([error[np.isfinite(error)]], crop.limit), error)


def _paint(scale: Scale, values: np.ndarray) -> Image:
    data, known = checked(values, None, "values")
    return scale.paint(*pick(data, known, data.shape, whole_window(data.shape)))


def _inputs(crop: Shown) -> tuple[Image, Image, Image]:
    """Guide, source and truth, painted."""
    scale = _depths(crop)
    guide = guide_painter(crop.guide)(whole_window(crop.truth.shape))
    return guide, _paint(scale, crop.source), _paint(scale, crop.truth)


def _mae(crop: Shown, name: str) -> str:
    error = crop.error(name)
    return "" if error is None else f"{number(float(np.nanmean(np.abs(error))))} {crop.unit}"


def _scale_note(crop: Shown) -> str:
    return f"errors\n± {number(crop.limit)} {crop.unit}"


def _range_note(crop: Shown) -> str:
    low, high = _depths(crop).limits
    return f"{low:.0f} to\n{high:.0f} {crop.unit}"


def _rows(test: TestSet, crop: Shown) -> list[Row]:
    found: list[Row] = []
    for name in crop.results:
        error = crop.error(name)
        assert error is not None
        mae, rmse = float(np.nanmean(np.abs(error))), float(np.sqrt(np.nanmean(error**2)))
        place = {"dataset": test.title, "factor": crop.factor, "crop": crop.crop}
        found.append(place | {"method": crop.labels[name], "unit": crop.unit, "mae": mae, "rmse": rmse})
    return found


def _table(rows: list[Row]) -> Table:
    return Table(
        "Errors of the crops shown",
        ["data set", "factor", "crop", "method", "MAE", "RMSE"],
        [[r["dataset"], f"x{r['factor']}", r["crop"], r["method"], number(r["mae"]), number(r["rmse"])] for r in rows],
        "In centimetres for depth.",
    )


def _least(rows: list[Row]) -> str:
    groups: dict[tuple[str, int], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["dataset"], row["factor"]), []).append(row)
    best = {place: min(found, key=lambda r: r["rmse"]) for place, found in groups.items()}
    parts = [f"{data} x{factor}: {row['method']}, {number(row['rmse'])}" for (data, factor), row in best.items()]
    return f"Least RMSE: {'; '.join(parts)}."


def _about(study: Study) -> list[str]:
    """Sentences on what the methods are."""
    return [
        f"Networks, but for those that are marked as released: {about_training(study)}.",
        *about_pixtransform(study),
    ]


def _missing(crops: Sequence[Shown]) -> list[str]:
    """Sentences on methods that did not run, each once."""
    reasons = {
        f"{name}, not drawn at x{crop.factor}: {why.removeprefix(f'{name}: ')}"
        for crop in crops
        for name, why in crop.reasons.items()
    }
    return sorted(reasons)


def _protocol(study: Study) -> str:
    side = study.effort.size
    return (
        f"none; crops of {side} x {side}: the paper's own where its test images were found, else the one with the most "
        "depth jumps of an image"
    )
