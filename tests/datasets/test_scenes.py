"""Scenes gathered from many data sets: every kind, its values, holes, views and unit."""

import json

import numpy as np
import pytest

from dada.datasets import Dataset, load_dataset
from dada.datasets.crops import to_sample
from dada.errors import InputError
from dada.io import write_image

SETS = {  # folder: pairs, quantity, bands, plausible least and greatest value
    "hci_lightfield": (1, "disparity px", 3, (0.8, 6.7)),
    "lu_rgbd": (6, "grey levels", 3, (0, 255)),
    "middlebury_2001": (6, "disparity px", 3, (0.9, 21)),
    "middlebury_2003": (4, "disparity px", 3, (4, 56)),
    "middlebury_2005_2006_half": (5, "depth mm", 3, (1200, 2100)),
    "middlebury_2005_2006_third": (48, "depth mm", 3, (1200, 2900)),
    "middlebury_2005_full": (5, "depth mm", 3, (1290, 2870)),
    "middlebury_2006_full": (1, "depth mm", 3, (1240, 1920)),
    "middlebury_lu30_filled": (27, "grey levels", 3, (0, 255)),
    "nyuv2": (223, "depth mm", 3, (700, 10_000)),
    "pixtransform_middlebury_crops": (2, "grey levels", 3, (71, 160)),
    "pixtransform_vhm": (3, "height m", 4, (0, 44)),
    "sceneflow_sample": (1, "disparity px", 3, (1.2, 131)),
    "sintel": (1, "disparity px", 3, (2.3, 98.3)),
    "tartanair_like_ais2024": (6, "depth mm", 3, (600, 1_000_000)),
    "thermal_pbvs": (10, "grey levels", 3, (0, 255)),
    "tum_rgbd": (1, "depth mm", 3, (980, 8010)),
}
HOLES = {"middlebury_2003", "middlebury_2005_2006_half", "middlebury_2005_2006_third", "middlebury_2006_full"}
HOLES |= {"middlebury_2001", "tartanair_like_ais2024", "tum_rgbd"}


def write_scene(folder, meta, files):
    folder.mkdir(parents=True)
    (folder / "meta.json").write_text(json.dumps(meta))
    for name, values in files.items():
        write_image(folder / name, values)
    return folder


@pytest.fixture
def scene(tmp_path, rng):
    """Write a scene of 8 x 10 with the given truth; give its folder."""

    def make(dataset, truth, name="scene", **meta):
        files = {"rgb.png": rng.integers(0, 256, (8, 10, 3), dtype=np.uint8), **truth}
        return write_scene(tmp_path / "set" / name, {"dataset": dataset, **meta}, files)

    return make


