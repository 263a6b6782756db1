"""TIFF by way of GDAL: up to 4096 bands, georeference and nodata."""

from __future__ import annotations

import logging
import math
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from dada.errors import InputError
from dada.io.quiet import captured_output, one_line
from dada.io.raster import PLAIN, Georeference, ImageWarning, Meaning, Raster, Role
from dada.io.size import check_expansion, check_ratio, check_size

MAX_BANDS = 4096
"""The most bands of an image that are read: rasterio asks all of them about each."""
_LOSSY = {"JPEG", "YCBCR JPEG", "WEBP", "JXL"}
# pixels that a stored byte can hold at most, by compression; 8 without, as GDAL unpacks single bits
_RATIOS = {None: 8, "PACKBITS": 128 * 8, "DEFLATE": 1032 * 8, "LZW": 4096 * 8}
_MAX_BLOCK = 1 << 26
_WRITABLE = ("uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float32", "float64")


def read_tiff(path: Path, role: Role, key: str | None) -> Raster:
    """Read all bands, or the band numbered `key` (from 1), with georeference, nodata and meaning of the file.

    Values come as stored. A guide loses its alpha band, and a mask beside the values is not read; each gives a warning.
    """
    notes: list[str] = []  # warned of once the output is no longer captured
    with _gdal(path), _open(path) as dataset:
        if len(dataset.subdatasets) > 1:
            raise InputError(
                f"{path}: this TIFF has {len(dataset.subdatasets)} pages, and which is meant is not clear. "
                "Save the page to use, or all bands as one page, to a file of its own."
            )
        if dataset.count > MAX_BANDS:
            raise InputError(
                f"{path}: its header states {dataset.count} bands; at most {MAX_BANDS} are read. If so, save "
                "the bands to use to a file of their own; if not, the file is damaged: export it again."
            )
        dtype = np.dtype(dataset.dtypes[0])
        if dtype.kind not in "uif":
            raise InputError(f"{path}: it holds values of type {dtype}, not real numbers. Export it as float32.")
        _check_memory(path, dataset, dtype)
        _check_place(path, dataset)
        bands = _bands(path, dataset, role, key, notes)
        notes += _what_is_not_read(dataset, bands)
        meaning = _meaning(path, dataset, bands[0], role)
        values = np.empty((dataset.height, dataset.width, len(bands)), dtype)
        for at, band in enumerate(bands):
            values[..., at] = dataset.read(band)
        values = _resolve_palette(path, dataset, role, values)
        georeference, nodata = _georeference(dataset), dataset.nodatavals[bands[0] - 1]
    for note in notes:
        warnings.warn(f"{path}: {note}", ImageWarning, stacklevel=2)
    return Raster(values, nodata, georeference, path, "tiff", meaning)


def encode_tiff(
    path: Path,
    values: np.ndarray,
    nodata: float | None,
    georeference: Georeference | None,
    meaning: Meaning = PLAIN,
) -> bytes:
    """Encode (H, W) or (H, W, C) of any real dtype GDAL knows, deflated."""
    if values.dtype.name not in _WRITABLE:
        raise InputError(
            f"{path}: TIFF holds {', '.join(_WRITABLE)}, not {values.dtype}. Convert to one of these, or "
            f"write to .npy or .npz, which hold {values.dtype}."
        )
    if nodata is not None and not _fits(nodata, values.dtype):
        raise InputError(
            f"{path}: the nodata value {nodata:g} is no {values.dtype}. Choose a nodata value that "
            f"{values.dtype} holds, or write float32."
        )
    height, width, count = (*values.shape, 1)[:3]
    profile: dict[str, Any] = {"height": height, "width": width, "count": count, "dtype": values.dtype.name}
    profile |= {"nodata": nodata, "compress": "deflate", "blockysize": min(height, 64), "bigtiff": "if_safer"}
    if values.dtype.kind in "ui" and values.dtype.itemsize < 8:
        profile["predictor"] = 2  # none for floats: many readers lack the one of TIFF for them
    if count != 3 or values.dtype.name not in ("uint8", "uint16"):
        profile["photometric"] = "minisblack"  # else GDAL takes the last of four bands for alpha
    with _gdal(path):
        import rasterio
        from rasterio.io import MemoryFile

        if georeference is not None:
            profile["transform"] = rasterio.Affine(*georeference.transform)
            profile["crs"] = rasterio.CRS.from_wkt(georeference.crs) if georeference.crs else None
        with MemoryFile() as memory:
            with memory.open(driver="GTiff", **profile) as dataset:
                for band in range(count):
                    dataset.write(values if values.ndim == 2 else values[..., band], band + 1)
                _write_meaning(dataset, meaning)
            return bytes(memory.getbuffer())


