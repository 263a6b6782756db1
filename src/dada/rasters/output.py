"""From solved tiles to the file: each stored in its type, a virtual raster over them, and a cloud-optimised GeoTIFF."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import numpy as np
import torch

from dada.diffusion.blocks import block_mean, spread
from dada.errors import InputError
from dada.io.atomic import atomic_path
from dada.io.rounding import cast
from dada.rasters.cells import inner_cells, read_cells
from dada.rasters.files import CACHE, gdal
from dada.rasters.plan import Plan, Stored
from dada.rasters.state import Found, Task, read_values
from dada.rasters.tile import Window
from dada.upsampling.bounds import bounds
from dada.upsampling.projection import between
from dada.upsampling.solver import LEAST

GDAL_TYPES = {
    "uint8": "Byte", "int8": "Int8", "uint16": "UInt16", "int16": "Int16", "uint32": "UInt32", "int32": "Int32",
    "uint64": "UInt64", "int64": "Int64", "float32": "Float32", "float64": "Float64",
}  # fmt: skip
BLOCK = 512  # pixels a side of the blocks of the result


def final_values(plan: Plan, folder: Path, task: Task) -> tuple[np.ndarray, np.ndarray, int]:
    """The values of a tile in the unit of the source, float64; which are valid; and how many were kept in bounds.

    The means of cells, or the points, are brought to the measurements once more, in float64: what is left is the
    rounding of the type that is stored. A resized source is met to the tolerance of its back-projection.
    """
    core = plan.core(task.row, task.col)
    scaled = torch.from_numpy(read_values(folder, plan, core, task.layers)).double()
    offset, unit = plan.scaling()
    if plan.parts:
        scaled = scaled.sum(dim=0)
    values = scaled * unit + offset
    cells, blocks = inner_cells(plan, core, read_cells(plan, folder, core)), plan.geometry.blocks(core)
    source, valid = torch.from_numpy(cells.values).double(), torch.from_numpy(cells.valid)
    values = _measured(plan, core, values, source, valid)
    kept_back = 0
    if plan.settings.adjust == "auto":
        low, high = plan.whole.low, plan.whole.high
        ends = bounds(low, high, plan.whole.factors[0] * plan.whole.factors[1])
        noise = plan.settings.tolerance * (high - low)
        kept = spread(valid, blocks) if not plan.settings.fill else torch.ones_like(values, dtype=torch.bool)
        kept_back = int((kept & ((values < ends[0] - noise) | (values > ends[1] + noise))).sum())
        if plan.sampling.kind == "point":
            values = values.clamp(*ends)
        else:
            means = source if plan.sampling.kind == "mean" else block_mean(values, blocks).clamp(*ends)
            values = between(values, torch.where(valid, means, torch.nan), *ends, blocks)
    everywhere = plan.settings.fill or bool(valid.all())
    shown = np.ones(core.size, bool) if everywhere else spread(valid, blocks).numpy()
    return values.numpy(), shown, kept_back


def _measured(
    plan: Plan, core: Window, values: torch.Tensor, source: torch.Tensor, valid: torch.Tensor
) -> torch.Tensor:
    """Values of whole cells with what was measured there."""
    sampling, blocks = plan.sampling, plan.geometry.blocks(core)
    if sampling.kind == "point":
        if plan.adjust == "ratio":  # as in memory
            values = values.clamp(min=LEAST * plan.whole.low)
        return plan.geometry.sampled(core, sampling).placed(source, valid, values)
    if sampling.kind == "bicubic":
        return values
    mean = block_mean(values, blocks)
    if plan.adjust == "ratio":
        return values * spread(torch.where(valid, source / torch.where(valid, mean, 1), 1), blocks)
    return values + spread(torch.where(valid, source - mean, 0), blocks)


def store_tile(plan: Plan, folder: Path, task: Task) -> Found:
    """Write a tile as a GeoTIFF of the type of the result."""
    values, shown, kept_back = final_values(plan, folder, task)
    stored = plan.stored
    if (stored.gain, stored.bias) != (1.0, 0.0):
        values = values * stored.gain + stored.bias
    pixels, moved = cast(values, shown, stored.dtype, invalid=stored.nodata)
    _write_tile(folder / f"{task.name}.tif", pixels, stored)
    return Found(None, {"bounded": kept_back, "moved": moved, "invalid": int((~shown).sum()), "pixels": pixels.size})


def _write_tile(path: Path, pixels: np.ndarray, stored: Stored) -> None:
    import rasterio

    height, width = pixels.shape
    profile: dict[str, Any] = {"driver": "GTiff", "height": height, "width": width, "count": 1, "dtype": stored.dtype}
    profile |= {"tiled": width >= 16 and height >= 16, "blockxsize": 256, "blockysize": 256, "compress": "deflate"}
    profile |= {"zlevel": 1, "bigtiff": "if_safer", "nodata": stored.nodata}
    with atomic_path(path) as temporary, gdal(str(path)), rasterio.open(temporary, "w", **profile) as file:
        file.write(pixels, 1)


# ---- the whole


def write_virtual(plan: Plan, folder: Path) -> Path:
    """Write a virtual raster over the stored tiles."""
    height, width = plan.geometry.size
    a, b, c, d, e, f = plan.transform
    stored, kind = plan.stored, GDAL_TYPES[plan.stored.dtype]
    marker = "" if stored.nodata is None else f"<NoDataValue>{stored.nodata!r}</NoDataValue>"
    scale = ""
    if (stored.scale, stored.offset) != (1.0, 0.0):
        scale = f"<Offset>{stored.offset!r}</Offset><Scale>{stored.scale!r}</Scale>"
    sources = []
    down, across = plan.tiles
    for row in range(down):
        for col in range(across):
            core = plan.core(row, col)
            (tall, wide), (y, x) = core.size, (core.rows[0], core.cols[0])
            sources.append(
                f'<SimpleSource><SourceFilename relativeToVRT="1">store-{row}-{col}.tif</SourceFilename>'
                f'<SourceBand>1</SourceBand><SrcRect xOff="0" yOff="0" xSize="{wide}" ySize="{tall}"/>'
                f'<DstRect xOff="{x}" yOff="{y}" xSize="{wide}" ySize="{tall}"/></SimpleSource>'
            )
    place = f"<SRS>{escape(plan.crs)}</SRS>" if plan.crs else ""
    text = (
        f'<VRTDataset rasterXSize="{width}" rasterYSize="{height}">{place}'
        f"<GeoTransform>{c!r}, {a!r}, {b!r}, {f!r}, {d!r}, {e!r}</GeoTransform>"
        f'<VRTRasterBand dataType="{kind}" band="1">{marker}{scale}{"".join(sources)}</VRTRasterBand></VRTDataset>'
    )
    path = folder / "tiles.vrt"
    path.write_text(text)
    return path


def write_cog(plan: Plan, folder: Path, output: Path) -> None:
    """Write the result as a cloud-optimised GeoTIFF, whole or not at all."""
    import rasterio
    import rasterio.shutil

    virtual = write_virtual(plan, folder)
    result = folder / "result.tif"
    options = {
        "COMPRESS": "DEFLATE", "PREDICTOR": "YES", "BLOCKSIZE": str(BLOCK), "BIGTIFF": "IF_SAFER",
        "OVERVIEW_RESAMPLING": "AVERAGE", "NUM_THREADS": "ALL_CPUS",
    }  # fmt: skip
    with gdal(str(output)), rasterio.Env(GDAL_CACHEMAX=2 * CACHE, CPL_TMPDIR=str(folder)):
        rasterio.shutil.copy(str(virtual), str(result), driver="COG", **options)
    move(result, output)


def move(made: Path, output: Path) -> None:
    """Put a finished file in its place."""
    try:
        os.replace(made, output)
    except OSError:  # another disk
        with atomic_path(output) as temporary:
            shutil.copyfile(made, temporary)


def check_output(output: Path, inputs: tuple[str, ...]) -> None:
    """Refuse a result that cannot be written, before the work begins.

    Raises:
        InputError: another suffix than .tif, .tiff or .zarr, an input, or a folder that cannot be written to.
    """
    if output.suffix.lower() not in (".tif", ".tiff", ".zarr"):
        raise InputError(
            f"{output}: results are not written as {output.suffix or 'a file without suffix'}. Name a file that "
            "ends in .tif, or in .zarr."
        )
    for path in inputs:
        if Path(path).exists() and output.exists() and os.path.samefile(path, output):
            raise InputError(f"{output}: this would overwrite an input. Name another file for the result with -o.")
    if not output.parent.is_dir():
        raise InputError(f"{output}: there is no folder {output.parent}. Make the folder first.")
    if output.suffix.lower() != ".zarr" and output.is_dir():
        raise InputError(f"{output}: this is a folder. Name a file for the result with -o.")
