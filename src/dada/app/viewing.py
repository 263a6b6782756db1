"""What the page draws of a result: layers of numbers, one colour scale, the camera of the point cloud.

A layer is a raw file beside `view.json`: float32 of one band (NaN: no value), or 8-bit RGB, or 8-bit strength of edges.
Images larger than the page can show are thinned out, never blurred: the value under the pointer is one of the file.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dada.app.requests import FIELD_OF_VIEW, VIEW
from dada.pictures import COLORMAP
from dada.pictures.colours import Scale
from dada.pictures.values import checked, guide_painter, pick, whole_window

if TYPE_CHECKING:
    from dada.app.requests import Request
    from dada.io import Intrinsics
    from dada.pairs.job import Outcome

COLOURS = 256
STRONG = 0.01  # share of the pixels that are drawn as the strongest edges


@dataclass
class View:
    """Layers on their way to the disk."""

    folder: Path
    layers: list[dict[str, Any]] = field(default_factory=list)

    def add(self, name: str, kind: str, image: np.ndarray) -> None:
        """Write a layer of [rows, columns] (x bands)."""
        (self.folder / f"{name}.bin").write_bytes(np.ascontiguousarray(image).tobytes())
        self.layers.append({"name": name, "kind": kind, "rows": image.shape[0], "columns": image.shape[1]})

    def add_values(self, name: str, values: np.ndarray, valid: np.ndarray) -> None:
        """Write values, NaN where they are not valid."""
        picked, known = pick(values, valid, values.shape, whole_window(values.shape))
        self.add(name, "values", np.where(known, picked, np.nan).astype("<f4"))


def write_view(
    folder: Path, request: Request, outcome: Outcome, stored: np.ndarray, truth: np.ndarray | None
) -> dict[str, Any]:
    """Write the layers of a result and `view.json`; return the errors where the truth is known.

    Args:
        folder: of the job.
        request: what was asked for.
        outcome: what became of it.
        stored: [H, W], the result as its file holds it.
        truth: [H, W] in the unit of the result, NaN where unknown.
    """
    from dada.pairs.extras import plain_bicubic

    inputs, storage, valid = outcome.inputs, outcome.storage, outcome.result.valid
    assert isinstance(valid, np.ndarray)
    (folder / VIEW).mkdir()
    view = View(folder / VIEW)
    view.add("guide", "rgb", guide_painter(inputs.guide.values)(whole_window(stored.shape)))
    source = np.where(inputs.valid, inputs.source.values, 0) * storage.factor
    view.add_values("source", source, inputs.valid)
    bicubic = plain_bicubic(source, inputs.valid, stored.shape)
    view.add_values("bicubic", bicubic, valid)
    view.add_values("result", stored, valid)
    errors: dict[str, Any] = {}
    error_scale = None
    if truth is not None:
        view.add_values("truth", truth, np.isfinite(truth))
        error_scale, errors = _add_errors(view, truth, {"bicubic": bicubic, "result": stored}, valid)
    if outcome.result.coefficients is not None:
        view.add("edges", "edges", edge_strength(*(np.asarray(part) for part in outcome.result.coefficients)))
    reference = checked(stored, valid, "result")
    camera = camera_of(request, stored.shape)
    content = {
        "rows": stored.shape[0],
        "columns": stored.shape[1],
        "unit": storage.label or request.label,
        "whole_numbers": storage.dtype.kind in "iu",
        "scale": _scale(Scale.robust(*reference, request.range, COLORMAP)),
        "error_scale": None if error_scale is None else _scale(error_scale),
        "layers": view.layers,
        "per_metre": storage.output_unit.per_metre,
        "camera": camera._asdict(),
        "stated": request.intrinsics is not None,
        "field_of_view": request.field_of_view or FIELD_OF_VIEW,
        "assumed": request.field_of_view is None,
        "cell": None if inputs.source.georeference is None else _pixel(outcome),
        "errors": errors,
    }
    (folder / VIEW / "view.json").write_text(json.dumps(content))
    return errors


def _add_errors(
    view: View, truth: np.ndarray, results: dict[str, np.ndarray], valid: np.ndarray
) -> tuple[Scale, dict[str, Any]]:
    known = np.isfinite(truth) & valid
    maps = {name: np.where(known, values - truth, np.nan) for name, values in results.items()}
    for name, error in maps.items():
        view.add_values(f"error of {name}", error, known)
    measured = {name: error[known] for name, error in maps.items()}
    errors = {
        name: {"mae": float(np.abs(error).mean()), "rmse": math.sqrt(float((error**2).mean()))}
        for name, error in measured.items()
        if error.size
    }
    return Scale.symmetric(list(measured.values()), None), errors


def _scale(scale: Scale) -> dict[str, Any]:
    colours = scale.colormap(np.linspace(0, 1, COLOURS), bytes=True)[:, :3]
    return {"low": scale.limits[0], "high": scale.limits[1], "extend": scale.extend, "colours": colours.tolist()}


def edge_strength(vertical: np.ndarray, horizontal: np.ndarray) -> np.ndarray:
    """How strongly the model parts each pixel from its neighbours, [H, W] of 8 bits.

    Coefficients span orders of magnitude and mean something only beside each other: from the usual one (0) to the
    smallest hundredth (255) on a logarithmic scale.

    Args:
        vertical: coefficients [H - 1, W].
        horizontal: coefficients [H, W - 1].
    """
    size = horizontal.shape[0], vertical.shape[1]
    least = np.full(size, np.inf)
    for here in (least[:-1], least[1:]):
        np.minimum(here, vertical, out=here)
    for here in (least[:, :-1], least[:, 1:]):
        np.minimum(here, horizontal, out=here)
    depth = np.log(np.clip(least, np.finfo(np.float32).tiny, np.finfo(np.float32).max))
    strong, usual = np.quantile(depth, (STRONG, 0.5))
    strength = np.clip((usual - depth) / max(usual - strong, 1e-6), 0, 1) ** 1.5
    picked, _ = pick(strength, np.ones(size, bool), size, whole_window(size))
    levels: np.ndarray = np.rint(255 * picked).astype(np.uint8)
    return levels


def camera_of(request: Request, size: tuple[int, ...]) -> Intrinsics:
    """The stated camera, or one of the field of view that was stated or assumed."""
    from dada.io import Intrinsics, parse_intrinsics

    if request.intrinsics is not None:
        return parse_intrinsics(request.intrinsics)
    angle = math.radians(request.field_of_view or FIELD_OF_VIEW)
    focal = round(size[1] / 2 / math.tan(angle / 2), 3)
    return Intrinsics(focal, focal, (size[1] - 1) / 2, (size[0] - 1) / 2)


def _pixel(outcome: Outcome) -> float:
    """Length of a pixel of the result on the ground, in the unit of its coordinates."""
    raster, size = outcome.inputs.source, outcome.report.target_size
    assert raster.georeference is not None
    a, _, _, d, _, _ = raster.georeference.transform
    return math.hypot(a, d) * float(raster.values.shape[1] / size[1])