def _check_memory(path: Path, dataset: Any, dtype: np.dtype) -> None:
    """Refuse what would take too much memory: the image, a single one of its blocks, or its colours."""
    height, width, count, stored = dataset.height, dataset.width, dataset.count, path.stat().st_size
    structure = dataset.tags(ns="IMAGE_STRUCTURE")
    pixel = dtype.itemsize * (3 if _has_palette(dataset) else count)
    check_size(path, height, width, count, pixel)
    need = height * width * count * dtype.itemsize
    ratio = _RATIOS.get(structure.get("COMPRESSION"))
    if ratio is not None:
        check_ratio(path, need, stored, ratio)
    check_expansion(path, height * width * pixel, stored)
    rows, columns = dataset.block_shapes[0]
    blocks = -(-height // rows) * -(-width // columns)
    if blocks > stored:  # the place of each block takes two bytes and more, also of one that was never written
        raise InputError(
            f"{path}: its header states {blocks} blocks of {columns} x {rows} pixels, more than the {stored} bytes of "
            "the file can list. The file is damaged or truncated: copy or export it again."
        )
    block = rows * columns * dtype.itemsize * (count if structure.get("INTERLEAVE") == "PIXEL" else 1)
    if block > max(4 * need, _MAX_BLOCK):  # GDAL decodes whole blocks
        raise InputError(
            f"{path}: its header states blocks of {columns} x {rows} pixels for an image of {width} x {height}. The "
            "file is damaged: export it again."
        )


def _check_place(path: Path, dataset: Any) -> None:
    """Refuse an image whose place only a warp can tell: laid on another as it is, it would lie elsewhere."""
    if dataset.transform.is_identity and (dataset.gcps[0] or dataset.rpcs):
        what, option = ("control points (GCP)", "") if dataset.gcps[0] else ("coefficients (RPC)", "-rpc ")
        raise InputError(
            f"{path}: its place on the ground is given by {what} alone. Warp it to a grid first, with gdalwarp "
            f"{option}IN.tif OUT.tif. To use it as an image without a place, save it as PNG or NPY."
        )


def _has_palette(dataset: Any) -> bool:
    from rasterio.enums import ColorInterp

    return bool(dataset.count == 1 and dataset.colorinterp[0] == ColorInterp.palette)


@contextmanager
def _gdal(path: Path) -> Iterator[None]:
    """Turn every error of GDAL into an InputError and keep it from printing."""
    import rasterio

    logger = logging.getLogger("rasterio")
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())  # else Python prints its errors as a last resort
    try:
        with captured_output(), warnings.catch_warnings(), rasterio.Env(GDAL_PAM_ENABLED="NO"):
            warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)
            yield
    except InputError:
        raise
    except MemoryError:
        raise InputError(f"{path}: there is not enough memory for this image. Cut it into tiles.") from None
    except Exception as error:  # rasterio has several families of them, none derived from another
        raise InputError(
            f"{path}: GDAL cannot handle this TIFF ({one_line(error.__cause__ or error)}). If the file is "
            "truncated or damaged, copy or export it again."
        ) from None


def _open(path: Path) -> Any:
    import rasterio

    # absolute, so that no name is taken for a scheme such as zip:// or GTIFF_DIR:
    return rasterio.open(os.path.abspath(path), driver="GTiff", sharing=False)