@pytest.mark.parametrize("name", SETS)
class TestReal:
    def test_every_set_is_read_whole(self, data, name):
        dataset = load_dataset(f"scenes:{data / name}")
        count, quantity, bands, (low, high) = SETS[name]
        assert isinstance(dataset, Dataset)
        assert (len(dataset), dataset.quantity, dataset.name) == (count, quantity, name)
        some = [dataset[i] for i in range(0, count, max(1, count // 6))]
        for pair in some:
            values = pair.target[pair.valid]
            assert pair.guide.shape[2] == bands
            assert low <= values.min() <= values.max() <= high
            assert 0.5 < pair.valid.mean() <= 1
        assert (name in HOLES) == any(not pair.valid.all() for pair in some)

    def test_a_crop_of_it_is_a_problem_of_moderate_numbers(self, data, name):
        dataset = load_dataset(f"scenes:{data / name}")
        pair = dataset[0]
        sample = to_sample(pair.cut(64, 64, 128, 128), 8, dataset.unit, "torch")
        assert sample.guide.min() >= 0
        assert sample.guide.max() <= 1
        assert sample.target is not None
        assert sample.target.abs().max() < 20
        assert bool(sample.initial.isfinite().all())


class TestViews:
    def test_both_views_come_with_their_own_truth(self, data):
        dataset = load_dataset(f"scenes:{data}/middlebury_2005_2006_third/Art")
        first, second = dataset[0], dataset[1]
        assert (first.name, second.name) == ("Art", "Art.view5")
        assert edge_agreement(first.guide, first.target) > edge_agreement(second.guide, first.target) + 0.02
        assert edge_agreement(second.guide, second.target) > edge_agreement(first.guide, second.target) + 0.02

    def test_raw_views_with_holes_are_there_when_asked_for(self, data):
        dataset = load_dataset(f"scenes:{data}/middlebury_2005_full?raw=yes")
        assert [dataset[i].name for i in range(len(dataset))] == ["Art.raw"]
        assert not dataset[0].valid.all()


class TestSplits:
    def test_middlebury_and_nyu_follow_the_paper(self, data):
        third = f"scenes:{data}/middlebury_2005_2006_third"
        val = load_dataset(third, "val")
        assert {val[i].name.split(".")[0] for i in range(6)} == {"Moebius", "Lampshade1", "Lampshade2"}
        assert len(load_dataset(third, "train")) == 42
        assert len(load_dataset(third)) == 48  # none is marked as test: the whole set is a bench
        assert [len(load_dataset(f"scenes:{data}/nyuv2", s)) for s in ("train", "val")] == [203, 20]

    def test_scenes_can_be_left_out(self, data):
        third = f"scenes:{data}/middlebury_2005_2006_third"
        rest = load_dataset(f"{third}?without=Art,Books,Dolls,Laundry,Moebius", "train")
        assert len(rest) == 34
        with pytest.raises(InputError, match="no scene Atr"):
            load_dataset(f"{third}?without=Atr")

    def test_scenes_marked_as_test_are_kept_from_training(self, scene):
        truth = {"disp1.png": np.full((8, 10), 50, np.uint8)}
        one = scene("Middlebury 2006", truth, "A", dmin=200, dada_split="paper TEST")
        scene("Middlebury 2006", truth, "B", dmin=200)
        assert [load_dataset(f"scenes:{one.parent}", s)[0].name for s in ("train", "test")] == ["B", "A"]
        with pytest.raises(InputError, match="none of its 2 views belongs to the split 'val'"):
            load_dataset(f"scenes:{one.parent}", "val")


class TestUnits:
    def test_agreed_units_are_used_and_others_measured(self, scene):
        disparity = np.arange(1, 81, dtype=np.uint8).reshape(8, 10)
        old = scene("Middlebury 2001", {"disp2.png": disparity}, gt="disparity = value/8 px")
        dataset = load_dataset(f"scenes:{old}")
        assert dataset.unit == pytest.approx((disparity / 8).std())
        assert dataset.quantity == "disparity px"

    def test_sets_that_differ_come_in_their_own_deviations(self, scene):
        disparity = np.arange(1, 81, dtype=np.uint8).reshape(8, 10)
        one = scene("Middlebury 2001", {"disp2.png": disparity}, "a/one", gt="disparity = value/8 px")
        scene("NYU Depth v2 labeled", {"depth_mm.png": disparity.astype(np.uint16) * 50}, "b/two")
        mixed = load_dataset(f"scenes:{one.parents[1]}")
        assert (mixed.unit, mixed.quantity) == (1.0, "standard deviations")
        assert [mixed[i].name for i in (0, 1)] == ["a/one", "b/two"]
        assert mixed[0].target.std() == pytest.approx(1, rel=1e-5)
        np.testing.assert_allclose(mixed[1].target, disparity * (50 / 1386.05), rtol=1e-6)

    def test_all_gathered_sets_can_be_mixed(self, data):
        mixed = load_dataset(f"scenes:{data}", "train")
        assert len(mixed) == 371
        assert mixed.unit == 1


class TestConversions:
    def test_dmin_comes_from_its_file_before_the_estimate(self, scene):
        truth = {"disp1.png": np.full((8, 10), 100, np.uint8)}
        folder = scene("Middlebury 2005/2006", truth, dmin_estimate=255)
        assert load_dataset(f"scenes:{folder}")[0].target[0, 0] == pytest.approx(3740 * 160 / 355)
        (folder / "dmin.txt").write_text("230")
        assert load_dataset(f"scenes:{folder}")[0].target[0, 0] == pytest.approx(3740 * 160 / 330)

    @pytest.mark.parametrize(
        ("dataset", "file", "stored", "gt", "expected"),
        [
            ("Middlebury 2001", "disp2.png", np.uint8([0, 16, 40]), "disparity = value/16 px", [np.nan, 1, 2.5]),
            ("TUM RGB-D style", "depth.png", np.uint16([0, 5000, 40]), "metres = value/5000", [np.nan, 1000, 8]),
            ("NYU Depth v2", "depth_mm.png", np.uint16([0, 713, 9990]), "", [np.nan, 713, 9990]),
            ("PBVS thermal image", "thermal.png", np.uint8([0, 3, 255]), "", [0, 3, 255]),
            ("SceneFlow", "disp_left.pfm", np.float32([-2, -130, np.inf]), "", [2, 130, np.nan]),
            ("HCI 4D light field", "gt_disp_lowres.pfm", np.float32([-3.5, 0, 2]), "", [0.5, 4, 6]),
        ],
    )
    def test_stored_values_become_values_with_a_unit(self, scene, dataset, file, stored, gt, expected):
        truth = np.full((8, 10), stored[-1], stored.dtype)
        truth[0, :3] = stored
        folder = scene(dataset, {file: truth}, gt=gt)
        np.testing.assert_allclose(load_dataset(f"scenes:{folder}")[0].target[0, :3], expected, rtol=1e-6)

    def test_the_sky_is_a_hole(self, scene):
        depth = np.full((8, 10), 2.5, np.float32)
        depth[0, 0] = 65504
        folder = scene("AIS 2024 depth", {})
        np.savez(folder / "depth.npz", depth=depth)
        pair = load_dataset(f"scenes:{folder}")[0]
        assert np.isnan(pair.target[0, 0])
        assert pair.target[1, 1] == 2500

    def test_pickled_arrays_are_never_loaded(self, scene):
        folder = scene("AIS 2024 depth", {})
        np.savez(folder / "depth.npz", depth=np.array([{"a": 1}], dtype=object))
        with pytest.raises(InputError, match="not numbers"):
            load_dataset(f"scenes:{folder}")[0]


class TestMistakes:
    def test_a_folder_without_scenes(self, tmp_path):
        with pytest.raises(InputError, match=r"no scene in it.*meta\.json"):
            load_dataset(f"scenes:{tmp_path}")
        with pytest.raises(InputError, match="not a folder"):
            load_dataset(f"scenes:{tmp_path / 'nowhere'}")

    def test_an_unknown_data_set(self, scene):
        with pytest.raises(InputError, match=r"'Elsewhere' is unknown.*'Middlebury 2001'"):
            load_dataset(f"scenes:{scene('Elsewhere', {})}")

    def test_missing_truth(self, scene):
        with pytest.raises(InputError, match=r"disp1_filled\.png or disp1\.png or disp5\.png was looked for"):
            load_dataset(f"scenes:{scene('Middlebury 2005', {}, dmin=200)}")

    def test_missing_scales(self, scene):
        truth = np.ones((8, 10), np.uint8)
        with pytest.raises(InputError, match="neither dmin nor dmin_estimate"):
            load_dataset(f"scenes:{scene('Middlebury 2005', {'disp1.png': truth})}")[0]
        with pytest.raises(InputError, match="value/NUMBER"):
            load_dataset(f"scenes:{scene('Middlebury 2001', {'disp2.png': truth}, 'other')}")[0]

    def test_a_damaged_description(self, scene):
        folder = scene("Middlebury 2005", {})
        (folder / "meta.json").write_text("{")
        with pytest.raises(InputError, match="JSON"):
            load_dataset(f"scenes:{folder}")

    def test_an_unknown_answer(self, scene):
        with pytest.raises(InputError, match="use yes or no"):
            load_dataset(f"scenes:{scene('Middlebury 2005', {})}?raw=maybe")


def edge_agreement(guide, target):
    """Correlation of the strengths of edges, about 0 for images of different views."""
    grey = guide.mean(axis=2)
    depth = np.nan_to_num(np.log(target), nan=np.nanmean(np.log(target)))
    strengths = [np.log1p(np.hypot(*np.gradient(image)) / scale) for image, scale in ((grey, 4), (depth, 0.01))]
    return np.corrcoef(strengths[0].ravel(), strengths[1].ravel())[0, 1]
