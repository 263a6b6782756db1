"""A rendered scene as two GeoTIFFs, and the means of the written result by rasterio and NumPy alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasterio
from rasterio.transform import Affine, from_origin

from dada.scene import Scene, render

PLACE = from_origin(500_000, 4_600_000, 0.5, 0.5)
FACTOR = 4
NODATA = -9999.0


def write(
    path: Path, bands: np.ndarray, place: Affine | None = PLACE, crs: str | None = "EPSG:32633", **more: Any
) -> Path:
    """Write (H, W) or (C, H, W) as a GeoTIFF."""
    bands = bands if bands.ndim == 3 else bands[None]
    count, height, width = bands.shape
    profile = {"driver": "GTiff", "count": count, "height": height, "width": width, "dtype": bands.dtype, "crs": crs}
    if place is not None:
        profile["transform"] = place
    with rasterio.open(path, "w", **profile | more) as file:
        file.write(bands)
    return path


def read(path: Path) -> np.ndarray:
    """The first band as float64, NaN where it is nodata."""
    with rasterio.open(path) as file:
        return file.read(1, masked=True).astype(np.float64).filled(np.nan)


def average(values: np.ndarray, factor: int = FACTOR) -> np.ndarray:
    h, w = (n // factor for n in values.shape)
    return values.reshape(h, factor, w, factor).mean(axis=(1, 3))


@pytest.fixture(scope="session")
def scene() -> Scene:
    return render(192, 256)


@pytest.fixture(scope="session")
def guide(scene: Scene) -> np.ndarray:
    """(3, 192, 256) uint8."""
    return np.moveaxis(scene.guide, -1, 0)


@pytest.fixture(scope="session")
def cells(scene: Scene) -> np.ndarray:
    """(48, 64) float32 depth averaged x4."""
    return average(scene.depth.astype(np.float64)).astype(np.float32)


@pytest.fixture
def pair(tmp_path: Path, guide: np.ndarray, cells: np.ndarray) -> tuple[Path, Path]:
    source = write(tmp_path / "source.tif", cells, PLACE * Affine.scale(FACTOR), nodata=NODATA)
    return source, write(tmp_path / "guide.tif", guide)
