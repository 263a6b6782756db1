"""DataArrays of xarray in and out, and Zarr: the same tiles behind another door."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dada.errors import InputError
from dada.rasters.files import Info
from dada.rasters.grids import Match, match
from dada.rasters.output import write_virtual
from dada.rasters.plan import Plan, Settings
from dada.sample import Sampling

CHUNK = 2048  # pixels a side of the chunks of a result


def upsample_xarray(
    source: Any,
    guide: Any,
    *,
    settings: Settings | None = None,
    sampling: str | Sampling | None = None,
    workers: int = 1,
    memory: float | None = None,
    work: str | None = None,
) -> Any:
    """Make a DataArray as fine as its guide.

    If source or guide are lazy (with dask chunks), so is the result: nothing is computed before it is asked for. Then
    the guide is written to a folder chunk by chunk, tiles are solved there as by `upsample_raster`, and the chunks of
    the result are read from there. Memory stays bounded. The first chunk that is asked for computes all tiles.

    Args:
        source: DataArray (y, x), or (band, y, x) with one band, as `rioxarray.open_rasterio` gives it: it has a
            transform, and a projection where there is one. NaN and its nodata value are invalid.
        guide: DataArray (y, x) or (band, y, x), finer.
        settings: as in `upsample_raster`; `band` does not matter here.
        sampling: how the source was made, as in `dada.upsample` but not "auto"; None: as the settings say.
        workers: processes, as in `upsample_raster`.
        memory: bytes, as in `upsample_raster`.
        work: a folder that all dask workers see, where results are computed on a cluster; a temporary one by default.

    Returns:
        DataArray (y, x) with coordinates and projection, NaN where there is no measurement.

    Raises:
        InputError: the two cannot be used; the message says why and what to do.
    """
    import rioxarray  # noqa: F401

    settings = settings or Settings()
    if sampling is not None:
        settings = replace(settings, sampling=str(sampling))
    coarse, fine = _with_bands(source, "source"), _with_bands(guide, "guide")
    found = match(_info(coarse, "source"), _info(fine, "guide"))
    folder = Folder(Path(tempfile.mkdtemp(prefix="dada-", dir=work)))
    options = {"settings": settings, "workers": workers, "memory": memory}
    lazy = coarse.chunks is not None or fine.chunks is not None
    if not lazy:
        file = _compute(coarse, fine, folder, options)
        values: Any = _read_block(file, (0, found.geometry.size[0]), (0, found.geometry.size[1]))
    else:
        path: Any = _delayed()(_compute, pure=False)(coarse, fine, folder, options)
        values = _blocks(path, found.geometry.size)
    return _labelled(values, found, source)


class Folder:
    """A temporary folder that is removed with the last lazy array that needs it."""

    def __init__(self, path: Path, remove: bool = True) -> None:
        self.path = path
        if remove:
            weakref.finalize(self, shutil.rmtree, path, ignore_errors=True)

    def __reduce__(self) -> tuple[Any, ...]:
        return Folder, (self.path, False)  # in other processes it is only a name

    def __dask_tokenize__(self) -> str:
        return str(self.path)


def _with_bands(array: Any, role: str) -> Any:
    """(band, y, x), with a place on the ground."""
    if not hasattr(array, "dims") or not hasattr(array, "rio"):
        raise InputError(f"the {role} is no DataArray. Open it with rioxarray.open_rasterio, or use dada.upsample.")
    try:
        x, y = array.rio.x_dim, array.rio.y_dim
    except Exception:
        raise InputError(
            f"the {role} has dimensions {array.dims}, and which are x and y is not clear. Name them with "
            "rio.set_spatial_dims."
        ) from None
    others = [name for name in array.dims if name not in (x, y)]
    if len(others) > 1:
        raise InputError(
            f"the {role} has dimensions {array.dims}; expected y and x, and bands at most. Select one image."
        )
    array = array.transpose(*others, y, x) if others else array.expand_dims("band")
    if role == "source" and array.shape[0] != 1:
        raise InputError(f"the source has {array.shape[0]} bands. Select the one with the measurements, as source[0].")
    return array


def _info(array: Any, role: str) -> Info:
    transform = tuple(float(v) for v in tuple(array.rio.transform())[:6])
    if transform == (1.0, 0.0, 0.0, 0.0, 1.0, 0.0):
        raise InputError(f"the {role} has neither coordinates nor a transform. Use dada.upsample for plain arrays.")
    return Info(
        path=f"the {role}", size=(array.shape[1], array.shape[2]), transform=transform,  # type: ignore[arg-type]
        crs=array.rio.crs.to_wkt() if array.rio.crs else None, bands=tuple(range(1, array.shape[0] + 1)),
        dtype=str(array.dtype), nodata=None, scale=1.0, offset=0.0, stamp=None, masked=True,
    )  # fmt: skip


def _compute(source: Any, guide: Any, place: Folder, options: dict[str, Any]) -> str:
    """Write the inputs to files, chunk by chunk, and the result beside them."""
    from dada.rasters.run import upsample_raster

    folder = place.path
    for name, array in (("source", source), ("guide", guide)):
        _as_stored(array).rio.to_raster(folder / f"{name}.tif", tiled=True, windowed=True, bigtiff="if_safer")
    output = folder / "result.tif"
    upsample_raster(folder / "source.tif", folder / "guide.tif", output, **options)
    return str(output)


def _as_stored(array: Any) -> Any:
    """An array that was opened with a mask, in the type of its file: 8-bit colours are taken as such again."""
    kind = np.dtype(array.encoding.get("rasterio_dtype", array.encoding.get("dtype", array.dtype)))
    marker = array.rio.encoded_nodata
    if array.dtype.kind == "f" and kind.kind in "ui" and (marker is None or np.isnan(marker)):
        plain = array.fillna(0).astype(kind).drop_attrs(deep=False)
        plain.encoding = {}
        return plain
    if array.dtype.kind == "f" and array.rio.nodata is None and marker is None:
        return array.rio.write_nodata(np.nan)
    return array


def _blocks(path: Any, size: tuple[int, int]) -> Any:
    """A lazy array over the file that `path` will be."""
    import dask.array

    arrays: Any = dask.array
    read = _delayed()(_read_block)
    rows, cols = (_spans(n) for n in size)
    parts = [
        [arrays.from_delayed(read(path, a, b), (a[1] - a[0], b[1] - b[0]), np.float64) for b in cols] for a in rows
    ]
    return arrays.block(parts)


def _delayed() -> Any:
    from dask.delayed import delayed

    return delayed


def _spans(size: int) -> list[tuple[int, int]]:
    return [(first, min(first + CHUNK, size)) for first in range(0, size, CHUNK)]


def _read_block(path: str, rows: tuple[int, int], cols: tuple[int, int]) -> np.ndarray:
    import rasterio
    from rasterio.windows import Window

    with rasterio.open(path) as file:
        window = Window(cols[0], rows[0], cols[1] - cols[0], rows[1] - rows[0])
        values: np.ndarray = file.read(1, window=window).astype(np.float64)
        values[file.read_masks(1, window=window) == 0] = np.nan
        scaled: np.ndarray = values * file.scales[0] + file.offsets[0]
        return scaled


def _labelled(values: Any, found: Match, source: Any) -> Any:
    """With coordinates, projection and the source's name."""
    import rasterio
    import xarray

    height, width = found.geometry.size
    place = rasterio.Affine(*found.transform)
    y, x = source.rio.y_dim, source.rio.x_dim
    coords = {}
    if not place.b and not place.d:
        coords = {y: place.f + place.e * (np.arange(height) + 0.5), x: place.c + place.a * (np.arange(width) + 0.5)}
    attributes = {name: text for name, text in source.attrs.items() if name in ("units", "long_name", "standard_name")}
    result = xarray.DataArray(values, dims=(y, x), coords=coords, name=source.name, attrs=attributes)
    result = result.rio.set_spatial_dims(x, y).rio.write_transform(place)
    return result.rio.write_crs(found.crs) if found.crs else result


