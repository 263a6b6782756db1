"""The networks of an experiment: released weights, the paper's trainings, or brief ones on painted scenes."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from dada.errors import InputError
from dada.evaluation.fingerprint import fingerprint
from dada.evaluation.methods import Entry
from dada.models.registry import load_method
from dada.reproduce.found import TRAIN_SEED, TestSet
from dada.reproduce.study import Study
from dada.training.config import DataConfig, LossConfig, ScheduleConfig, TrainConfig, ValidationConfig

SLOW = ("dkn", "pmba")
RATES = {"pmba": 1e-3, "fdsr": 5e-4}  # the others 1e-4, DADA 1e-3
BRIEF_RATES = {"pmba": 1e-4}  # the others 1e-3; PMBA with more breaks down within a few steps
WARMUP = 3  # a brief training raises its rate over one in so many of its steps: else DADA's coefficients fall to 0
KINDS = {"Middlebury": "middlebury", "NYUv2": "nyuv2", "DIML": "diml"}
STEPS_AN_EPOCH = {"Middlebury": 10, "NYUv2": 107, "DIML": 180}
EPOCHS = {"Middlebury": 2500, "NYUv2": 250, "DIML": 150}
DADA_EPOCHS = {"Middlebury": 4500, "NYUv2": 550, "DIML": 300}
DECAY_EPOCHS = {"Middlebury": 100, "NYUv2": 10, "DIML": 6}
VALIDATION_EPOCHS = {"Middlebury": 10, "NYUv2": 4, "DIML": 2}  # between two validations, by the released code's readme


def paper_training(method: str, data: str, factor: int) -> TrainConfig:
    """The paper's training of a method on one of its data sets (`KINDS`): the same as configs/paper-*.toml at x8."""
    ours = method == "dada"
    epochs = DADA_EPOCHS if ours else EPOCHS
    source = f"{KINDS[data]}:."
    network: dict[str, Any] = {"factor": factor} if method in ("msg", "pmba") else {}
    if method == "lgr":
        network = {"features": "unet-resnet50", "pretrained": True, "centre": "dataset"}
    if ours:
        network = {
            "extractor": "unet-resnet50", "features": 64, "pretrained": True, "upsample": True,
            "distance": "mean_absolute", "solver": "iterate",
        }  # fmt: skip
    return TrainConfig(
        method=method,
        network=network,
        scheme="unrolled" if ours else "implicit",
        factors=(factor,),
        crop=((64 if factor == 4 else 128) if method == "pmba" else 256,),
        steps=epochs[data] * STEPS_AN_EPOCH[data],
        learning_rate=1e-3 if ours else RATES.get(method, 1e-4),
        weight_decay=1e-5 if method in ("dada", "lgr") else 0.0,
        clip=0.01 if method in ("dada", "lgr") else 0.0,
        schedule=ScheduleConfig(every=DECAY_EPOCHS[data] * STEPS_AN_EPOCH[data]),
        loss=LossConfig(scale=10.0 if ours else 1.0),
        data=(DataConfig(dataset=source, augmentation="paper"),),
        validation=ValidationConfig(data=(source,), crops=0, every=VALIDATION_EPOCHS[data] * STEPS_AN_EPOCH[data]),
    )


