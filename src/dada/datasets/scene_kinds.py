"""How the stored ground truth of each known data set is converted to values with a unit, with NaN in holes."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dada.datasets import middlebury, nyuv2
from dada.datasets.pair import DEPTH
from dada.errors import InputError

Meta = dict[str, Any]
Convert = Callable[[np.ndarray, Path, Meta], np.ndarray]

SKY = 1000.0
"""Metres: renderers write larger values for infinity."""

LIGHT_FIELD_OFFSET = 4.0
"""Pixels added to light-field disparities. They are measured from a plane within the scene, behind which they are
negative (to about -3.5); where that plane lies is arbitrary, and diffusion by ratios needs positive values."""


class View(NamedTuple):
    """Two files of a scene's folder, the arrays in them, and the view's name where there are several."""

    guide: str
    truth: str
    label: str = ""
    guide_key: str | None = None
    truth_key: str | None = None


def as_stored(values: np.ndarray, folder: Path, meta: Meta) -> np.ndarray:
    """Values without scale or holes: zeros are real."""
    return values


def without_zeros(values: np.ndarray, folder: Path, meta: Meta) -> np.ndarray:
    """Values whose zeros are holes."""
    return np.where(values == 0, np.float32(np.nan), values)


def middlebury_depth(values: np.ndarray, folder: Path, meta: Meta) -> np.ndarray:
    """Disparity of 2005 and 2006 in full-size pixels, which it is at every size of the image, as depth in mm."""
    file = folder / "dmin.txt"
    dmin = middlebury.read_dmin(file) if file.exists() else meta.get("dmin", meta.get("dmin_estimate"))
    if dmin is None:
        raise InputError(f"{folder}: there is no dmin.txt, and meta.json has neither dmin nor dmin_estimate.")
    return middlebury.depth_2006(values, float(dmin))


def scaled_disparity(values: np.ndarray, folder: Path, meta: Meta) -> np.ndarray:
    """Grey levels of 2001 and 2003 as disparity in pixels."""
    return without_zeros(values, folder, meta) / np.float32(_divisor(folder, meta))


def tum_depth(values: np.ndarray, folder: Path, meta: Meta) -> np.ndarray:
    """Kinect depth in fractions of a metre as mm."""
    return without_zeros(values, folder, meta) * np.float32(1000 / _divisor(folder, meta))


def rendered_depth(values: np.ndarray, folder: Path, meta: Meta) -> np.ndarray:
    """Metres as mm; the sky is a hole."""
    return np.where(values > SKY, np.float32(np.nan), values * np.float32(1000))


def unsigned_disparity(values: np.ndarray, folder: Path, meta: Meta) -> np.ndarray:
    """SceneFlow writes disparity with one sign throughout, either of them."""
    return np.asarray(np.abs(values))


def light_field_disparity(values: np.ndarray, folder: Path, meta: Meta) -> np.ndarray:
    """Disparity between neighbouring views, made positive."""
    return values + np.float32(LIGHT_FIELD_OFFSET)


def _divisor(folder: Path, meta: Meta) -> float:
    """The n of "... = value/n" in the description of the ground truth."""
    found = re.search(r"= *value */ *(\d+)", str(meta.get("gt", "")))
    if found is None:
        raise InputError(f"{folder / 'meta.json'}: 'gt' does not say '= value/NUMBER', which scales the values.")
    return float(found[1])


@dataclass(frozen=True)
class Kind:
    """How the scenes of one data set are read.

    Attributes:
        title: how "dataset" in meta.json begins.
        quantity: see `dada.datasets.Dataset`.
        views: possible views of a scene; a view with missing files is skipped.
        convert: from the stored (H, W) values, the scene's folder and its meta.json to values in the unit of
            `quantity`, with NaN in holes.
        unit: the published standard deviation; None: measured on the scenes that are read.
        raw: views with holes of scenes whose holes are filled in `views`.
    """

    title: str
    quantity: str
    views: tuple[View, ...]
    convert: Convert = as_stored
    unit: float | None = None
    raw: tuple[View, ...] = ()


KINDS = (
    Kind("Middlebury 2001", "disparity px", (View("rgb.png", "disp2.png"),), scaled_disparity),
    Kind(
        "Middlebury 2003",
        "disparity px",
        (View("rgb.png", "disp2.png"), View("rgb_im6.png", "disp6.png", "im6")),
        scaled_disparity,
    ),
    Kind(
        "Middlebury 200",  # 2005, 2006 and "2005/2006"
        DEPTH,
        (
            View("rgb.png", "disp1_filled.png"),
            View("rgb.png", "disp1.png"),
            View("rgb_view5.png", "disp5.png", "view5"),
        ),
        middlebury_depth,
        middlebury.UNIT,
        raw=(View("rgb_uncropped_1390x1110.png", "disp1_raw_uncropped_1390x1110.png", "raw"),),
    ),
    Kind("Middlebury 30 pairs", "grey levels", (View("rgb.png", "disp_filled.png"),)),
    Kind("Lu et al.", "grey levels", (View("rgb.png", "depth_filled.png"),)),
    Kind("NYU Depth v2", DEPTH, (View("rgb.png", "depth_mm.png"),), without_zeros, nyuv2.UNIT),
    Kind("SceneFlow", "disparity px", (View("rgb.png", "disp_left.pfm"),), unsigned_disparity),
    Kind("HCI 4D light field", "disparity px", (View("rgb.png", "gt_disp_lowres.pfm"),), light_field_disparity),
    Kind("MPI Sintel", "disparity px", (View("rgb.png", "disp_decoded.npz", truth_key="disp"),)),
    Kind("AIS 2024", DEPTH, (View("rgb.png", "depth.npz", truth_key="depth"),), rendered_depth),
    Kind("PBVS thermal", "grey levels", (View("rgb.png", "thermal.png"),)),
    Kind("PixTransform sample depth", "grey levels", (View("rgb.png", "original.npz", truth_key="target"),)),
    Kind("PixTransform sample vhm", "height m", (View("original.npz", "original.npz", "", "guide", "target"),)),
    Kind("TUM RGB-D", DEPTH, (View("rgb.png", "depth.png"),), tum_depth),
)
"""The first kind whose title fits is used."""


def kind_of(folder: Path, meta: Meta) -> Kind:
    """Return the kind of a scene, by "dataset" in its meta.json."""
    title = str(meta.get("dataset", ""))
    for kind in KINDS:
        if title.startswith(kind.title):
            return kind
    raise InputError(
        f"{folder / 'meta.json'}: the data set {title!r} is unknown. 'dataset' must begin with one of "
        f"{', '.join(repr(k.title) for k in KINDS)}; images of other origin can be read as a plain folder of pairs "
        "(folder:PATH)."
    )
