"""Was a source averaged or sampled? What "auto" makes of it.

Three signs are weighed. First, where a jump passes through a cell, the mean over the cell lies between its neighbours,
and a sample lies on one side. Counted are cells in a row or column whose two neighbours differ by a jump, with little
change beyond them. The share of those that lie between is about 2/3 for means and 1/5 for samples, and varies from
image to image (beta-binomial). Second, the energy of the diffusion: samples that are taken for means must be made up
for within each block, which costs energy. Third, the guide: in windows of 3 x 3 cells, means of the source go better
with means of the guide, samples with the guide's pixels there. `benchmarks/sampling.py` measures how surely all three
tell together.
"""

from __future__ import annotations

from collections.abc import Callable
from math import lgamma, log, log2

import numpy as np
import torch
from torch.nn.functional import unfold

from dada.diffusion import Coefficients, equilibrium
from dada.diffusion.coefficients import laplacian
from dada.errors import InputError
from dada.models.learning_free import LearningFree
from dada.sample import Sampling
from dada.sample.sampling import MISFIT
from dada.upsampling.problem import Problem, Scaled

JUMP = 0.1  # of the range of the source, between the two neighbours of a cell
FLAT = 0.15  # of the jump: how much the source may change beyond them
BETWEEN = (0.15, 0.85)  # of the jump: a cell within lies between its neighbours
OUT = 0.3  # of the jump: a cell farther out is not of these two sides
RANGE = (2, 98)  # percentiles
MEANS, POINTS = (5.9, 2.8), (0.71, 3.04)  # beta distributions of the share over images
LIKELY = 4.0  # least |logarithm| of the counts' likelihood ratio for a warning: no mean of the validation scenes has it

# logistic regression on training frames of NYUv2 and of Middlebury's third size, x4 to x32
CONSTANT, COUNTS, ENERGY, FACTOR, ENERGY_FACTOR, GUIDE, GUIDE_FACTOR = 4.10, 0.44, -7.31, -0.82, 2.16, -13.38, 5.30
MIDDLE = 3.5  # logarithm of the factor that the others are relative to
SURE = 1.38  # least |log odds| for a decision, chosen on NYUv2 validation frames
CLEAR = 2.0  # |logarithm| of the counts' likelihood ratio from which the other signs may not overrule it
WINDOW, BANDS = 3, 3  # cells a side, and bands of the guide, of the linear models of the third sign
RIDGE, FLOOR = 1e-4, 1e-10  # of a guide in 0..1; of the source's variance: below, there is nothing to explain
LOOSE = 1e-3  # tolerance of the two solutions

Warn = Callable[[str], None]


def chosen_sampling(wanted: str | Sampling, problem: Problem, warn: Warn) -> Sampling:
    """Return the sampling that was asked for, or what "auto" comes down to.

    Args:
        wanted: what the user asked for.
        problem: of one image.
        warn: takes that "auto" could not decide, or that means were asked for and the source looks sampled.

    Raises:
        InputError: there is no such sampling.
    """
    finer = problem.size != problem.cells
    if wanted == "auto":
        odds = mean_odds(problem) if finer else 0.0
        if abs(odds) < SURE:
            warn("sampling auto: it is not clear whether the source was averaged or sampled; it was taken as mean")
        return Sampling("point" if odds <= -SURE else "mean")
    if isinstance(wanted, str) and wanted.partition(":")[0] not in ("mean", "point", "bicubic"):
        raise InputError(f"sampling {wanted!r} is unknown. Use mean, point, point:ROWS,COLUMNS, bicubic or auto.")
    chosen = Sampling.of(wanted)
    if chosen.kind == "mean" and finer:
        check_means(*_arrays(problem), warn)
    return chosen


def check_means(source: np.ndarray, valid: np.ndarray, warn: Warn) -> None:
    """Warn where a source [h, w] that was taken for means looks sampled."""
    if likelihood(source, valid) <= -LIKELY:
        warn(
            "the source looks sampled at single pixels, not averaged, and sampling mean was used: if it came from a "
            "sensor without averaging or from a nearest-neighbour resize, use sampling point (--sampling point)"
        )


def about_bounds(misfit: float | None, ends: tuple[float, float], bounded: int) -> list[str]:
    """That a resized source is not given back to its tolerance where a result was kept within bounds, if so.

    Args:
        misfit: largest |result resized back down - source|.
        ends: least and largest value of the source.
        bounded: how many pixels were kept back.
    """
    if not misfit or misfit <= MISFIT * (ends[1] - ends[0]):
        return []
    return [
        f"resized back down, the result differs from the source by up to {misfit:.2g}: {bounded} pixels would have "
        "gone far from all measurements, and were kept back. With adjust shift (--adjust shift) nothing is kept back"
    ]


