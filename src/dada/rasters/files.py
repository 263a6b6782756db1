"""Rasters as GDAL opens them: what they state of themselves, whether they can serve, and windows of them."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dada.errors import InputError
from dada.io.quiet import captured_output, one_line
from dada.io.raster import Role

REMOTE = ("/vsi", "http://", "https://", "s3://", "gs://", "az://")  # names that are not files of this machine
LOSSY = ("JPEG", "YCbCr JPEG", "WEBP", "JPEG2000")
CACHE = 128 << 20  # bytes of blocks that GDAL keeps
Six = tuple[float, float, float, float, float, float]


@dataclass(frozen=True)
class Info:
    """What a raster states of itself.

    Attributes:
        path: absolute, or a name that only GDAL understands.
        size: height and width.
        transform: (a, b, c, d, e, f) as in `dada.io.Georeference`.
        crs: as WKT; None if it names none.
        bands: numbers, from 1, of the bands that are used.
        dtype: of the first of these.
        nodata: of the same, if any.
        scale, offset: of the same: value = scale * stored + offset.
        stamp: bytes and time of the last change, where it is a file of this machine.
        masked: whether some pixels may have no value.
    """

    path: str
    size: tuple[int, int]
    transform: Six
    crs: str | None
    bands: tuple[int, ...]
    dtype: str
    nodata: float | None
    scale: float
    offset: float
    stamp: tuple[int, int] | None
    masked: bool


@contextmanager
def gdal(path: str) -> Iterator[None]:
    """Turn every error of GDAL into an InputError that names the file, and keep GDAL from printing."""
    import rasterio

    logger = logging.getLogger("rasterio")
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
    try:
        with captured_output(), warnings.catch_warnings(), rasterio.Env(GDAL_PAM_ENABLED="NO", GDAL_CACHEMAX=CACHE):
            warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)
            yield
    except (InputError, MemoryError):
        raise
    except Exception as error:  # rasterio has several families of them, none derived from another
        raise InputError(
            f"{path}: GDAL cannot read this raster ({one_line(error.__cause__ or error)}). If the file is truncated "
            "or damaged, copy or export it again."
        ) from None


def read_info(path: str | os.PathLike[str], role: Role, band: int | None = None) -> Info:
    """Open a raster and check that it can serve as a source or a guide.

    Args:
        path: a GeoTIFF, or any other raster that GDAL reads.
        role: a source has one band of measurements, a guide one to many.
        band: of the source, from 1.

    Raises:
        InputError: it cannot; the message names the file, the problem and the remedy.
    """
    name, stamp = _located(path)
    with gdal(name), _open(name, role) as dataset:
        bands = _source_band(name, dataset, band) if role == "source" else _guide_bands(name, dataset)
        first = bands[0] - 1
        _check_kind(name, dataset, bands, role)
        transform = dataset.transform
        if transform.is_identity:
            raise InputError(_no_place(name, dataset))
        if not transform.determinant:
            raise InputError(f"{name}: its georeference has pixels of no area. Export the file again.")
        six = tuple(float(v) for v in tuple(transform)[:6])
        masked = any("all_valid" not in [flag.name for flag in flags] for flags in dataset.mask_flag_enums)
        return Info(
            path=name,
            size=(dataset.height, dataset.width),
            transform=six,  # type: ignore[arg-type]
            crs=dataset.crs.to_wkt() if dataset.crs else None,
            bands=bands,
            dtype=dataset.dtypes[first],
            nodata=dataset.nodatavals[first],
            scale=dataset.scales[first],
            offset=dataset.offsets[first],
            stamp=stamp,
            masked=masked or np.dtype(dataset.dtypes[first]).kind == "f",
        )


def read_source(info: Info, first: tuple[int, int], size: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Read cells of the source as stored, (h, w), and where its mask says that they are valid."""
    from rasterio.windows import Window

    window = Window(first[1], first[0], size[1], size[0])
    with gdal(info.path), _open(info.path, "source") as dataset:
        values = dataset.read(info.bands[0], window=window)
        valid = dataset.read_masks(info.bands[0], window=window) > 0
    return values, valid


@contextmanager
def opened_guide(info: Info, warp: dict[str, Any] | None) -> Iterator[Any]:
    """Open the guide as it is, or warped to another grid."""
    with gdal(info.path), _open(info.path, "guide") as dataset:
        if warp is None:
            yield dataset
            return
        import rasterio
        from rasterio.enums import Resampling
        from rasterio.vrt import WarpedVRT

        height, width = warp["size"]
        with WarpedVRT(
            dataset, crs=rasterio.CRS.from_wkt(warp["crs"]), transform=rasterio.Affine(*warp["transform"]),
            width=width, height=height, resampling=Resampling.bilinear, add_alpha=_lacks_mask(dataset),
        ) as warped:  # fmt: skip
            yield warped