def write_zarr(plan: Plan, folder: Path, target: Path) -> None:
    """Write the result as a Zarr, with coordinates and projection, chunk by chunk."""
    try:
        import rioxarray
        import zarr  # noqa: F401
    except ImportError:
        raise InputError(
            "Zarr needs packages. Install them with pip install 'dada-sr[rasters]', or write to .tif."
        ) from None
    virtual = write_virtual(plan, folder)
    opened: Any = rioxarray.open_rasterio(virtual, chunks={"y": CHUNK, "x": CHUNK}, mask_and_scale=False)
    made = folder / "result.zarr"
    opened.squeeze("band", drop=True).rename("values").to_dataset().to_zarr(made, mode="w", consolidated=False)
    if target.exists():
        shutil.rmtree(target)
    shutil.move(made, target)


class WrittenZarr:
    """The values of a Zarr, read by windows as rasterio reads those of a file."""

    def __init__(self, path: Path, nodata: float | None) -> None:
        """Open a Zarr that `write_zarr` wrote."""
        import zarr

        self.values: Any = zarr.open_array(path / "values", mode="r")
        self.nodata = nodata

    def read(self, band: int, window: Any) -> np.ndarray:
        """A window of its only band."""
        assert band == 1
        rows, cols = window.toslices()
        values: np.ndarray = np.asarray(self.values[rows, cols])
        return values