def brief_training(study: Study, method: str, factor: int, steps: int, data: str = "") -> TrainConfig:
    """A training of minutes: small crops of painted scenes or of the data named, light extractors, no ImageNet."""
    effort = study.effort
    slow = method in SLOW
    steps = min(steps, effort.slow_steps) if slow else steps
    network: dict[str, Any] = {"factor": factor} if method in ("msg", "pmba") else {}
    if method == "lgr":
        network = {"features": effort.extractor, "channels": 16, "strength": 0.01}
    if method == "dada":
        network = {"extractor": effort.extractor}
    return TrainConfig(
        method=method,
        network=network,
        factors=(factor,),
        crop=(max(effort.train_crop, 2 * factor),),
        batch=(1 if slow else effort.train_batch,),
        steps=steps,
        learning_rate=BRIEF_RATES.get(method, 1e-3),
        weight_decay=0.0,
        clip=0.1,
        schedule=ScheduleConfig(kind="cosine", warmup=steps // WARMUP),
        loss=LossConfig(scale=1.0),
        data=(DataConfig(dataset=data or f"painted:{TRAIN_SEED}"),),
        interpolation="torch",
        workers=0,
        threads=1,
    )


def training(
    study: Study, method: str, factor: int, data: str = "Middlebury", *, ablation: bool = False
) -> TrainConfig:
    """The training that the setting asks for."""
    if study.effort.brief:
        return brief_training(
            study, method, factor, study.effort.ablation_steps if ablation else study.effort.train_steps
        )
    if data not in KINDS:
        raise InputError(f"the paper trains on {', '.join(KINDS)}, and none was found. Name their folder with --data.")
    return paper_training(method, data, factor)


def with_network(config: TrainConfig, **changes: Any) -> TrainConfig:
    """The same training of a network with other settings."""
    return replace(config, network={**config.network, **changes})


def trained(study: Study, config: TrainConfig) -> Path:
    """Train, resume a training or reuse a finished one; return the weights.

    Raises:
        KeyboardInterrupt: the training was interrupted; the next call resumes it.
    """
    from dada.training import train

    factor = config.factors[0]
    folder = study.output / "trainings" / f"{config.method}-x{factor}-{fingerprint(config)[:10]}"
    weights = folder / "best.safetensors"
    if _complete(folder, config.steps):
        return weights
    study.say(f"trains {config.method} x{factor}, {config.steps} steps", None)
    root = str(study.data) if study.data is not None else config.root
    train(replace(config, output=str(folder), root=root))
    if not _complete(folder, config.steps):
        raise KeyboardInterrupt
    return weights


def _complete(folder: Path, steps: int) -> bool:
    """Whether a training is complete, by its last checkpoint."""
    import torch

    try:
        state = torch.load(folder / "last.pt", map_location="cpu", weights_only=True)
        return int(state["progress"]["step"]) >= steps and (folder / "best.safetensors").exists()
    except Exception:  # missing or damaged: the training reports the reason
        return False


def network(study: Study, method: str, factor: int, data: TestSet | None = None) -> Entry:
    """A network for the tables: with released weights if there are some, else trained.

    Raises:
        InputError: there is no such network for this factor.
    """
    if released := released_weights(study.weights, method, factor):
        return Entry(f"{method}, released", method, load_method(f"{method}:{released}"))
    config = training(study, method, factor, data.title if data else "Middlebury")
    return load_trained(study, config, f"{method}, {config.steps} steps" if study.effort.brief else method)


def load_trained(study: Study, config: TrainConfig, label: str) -> Entry:
    """The network of a training, as the bench takes it.

    Raises:
        InputError: there is no such network.
    """
    try:
        method = load_method(f"{config.method}:{trained(study, config)}")
    except ValueError as error:  # a factor that the architecture does not know
        raise InputError(f"{config.method}: {error}.") from None
    method.eval()  # type: ignore[attr-defined]
    return Entry(label, config.method, method)


def released_weights(folder: Path | None, method: str, factor: int) -> Path | None:
    """The file METHOD/... whose name contains the factor, as MSGNet_x8.caffemodel or FDKN_8x; None if there is none."""
    if folder is None or not (folder / method).is_dir():
        return None
    pattern = re.compile(rf"(?<![0-9])(x{factor}(?![0-9])|{factor}x)", re.IGNORECASE)
    return next((path for path in sorted((folder / method).iterdir()) if pattern.search(path.stem)), None)


def about(study: Study, data: str, steps: str, scenes: str = "painted scenes", more: str = "", note: str = "") -> str:
    """A description of trainings, for the pages.

    Args:
        study: whose effort decides between the paper's trainings and brief ones.
        data: of the paper's trainings.
        steps: of brief trainings, such as "60 steps"; the other arguments are of brief ones, too.
        scenes: that they train on.
        more: further settings, each after a comma.
        note: what their errors cannot show, after a colon.
    """
    if not study.effort.brief:
        return f"the paper's, on {data}"
    side = study.effort.train_crop
    return f"{steps} on {scenes}, crops of {side} x {side}{more}; not the paper's training{note}"


def about_dada(study: Study) -> str:
    """A description of DADA's weights, for pages on DADA alone."""
    effort = study.effort
    return about(study, "Middlebury", f"{effort.train_steps} steps", more=f", extractor {effort.extractor}")


def about_training(study: Study) -> str:
    """A description of the weights of all networks, for the pages."""
    steps = f"{study.effort.train_steps} steps (DKN, PMBA: {study.effort.slow_steps})"
    note = ": the order of the networks here means nothing"
    return about(study, "the training part of each data set", steps, note=note)
