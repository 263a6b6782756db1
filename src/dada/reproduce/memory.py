"""`memory`: memory of a training step and of a call, for DADA and LGR, against the factor."""

from __future__ import annotations

from dataclasses import replace
from statistics import median

import torch
from torch import nn

from dada.evaluation.fingerprint import fingerprint
from dada.evaluation.paper import paper
from dada.evaluation.resources import watched
from dada.evaluation.tables import Table
from dada.reproduce.findings import Findings, Row
from dada.reproduce.found import TRAIN_SEED
from dada.reproduce.plots import lines, plain_ticks, sheet
from dada.reproduce.study import Study, single_thread
from dada.reproduce.trainings import paper_training, with_network
from dada.sample import Sample
from dada.training.config import DataConfig, NetworkSettings, TrainConfig

NAMES = ("DADA, implicit", "DADA, unrolled", "LGR")


def memory(study: Study) -> Findings:
    """Memory of training and inference for a batch."""
    rows: list[Row] = []
    for factor in study.effort.factors:
        for name in NAMES:
            study.say(f"x{factor} {name}", None)
            config = _config(study, name, factor)
            rows.append(
                {"method": name, "factor": factor, "training MB": training_memory(study, config) / 1e6,
                 "inference MB": inference_memory(study, config) / 1e6}
            )  # fmt: skip
    factors = list(study.effort.factors)
    figure, panels = sheet(2)
    for axes, column in zip(panels, ("training MB", "inference MB"), strict=True):
        curves = {n: (factors, [r[column] for r in rows if r["method"] == n]) for n in NAMES}
        lines(axes, curves, x="factor", y="memory (MB)", title=column.removesuffix(" MB"), log="x")
        axes.set_ylim(bottom=0)
        plain_ticks(axes, factors, [f"x{f}" for f in factors])
    printed = paper()["gigabytes"]
    tables = [
        Table(
            f"{column}, batch of {study.effort.memory_batch}",
            ["method", *(f"x{f}" for f in factors)],
            [[n, *(f"{r[column]:.0f}" for r in rows if r["method"] == n)] for n in NAMES],
            "How far the process grew, in megabytes, median of several calls on a CPU.",
        )
        for column in ("training MB", "inference MB")
    ]
    first = [r["training MB"] for r in rows if r["method"] == NAMES[0]]
    unrolled = [r["training MB"] for r in rows if r["method"] == NAMES[1]]
    summary = [
        f"A training step of DADA takes {min(first):.0f} to {max(first):.0f} MB with the implicit gradient, "
        f"whatever the factor, and {min(unrolled):.0f} to {max(unrolled):.0f} MB unrolled (N_grad = "
        f"{_grad_steps(study)}).",
        f"The paper, a batch of 8 on a GPU: DADA {printed['dada']['training']} GB in training and "
        f"{printed['dada']['inference']} GB at test time at every factor; LGR up to {printed['lgr']['training']} GB "
        f"and {printed['lgr']['inference']} GB. Our LGR solves iteratively and keeps no factorised matrix.",
    ]
    side = study.effort.memory_crop
    return Findings(
        summary, f"none; painted scenes of {side} x {side}, a batch of {study.effort.memory_batch}", rows, figure,
        "Memory of one training step and of one call for a batch, against the factor.", tables,
        {"networks": _described(study), "N_grad of the unrolled loop": _grad_steps(study)},
    )  # fmt: skip


def _described(study: Study) -> str:
    networks = {name: _network(study, name, study.effort.factors[0]) for name in (NAMES[0], NAMES[-1])}
    return "; ".join(f"{name.partition(',')[0]}: {_settings(found)}" for name, found in networks.items())


def _settings(network: NetworkSettings) -> str:
    return ", ".join(f"{key} {value}" for key, value in network.items() if key != "pretrained")


def training_memory(study: Study, config: TrainConfig) -> float:
    """Bytes by which the process grows in a step, forward and backward; 0 where the system does not report it."""
    return float(study.remember(__name__, fingerprint("train", config), lambda: _grown(study, config, train=True)))


def inference_memory(study: Study, config: TrainConfig) -> float:
    """Bytes by which the process grows in a call."""
    return float(study.remember(__name__, fingerprint("use", config), lambda: _grown(study, config, train=False)))


def _grown(study: Study, config: TrainConfig, *, train: bool) -> float:
    from dada.training.data import Batches
    from dada.training.networks import build

    config = replace(with_network(config, pretrained=False) if config.method in ("dada", "lgr") else config)
    with single_thread():
        torch.manual_seed(0)
        network, sample = build(config).train(train), Batches(replace(config, data=_painted()))[0]
        found = []
        for _ in range(study.effort.repeats + 1):
            with watched() as usage:
                _call(network, sample, config, train)
            found.append(float(usage.memory or 0))
    return median(found[1:])  # a first call also counts what it imports and compiles


def _call(network: nn.Module, sample: Sample, config: TrainConfig, train: bool) -> None:
    from dada.training.loss import loss
    from dada.training.networks import training_forward

    if not train:
        with torch.no_grad():
            network(sample)
        return
    torch.autograd.backward(loss(training_forward(network, sample, config), sample, config.loss))
    network.zero_grad(set_to_none=True)


def _painted() -> tuple[DataConfig, ...]:
    return (DataConfig(dataset=f"painted:{TRAIN_SEED}"),)


def _grad_steps(study: Study) -> int:
    return max(study.effort.grad_steps)


def _config(study: Study, name: str, factor: int) -> TrainConfig:
    effort = study.effort
    return TrainConfig(
        method="lgr" if name == "LGR" else "dada",
        network=_network(study, name, factor),
        scheme="unrolled" if name.endswith("unrolled") else "implicit",
        pre_steps=0,
        grad_steps=_grad_steps(study),
        factors=(factor,),
        crop=(effort.memory_crop,),
        batch=(effort.memory_batch,),
        data=_painted(),
        interpolation="torch",
    )


def _network(study: Study, name: str, factor: int) -> NetworkSettings:
    """That of the paper, or a light one in brief settings."""
    method = "lgr" if name == "LGR" else "dada"
    if not study.effort.brief:
        return dict(paper_training(method, "Middlebury", factor).network)
    return {"features" if name == "LGR" else "extractor": study.effort.extractor}
