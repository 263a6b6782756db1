"""A job: one pair of files, what to compute and which files to write."""

from __future__ import annotations

import dataclasses
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dada.errors import InputError
from dada.io import (
    Georeference,
    ImageWarning,
    Raster,
    cast,
    check_writable,
    parse_intrinsics,
    read_image,
    valid_pixels,
    write_bytes_atomically,
    write_image,
)
from dada.io.detect import SUFFIXES
from dada.pairs.extras import report_json, write_pictures, write_points
from dada.pairs.options import Options
from dada.pairs.storage import Storage, choose_storage, ground

if TYPE_CHECKING:
    from dada.upsampling.result import Report, Result


@dataclass(frozen=True)
class Job:
    """What to read, and every file to write; None is not written."""

    source: Path
    guide: Path
    output: Path
    options: Options
    confidence: Path | None = None
    preview: Path | None = None
    compare: Path | None = None
    range: tuple[float, float] | None = None  # of colours, in the result's unit
    report: Path | None = None
    point_cloud: Path | None = None
    intrinsics: str | None = None


@dataclass(frozen=True)
class Outcome:
    """What became of a job."""

    report: Report
    storage: Storage
    misfit: tuple[float | None, float | None]  # max and mean of the stored result, in its unit
    moved: int  # valid pixels stored beside the invalid marker that they would have landed on
    points: int | None  # of the point cloud
    warnings: list[str]
    seconds: float
    inputs: Inputs
    result: Result  # before it was rounded and stored


@dataclass(frozen=True)
class Inputs:
    """What the files of a job hold."""

    source: Raster
    guide: Raster
    storage: Storage
    valid: np.ndarray  # [h, w] bool, by NaN and marker
    confidence: np.ndarray | None


def run_job(job: Job) -> Outcome:
    """Upsample a pair of files. All its outputs are written, or none.

    Raises:
        InputError: an input cannot be used or an output cannot be written; the message names the file.
    """
    begin = time.perf_counter()
    notes: list[str] = []
    outputs = _check_outputs(job)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        inputs = _read(job, notes)
        place, odd = ground(inputs.source, inputs.guide)
        if place is not None and SUFFIXES[job.output.suffix.lower()] != "tiff":
            odd.append(f"{job.output}: only TIFF holds the georeference, so it is dropped; write to .tiff to keep it")
            place = None
        result = _upsample(job, inputs)
        stored, moved = _store(job, inputs.storage, result)
        misfit = _stored_misfit(inputs, stored)
        notes += odd + _warned(caught) + result.report.warnings
        spent = time.perf_counter() - begin
        outcome = Outcome(result.report, inputs.storage, misfit, moved, None, notes, spent, inputs, result)
        points = _write_all(job, outputs, inputs, result, stored, place, outcome)
    notes += [text for text in _warned(caught) if text not in notes]  # in case writing warned too
    return dataclasses.replace(outcome, points=points, seconds=time.perf_counter() - begin)


def _warned(caught: list[warnings.WarningMessage]) -> list[str]:
    """What was warned of the files, each once."""
    return list(dict.fromkeys(str(w.message) for w in caught if issubclass(w.category, ImageWarning)))


# ---- reading -----------------------------------------------------------------------------------------------


def _check_outputs(job: Job) -> list[Path]:
    """Every file to write, checked before the work begins."""
    if SUFFIXES.get(job.output.suffix.lower()) in (None, "jpeg"):
        raise InputError(
            f"{job.output}: results are not written as {job.output.suffix or 'a file without suffix'}. Name "
            "a file that ends in .png, .tiff, .pfm, .exr, .npy or .npz with -o."
        )
    if job.report is not None and job.report.suffix.lower() != ".json":
        raise InputError(f"{job.report}: a report is written as JSON. Name a file that ends in .json.")
    if job.point_cloud is not None and job.point_cloud.suffix.lower() != ".ply":
        raise InputError(f"{job.point_cloud}: a point cloud is written as PLY. Name a file that ends in .ply.")
    if (job.point_cloud is None) != (job.intrinsics is None):
        raise InputError(
            f"{job.source}: a point cloud needs both --point-cloud FILE.ply and --intrinsics fx,fy,cx,cy "
            "(in pixels of the guide). Give both or neither."
        )
    if job.intrinsics is not None:
        parse_intrinsics(job.intrinsics)
    if job.range is not None and not job.range[0] < job.range[1]:
        raise InputError(
            f"{job.output}: the range of its colours, {job.range[0]:g} to {job.range[1]:g}, is empty. Give "
            "the lower value first."
        )
    outputs = [job.report, job.preview, job.compare, job.point_cloud, job.output]
    wanted = [path for path in outputs if path is not None]
    inputs = [path for path in (job.source, job.guide, job.confidence) if path is not None]
    for at, path in enumerate(wanted):
        check_writable(path)
        if any(_same_file(path, other) for other in inputs):
            raise InputError(f"{path}: this would overwrite an input. Name another file for the result with -o.")
        if any(_same_file(path, other) for other in wanted[:at]):
            raise InputError(f"{path}: two results would be written to this file. Name another for one of them.")
    return wanted


