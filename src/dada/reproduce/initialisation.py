"""`ablation-initialisation`: what training and loop start from."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from dada.errors import InputError
from dada.evaluation.bench import Report
from dada.evaluation.methods import Entry, resolve
from dada.evaluation.paper import paper
from dada.models.dada import DADA
from dada.reproduce.ablation import FACTOR, about_ablation, bars, beside, compared, share, unrolled
from dada.reproduce.findings import Findings
from dada.reproduce.reports import all_rows, described
from dada.reproduce.study import Study
from dada.reproduce.trainings import load_trained, training, with_network
from dada.sample import Sample
from dada.training.config import TrainConfig
from dada.training.constant_start import from_constant

STARTS = {
    "base": "backbone from ImageNet, Y0 bicubic",
    "random_backbone": "backbone random, Y0 bicubic",
    "constant_start": "backbone from ImageNet, Y0 constant",
}


@dataclass(frozen=True)
class StartedFrom:
    """DADA's loop from another initial image; the features still use the bicubic image.

    Attributes:
        network: trained.
        start: "bicubic" or "constant".
        steps: of the loop.
    """

    network: DADA
    start: str
    steps: int

    @property
    def name(self) -> str:
        """The name in tables."""
        return f"Y0 {self.start}, {self.steps} steps"

    def __call__(self, sample: Sample) -> Tensor:
        """Return [B, 1, H, W]; see `dada.sample.Method`."""
        network = from_constant(self.network) if self.start == "constant" else self.network
        with torch.no_grad():
            images: Tensor = network(sample, solver="iterate", n_pre=self.steps)
        return images


def initialisation(study: Study) -> Findings:
    """Backbone with ImageNet or random weights; Y0 bicubic or constant, in training and at test time."""
    test, effort = study.first(), study.effort
    plain = training(study, "dada", FACTOR, test.title, ablation=True)
    base = with_network(unrolled(study, plain), extractor=effort.backbone, pretrained=True)
    trainings = {
        "base": base,
        "random_backbone": with_network(base, pretrained=False),
        "constant_start": replace(base, initial="constant"),
    }
    entries, reasons, steps = [resolve("bicubic")], {}, effort.test_steps
    for key, config in trainings.items():
        try:
            network = load_trained(study, config, key).method
        except InputError as error:
            reasons[STARTS[key]] = str(error)
            continue
        assert isinstance(network, DADA)
        entries.append(Entry(STARTS[key], "dada", StartedFrom(network, config.initial, steps)))
    report = compared(study, entries)
    printed = paper()["initialisation"]["Middlebury"]
    theirs = {title: printed[key] for key, title in STARTS.items()}
    changed, sentence = _at_test_time(study, plain)
    shares = "; ".join(f"{share(report, e.label):.3f} ({e.label})" for e in entries[1:])
    summary = [
        f"Trained and tested so, the variants leave of bicubic's MSE: {shares}.",
        sentence,
        *(f"{label} is not available: {reason}" for label, reason in reasons.items()),
        f"Training: {about_ablation(study, effort.backbone)}.",
    ]
    note = f"Each is trained through the loop and tested with {steps} steps of it. Backbone: {effort.backbone}."
    return Findings(
        summary, described([report]), all_rows([report, changed]), bars(report, f"x{FACTOR}"),
        "Share of bicubic's MSE that each variant leaves, trained and tested with its own start.",
        [beside(report, theirs, reasons, note), beside(changed, {}, {}, "One network; its start at test time varies.")],
        {"training": about_ablation(study, effort.backbone), "backbone": effort.backbone, "N_grad": effort.grad,
         "largest N_pre": effort.pre, "steps at test time": steps},
    )  # fmt: skip


def _at_test_time(study: Study, config: TrainConfig) -> tuple[Report, str]:
    """One network with both starts after few and after many steps, and a sentence on them."""
    short, long = study.effort.loop_steps[0], study.effort.loop_steps[-1]
    network = load_trained(study, config, "dada").method
    assert isinstance(network, DADA)
    ways = [StartedFrom(network, start, n) for n in (short, long) for start in ("bicubic", "constant")]
    report = compared(study, [resolve("bicubic"), *(Entry(w.name, "dada", w) for w in ways)])
    left = [share(report, way.name) for way in ways]
    return report, (
        f"One network with either start: after {short} steps of the loop a constant Y0 leaves {left[1]:.3f} of "
        f"bicubic's MSE, a bicubic one {left[0]:.3f}; after {long} steps {left[3]:.3f} and {left[2]:.3f}: the "
        "equilibrium does not depend on the start."
    )
