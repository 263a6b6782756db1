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
    parse_amount,
    parse_intrinsics,
    read_image,
    scaled,
    valid_pixels,
    write_bytes_atomically,
    write_image,
)
from dada.io.alignment import Part, common_area
from dada.io.detect import SUFFIXES
from dada.io.exr import openexr
from dada.io.points import POINT_SUFFIXES, read_points
from dada.io.rounding import limits
from dada.pairs.aligning import aligned
from dada.pairs.extras import report_json, write_pictures, write_points
from dada.pairs.options import Options
from dada.pairs.storage import Storage, check_storable, choose_storage

if TYPE_CHECKING:
    from dada.upsampling.result import Report, Result
    from dada.upsampling.source import Marker


PHONE_LEVELS = 2  # of confidence: low, medium, high


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
    without_flying: bool = False  # pixels that float between two surfaces are left out of the point cloud
    complete: bool = False  # the source holds single pixels of the guide's grid
    robust: bool = False  # of `complete`
    levels: bool = False  # the confidence is in levels 0, 1 and 2, as phones write it


@dataclass(frozen=True)
class Outcome:
    """What became of a job."""

    report: Report
    storage: Storage
    misfit: tuple[float | None, float | None]  # max and mean over exact cells of the stored result, in its unit
    soft_misfit: tuple[float | None, float | None]  # the same over cells of a confidence between 0 and 1
    source_range: tuple[float, float]  # of valid cells, in the source's unit
    kept_within: int  # pixels that would have left the range of the stored type
    moved: int  # valid pixels stored beside the invalid marker that they would have landed on
    points: int | None  # of the point cloud
    warnings: list[str]
    seconds: float
    inputs: Inputs
    result: Result  # before it was rounded and stored


@dataclass(frozen=True)
class Inputs:
    """What the files of a job hold, cut to the area that both cover."""

    source: Raster  # its scale and offset applied
    guide: Raster
    storage: Storage
    valid: np.ndarray  # [h, w] bool, by NaN and marker
    trust: np.ndarray  # [h, w] in 0..1: 1 is exact, 0 is no measurement
    place: Georeference | None


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
        result = _upsample(job, inputs)
        result, kept_within = _within_type(inputs, result)
        stored, moved = _store(job, inputs.storage, result)
        notes += _warned(caught) + result.report.warnings
        exact, soft = _stored_misfit(job, inputs, stored, result.report.sampling)
        outcome = Outcome(
            report=result.report,
            storage=inputs.storage,
            misfit=exact,
            soft_misfit=soft,
            source_range=_range(inputs),
            kept_within=kept_within,
            moved=moved,
            points=None,
            warnings=notes,
            seconds=time.perf_counter() - begin,
            inputs=inputs,
            result=result,
        )
        points = _write_all(job, outputs, inputs, result, stored, outcome)
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
    if SUFFIXES[job.output.suffix.lower()] == "exr":
        openexr(job.output)
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
    options, guide = job.options, read_image(job.guide, key=job.options.guide_key, role="guide")
    listed = job.complete and job.source.suffix.lower() in POINT_SUFFIXES
    if listed:
        read = read_points(job.source, guide.values.shape[:2])
    else:
        read = read_image(job.source, key=options.source_key, role="source")
    pair = common_area(dataclasses.replace(read, georeference=None) if options.aligned else read, guide)
    source, place = pair.source, pair.place
    if pair.cut:
        notes.append(pair.cut)
    if place is not None and SUFFIXES[job.output.suffix.lower()] != "tiff":
        notes.append(f"{job.output}: only TIFF holds the georeference, so it is dropped; write to .tiff to keep it")
        place = None
    storage = choose_storage(source, job.output, options)
    if job.complete and options.invalid is None and source.nodata is None and not listed:
        storage = dataclasses.replace(storage, invalid=0.0)  # beside NaN, also in floats and maps
    if job.point_cloud is not None and storage.unit.per_metre is None:
        raise InputError(
            f"{job.source}: a point cloud needs depth in a metric unit, and that of this file is {storage.unit.name}. "
            "State it with --unit, such as mm."
        )
    valid = valid_pixels(source.values, storage.invalid)
    source = scaled(source, valid)
    if valid.any():
        try:
            check_storable(source, valid, storage)
        except InputError as error:
            raise InputError(f"{job.output}: {error}") from None
    if options.aligned:
        source = aligned(job, source, valid, pair.guide, storage, notes)
        valid = np.isfinite(source.values)
    trust = _trust(job, source, storage, valid, read, pair.part, notes)
    return Inputs(source, pair.guide, storage, valid, trust, place)


def _trust(
    job: Job, source: Raster, storage: Storage, valid: np.ndarray, read: Raster, part: Part, notes: list[str]
) -> np.ndarray:
    """How firmly each cell is held, by the file of confidence and the stated noise."""
    from dada.upsampling.confidence import read_trust

    if not valid.any():  # which is explained where all sources are read
        return valid.astype(float)
    confidence = None if job.confidence is None else _read_confidence(job.confidence, read, part)
    if job.levels and confidence is not None:
        confidence = of_levels(confidence, job.confidence)
    noise = None if job.options.noise is None else parse_amount(job.options.noise, storage.unit)
    try:
        return read_trust(confidence, noise, source.values, valid, notes.append)
    except InputError as error:
        raise InputError(f"{job.confidence or job.source}: {error}") from None


