from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from dada.datasets.painted import Painted
from dada.datasets.pair import Pair
from dada.datasets.register import move
from dada.diffusion import down
from dada.errors import InputError
from dada.sample import Sample
from dada.scene import render
from dada.training import DataConfig, TrainConfig
from dada.training.data import DEVIATION, Batches, Pairs, load, sample_of, without


def assert_equal(one: Sample, other: Sample) -> None:
    assert one.names == other.names
    for name in ("guide", "source", "source_mask", "initial", "target", "target_mask"):
        assert torch.equal(getattr(one, name), getattr(other, name)), name


def test_batch_depends_on_seed_and_step_alone(small: TrainConfig):
    one, other = Batches(small), Batches(small)
    batch = one[7]
    [other[step] for step in (3, 7, 1)]
    assert_equal(batch, other[7])
    assert batch.names != one[8].names
    assert batch.names != Batches(replace(small, seed=1))[7].names


def test_workers_give_the_same_batches_in_order_and_end_with_the_training_alone(small: TrainConfig):
    small = replace(small, steps=5)
    alone = list(load(Batches(small), 2))
    told: set[int] = set()
    teller = threading.Thread(target=tell_workers_to_end, args=(2, told))
    teller.start()
    helped = list(load(Batches(replace(small, workers=2)), 2))
    teller.join()
    assert len(told) == 2
    assert len(alone) == len(helped) == 3
    for one, other in zip(alone, helped, strict=True):
        assert_equal(one, other)


def tell_workers_to_end(count: int, told: set[int]) -> None:
    """As Ctrl-C would in their first moments, when they are still importing."""
    while len(told) < count:
        for worker in multiprocessing.active_children():
            if worker.pid not in told:
                os.kill(worker.pid, signal.SIGINT)
                os.kill(worker.pid, signal.SIGTERM)
                told.add(worker.pid)
        time.sleep(0.01)


def test_processes_share_the_samples_of_a_larger_batch(small: TrainConfig):
    whole = Batches(replace(small, batch=(4,)))
    for step in range(3):
        assert_equal(whole[step], Sample.batch([Batches(small, rank)[step] for rank in (0, 1)]))


def test_each_factor_has_its_crop_and_batch(small: TrainConfig):
    batches = Batches(replace(small, factors=(4, 16), crop=(32, 64), batch=(3, 1)))
    seen = {(batch.factor, batch.size, len(batch)) for batch in map(batches.__getitem__, range(12))}
    assert seen == {(4.0, (32, 32), 3), (16.0, (64, 64), 1)}


def test_each_step_has_one_way_of_making_sources(small: TrainConfig):
    batches = Batches(replace(small, sampling=("mean", "point:0,0")))
    drawn = {str(batches[step].sampling): batches[step] for step in range(8)}
    assert drawn.keys() == {"mean", "point:0,0"}
    points = drawn["point:0,0"]
    assert points.target is not None
    factor = int(points.factor)
    assert torch.equal(points.source, points.target[..., ::factor, ::factor] * points.source_mask)


def test_data_sets_are_drawn_by_weight(small: TrainConfig):
    data = (DataConfig(dataset="painted:1", weight=3), DataConfig(dataset="painted:2"))
    batches = Batches(replace(small, data=data, crop=(16,), batch=(50,)))
    first = sum(name.startswith("painted-1-") for step in range(2) for name in batches[step].names)
    assert 60 <= first <= 90


def test_weights_of_zero_are_refused(small: TrainConfig):
    with pytest.raises(InputError, match="weights of all data sets are 0"):
        Batches(replace(small, data=(DataConfig(dataset="painted:1", weight=0),)))


def test_scenes_are_left_out_by_an_option_of_the_data_set():
    assert without("scenes:a", ("Art", "Books")) == "scenes:a?without=Art,Books"
    assert without("scenes:a?raw=yes", ("Art",)) == "scenes:a?raw=yes&without=Art"
    assert without("scenes:a", ()) == "scenes:a"


def test_guides_that_lie_beside_their_targets_are_moved_back_if_asked(small: TrainConfig, tmp_path: Path):
    scene = render(96, 128)
    beside = move(scene.guide, 0.0, -1.0)  # a pixel to the right
    np.save(tmp_path / "a_guide.npy", beside)
    np.save(tmp_path / "a_depth.npy", scene.depth)

    def error(**options: bool) -> float:
        data = (DataConfig(dataset=f"folder:{tmp_path}", augmentation="none", **options),)
        batches = Batches(replace(small, data=data))
        right = Batches(replace(small, data=data))
        right._origins[0].kept[0] = replace(batches._origins[0].dataset[0], guide=scene.guide)
        return float((batches[0].guide - right[0].guide).abs().mean())

    assert error(register=True) < 0.6 * error()