def mean_odds(problem: Problem) -> float:
    """Logarithm of the odds that the source of a problem of one image holds means, not samples; 0: cannot tell."""
    counts = likelihood(*_arrays(problem))
    means, points = (_energy(problem, Sampling(kind)) for kind in ("mean", "point"))
    flat = not bool((problem.guide != problem.guide[..., :1, :1]).any())
    if flat or not (means > 0 and points > 0):
        return 0.0
    energy, size = log(means / points), log2(problem.size[0] / problem.cells[0]) - MIDDLE
    odds = CONSTANT + COUNTS * counts + FACTOR * size + (ENERGY + ENERGY_FACTOR * size) * energy
    odds += (GUIDE + GUIDE_FACTOR * size) * likeness(problem)
    return 0.0 if abs(counts) >= CLEAR and counts * odds < 0 else odds


def likeness(problem: Problem) -> float:
    """How much more of the source the guide's means leave unexplained than its points do, as a logarithm.

    In each window of cells the source is explained by a linear model of the guide.
    """
    valid, source = problem.valid, problem.source.double()
    windows = unfold(valid.double(), WINDOW)[0].amin(dim=0) > 0  # [n]
    if min(problem.cells) < WINDOW or not bool(windows.any()):
        return 0.0
    spread = float(source[valid].var(correction=0))
    if not spread > 0:
        return 0.0
    y = unfold(source, WINDOW)[0, :, windows].T  # [n, 9]
    y = y - y.mean(dim=1, keepdim=True)
    left = []
    for kind in (Sampling("mean"), Sampling("point")):
        coarse = kind.down(problem.guide[:, :BANDS].double(), problem.cells)
        x = unfold(coarse, WINDOW)[0][:, windows].T.reshape(len(y), -1, WINDOW**2)  # [n, C, 9]
        x = x - x.mean(dim=2, keepdim=True)
        gram = x @ x.mT + RIDGE * WINDOW**2 * torch.eye(x.shape[1], dtype=x.dtype, device=x.device)
        along = x @ y[..., None]
        rest = y.square().sum(dim=1) - (along * torch.linalg.solve(gram, along)).sum(dim=(1, 2))
        left.append(rest.clamp(min=FLOOR * spread).log())
    return float((left[0] - left[1]).mean())


def _energy(problem: Problem, sampling: Sampling) -> float:
    """y'L y of the solution with the coefficients of the paper's learning-free variant."""
    given = Scaled.of(problem, "shift").problem
    start = given.initial()
    coverage = sampling.coverage(given.cells, given.size)
    with torch.no_grad():
        c = LearningFree().prepare(given.sample(start)).coefficients()
        c = Coefficients(*(part.to(given.source.dtype) for part in c))
        y = equilibrium(
            given.source, c, initial=start, adjust="shift", mask=given.valid, tolerance=LOOSE, warn=False,
            coverage=None if coverage is None else coverage.to(start.device),
        ).values[:, 0]  # fmt: skip
        return float((y * laplacian(y, c)).sum())


def _arrays(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """Source and valid cells of the one image."""
    return problem.source[0, 0].cpu().numpy(), problem.valid[0, 0].cpu().numpy()


def likelihood(source: np.ndarray, valid: np.ndarray) -> float:
    """How much likelier the source [h, w] holds means than samples, as a logarithm; 0 where nothing can be told."""
    if not valid.any():
        return 0.0
    low, high = np.percentile(source[valid].astype(np.float64), RANGE)
    source = source.astype(np.float64)
    counts = [_across_jumps(*image, JUMP * float(high - low)) for image in ((source, valid), (source.T, valid.T))]
    across, between = (sum(numbers) for numbers in zip(*counts, strict=True))
    return _log_share(across, between, MEANS) - _log_share(across, between, POINTS)


def _across_jumps(source: np.ndarray, valid: np.ndarray, jump: float) -> tuple[int, int]:
    """Cells of rows whose neighbours lie on two flat sides of a jump, and how many of these lie between them."""
    if source.shape[1] < 3:
        return 0, 0
    step, known = np.diff(source, axis=1), valid[:, 1:] & valid[:, :-1]
    outside = np.pad(np.abs(step) * known, ((0, 0), (1, 1)))  # 0 past the border and beside invalid cells
    across = source[:, 2:] - source[:, :-2]
    flat = FLAT * np.abs(across)
    found = known[:, 1:] & known[:, :-1] & (np.abs(across) > jump)
    found &= (outside[:, :-3] < flat) & (outside[:, 3:] < flat)
    place = (source[:, 1:-1] - source[:, :-2])[found] / across[found]
    place = place[(place > -OUT) & (place < 1 + OUT)]
    return len(place), int(((place > BETWEEN[0]) & (place < BETWEEN[1])).sum())


def _log_share(count: int, hits: int, beta: tuple[float, float]) -> float:
    """Logarithm of the beta-binomial probability, without the factor that does not depend on `beta`."""
    a, b = beta
    return _log_beta(a + hits, b + count - hits) - _log_beta(a, b)


def _log_beta(a: float, b: float) -> float:
    return lgamma(a) + lgamma(b) - lgamma(a + b)