def read_guide(
    dataset: Any, bands: tuple[int, ...], rows: tuple[int, int], cols: tuple[int, int], shape: tuple[int, int] | None
) -> tuple[np.ndarray, np.ndarray]:
    """Read a window of an opened guide, [C, H, W] as stored, and which of its pixels have no value, [H, W] bool.

    A `shape` below the window's size takes single pixels, or those of overviews.
    """
    from rasterio.windows import Window

    window = Window(cols[0], rows[0], cols[1] - cols[0], rows[1] - rows[0])
    shape = shape or (rows[1] - rows[0], cols[1] - cols[0])
    values = dataset.read(list(bands), window=window, out_shape=(len(bands), *shape))
    empty = dataset.dataset_mask(window=window, out_shape=shape) == 0
    if values.dtype.kind == "f":
        empty |= ~np.isfinite(values).all(axis=0)
    return values, empty


# ---- what cannot serve


def _located(path: str | os.PathLike[str]) -> tuple[str, tuple[int, int] | None]:
    name = os.fspath(path)
    if name.startswith(REMOTE):
        return name, None
    file = Path(name)
    if not file.exists():
        raise InputError(f"{name}: there is no such file. Check the name and the folder.")
    if file.is_dir() and file.suffix.lower() != ".zarr":
        raise InputError(f"{name}: this is a folder. Name a raster file, such as a GeoTIFF.")
    stat = file.stat()
    if file.is_file() and not stat.st_size:
        raise InputError(f"{name}: the file is empty. Copy or export it again.")
    return str(file.resolve()), (stat.st_size, stat.st_mtime_ns)


def _open(name: str, role: Role) -> Any:
    import rasterio

    try:
        return rasterio.open(name, sharing=False)
    except rasterio.errors.RasterioIOError as error:
        raise InputError(
            f"{name}: GDAL cannot open it as a raster ({one_line(error)}). The {role} is a GeoTIFF, or another raster "
            "that GDAL reads."
        ) from None


def _source_band(name: str, dataset: Any, band: int | None) -> tuple[int, ...]:
    from rasterio.enums import ColorInterp

    if band is not None:
        if not 1 <= band <= dataset.count:
            raise InputError(f"{name}: it has no band {band}. Name a band from 1 to {dataset.count} with --band.")
        return (band,)
    bands = [n for n in range(1, dataset.count + 1) if dataset.colorinterp[n - 1] != ColorInterp.alpha]
    if len(bands) != 1:
        raise InputError(
            f"{name}: the source has {len(bands)} bands. Name the one with the measurements, 1 to {dataset.count}, "
            "with --band; if this is the guide, swap the two files."
        )
    return tuple(bands)


def _guide_bands(name: str, dataset: Any) -> tuple[int, ...]:
    from rasterio.enums import ColorInterp

    bands = tuple(n for n in range(1, dataset.count + 1) if dataset.colorinterp[n - 1] != ColorInterp.alpha)
    if not bands:
        raise InputError(f"{name}: the guide has nothing but an alpha band. Name the photograph itself.")
    return bands


def _check_kind(name: str, dataset: Any, bands: tuple[int, ...], role: Role) -> None:
    from rasterio.enums import ColorInterp

    kind = np.dtype(dataset.dtypes[bands[0] - 1])
    if kind.kind not in "uif":
        raise InputError(f"{name}: it holds values of type {kind}, not real numbers. Export it as float32.")
    if dataset.colorinterp[bands[0] - 1] == ColorInterp.palette:
        if role == "source":
            raise InputError(
                f"{name}: the source is a colour-mapped (palette) raster: its colours are a picture of the values, not "
                "the values. Export the measurements themselves."
            )
        raise InputError(
            f"{name}: the guide is a palette raster, whose numbers are no colours. Convert it with "
            "gdal_translate -expand rgb."
        )
    compression = dataset.tags(ns="IMAGE_STRUCTURE").get("COMPRESSION", "")
    if role == "source" and compression in LOSSY:
        raise InputError(
            f"{name}: the source is compressed with loss ({compression}), which alters values and smears edges. "
            "Export it with deflate or LZW compression, or none."
        )


def _no_place(name: str, dataset: Any) -> str:
    if dataset.gcps[0] or dataset.rpcs:
        what, option = ("ground control points", "") if dataset.gcps[0] else ("coefficients (RPC)", "-rpc ")
        warp = f"gdalwarp {option}IN.tif OUT.tif"
        return f"{name}: its place is given by {what} alone. Warp it to a grid first, with {warp}."
    return (
        f"{name}: it has no georeference, so where its pixels lie is not known. Use dada upsample for two images "
        "that show exactly the same area, or state its place with gdal_edit.py -a_ullr and -a_srs."
    )


def _lacks_mask(dataset: Any) -> bool:
    """Whether a warped guide needs an alpha band to tell pixels that it does not reach."""
    flags = [flag.name for flag in dataset.mask_flag_enums[0]]
    return "all_valid" in flags
