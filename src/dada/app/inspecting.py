"""What a file holds, as the command would understand it: shown beside the file, for correction."""

from __future__ import annotations

import base64
import math
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dada.pairs.options import Options

if TYPE_CHECKING:
    import numpy as np

    from dada.io import Raster, Role

THUMBNAIL = 360  # pixels of the longer side


def inspect(path: Path, role: Role, options: Options) -> dict[str, Any]:
    """Describe a source or a guide.

    Raises:
        InputError: the file cannot be used; the message says why.
    """
    from dada.io import ImageWarning, read_image
    from dada.pairs.storage import choose_storage
    from dada.pairs.words import default_output

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        raster = read_image(path, key=options.source_key if role == "source" else options.guide_key, role=role)
        values = raster.values
        found: dict[str, Any] = {
            "name": path.name,
            "format": raster.format.upper(),
            "height": values.shape[0],
            "width": values.shape[1],
            "bands": 1 if values.ndim == 2 else values.shape[2],
            "dtype": str(values.dtype),
            "georeferenced": raster.georeference is not None,
        }
        if role == "source":
            storage = choose_storage(raster, default_output(path), options)
            found |= {"unit": storage.unit.name, "invalid": _shown(storage.invalid)}
            found |= _range(raster, storage.invalid)
        found["thumbnail"] = _thumbnail(raster, role, storage.invalid if role == "source" else None)
    found["warnings"] = [str(w.message) for w in caught if issubclass(w.category, ImageWarning)]
    return found


def _shown(marker: float | None) -> str:
    return "none" if marker is None else "NaN" if math.isnan(marker) else f"{marker:g}"


def _range(raster: Raster, invalid: float | None) -> dict[str, Any]:
    from dada.io import valid_pixels

    valid = valid_pixels(raster.values, invalid)
    measured = raster.values[valid]
    ends = (float(measured.min()), float(measured.max())) if measured.size else (None, None)
    return {"low": ends[0], "high": ends[1], "invalid_pixels": int(valid.size - measured.size)}


def _thumbnail(raster: Raster, role: Role, invalid: float | None) -> str:
    """A picture as an address that holds it."""
    import cv2

    rgb = _painted(raster, role, invalid)
    share = min(1.0, THUMBNAIL / max(rgb.shape[:2]))
    size = tuple(max(1, round(n * share)) for n in rgb.shape[1::-1])
    small = cv2.resize(rgb, size, interpolation=cv2.INTER_AREA if role == "guide" else cv2.INTER_NEAREST)
    _, data = cv2.imencode(".png", small[..., ::-1])
    return "data:image/png;base64," + base64.b64encode(data.tobytes()).decode()


def _painted(raster: Raster, role: Role, invalid: float | None) -> np.ndarray:
    from dada.io import valid_pixels
    from dada.pictures import COLORMAP
    from dada.pictures.colours import Scale
    from dada.pictures.values import checked, guide_painter, pick, whole_window

    values = raster.values
    whole = whole_window(values.shape[:2])
    if role == "guide":
        return guide_painter(values)(whole)
    data, known = checked(values, valid_pixels(values, invalid), "source")
    return Scale.robust(data, known, None, COLORMAP).paint(*pick(data, known, data.shape, whole))
