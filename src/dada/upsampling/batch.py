"""A batch of images in one call: each is upsampled as it would be alone."""

from __future__ import annotations

import functools
import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ParamSpec, cast

import numpy as np
import torch
from torch import Tensor

from dada.errors import InputError
from dada.models.registry import load_model
from dada.upsampling.result import Report, Result, UpsampleWarning
from dada.upsampling.source import ArrayLike

P = ParamSpec("P")
PER_CELL = ("source", "mask", "confidence", "noise")


def over_batches(upsample: Callable[P, Result]) -> Callable[P, Result]:
    """Let a function of one source and one guide take batches of them too: a guide of four dimensions makes one."""

    @functools.wraps(upsample)
    def of_images(*arguments: P.args, **options: P.kwargs) -> Result:
        named: dict[str, Any] = dict(zip(("source", "guide"), arguments, strict=False)) | options
        if getattr(named.get("guide"), "ndim", 0) != 4:
            return upsample(*arguments, **options)
        for name in PER_CELL:
            given = named.get(name)
            named[name] = given if given is None or isinstance(given, Tensor) else np.asanyarray(given)
        images, one = _images(named), cast(Any, upsample)
        if isinstance(named.get("model"), str | os.PathLike):
            named["model"] = load_model(named["model"])  # once for all
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UpsampleWarning)  # they follow, with the number of their image
            results = [_numbered(i, one, {**named, **image}) for i, image in enumerate(images)]
        result = _together(results, named["source"].ndim == 4)
        for text in result.report.warnings:
            warnings.warn(text, UpsampleWarning, stacklevel=2)
        return result

    return of_images


def _numbered(number: int, upsample: Callable[..., Result], arguments: dict[str, Any]) -> Result:
    try:
        return upsample(**arguments)
    except InputError as error:
        raise InputError(f"image {number} of the batch: {error}") from None


def _images(named: dict[str, Any]) -> list[dict[str, ArrayLike]]:
    """The arrays of each image."""
    source, guide = named["source"], named["guide"]
    shape, count = tuple(source.shape), len(guide)
    if not (len(shape) == 3 or (len(shape) == 4 and shape[1] == 1)) or shape[0] != count or not count:
        raise InputError(
            f"the guide has shape {tuple(guide.shape)}, a batch of {count}, and the source {shape}; expected "
            f"({count}, height, width) or ({count}, 1, height, width). Give as many sources as guides."
        )
    images: list[dict[str, ArrayLike]] = [{"guide": image} for image in guide]
    for name in PER_CELL:
        given = named.get(name)
        if given is None:
            continue
        if given.ndim > 2 and (len(given) != count or given.ndim > 4 or (given.ndim == 4 and given.shape[1] != 1)):
            raise InputError(f"{name} has shape {tuple(given.shape)}; expected {shape}, or (height, width) for all.")
        for number, image in enumerate(images):
            image[name] = given if given.ndim <= 2 else given[number] if given.ndim == 3 else given[number, 0]
    return images


def _together(results: Sequence[Result], with_channel: bool) -> Result:
    """One result of several, [B, H, W], or [B, 1, H, W] where the sources have that dimension too."""
    stacked = []
    for name in ("values", "valid"):
        images = [getattr(result, name) for result in results]
        joined = torch.stack(images) if isinstance(images[0], Tensor) else np.stack(images)
        stacked.append(joined[:, None] if with_channel else joined)
    reports = [result.report for result in results]
    return Result(stacked[0], stacked[1], _of_all(reports), reports=reports)


def _of_all(reports: list[Report]) -> Report:
    """Of what can be counted the sum, of what can be bad the worst."""
    worst = max(reports, key=lambda report: (not report.converged, report.residual))
    total: dict[str, Any] = {}
    for name in ("invalid_cells", "uncertain_cells", "invalid_pixels", "filled_pixels", "bounded_pixels", "seconds"):
        total[name] = sum(getattr(report, name) for report in reports)
    return replace(
        worst,
        **total,
        rounds=max(report.rounds for report in reports),
        iterations=max(report.iterations for report in reports),
        guide_range=(min(r.guide_range[0] for r in reports), max(r.guide_range[1] for r in reports)),
        edge_agreement=min((r.edge_agreement for r in reports if r.edge_agreement is not None), default=None),
        sampling=", ".join(dict.fromkeys(report.sampling for report in reports)),
        adjust=", ".join(dict.fromkeys(report.adjust for report in reports)),
        consistency_max=max((r.consistency_max for r in reports if r.consistency_max is not None), default=None),
        consistency_mean=_mean([r.consistency_mean for r in reports if r.consistency_mean is not None]),
        uncertain_max=max((r.uncertain_max for r in reports if r.uncertain_max is not None), default=None),
        uncertain_mean=_mean([r.uncertain_mean for r in reports if r.uncertain_mean is not None]),
        warnings=[f"image {number}: {text}" for number, report in enumerate(reports) for text in report.warnings],
    )


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None
