"""What a worker process does with a job: average down for a self-test, upsample as the command does, draw."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from dada.app.requests import FIELD_OF_VIEW, MODELS, Request
from dada.app.viewing import camera_of, write_view
from dada.errors import InputError
from dada.io import Raster, default_invalid, default_unit, parse_unit, read_image, valid_pixels, write_image
from dada.models.registry import METHODS
from dada.pairs.job import Job, Outcome, run_job
from dada.pairs.options import Options
from dada.pairs.words import default_output

Note = Callable[[str], None]


def work(request: Request, note: Note) -> dict[str, Any]:
    """Do a job in the current folder; return what the page tells of it.

    Files are named without their folder, so that messages and reports say what the command would say beside them.

    Raises:
        InputError: the files or the options cannot be used.
    """
    _check_model(request.options.model)
    note("reading")
    truth, averaged = None, request.factor is not None
    if averaged:
        request, truth = _self_test(request)
    job = _job(request)
    note("computing")
    outcome = run_job(job)
    note("drawing")
    stored = read_image(job.output).values
    if request.truth is not None:
        truth = read_image(request.truth).values
    if truth is not None:
        truth = truth * outcome.storage.factor  # from the unit of the source to that of the result
    errors = write_view(Path(), request, outcome, stored, truth)
    return {
        "facts": facts(request, outcome, job),
        "warnings": outcome.warnings,
        "errors": errors,
        "files": _files(job, averaged=averaged),
        "command": command(request, job),
        "seconds": outcome.seconds,
        "consistency_max": outcome.misfit[0],
        "unit": outcome.storage.label or request.label,
    }


def warm() -> None:
    """Do a tiny job in the current folder: it loads the model, the kernels and all else that the first job needs."""
    write_image("guide.png", np.random.default_rng(0).integers(0, 255, (64, 64, 3), np.uint8))
    write_image("source.png", np.arange(1000, 1064, dtype=np.uint16).reshape(8, 8))
    work(Request("source.png", "guide.png"), lambda text: None)


def _check_model(name: str) -> None:
    """Only by name: a file would be one of the machine that the server runs on."""
    if name not in (*MODELS, *METHODS):
        raise InputError(
            f"model {name!r} is not offered here. Use one of {', '.join((*MODELS, *METHODS))}; weights of your own are "
            "for the command, dada upsample --model FILE."
        )


def _job(request: Request) -> Job:
    source = Path(request.source)
    output = default_output(source)
    if request.format is not None:
        output = output.with_suffix(f".{request.format}")
    raster = read_image(source, key=request.options.source_key, role="source")
    guide = read_image(request.guide, key=request.options.guide_key, role="guide")
    _check_pixels(request, guide)
    unit = parse_unit(request.options.unit) if request.options.unit is not None else default_unit(raster)
    camera = None
    if request.intrinsics is not None:
        camera = request.intrinsics
    elif unit.per_metre is not None and raster.georeference is None:
        camera = ",".join(str(number) for number in camera_of(request, guide.values.shape))
    return Job(
        source,
        Path(request.guide),
        output,
        request.options,
        confidence=None if request.confidence is None else Path(request.confidence),
        preview=output.with_name(f"{output.stem}_preview.png"),
        range=request.range,
        report=output.with_suffix(".json"),
        point_cloud=None if camera is None else output.with_suffix(".ply"),
        intrinsics=camera,
    )


def _check_pixels(request: Request, guide: Raster) -> None:
    rows, columns = guide.values.shape[:2]
    if rows * columns > request.megapixels * 1e6:
        raise InputError(
            f"{request.guide}: the guide has {columns} x {rows} pixels, {rows * columns / 1e6:.1f} million, and this "
            f"server takes {request.megapixels:g} million. Use dada upsample, which has no such limit, or start the "
            "server with --max-megapixels."
        )


# ---- the self-test -----------------------------------------------------------------------------------------


def _self_test(request: Request) -> tuple[Request, np.ndarray]:
    """Average the fine source down to a file of its own; return the request for that file, and the truth."""
    import torch

    from dada.diffusion import down

    assert request.factor is not None
    raster = read_image(request.source, key=request.options.source_key, role="source")
    guide = read_image(request.guide, key=request.options.guide_key, role="guide")
    size, factor = raster.values.shape, request.factor
    if guide.values.shape[:2] != size:
        raise InputError(
            f"{request.source} with {request.guide}: for a self-test the source must be as fine as the guide, and it "
            f"has {size[1]} x {size[0]} pixels, the guide {guide.values.shape[1]} x {guide.values.shape[0]}. Give a "
            "source of the guide's size, or leave the self-test off."
        )
    if min(size) < factor:
        raise InputError(
            f"{request.source}: averaged down x{factor}, {size[1]} x {size[0]} pixels would leave none. Use a smaller "
            "factor."
        )
    options = request.options
    unit = parse_unit(options.unit) if options.unit is not None else default_unit(raster)
    valid = valid_pixels(raster.values, options.invalid if options.invalid is not None else default_invalid(raster))
    truth = np.where(valid, raster.values, np.nan).astype(np.float64)
    known = torch.from_numpy(valid)
    cells = (round(size[0] / factor), round(size[1] / factor))
    averaged = down(torch.from_numpy(np.where(valid, truth, 0.0)), cells, known).numpy().astype(np.float32)
    if not np.isfinite(averaged).any():
        raise InputError(f"{request.source}: no pixel of the source is valid. State what marks invalid with --invalid.")
    name = f"{Path(request.source).stem}_averaged_x{factor}.tiff"
    write_image(name, averaged, georeference=None if raster.georeference is None else _coarser(raster, cells))
    plain = dataclasses.replace(options, unit=unit.name, invalid=None, source_key=None)
    return dataclasses.replace(request, source=name, options=plain, factor=None), truth


def _coarser(raster: Raster, cells: tuple[int, int]) -> Any:
    from dada.io import Georeference

    assert raster.georeference is not None
    a, b, c, d, e, f = raster.georeference.transform
    down, across = raster.values.shape[0] / cells[0], raster.values.shape[1] / cells[1]
    return Georeference(raster.georeference.crs, (a * across, b * down, c, d * across, e * down, f))


# ---- what is told ------------------------------------------------------------------------------------------


def _about_cells(outcome: Outcome, unit: str) -> str:
    """How far averages are from the measurements: of exact cells, and of uncertain ones."""
    (largest, mean), (soft, soft_mean) = outcome.misfit, outcome.soft_misfit
    exact = "no source cell is exact" if largest is None else f"at most {largest:.2g}{unit}, mean {mean:.2g}{unit}"
    if soft is None:
        return exact if largest is None else f"differs from the source by {exact}"
    uncertain = (
        f"{outcome.report.uncertain_cells} uncertain cells differ by up to {soft:.2g}{unit}, mean {soft_mean:.2g}{unit}"
    )
    return f"{exact}; {uncertain}" if largest is None else f"exact cells differ by {exact}; {uncertain}"


def facts(request: Request, outcome: Outcome, job: Job) -> list[tuple[str, str]]:
    """How a result was reached, in pairs of a name and plain words."""
    report, storage = outcome.report, outcome.storage
    (h, w), (H, W) = report.source_size, report.target_size
    down, across = report.factors
    same = round(across, 3) == round(down, 3)
    unit = f" {storage.label or request.label}".rstrip()
    lines = [
        ("Source", f"{w} x {h} pixels"),
        ("Result", f"{W} x {H} pixels, {storage.words}"),
        ("Factor", f"x{across:.4g}" if same else f"x{across:.4g} across, x{down:.4g} down"),
    ]
    lines.append(("Averaged back down", _about_cells(outcome, unit)))
    steps = "iterations" if report.solver == "equilibrium" else "steps"
    solved = "" if report.solver == "direct" else f", adjust {report.adjust}, {report.iterations} {steps}"
    lines += [("Model", f"{report.model}{solved}"), ("Time", f"{outcome.seconds:.2f} s on one thread")]
    if report.invalid_cells:
        filled, left = report.filled_pixels, report.invalid_pixels
        fate = f"{filled} pixels of the result filled" if filled else f"{left} pixels of the result stay invalid"
        lines.append(("Invalid", f"{report.invalid_cells} of {h * w} source cells; {fate}"))
    if report.bounded_pixels:
        kept = f"{report.bounded_pixels} of {H * W} pixels, which would have gone far from all measurements"
        lines.append(("Kept back", kept))
    if outcome.points is not None:
        camera = f"camera {job.intrinsics}"
        if request.intrinsics is None:
            view, how = request.field_of_view or FIELD_OF_VIEW, "stated" if request.field_of_view else "assumed"
            camera = f"a field of view of {view:g} degrees {how}, {camera}"
        lines.append(("Points", f"{outcome.points}, {camera}"))
    return lines


def _files(job: Job, averaged: bool) -> list[dict[str, str]]:
    """What can be downloaded, each file with what it is."""
    found = [("result", job.output), ("preview", job.preview), ("point cloud", job.point_cloud), ("report", job.report)]
    if averaged:
        found.append(("averaged source", job.source))
    return [{"what": what, "name": path.name} for what, path in found if path is not None]


def command(request: Request, job: Job) -> str:
    """The command that writes the same files, bit for bit, beside the same inputs."""
    words: list[object] = ["dada", "upsample", job.source, job.guide, "-o", job.output, "--threads", 1]
    if job.confidence is not None:
        words += ["--confidence", job.confidence]
    plain = Options()
    for field in dataclasses.fields(Options):
        value = getattr(request.options, field.name)
        if value != getattr(plain, field.name):
            flag = f"--{field.name.replace('_', '-')}"
            words += [flag] if value is True else [flag, value]
    words.append("--preview")
    if job.range is not None:
        words += ["--range", *job.range]
    words += ["--report", job.report]
    if job.point_cloud is not None:
        words += ["--point-cloud", job.point_cloud, "--intrinsics", job.intrinsics]
    return shlex.join(str(word) for word in words)