def test_powers_change_the_targets_and_nothing_else(small: TrainConfig):
    entry = DataConfig(dataset="painted:1", augmentation="none")
    plain, raised = (Batches(replace(small, data=(replace(entry, power=power),)))[3] for power in ((1, 1), (2, 2)))
    assert torch.equal(plain.guide, raised.guide)
    assert not torch.allclose(plain.source, raised.source)
    for one, other in zip(plain.target, raised.target, strict=True):
        middle = one.median()
        torch.testing.assert_close(other, one.square() / middle, rtol=0.02, atol=1e-4)


def test_a_power_range_without_meaning_is_refused():
    with pytest.raises(InputError, match="power of painted:1"):
        DataConfig(dataset="painted:1", power=(3.0, 1.0))


def test_ragged_outlines_take_depths_from_nearby_and_leave_the_guide(small: TrainConfig):
    entry = DataConfig(dataset="painted:1", augmentation="none")
    changed = 0
    for step in range(4):
        plain, ragged = (Batches(replace(small, data=(replace(entry, ragged=px),)))[step] for px in (0.0, 1.5))
        torch.testing.assert_close(plain.guide, ragged.guide, rtol=0, atol=1e-6)
        for one, other in zip(plain.target, ragged.target, strict=True):
            moved = (one != other).float().mean()
            changed += bool(moved > 0)
            assert {float(x) for x in other.flatten()} <= {float(x) for x in one.flatten()}  # no new depth arises
        size = (plain.source.shape[-2], plain.source.shape[-1])
        torch.testing.assert_close(down(ragged.target, size), ragged.source, rtol=1e-5, atol=1e-5)
    assert changed  # some samples are left as they are


def test_a_ragged_outline_of_less_than_nothing_is_refused():
    with pytest.raises(InputError, match="ragged of painted:1"):
        DataConfig(dataset="painted:1", ragged=-1.0)


def test_in_its_own_unit_a_far_scene_weighs_no_more_than_a_near_one(small: TrainConfig):
    entry = DataConfig(dataset="painted:1?far=1.0", augmentation="none", own_unit=True)
    plain, own = (Batches(replace(small, data=(replace(entry, own_unit=way),)))[2] for way in (False, True))
    assert torch.equal(plain.guide, own.guide)
    for before, after, known in zip(plain.target, own.target, own.target_mask, strict=True):
        assert float(after[known].std(correction=0)) == pytest.approx(DEVIATION, rel=1e-3)
        torch.testing.assert_close(after[known] / after[known].max(), before[known] / before[known].max())
    size = (own.source.shape[-2], own.source.shape[-1])
    whole = own.target_mask.flatten(1).all(dim=1)
    torch.testing.assert_close(down(own.target, size)[whole], own.source[whole], rtol=1e-4, atol=1e-5)


def test_each_batch_has_its_own_bands_and_place_of_points(small: TrainConfig):
    wide = replace(small, bands=(1, 3, 4), sampling=("mean", "point:any"))
    batches = [Batches(wide)[step] for step in range(12)]
    assert {batch.guide.shape[1] for batch in batches} == {1, 3, 4}
    places = [batch.sampling.offset for batch in batches if batch.sampling.kind == "point"]
    assert len(set(places)) == len(places) > 2


def test_gaps_take_cells_of_the_source_and_leave_the_target(small: TrainConfig):
    (entry, _) = small.data
    whole, gaps = (Batches(replace(small, data=(replace(entry, gaps=share),), factors=(4,))) for share in (0.0, 1.0))
    shares = []
    for step in range(6):
        one, other = whole[step], gaps[step]
        assert torch.equal(one.target, other.target)
        assert bool((other.source[~other.source_mask] == 0).all())
        assert torch.equal(other.source[other.source_mask], one.source[other.source_mask])
        assert bool(other.initial.isfinite().all())
        shares.append(float(other.source_mask.float().mean()))
    assert min(shares) < 0.7
    assert max(shares) < 1


def test_a_resized_source_has_no_holes_and_its_truth_keeps_them():
    pair = Painted(seed=2, size=(64, 64))[0]
    depth = pair.target.copy()
    depth[::9, ::9] = np.nan
    sample = sample_of(replace(pair, target=depth), 16, 1000.0, "torch", "bicubic")
    assert bool(sample.source_mask.all())
    assert torch.equal(sample.target_mask[0, 0], torch.from_numpy(np.isfinite(depth)))
    assert not sample.target[~sample.target_mask].any()
    full = sample_of(pair, 16, 1000.0, "torch", "bicubic")
    torch.testing.assert_close(sample.source, full.source, rtol=0.05, atol=0)


def test_data_without_any_measured_cell_are_told(small: TrainConfig, monkeypatch):
    batches = Batches(replace(small, data=small.data[:1], sampling=("point",)))
    empty = np.full((32, 32), np.nan, np.float32)
    monkeypatch.setattr(Pairs, "pair", lambda pairs, index, size: Pair(np.zeros((32, 32, 3), np.uint8), empty, "empty"))
    with pytest.raises(InputError, match="had no measured cell at x4"):
        batches.sample(0, 0, 4)
