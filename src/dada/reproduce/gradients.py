"""`gradients`: the gradient through N_grad steps of the loop beside the exact one of its equilibrium."""

from __future__ import annotations

import time
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity

from dada.datasets.crops import grid_crops, to_sample
from dada.diffusion import Coefficients, coefficients, equilibrium, iterate
from dada.evaluation.fingerprint import fingerprint
from dada.evaluation.resources import watched
from dada.evaluation.tables import Table, number
from dada.features.standardising import KAPPA, standardise
from dada.reproduce.findings import Findings, Row
from dada.reproduce.plots import asymptote, lines, sheet
from dada.reproduce.study import Study, single_thread
from dada.sample import Sample

FACTOR, PRE_STEPS, EXACT = 8, 8000, 1e-8
NGRAD = (1, 4, 16, 64, 256, 1024)


def gradients(study: Study) -> Findings:
    """Cosine to the exact gradient, and memory, against N_grad."""
    sample = _problem(study)
    most = max(study.effort.grad_steps)
    counts = [n for n in NGRAD if n <= 8 * most]
    rows: list[Row] = []
    with single_thread():
        exact = gradient(sample, 0, EXACT)[0]
        for count in (*counts, 0):
            study.say(f"N_grad {count}" if count else "implicit", None)
            key = fingerprint(sample.guide, sample.source, count)
            rows.append(study.remember(__name__, key, lambda n=count: measure(sample, n, exact)))  # type: ignore[misc]
    unrolled, implicit = rows[:-1], rows[-1]
    across = [r["grad steps"] for r in unrolled]
    figure, (left, right) = sheet(2)
    lines(left, {"unrolled": (across, [r["cosine"] for r in unrolled])}, x="N_grad, steps with gradient",
          y="cosine to the exact gradient", log="x", title="direction")  # fmt: skip
    asymptote(left, implicit["cosine"], "implicit")
    lines(right, {"unrolled": (across, [r["megabytes"] for r in unrolled])}, x="N_grad, steps with gradient",
          y="memory (MB)", log="x", title="memory")  # fmt: skip
    asymptote(right, implicit["megabytes"], "implicit")
    table = Table(
        f"Gradient of the L1 loss to the coefficients, {sample.names[0]} at x{FACTOR}",
        ["gradient", "cosine", "length", "megabytes", "seconds"],
        [[f"N_grad = {r['grad steps']}" if r["grad steps"] else "implicit", f"{r['cosine']:.3f}", number(r["length"]),
          f"{r['megabytes']:.0f}", f"{r['seconds']:.2f}"] for r in rows],
        f"Cosine and length beside the exact gradient: implicit, in double precision, tolerance {EXACT:g}. The loop "
        f"runs {PRE_STEPS} steps without gradient first. Memory: growth of the process, forward and backward.",
    )  # fmt: skip
    last = unrolled[-1]
    return Findings(
        [
            f"With N_grad = {last['grad steps']} the gradient of the loop has cosine {last['cosine']:.3f} to the exact "
            f"one and {last['length']:.2f} of its length, for {last['megabytes']:.0f} MB.",
            f"The implicit gradient at the default tolerance: cosine {implicit['cosine']:.4f}, length "
            f"{implicit['length']:.2f}, {implicit['megabytes']:.0f} MB, whatever the number of steps.",
        ],
        f"none; one crop of {study.effort.memory_crop} x {study.effort.memory_crop}, gradient of the absolute error",
        rows, figure,
        "How well the gradient through N_grad steps agrees with the exact one in direction, and its "
        "memory; dashed: the implicit gradient of the equilibrium.",
        [table], {"steps without gradient": PRE_STEPS, "coefficients": "learning-free DADA's"},
    )  # fmt: skip


def _problem(study: Study) -> Sample:
    """The middle crop of the first image: memory of the loop grows with its size."""
    dataset = study.first().open()
    crops = [crop for crop in grid_crops(dataset[0], study.effort.memory_crop) if crop.valid.any()]
    return to_sample(crops[len(crops) // 2], FACTOR, dataset.unit)


def gradient(sample: Sample, count: int, tolerance: float | None = None) -> tuple[Tensor, float, float]:
    """The gradient to all coefficients, [N], with the seconds and bytes it took; implicit for no steps.

    Args:
        sample: one problem with its truth.
        count: steps with gradient.
        tolerance: of an exact one in double precision; None for the default in single.
    """
    assert sample.target is not None
    kind = torch.float64 if tolerance else torch.float32
    features = torch.cat([standardise(sample.guide), sample.initial], dim=1).to(kind)
    c = Coefficients(*(edges.detach().requires_grad_() for edges in coefficients(features, KAPPA, "mean_absolute")))
    source, initial, target = (v.to(kind) for v in (sample.source, sample.initial, sample.target))
    options: dict[str, Any] = {"initial": initial, "mask": sample.source_mask}
    with watched() as usage:
        begun = time.perf_counter()
        if count:
            values = iterate(source, c, steps=PRE_STEPS + count, grad_steps=count, **options).values
        else:
            options |= {"tolerance": tolerance} if tolerance else {}
            values = equilibrium(source, c, warn=False, **options).values
        known = sample.target_mask if sample.target_mask is not None else torch.ones_like(target, dtype=torch.bool)
        torch.autograd.backward((values - target)[known].abs().mean())
        seconds = time.perf_counter() - begun
    found = torch.cat([edges.grad.flatten().double() for edges in c if edges.grad is not None])
    return found, seconds, float(usage.memory or 0)


def measure(sample: Sample, count: int, exact: Tensor) -> Row:
    """A row of the table."""
    gradient(sample, min(count, 1))  # what a first call imports and compiles does not count
    found, seconds, memory = gradient(sample, count)
    return {
        "grad steps": count, "cosine": float(cosine_similarity(found, exact, dim=0)),
        "length": float(found.norm() / exact.norm()), "megabytes": memory / 1e6, "seconds": seconds,
    }  # fmt: skip
