"""`guide-shift` and `noise`: errors with a shifted guide and with a noisy source."""

from __future__ import annotations

from dataclasses import dataclass, replace

import cv2
import numpy as np
import torch
from torch import Tensor

from dada.baselines.dada_free import DadaFree
from dada.datasets import Dataset, Pair
from dada.datasets.pair import Derived
from dada.datasets.sensor import noisy_source
from dada.diffusion import coefficients, equilibrium
from dada.evaluation.bench import Report
from dada.evaluation.methods import BICUBIC, Entry, resolve, resolve_all
from dada.evaluation.tables import Table, cells
from dada.features.standardising import KAPPA, standardise
from dada.reproduce.ablation import share
from dada.reproduce.findings import Findings, Row
from dada.reproduce.plots import lines, sheet
from dada.reproduce.reports import all_rows, bench, described
from dada.reproduce.study import Study
from dada.sample import Method, Sample

FACTOR = 8
SHIFTS = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0)
SHIFTED_METHODS = ("gf", "fgs", "lgr-free", "dada-free", "dynamic", "default")
NOISES = (0.0, 0.005, 0.01, 0.02, 0.04)
WEIGHTS = (10.0, 1.0, 0.1)


@dataclass(frozen=True)
class Shifted(Derived):
    """A data set whose guides are shifted to the right by some pixels."""

    dataset: Dataset
    pixels: float

    def __getitem__(self, index: int) -> Pair:
        pair = self.dataset[index]
        return replace(pair, guide=shift(pair.guide, self.pixels)) if self.pixels else pair


def shift(guide: np.ndarray, pixels: float) -> np.ndarray:
    """Shift (H, W, C) to the right by a number of pixels, also a fraction; the border is mirrored."""
    move = np.array([[1, 0, pixels], [0, 1, 0]], np.float64)
    size = guide.shape[1], guide.shape[0]
    moved = cv2.warpAffine(guide, move, size, flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REFLECT_101)
    return moved.reshape(guide.shape)


def guide_shift(study: Study) -> Findings:
    """Error against misregistration of the guide."""
    dataset = study.first().open()
    entries = resolve_all(SHIFTED_METHODS)
    reports = [bench(study, entries, Shifted(dataset, s), [FACTOR], study.effort.probes) for s in SHIFTS]
    rows = [{"shift px": s, **row} for s, report in zip(SHIFTS, reports, strict=True) for row in all_rows([report])]
    names = [c.label for c in entries if c.label != BICUBIC]
    shares = {n: [share(report, n) for report in reports] for n in names}
    figure, (axes,) = sheet(1, 1, (6.4, 3.8))
    lines(axes, {n: (SHIFTS, v) for n, v in shares.items()}, x="shift of the guide (pixels of the target)",
          y="share of bicubic's MSE")  # fmt: skip
    axes.axhline(1, color="0.5", linewidth=1, linestyle=":")
    best = min(names, key=lambda n: shares[n][0])
    worse = next((s for s, v in zip(SHIFTS, shares[best], strict=True) if v > 1), None)
    summary = [
        f"{best} leaves {shares[best][0]:.2f} of bicubic's MSE with an exact guide, "
        f"{shares[best][SHIFTS.index(1.0)]:.2f} with one a pixel off, {shares[best][-1]:.2f} at {SHIFTS[-1]:g}.",
        f"From {worse:g} pixels on it is worse than bicubic, which uses no guide."
        if worse is not None
        else "At every shift it is better than bicubic, which uses no guide.",
    ]
    table = Table(
        f"{reports[0].dataset}, {reports[0].protocol.describe(reports[0].count)}: share of bicubic's MSE at x{FACTOR}",
        ["method", *(f"{s:g} px" for s in SHIFTS)],
        _transposed(names, [cells([(shares[n][i],) for n in names]) for i in range(len(SHIFTS))]),
        "Shift of the guide against the depth, to the right. Below 1 is better than bicubic, which uses no guide.",
    )
    caption = f"Share of bicubic's MSE when the guide is shifted, at x{FACTOR}; dotted: bicubic itself."
    return Findings(
        summary, described(reports[:1]), rows, figure, caption, [table], {"factor": FACTOR, "shifts": SHIFTS}
    )