def of_levels(levels: np.ndarray, path: Path | None) -> np.ndarray:
    """Confidence in 0..1 of the levels of a phone: 0 low, 1 medium, 2 high.

    Raises:
        InputError: there are others.
    """
    if levels.dtype.kind not in "ui" or levels.max() > PHONE_LEVELS:
        raise InputError(f"{path}: confidence of a phone is 0, 1 or 2, and this holds {levels.max()}.")
    shares: np.ndarray = levels / PHONE_LEVELS
    return shares


def _read_confidence(path: Path, source: Raster, part: Part) -> np.ndarray:
    """The confidence of the cells that are used."""
    confidence = read_image(path, role="source")
    if confidence.values.shape != source.values.shape:
        raise InputError(
            f"{path}: confidence has shape {confidence.values.shape}; expected {source.values.shape}, one value for "
            "each source cell. Resample it to the source."
        )
    placed = common_area(confidence, source)
    if placed.cut:
        raise InputError(
            f"{path}: by its georeference it lies elsewhere than {source.path}. Name one of the same grid."
        )
    return np.ascontiguousarray(placed.source.values[part])


def _upsample(job: Job, inputs: Inputs) -> Result:
    from dada.upsampling import complete, upsample

    options = job.options
    try:
        if job.complete or options.aligned:
            return complete(
                inputs.source.values,
                _guide_values(inputs.guide),
                model=options.model,
                confidence=_uncertain(inputs),
                invalid=None if inputs.source.meaning.scaled else inputs.storage.invalid,
                adjust=options.adjust,
                solver=options.solver,
                tolerance=options.tolerance,
                steps=options.steps,
                robust=job.robust,
                unit=inputs.storage.unit.per_metre or "raw",
                precision=options.precision,
                device=options.device,
            )
        return upsample(
            inputs.source.values,
            _guide_values(inputs.guide),
            model=options.model,
            confidence=_uncertain(inputs),
            invalid=_marker(inputs, options),
            adjust=options.adjust,
            sampling=options.sampling,
            solver=options.solver,
            tolerance=options.tolerance,
            steps=options.steps,
            fill=options.fill,
            unit=inputs.storage.unit.per_metre or "raw",
            precision=options.precision,
            device=options.device,
        )
    except InputError as error:
        raise InputError(f"{job.source} with {job.guide}: {error}") from None


def _uncertain(inputs: Inputs) -> np.ndarray | None:
    """How firmly cells are held, where some of them are not held exactly."""
    return inputs.trust if (inputs.trust[inputs.valid] < 1).any() else None


def _marker(inputs: Inputs, options: Options) -> Marker:
    """The marker in what is upsampled; "auto" where it is the usual one of such values."""
    if inputs.source.meaning.scaled:  # invalid pixels are NaN
        return None
    usual = options.invalid is None and inputs.source.nodata is None and inputs.storage.invalid is not None
    return "auto" if usual else inputs.storage.invalid


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
    try:
        return cast(storage.stored(result.values), result.valid, storage.dtype, invalid=storage.marker)
    except InputError as error:
        raise InputError(f"{job.output}: {error}") from None


def _within_type(inputs: Inputs, result: Result) -> tuple[Result, int]:
    """Bring pixels that the stored type cannot hold back into its range, with the measurements kept."""
    from dada.sample import Sampling
    from dada.upsampling.bounds import kept_within

    storage, values = inputs.storage, result.values
    if storage.dtype.kind == "f":
        return result, 0
    numbers, (least, most) = np.rint(storage.stored(values)), limits(storage.dtype)
    out = int(((numbers < least) | (numbers > most))[result.valid].sum())
    if not out:
        return result, 0
    source = np.where(inputs.valid, inputs.source.values, 0).astype(np.float64)
    trust = inputs.trust if result.report.adjust != "none" else 0.5 * inputs.trust  # others do not keep the means
    inside = kept_within(values, source, trust, storage.limits, Sampling.of(result.report.sampling))
    return dataclasses.replace(result, values=inside), out


def _range(inputs: Inputs) -> tuple[float, float]:
    measured = inputs.source.values[inputs.valid]
    return float(measured.min()), float(measured.max())


def _stored_misfit(
    job: Job, inputs: Inputs, stored: np.ndarray, sampling: str
) -> list[tuple[float | None, float | None]]:
    """How far the stored, rounded values are from the source once brought down: exact cells, soft ones; in their unit.

    Points that contradict their neighbours are soft.
    """
    from dada.sample import Sampling
    from dada.upsampling.result import consistency

    trust, source = inputs.trust, np.where(inputs.valid, inputs.source.values, 0)
    if job.robust:
        from dada.upsampling.completion import without_outliers

        trust, _ = without_outliers(source, trust)
    source, values = source * inputs.storage.factor, inputs.storage.read_back(stored)
    soft = (trust > 0) & (trust < 1)
    return [consistency(values, source, cells, Sampling.of(sampling)) for cells in (trust == 1, soft)]


def _write_all(
    job: Job,
    outputs: list[Path],
    inputs: Inputs,
    result: Result,
    stored: np.ndarray,
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
            write_bytes_atomically(job.report, report_json(job, outcome, inputs.place))
        nodata = inputs.storage.marker if job.output.suffix.lower() in (".tif", ".tiff") else None
        write_image(job.output, stored, nodata=nodata, georeference=inputs.place, meaning=inputs.storage.meaning)
    except BaseException:
        for path in new:
            path.unlink(missing_ok=True)
        raise
    return points