def _same_file(first: Path, second: Path) -> bool:
    return first.resolve() == second.resolve() or (first.exists() and second.exists() and first.samefile(second))


def _read(job: Job, notes: list[str]) -> Inputs:
    source = read_image(job.source, key=job.options.source_key, role="source")
    guide = read_image(job.guide, key=job.options.guide_key, role="guide")
    storage = choose_storage(source, job.output, job.options)
    if job.point_cloud is not None and storage.unit.per_metre is None:
        raise InputError(
            f"{job.source}: a point cloud needs depth in a metric unit, and the unit of this file is raw. "
            "State it with --unit, such as mm."
        )
    confidence = None if job.confidence is None else _read_confidence(job.confidence, notes)
    return Inputs(source, guide, storage, valid_pixels(source.values, storage.invalid), confidence)


def _read_confidence(path: Path, notes: list[str]) -> np.ndarray:
    """Confidence in 0..1: floats as they are, integers divided by the largest of their type."""
    values = read_image(path, role="source").values
    if values.dtype.kind == "f":
        return values
    most = int(values.max())
    if 0 < most <= 2:
        notes.append(f"{path}: confidence has levels 0 to {most}, taken as 0 to 1 (1: exact)")
        return values / most
    return values / np.iinfo(values.dtype).max


def _upsample(job: Job, inputs: Inputs) -> Result:
    from dada.upsampling import upsample

    options = job.options
    try:
        return upsample(
            inputs.source.values,
            _guide_values(inputs.guide),
            model=options.model,
            confidence=inputs.confidence,
            invalid=inputs.storage.invalid,
            adjust=options.adjust,
            solver=options.solver,
            tolerance=options.tolerance,
            steps=options.steps,
            fill=options.fill,
        )
    except InputError as error:
        raise InputError(f"{job.source} with {job.guide}: {error}") from None


def _guide_values(guide: Raster) -> np.ndarray:
    """The guide, masked in pixels that are nodata in every band; its dtype decides how it is scaled."""
    values = guide.values
    if guide.nodata is None:
        return values
    valid = valid_pixels(values, guide.nodata)
    empty = np.asarray(~(valid if values.ndim == 2 else valid.any(axis=2)))
    if not empty.any():
        return values
    mask = empty if values.ndim == 2 else np.broadcast_to(empty[..., None], values.shape)
    return np.ma.MaskedArray(values, mask)


# ---- writing -----------------------------------------------------------------------------------------------


def _store(job: Job, storage: Storage, result: Result) -> tuple[np.ndarray, int]:
    values = result.values if storage.factor == 1 else result.values * storage.factor
    try:
        return cast(values, result.valid, storage.dtype, invalid=storage.marker)
    except InputError as error:
        raise InputError(f"{job.output}: {error}") from None


def _stored_misfit(inputs: Inputs, stored: np.ndarray) -> tuple[float | None, float | None]:
    """How far the stored, rounded values are from the source once averaged, in their unit."""
    from dada.upsampling.result import consistency

    exact = inputs.valid if inputs.confidence is None else inputs.valid & (inputs.confidence == 1)
    source = np.where(exact, inputs.source.values, 0) * inputs.storage.factor
    return consistency(stored, source, exact)


def _write_all(
    job: Job,
    outputs: list[Path],
    inputs: Inputs,
    result: Result,
    stored: np.ndarray,
    place: Georeference | None,
    outcome: Outcome,
) -> int | None:
    """Write the result last; should anything fail, what this job wrote is removed again."""
    new = [path for path in outputs if not path.exists()]
    points = None
    try:
        if job.point_cloud is not None:
            points = write_points(job, inputs, result)
        if job.preview is not None or job.compare is not None:
            write_pictures(job, inputs, result)
        if job.report is not None:
            write_bytes_atomically(job.report, report_json(job, outcome, place))
        nodata = inputs.storage.marker if job.output.suffix.lower() in (".tif", ".tiff") else None
        write_image(job.output, stored, nodata=nodata, georeference=place)
    except BaseException:
        for path in new:
            path.unlink(missing_ok=True)
        raise
    return points