def _bands(path: Path, dataset: Any, role: Role, key: str | None, notes: list[str]) -> list[int]:
    from rasterio.enums import ColorInterp

    colours = dataset.colorinterp
    structure = dataset.tags(ns="IMAGE_STRUCTURE")
    if structure.get("SOURCE_COLOR_SPACE") == "CMYK" or colours[0] == ColorInterp.cyan:
        raise InputError(f"{path}: this is a CMYK TIFF. Convert it to RGB first.")
    if role == "source" and structure.get("COMPRESSION") in _LOSSY:
        raise InputError(
            f"{path}: this TIFF is compressed with loss, which alters values and smears edges. Export the "
            "source with deflate or LZW compression, or none."
        )
    if key is not None:
        if not key.isascii() or not key.isdigit() or not 1 <= int(key) <= dataset.count:
            raise InputError(f"{path}: it has no band {key!r}. Name a band from 1 to {dataset.count} as key.")
        return [int(key)]
    bands = list(range(1, dataset.count + 1))
    alpha = [band for band in bands if colours[band - 1] == ColorInterp.alpha]
    if alpha and len(alpha) < len(bands):
        if role == "source":
            raise InputError(
                f"{path}: the source has an alpha band ({alpha[0]}). Name the band with the values as key, "
                "or save it without alpha and mark invalid pixels by nodata."
            )
        notes.append("the alpha band of the guide is ignored")
        bands = [band for band in bands if band not in alpha]
    elif role == "source" and len(bands) > 1 and len(bands) != 3:
        raise InputError(
            f"{path}: the source has {len(bands)} bands. Name the band with the values, 1 to {len(bands)}, "
            "as key; if this is the guide, swap the two files."
        )
    return bands


def _what_is_not_read(dataset: Any, bands: list[int]) -> Iterator[str]:
    from rasterio.enums import MaskFlags

    if len({(dataset.scales[band - 1], dataset.offsets[band - 1]) for band in bands}) > 1:
        yield "the scales and offsets of its bands differ, and are not applied: the values are taken as stored"
    if missing := _missing_blocks(dataset, bands[0]):
        yield (
            f"{missing} of its blocks were never written and read as nodata or 0: it is a sparse TIFF, or "
            "writing it was interrupted"
        )
    flags = dataset.mask_flag_enums[bands[0] - 1]
    if MaskFlags.per_dataset in flags and MaskFlags.alpha not in flags:
        yield "its mask is not read: mark invalid pixels by a nodata value instead"


def _missing_blocks(dataset: Any, band: int) -> int:
    rows, columns = dataset.block_shapes[band - 1]
    down, across = -(-dataset.height // rows), -(-dataset.width // columns)
    names = (f"BLOCK_OFFSET_{x}_{y}" for y in range(down) for x in range(across))
    return sum(dataset.get_tag_item(name, "TIFF", bidx=band) is None for name in names)


def _resolve_palette(path: Path, dataset: Any, role: Role, values: np.ndarray) -> np.ndarray:
    if not _has_palette(dataset):
        return values
    reversed_grey = dataset.tags(ns="IMAGE_STRUCTURE").get("MINISWHITE") == "YES"
    if role == "source":
        if reversed_grey:
            return values
        raise InputError(
            f"{path}: the source is a colour-mapped (palette) TIFF: its colours are a picture of the values, "
            "not the values. Export the measurements themselves."
        )
    colours = dataset.colormap(1)
    channels = 1 if reversed_grey else 3
    table = np.zeros((max(*colours, np.iinfo(values.dtype).max) + 1, channels), np.uint8)
    for index, colour in colours.items():
        table[index] = colour[:channels]
    resolved: np.ndarray = table[values[..., 0]]
    return resolved


def _georeference(dataset: Any) -> Georeference | None:
    if dataset.crs is None and dataset.transform.is_identity:
        return None
    a, b, c, d, e, f = (float(number) for number in tuple(dataset.transform)[:6])
    return Georeference(dataset.crs.to_wkt() if dataset.crs else None, (a, b, c, d, e, f))


def _meaning(path: Path, dataset: Any, band: int, role: Role) -> Meaning:
    scale, offset = float(dataset.scales[band - 1]), float(dataset.offsets[band - 1])
    if role == "source" and (not scale or not math.isfinite(scale) or not math.isfinite(offset)):
        raise InputError(
            f"{path}: it declares the scale {scale:g} and the offset {offset:g}, which give no value. Set the true "
            "ones, or 1 and 0, with gdal_edit.py -scale and -offset."
        )
    return Meaning(scale, offset, dataset.units[band - 1] or None, dataset.descriptions[band - 1] or None)


def _write_meaning(dataset: Any, meaning: Meaning) -> None:
    count = dataset.count
    if meaning.scaled:
        dataset.scales, dataset.offsets = (meaning.scale,) * count, (meaning.offset,) * count
    if meaning.unit:
        dataset.units = (meaning.unit,) * count
    if meaning.description:
        dataset.descriptions = (meaning.description,) * count


def _fits(value: float, dtype: np.dtype) -> bool:
    if dtype.kind == "f":
        return True
    return float(value).is_integer() and np.iinfo(dtype).min <= value <= np.iinfo(dtype).max
