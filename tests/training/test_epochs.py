"""Training as in the released code: epochs, validation, and what `augmentation = "paper"` refuses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from dada.errors import InputError
from dada.models.dada import DADA
from dada.sample import Sample
from dada.training import DataConfig, TrainConfig, ValidationConfig, train
from dada.training.constant_start import from_constant
from dada.training.data import load
from dada.training.epochs import Epochs, PublishedValidation, crops_of
from dada.training.networks import build
from dada.training.processes import Processes


@pytest.fixture
def published(small: TrainConfig) -> TrainConfig:
    """Five painted images in batches of two: three steps an epoch."""
    return replace(
        small,
        data=(DataConfig(dataset="painted:1,5", augmentation="paper"),),
        factors=(4,),
        steps=7,
        average=0.0,
        validation=ValidationConfig(data=("painted:3,5?size=32",), crops=0, size=32, every=3, interpolation="torch"),
    )


class Off(nn.Module):
    """Wrong by a constant, in units of the data set."""

    def __init__(self, by: float) -> None:
        super().__init__()
        self.by = by

    def forward(self, sample: Sample) -> torch.Tensor:
        return sample.target + self.by


def test_an_epoch_takes_every_image_once_in_a_new_order_and_ends_with_a_smaller_batch(published: TrainConfig):
    epochs = Epochs(published, Processes())
    assert epochs.length == 3
    orders = [[image for step in range(3 * n, 3 * n + 3) for image in epochs.images(step)] for n in range(4)]
    assert all(sorted(order) == [0, 1, 2, 3, 4] for order in orders)
    assert len({tuple(order) for order in orders}) > 1
    assert [len(epochs[step]) for step in range(6)] == [2, 2, 1, 2, 2, 1]


def test_a_batch_depends_on_seed_and_step_alone(published: TrainConfig):
    one, other = Epochs(published, Processes()), Epochs(published, Processes())
    [other[step] for step in (5, 1)]
    assert torch.equal(one[4].guide, other[4].guide)
    assert torch.equal(one[4].target, other[4].target)
    later = [batch.names for batch in load(one, 4)]
    assert later == [one[step].names for step in (4, 5, 6)]


def test_rules_follow_the_data_set():
    assert crops_of("nyuv2:data").interior
    assert crops_of("diml:data").interior
    assert not crops_of("middlebury:data").interior
    assert not crops_of("folder:data").interior


def test_validation_covers_the_whole_split_and_judges_by_l1(published: TrainConfig):
    wide = replace(published, validation=replace(published.validation, data=("painted:3,5?size=64",)))
    validation = PublishedValidation(wide, Processes())
    assert len(validation._sets[0].fixed) == 20  # four crops of each image
    for by in (0.5, 0.01):
        shares = validation(Off(by), step=3)
        assert validation.score(shares) == pytest.approx(by, rel=1e-4)
    assert set(shares) == {"painted x4 mse", "painted x4 mae"}


def test_validation_averages_over_batches_not_pixels(published: TrainConfig):
    """A single image in the last batch weighs as much as the two of another batch."""

    class OneWrong(nn.Module):
        def forward(self, sample: Sample) -> torch.Tensor:
            return sample.target + float(sample.names[0].startswith("painted-3-0"))

    validation = PublishedValidation(published, Processes())
    found = set()
    for step in range(30):
        found.add(round(validation.score(validation(OneWrong(), step)), 3))
    assert found == {round(1 / 6, 3), round(1 / 3, 3)}  # by whether it is alone in the last of three batches


def test_the_interior_is_validated_on_other_random_crops_each_time(published: TrainConfig):
    validation = PublishedValidation(published, Processes())
    split = validation._sets[0]
    split.crops, split.fixed = crops_of("nyuv2:"), []
    split.pairs.painted[32] = replace(split.pairs.dataset, size=(96, 96))
    first, again, later = (validation(Off(0.1), step) for step in (3, 3, 6))
    assert first == again != later


def test_such_a_training_runs_resumes_and_keeps_the_least_l1(published: TrainConfig, tmp_path):
    whole = train(replace(published, output=str(tmp_path / "whole")))
    for minutes in (1e-6, 0):  # a single step, then the rest
        parts = train(replace(published, output=str(tmp_path / "parts"), minutes=minutes))
    one, other = (DADA.load(path).state_dict() for path in (whole, parts))
    assert all(torch.equal(one[name], other[name]) for name in one)
    best = torch.load(tmp_path / "parts" / "last.pt", weights_only=True)["progress"]["best"]
    validation = PublishedValidation(published, Processes())
    assert best == pytest.approx(min(validation.score(validation(DADA.load(whole), step)) for step in (3, 6, 7)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"zoom": (1.0, 2.0)}, "without zoom"),
        ({"sensor": 0.5, "weight": 2.0}, "without weight, sensor"),
    ],
)
def test_what_the_released_code_does_not_do_is_refused(change, message):
    with pytest.raises(InputError, match=message):
        DataConfig(dataset="painted:1", augmentation="paper", **change)


def test_several_data_sets_factors_processes_or_part_of_a_split_are_refused(published: TrainConfig):
    with pytest.raises(InputError, match="one data set at one factor, got 2 and 1"):
        replace(published, data=(*published.data, DataConfig(dataset="painted:2")))
    with pytest.raises(InputError, match="one data set at one factor, got 1 and 2"):
        replace(published, factors=(4, 8))
    with pytest.raises(InputError, match=r"validation.crops is 3.*Set it to 0"):
        replace(published, validation=replace(published.validation, crops=3))
    with pytest.raises(InputError, match="one process"):
        Epochs(published, Processes(0, 2))


def test_a_constant_start_is_trained_with_and_forgotten_in_the_weights(small: TrainConfig):
    config = replace(small, scheme="unrolled", pre_steps=0, grad_steps=1, initial="constant", factors=(8,), average=0.0)
    network = build(config)
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    sample = Epochs(replace(config, data=(DataConfig(dataset="painted:1,5", augmentation="paper"),),
                            validation=ValidationConfig()), Processes())[int(rng.integers(3))]  # fmt: skip
    plain = DADA(network.config)
    plain.load_state_dict(network.state_dict())
    settings = {"solver": "iterate", "n_pre": 0, "n_grad": 1}
    with torch.no_grad():
        first = network(sample, **settings)
    cells = first.unfold(2, 8, 8).unfold(3, 8, 8)
    assert float(cells.std(dim=(-2, -1)).max()) < 1e-5  # a constant diffuses to itself: each source pixel repeated
    assert not torch.allclose(first, plain(sample, **settings))
    torch.testing.assert_close(from_constant(plain)(sample, **settings), first)


def test_a_constant_start_needs_the_loop(small: TrainConfig):
    with pytest.raises(InputError, match=r'initial "constant".*scheme "unrolled"'):
        replace(small, initial="constant")
