"""Both schemes of DADA and every other network learn through the same loop."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from dada.models.dada import DADA
from dada.models.model import data_unit_of
from dada.models.registry import NETWORKS, load_method
from dada.sample import Sample
from dada.training import DataConfig, LossConfig, TrainConfig, ValidationConfig, train
from dada.training.data import Batches
from dada.training.loss import loss
from dada.training.networks import build, training_forward
from dada.training.report import Report

UNROLLED = {"scheme": "unrolled", "pre_steps": 300, "grad_steps": 48}
NOTHING = ValidationConfig(size=32)
SMALL_NETWORKS = {
    "dada": {"extractor": "light", "features": 8},
    "msg": {"factor": 4},
    "dkn": {},
    "fdkn": {},
    "pmba": {"factor": 4, "base": 8, "feat": 8},
    "fdsr": {"features": 8},
    "lgr": {"features": "light", "channels": 8, "strength": 0.01},
}


@pytest.fixture
def batch(small: TrainConfig) -> Sample:
    return Batches(replace(small, factors=(4,)))[0]


def gradient(network: DADA, sample: Sample, config: TrainConfig) -> torch.Tensor:
    network.zero_grad()
    loss(training_forward(network, sample, config), sample, LossConfig()).backward()
    assert all(parameter.grad is not None for parameter in network.parameters())
    return torch.cat([parameter.grad.flatten() for parameter in network.parameters()])


def test_unrolled_draws_the_steps_without_gradient_anew_for_each_batch(small: TrainConfig, batch: Sample, monkeypatch):
    seen = []

    def forward(network, sample, **how):
        seen.append(how)
        return sample.initial

    monkeypatch.setattr(DADA, "forward", forward)
    config = replace(small, **UNROLLED)
    network = build(config)
    torch.manual_seed(0)
    for _ in range(4000):
        training_forward(network, batch, config)
    assert {how["n_grad"] for how in seen} == {48}
    assert {how["n_pre"] for how in seen} == set(range(300))  # 0 included, 300 not, as in the released code
    seen.clear()
    for _ in range(5):
        training_forward(network, batch, replace(config, constant_steps=True))
    assert {how["n_pre"] for how in seen} == {300}


def test_unrolled_gradients_reach_every_weight_and_near_the_implicit_ones_with_more_steps(
    small: TrainConfig, batch: Sample
):
    torch.manual_seed(0)
    network = build(small)
    implicit = gradient(network, batch, small)
    assert implicit.isfinite().all()
    likeness = []
    for steps in (2, 64, 1024):
        config = replace(small, **UNROLLED | {"pre_steps": 2000, "grad_steps": steps})
        unrolled = gradient(network, batch, config)
        assert unrolled.abs().sum() > 0
        likeness.append(torch.cosine_similarity(unrolled, implicit, dim=0).item())
    assert likeness[0] < likeness[1] < likeness[2]
    assert likeness[2] > 0.99


@pytest.mark.parametrize("scheme", [{"scheme": "implicit"}, UNROLLED], ids=["implicit", "unrolled"])
def test_the_loss_falls_by_both_schemes(small: TrainConfig, scheme: dict, monkeypatch):
    losses: list[float] = []
    monkeypatch.setattr(Report, "step", lambda report, step, value, *rest: losses.append(value))
    one_scene = (DataConfig(dataset="painted:1,1", augmentation="none"),)
    train(replace(small, **scheme, data=one_scene, factors=(4,), batch=(1,), steps=25, validation=NOTHING))
    assert len(losses) == 25
    assert sum(losses[-5:]) < 0.8 * sum(losses[:5])


@pytest.mark.parametrize("method", NETWORKS)
def test_every_network_is_trained_by_the_same_command(small: TrainConfig, method: str):
    assert set(SMALL_NETWORKS) == set(NETWORKS)
    settings = SMALL_NETWORKS[method]
    config = replace(small, method=method, network=settings, factors=(4,), batch=(1,), steps=2, validation=NOTHING)
    before = build(config).state_dict()
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a network that is not solved for, a loss that is no number
        best = train(config)
    trained = load_method(f"{method}:{best}")
    moved = [not torch.equal(value, before[name]) for name, value in trained.state_dict().items()]
    assert sum(moved) > len(moved) / 3
    assert trained(Batches(config)[5]).isfinite().all()
    unit = data_unit_of(trained)  # of those that need one, the data's is stored with the weights
    assert unit is None if method not in ("dada", "lgr") else unit.deviation == 1122.7


def test_the_unit_of_the_data_is_known_where_all_have_the_same(small: TrainConfig):
    assert Batches(small).unit == (2296.78, 1122.7)
    for change in ({"own_unit": True}, {"power": (-1.0, 1.0)}):
        assert Batches(replace(small, data=(*small.data, DataConfig(dataset="painted:3", **change)))).unit is None


def test_a_run_leaves_the_files_that_the_guide_names(small: TrainConfig):
    train(replace(small, steps=1, validation=NOTHING))
    files = {path.name for path in Path(small.output).iterdir()}
    assert files == {"config.toml", "last.pt", "best.safetensors", "curves"}
