"""What is written beside a result: points in space, pictures, a report."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from dada.errors import InputError
from dada.io import Georeference, parse_intrinsics, write_point_cloud

if TYPE_CHECKING:
    from dada.pairs.job import Inputs, Job, Outcome
    from dada.upsampling.result import Result

PICTURE_DPI = 150


def write_points(job: Job, inputs: Inputs, result: Result) -> int:
    """Write the result as coloured points; return their number."""
    assert job.point_cloud is not None
    assert job.intrinsics is not None
    assert inputs.storage.unit.per_metre is not None
    metres = np.where(result.valid, result.values, 0) / inputs.storage.unit.per_metre
    colours = _eight_bits(inputs.guide.values)
    camera = parse_intrinsics(job.intrinsics)
    return write_point_cloud(job.point_cloud, metres, colours, camera, result.valid, without_flying=job.without_flying)


def _eight_bits(guide: np.ndarray) -> np.ndarray:
    """The first three bands, or the first, as uint8."""
    bands = guide if guide.ndim == 2 else guide[..., :3] if guide.shape[2] >= 3 else guide[..., 0]
    if bands.dtype == np.uint8:
        return bands
    low, high = np.nanpercentile(bands[np.isfinite(bands)], (0.1, 99.9))
    share = (np.nan_to_num(bands.astype(np.float64)) - low) / max(high - low, 1e-30)
    levels: np.ndarray = np.rint(255 * np.clip(share, 0, 1)).astype(np.uint8)
    return levels


def write_pictures(job: Job, inputs: Inputs, result: Result) -> None:
    """Write the preview and the comparison, whichever is wanted."""
    from dada import pictures

    storage = inputs.storage
    values = result.values * storage.factor
    try:
        if job.preview is not None:
            figure = pictures.preview(values, result.valid, range=job.range, unit=storage.label, title=job.output.name)
            pictures.save(figure, job.preview, PICTURE_DPI)
        if job.compare is not None:
            source = np.where(inputs.valid, inputs.source.values, 0) * storage.factor
            figure = pictures.comparison(
                inputs.guide.values,
                source,
                plain_bicubic(source, inputs.valid, result.values.shape, result.report.sampling),
                values,
                unit=storage.label,
                valid=result.valid,
                source_valid=inputs.valid,
                range=job.range,
            )
            pictures.save(figure, job.compare, PICTURE_DPI)
    except OSError as error:
        raise InputError(f"{job.output}: its picture cannot be written ({error.strerror}).") from None


def plain_bicubic(source: np.ndarray, valid: np.ndarray, size: tuple[int, int], sampling: str = "mean") -> np.ndarray:
    """Bicubic upsampling of (h, w) to (H, W), for comparison."""
    import torch

    from dada.sample import Sampling, bicubic

    coarse, known = torch.from_numpy(source.astype(np.float32)), torch.from_numpy(valid)
    return bicubic(coarse[None, None], known[None, None], size, sampling=Sampling.of(sampling))[0, 0].numpy()


def report_json(job: Job, outcome: Outcome, place: Georeference | None) -> bytes:
    """Encode the report, what the files are and how the result is stored."""
    storage, report = outcome.storage, dataclasses.asdict(outcome.report)
    content: dict[str, Any] = {
        "source": str(job.source),
        "guide": str(job.guide),
        "output": str(job.output),
        "stored": {
            "dtype": str(storage.dtype),
            "unit": storage.output_unit.name,
            "per_metre": storage.output_unit.per_metre,
            "invalid": None if storage.marker is None else _finite(storage.marker),
            "consistency_max": outcome.misfit[0],
            "consistency_mean": outcome.misfit[1],
            "uncertain_max": outcome.soft_misfit[0],
            "uncertain_mean": outcome.soft_misfit[1],
            "scale": storage.meaning.scale,
            "offset": storage.meaning.offset,
            "kept_within_type": outcome.kept_within,
            "moved_off_invalid": outcome.moved,
            "crs": place.crs if place else None,
        },
        "source_unit": storage.unit.name,
        "source_unit_assumed": storage.assumed,
        **report,
    }
    content["warnings"] = outcome.warnings  # those of the report and of the files
    return (json.dumps(content, indent=2) + "\n").encode()


def _finite(number: float) -> float | str:
    """JSON knows no NaN."""
    return number if math.isfinite(number) else str(number)
