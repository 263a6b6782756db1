"""Depth of another camera, aligned to the guide: as the source of a job, and as a file of its own."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dada.errors import InputError
from dada.io import Raster, cast, check_writable, read_image, scaled, valid_pixels, write_image
from dada.pairs.options import Options
from dada.pairs.storage import Storage, choose_storage

if TYPE_CHECKING:
    from dada.pairs.job import Job
    from dada.upsampling.alignment import Aligned


def aligned(job: Job, source: Raster, valid: np.ndarray, guide: Raster, storage: Storage, notes: list[str]) -> Raster:
    """Return the depth of another camera as points on the guide's grid, NaN elsewhere, in the unit of the source.

    Raises:
        InputError: it cannot be aligned, or is to be used in a way that points cannot.
    """
    options = job.options
    given = {"--confidence": job.confidence, "--noise": options.noise}
    given["--sampling"] = None if options.sampling == "mean" else options.sampling
    for name, value in given.items():
        if value is not None:
            raise InputError(
                f"{job.source}: {name} {value} is of the cells of an image, and aligning makes points of them. Leave "
                "it out."
            )
    cameras = options.depth_camera or "", options.color_camera or "", options.extrinsics or ""
    found = _moved(source, valid, guide, storage, cameras)
    notes.append(f"{job.source.name} was aligned to the guide: {aligned_words(found)}")
    per_metre = storage.unit.per_metre or 1.0
    return dataclasses.replace(source, values=found.image * per_metre, nodata=None, georeference=None)


def align_file(depth: Path, guide: Path, output: Path, cameras: tuple[str, str, str], unit: str | None) -> Aligned:
    """Align a file of depth to a guide, and write the points as an image in the unit of the depth.

    Args:
        depth: the file of depth.
        guide: the file of the colour image.
        output: where to write.
        cameras: of the depth and of the guide, and the transform between them, as users write them.
        unit: of the depth; None: what the file names, or the usual one of such a file.

    Raises:
        InputError: a file cannot be used or written.
    """
    check_writable(output)
    if output.resolve() in (depth.resolve(), guide.resolve()):
        raise InputError(f"{output}: this would overwrite an input. Name another file with -o.")
    source, image = read_image(depth, role="source"), read_image(guide, role="guide")
    storage = choose_storage(source, output, Options(unit=unit))
    valid = valid_pixels(source.values, storage.invalid)
    found = _moved(scaled(source, valid), valid, image, storage, cameras)
    known = np.isfinite(found.image)
    values = storage.stored(np.where(known, found.image, 0) * (storage.unit.per_metre or 1.0))
    stored, _ = cast(values, known, storage.dtype, invalid=storage.marker)
    write_image(output, stored)
    return found


def aligned_words(found: Aligned) -> str:
    """What became of the pixels of a depth image."""
    return f"{len(found.points)} points are visible, {found.hidden} hidden by a nearer surface, {found.outside} outside"


def _moved(
    source: Raster, valid: np.ndarray, guide: Raster, storage: Storage, cameras: tuple[str, str, str]
) -> Aligned:
    from dada.io.cameras import read_camera, read_transform
    from dada.upsampling.alignment import align

    per_metre = storage.unit.per_metre
    if per_metre is None:
        raise InputError(
            f"{source.path}: aligning needs depth in a metric unit, and that of this file is {storage.unit.name}. "
            "State it with --unit, such as mm."
        )
    metres = np.where(valid, source.values, 0) / per_metre
    pair = read_camera(cameras[0]), read_camera(cameras[1])
    return align(metres, *pair, read_transform(cameras[2]), guide.values.shape[:2], valid)
