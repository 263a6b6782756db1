"""The work behind `dada align`: read, align, write."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dada.cli.options import Options
from dada.cli.storage import choose_storage
from dada.errors import InputError
from dada.io import cast, check_writable, read_image, valid_pixels, write_image
from dada.io.cameras import read_camera, read_transform
from dada.upsampling.alignment import Aligned, align


def align_file(depth: Path, guide: Path, output: Path, cameras: tuple[str, str, str], unit: str | None) -> Aligned:
    """Align a file of depth to a guide, and write the points as an image in the unit of the depth.

    Args:
        depth: the file of depth.
        guide: the file of the colour image.
        output: where to write.
        cameras: of the depth and of the guide, and the transform between them, as users write them.
        unit: of the depth; None: the usual one of such a file.

    Raises:
        InputError: a file cannot be used or written.
    """
    check_writable(output)
    if output.resolve() in (depth.resolve(), guide.resolve()):
        raise InputError(f"{output}: this would overwrite an input. Name another file with -o.")
    source, image = read_image(depth, role="source"), read_image(guide, role="guide")
    storage = choose_storage(source, output, Options(unit=unit))
    if storage.unit.per_metre is None:
        raise InputError(f"{depth}: aligning needs depth in a metric unit. State it with --unit, such as mm.")
    valid = valid_pixels(source.values, storage.invalid)
    metres = np.where(valid, source.values, 0) / storage.unit.per_metre
    pair = read_camera(cameras[0]), read_camera(cameras[1])
    found = align(metres, *pair, read_transform(cameras[2]), image.values.shape[:2], valid)
    known = np.isfinite(found.image)
    values = np.where(known, found.image, 0) * (storage.output_unit.per_metre or storage.unit.per_metre)
    stored, _ = cast(values, known, storage.dtype, invalid=storage.marker)
    write_image(output, stored)
    return found
