"""Loss, schedule, average, validation."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn

from dada.datasets.crops import to_sample
from dada.datasets.painted import Painted
from dada.sample import Sample
from dada.training import LossConfig, ScheduleConfig, TrainConfig
from dada.training.average import Average
from dada.training.loss import loss, near_jumps
from dada.training.processes import Processes
from dada.training.schedule import learning_rate
from dada.training.validation import Validation, score


@pytest.fixture(scope="module")
def sample() -> Sample:
    painted = Painted(seed=5, size=(32, 32))
    return to_sample([painted[0], painted[1]], 8, painted.unit, "torch")


class Bicubic(nn.Module):
    def forward(self, sample: Sample) -> torch.Tensor:
        return sample.initial


class Perfect(nn.Module):
    def forward(self, sample: Sample) -> torch.Tensor:
        return sample.target


def test_paper_loss_is_ten_times_l1_over_valid_pixels(sample: Sample):
    mask = sample.target_mask.clone()
    mask[..., :5, :] = False
    holed = replace(sample, target_mask=mask)
    expected = 10 * (sample.initial - sample.target)[mask].abs().mean()
    assert loss(sample.initial, holed, LossConfig()).item() == pytest.approx(expected.item(), rel=1e-5)


@pytest.mark.parametrize("mse", [0.0, 0.4, 1.0])
def test_relative_loss_of_bicubic_on_one_image_is_its_scale(sample: Sample, mse: float):
    config = LossConfig(mse=mse, relative=True, scale=3, jump_weight=2)
    assert loss(sample[0].initial, sample[0], config).item() == pytest.approx(3, rel=1e-5)


def test_loss_of_a_batch_without_valid_pixels_is_zero(sample: Sample):
    empty = replace(sample, target_mask=torch.zeros_like(sample.target_mask))
    assert loss(sample.initial, empty, LossConfig(relative=True)).item() == 0


def test_pixels_within_two_of_a_jump_weigh_more(sample: Sample):
    target = torch.zeros(1, 1, 8, 8)
    target[..., 4:] = 1
    step = replace(sample[0], target=target, target_mask=torch.ones_like(target, dtype=torch.bool))
    near = near_jumps(step, 0.5)[0, 0]
    assert near.all(dim=0).tolist() == [False, False, True, True, True, True, False, False]
    assert near.any(dim=0).tolist() == near.all(dim=0).tolist()


def test_step_schedule_is_the_papers():
    config = TrainConfig(schedule=ScheduleConfig(every=10), learning_rate=1.0)
    assert [learning_rate(step, config) for step in (0, 9, 10, 20)] == pytest.approx([1, 1, 0.9, 0.81])


def test_cosine_schedule_warms_up_and_ends_at_its_floor():
    config = TrainConfig(schedule=ScheduleConfig(kind="cosine", warmup=9, floor=0.1), learning_rate=1.0, steps=1000)
    rates = [learning_rate(step, config) for step in range(1000)]
    assert rates[0] == pytest.approx(0.1, rel=0.01)
    assert max(rates) == pytest.approx(1, rel=0.01)
    assert rates[500] == pytest.approx(0.55, rel=0.01)
    assert rates[-1] == pytest.approx(0.1, rel=0.01)


def test_average_follows_the_weights():
    network = nn.Linear(1, 1)
    average = Average(network, 0.9)
    with torch.no_grad():
        network.weight += 1
    before = average.network.weight.item()
    average.follow(network, 1000)
    assert average.network.weight.item() == pytest.approx(before + 0.1, rel=1e-4)


def test_average_without_decay_is_the_network():
    network = nn.BatchNorm1d(3)
    average = Average(network, 0.0)
    network(torch.randn(4, 3))
    average.follow(network, 0)
    assert all(torch.equal(a, b) for a, b in zip(average.network.buffers(), network.buffers(), strict=True))


def test_validation_is_a_share_of_bicubics_error(small: TrainConfig):
    validation = Validation(small, Processes())
    assert set(validation(Perfect())) == {"painted x8 mse", "painted x8 mae"}
    assert score(validation(Perfect())) == 0
    assert score(validation(Bicubic()), "mae") == pytest.approx(1)
    assert score({}) == float("inf")