@dataclass(frozen=True)
class Noisy:
    """A method that is given a noisy source.

    Attributes:
        method: what runs.
        amount: standard deviation of the noise at a depth of one unit of the data set; see `noisy_source`.
        seed: of the noise: the same for every method.
    """

    method: Method
    amount: float
    seed: int = 0

    @property
    def name(self) -> str:
        """The name in tables."""
        return f"{self.method.name}, noise {self.amount:g}"

    def __call__(self, sample: Sample) -> Tensor:
        """Return [B, 1, H, W]; see `dada.sample.Method`."""
        rng = np.random.default_rng(self.seed)
        return self.method(noisy_source(sample, self.amount, rng) if self.amount else sample)


@dataclass(frozen=True)
class Start:
    """The bicubic image itself, of the source that is given."""

    name: str = BICUBIC

    def __call__(self, sample: Sample) -> Tensor:
        """Return [B, 1, H, W]; see `dada.sample.Method`."""
        return sample.initial


@dataclass(frozen=True)
class Renamed:
    """A method by another name."""

    method: Method
    name: str

    def __call__(self, sample: Sample) -> Tensor:
        """Return [B, 1, H, W]; see `dada.sample.Method`."""
        return self.method(sample)


@dataclass(frozen=True)
class Soft:
    """Learning-free DADA with soft measurements, which the result need not match exactly.

    Attributes:
        weight: of the measurements, in units of a coefficient.
    """

    weight: float

    @property
    def name(self) -> str:
        """The name in tables."""
        return f"soft, weight {self.weight:g}"

    def __call__(self, sample: Sample) -> Tensor:
        """Return [B, 1, H, W]; see `dada.sample.Method`."""
        c = coefficients(torch.cat([standardise(sample.guide), sample.initial], dim=1), KAPPA, "mean_absolute")
        weight = torch.full_like(sample.source, self.weight)
        return equilibrium(
            sample.source, c, initial=sample.initial, mask=sample.source_mask, weight=weight, adjust="shift"
        ).values


def noise(study: Study) -> Findings:
    """Error against noise of the source: exact or soft agreement with it."""
    dataset = study.first().open()
    shipped = Renamed(resolve("default").method, "hard, learned")
    methods: list[Method] = [Start(), replace(DadaFree(), name="hard"), shipped, *(Soft(w) for w in WEIGHTS)]
    every = [Noisy(method, amount) for method in methods for amount in NOISES]
    entries = [Entry(BICUBIC, BICUBIC, Start()), *(Entry(n.name, "noisy", n) for n in every)]
    report = bench(study, entries, dataset, [FACTOR], study.effort.probes)
    levels = [a * dataset.unit / 10 for a in NOISES]  # cm, at a depth of one unit
    curves = {m.name: [_rmse(report, Noisy(m, a)) for a in NOISES] for m in methods}
    figure, (axes,) = sheet(1, 1, (6.4, 3.8))
    lines(axes, {n: (levels, v) for n, v in curves.items()}, y=f"RMSE ({report.unit})",
          x=f"noise of a measurement at {dataset.unit / 1000:.2g} m (cm, standard deviation)")  # fmt: skip
    best = [min((n for n in curves if n != BICUBIC), key=lambda n: curves[n][i]) for i in range(len(NOISES))]
    gain = 1 - curves[best[-1]][-1] / curves["hard"][-1]
    table = Table(
        f"{report.dataset}, {report.protocol.describe(report.count)}: RMSE in {report.unit} at x{FACTOR}",
        ["agreement", *(f"{level:.2g} cm" for level in levels)],
        _transposed(list(curves), [cells([(v[i],) for v in curves.values()]) for i in range(len(NOISES))]),
        "Columns: deviation of the noise at a depth of one unit; it grows with the square of the depth, as in "
        "triangulation. Hard: averaged down, the result is the noisy source (learning-free DADA; the learned default). "
        "Soft: it may differ from it, by its weight.",
    )
    rows: list[Row] = all_rows([report])
    summary = [
        f"Without noise {best[0]} agreement is best; at {levels[-1]:.2g} cm {best[-1]} is, with {gain:.0%} less RMSE "
        "than hard agreement.",
        "Which weight is best depends on the noise: state it where it is known (`--confidence` of `dada upsample`).",
    ]
    caption = f"Error of learning-free DADA, and of the learned default, at x{FACTOR} when the source is noisy."
    settings = {"factor": FACTOR, "noise, in units of the data set": NOISES, "weights": WEIGHTS}
    return Findings(summary, described([report]), rows, figure, caption, [table], settings)


def _rmse(report: Report, method: Method) -> float:
    scores = report.scores(method.name, FACTOR)
    return scores.rmse if scores else float("nan")


def _transposed(names: list[str], columns: list[list[str]]) -> list[list[str]]:
    return [[name, *(column[i] for column in columns)] for i, name in enumerate(names)]
