"""An effort so small that every experiment runs in seconds."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from dada.reproduce.effort import SMALL
from dada.reproduce.study import Study

MICRO = replace(
    SMALL, size=64, crops=1, network_crops=1, probes=1, factors=(4, 8), network_factors=(8,), pixt_iterations=2,
    networks=("fdkn", "dada"),
    train_steps=2, slow_steps=1, ablation_steps=2, train_crop=32, train_batch=1, extractors=("light", "lite0"),
    backbone="light", loop_steps=(8, 64), test_steps=64, grad_steps=(1, 2), pre_steps=(0, 4), grad=1, pre=4,
    figure_factors=(8,), qualitative_factors=(8,), memory_crop=32, memory_batch=1, repeats=1, seeds=2,
)  # fmt: skip


@pytest.fixture(scope="session")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for all, so that trainings and results are shared as they are in use."""
    return tmp_path_factory.mktemp("reproduce")


@pytest.fixture
def study(output: Path):
    """Makes the study of a name on painted scenes."""
    torch.set_num_threads(1)
    return lambda name, **options: Study(name, output, MICRO, **options)
