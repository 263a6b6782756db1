"""Published data sets in their true file formats, laid out small."""

import json
import pickle
from pathlib import Path

import h5py
import numpy as np
import pytest

from dada.datasets import Dataset, load_dataset
from dada.datasets.middlebury import TEST, VAL
from dada.errors import InputError
from dada.io import write_image

SPLIT = {"train": [0, 3], "val": [2], "test": [4, 1]}


def picture(rng, height=12, width=16):
    return rng.integers(0, 256, (height, width, 3), dtype=np.uint8)


def write_pfm(path: Path, values: np.ndarray) -> None:
    """As Middlebury writes it: little-endian, the bottom row first."""
    path.write_bytes(b"Pf\n%d %d\n-1\n" % values.shape[::-1] + np.flipud(values).astype("<f4").tobytes())


@pytest.fixture
def middlebury(tmp_path, rng):
    old = ["2005/Art", "2006/Aloe", *(f"{y}/{s}" for y, s in TEST | VAL if y != "2014")]
    for scene in old:
        folder = tmp_path / "Middlebury" / scene
        folder.mkdir(parents=True)
        for view, disparity in (("view1", "disp1"), ("view5", "disp5")):
            write_image(folder / f"{view}.png", picture(rng))
            values = rng.integers(40, 200, (12, 16), dtype=np.uint8)
            values[0, :3] = 0
            write_image(folder / f"{disparity}.png", values)
        (folder / "dmin.txt").write_text("200\n")
    for scene in ("Pipes-perfect", "Pipes-imperfect", *(s for y, s in TEST | VAL if y == "2014")):
        folder = tmp_path / "Middlebury" / "2014" / scene
        folder.mkdir(parents=True)
        for number in (0, 1):
            write_image(folder / f"im{number}.png", picture(rng))
            values = np.full((12, 16), 100.5, np.float32)
            values[0, 0], values[-1, -1] = np.inf, 50
            write_pfm(folder / f"disp{number}.pfm", values)
        (folder / "calib.txt").write_text(
            "cam0=[3979.911 0 1244.772; 0 3979.911 1019.507; 0 0 1]\n"
            "cam1=[3979.911 0 1369.115; 0 3979.911 1019.507; 0 0 1]\n"
            "doffs=124.343\nbaseline=193.001\nwidth=2964\nheight=2016\nndisp=270\n"
        )
    return tmp_path


@pytest.fixture
def nyuv2(tmp_path, rng):
    folder = tmp_path / "NYU Depth v2"
    folder.mkdir()
    images, depths = rng.integers(0, 256, (5, 24, 32, 3), dtype=np.uint8), rng.uniform(1, 9, (5, 24, 32))
    with h5py.File(folder / "nyu_depth_v2_labeled.mat", "w", userblock_size=512) as file:
        file["images"] = images.transpose(0, 3, 2, 1)  # MATLAB's order of axes
        file["depths"] = depths.astype(np.float32).transpose(0, 2, 1)
    (folder / "split_idc_nyuv2.json").write_text(json.dumps(SPLIT))
    return tmp_path, images, depths


@pytest.fixture
def diml(tmp_path, rng):
    for part, scene, count in (("train", "bath", 11), ("train", "shop", 10), ("test", "cafe", 2)):
        folder = tmp_path / "DIML" / part / "HR" / scene
        (folder / "color").mkdir(parents=True)
        (folder / "depth_filled").mkdir()
        for frame in range(count):
            size = (756, 1344) if frame == 0 else (54, 96)
            write_image(folder / "color" / f"in_k_{frame:02d}_c.png", np.full((*size, 3), frame, np.uint8))
            depth = np.full(size, 1000 + frame, np.uint16)
            depth[: size[0] // 2] = 0
            write_image(folder / "depth_filled" / f"in_k_{frame:02d}_depth_filled.png", depth)
    return tmp_path


def names(dataset):
    return {dataset[i].name for i in range(len(dataset))}


class TestMiddlebury:
    def test_splits_are_the_papers_with_both_views(self, middlebury):
        assert names(load_dataset(f"middlebury:{middlebury}")) == {
            *("Reindeer", "Bowling1", "Bowling2", "Reindeer.view5", "Bowling1.view5", "Bowling2.view5"),
            *("Adirondack-perfect", "Motorcycle-perfect", "Adirondack-perfect.im1", "Motorcycle-perfect.im1"),
        }
        assert len(load_dataset(f"middlebury:{middlebury}", "val")) == 10
        train = names(load_dataset(f"middlebury:{middlebury}", "train"))
        assert train == {"Art", "Art.view5", "Aloe", "Aloe.view5", "Pipes-perfect", "Pipes-perfect.im1"}

    def test_disparity_becomes_millimetres_and_zero_a_hole(self, middlebury):
        import cv2

        pair = load_dataset(f"middlebury:{middlebury}", "train")[0]
        stored = cv2.imread(str(middlebury / "Middlebury/2005/Art/disp1.png"), cv2.IMREAD_UNCHANGED)
        assert pair.target.dtype == np.float32
        assert np.isnan(pair.target[0, :3]).all()
        assert pair.valid.sum() == 12 * 16 - 3
        np.testing.assert_allclose(pair.target[1:], 3740 * 160 / (stored[1:] + 200.0), rtol=1e-6)

    def test_2014_uses_its_calibration_and_infinity_is_a_hole(self, middlebury):
        dataset = load_dataset(f"middlebury:{middlebury}/Middlebury")  # the inner folder will do as well
        pair = next(p for p in (dataset[i] for i in range(len(dataset))) if p.name == "Adirondack-perfect")
        assert np.isnan(pair.target[0, 0])
        assert pair.valid.sum() == 12 * 16 - 1
        assert pair.target[5, 5] == pytest.approx(3979.911 * 193.001 / (100.5 + 124.343), rel=1e-6)
        assert pair.target[-1, -1] == pytest.approx(3979.911 * 193.001 / (50 + 124.343), rel=1e-6)

    def test_scenes_published_without_truth_are_passed_over(self, middlebury, rng):
        folder = middlebury / "Middlebury/2005/Dwarves"
        folder.mkdir()
        write_image(folder / "view1.png", picture(rng))
        assert len(load_dataset(f"middlebury:{middlebury}", "train")) == 6

    @pytest.mark.parametrize(
        "lost", ["2006/Bowling2/view5.png", "2005/Reindeer/disp1.png", "2014/Motorcycle-perfect/im0.png"]
    )
    def test_a_missing_file_is_named(self, middlebury, lost):
        (middlebury / "Middlebury" / lost).unlink()
        with pytest.raises(InputError, match=rf"{Path(lost).name} is missing.*vision.middlebury.edu"):
            load_dataset(f"middlebury:{middlebury}")

    def test_a_calibration_without_offset_is_refused(self, middlebury):
        (middlebury / "Middlebury/2014/Motorcycle-perfect/calib.txt").write_text("cam0=[1.0 0 0]\nbaseline=3\n")
        dataset = load_dataset(f"middlebury:{middlebury}")
        with pytest.raises(InputError, match="doffs"):
            names(dataset)


class TestNyuv2:
    @pytest.mark.parametrize("split", SPLIT)
    def test_frames_are_those_of_the_index_upright_and_in_millimetres(self, nyuv2, split):
        root, images, depths = nyuv2
        dataset = load_dataset(f"nyuv2:{root}", split)
        assert [dataset[i].name for i in range(len(dataset))] == [f"{f:04d}" for f in SPLIT[split]]
        for i, frame in enumerate(SPLIT[split]):
            np.testing.assert_array_equal(dataset[i].guide, images[frame])
            np.testing.assert_allclose(dataset[i].target, depths[frame] * 1000, rtol=1e-6)

    def test_the_index_may_be_named(self, nyuv2, tmp_path):
        other = tmp_path / "mine.json"
        other.write_text('{"train": [], "val": [], "test": [0]}')
        assert len(load_dataset(f"nyuv2:{nyuv2[0]}?index={other}")) == 1

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            ('{"test": [5]}', "frame 5 is not among the 5"),
            ('{"train": [1]}', "no list of frames 'test'"),
            ('{"test": ["a"]}', "no list of frames"),
            ("[1, 2]", "no list of frames"),
            ("nonsense", "JSON"),
        ],
    )
    def test_a_wrong_index_is_explained(self, nyuv2, tmp_path, content, message):
        (tmp_path / "mine.json").write_text(content)
        with pytest.raises(InputError, match=message):
            load_dataset(f"nyuv2:{nyuv2[0]}?index={tmp_path / 'mine.json'}")

    def test_a_missing_index_or_file_says_where_to_get_it(self, nyuv2):
        folder = nyuv2[0] / "NYU Depth v2"
        (folder / "split_idc_nyuv2.json").unlink()
        with pytest.raises(InputError, match=r"no file split\*\.json.*github\.com"):
            load_dataset(f"nyuv2:{nyuv2[0]}")
        (folder / "nyu_depth_v2_labeled.mat").write_bytes(b"MATLAB 5.0")
        with pytest.raises(InputError, match="not an HDF5 file"):
            load_dataset(f"nyuv2:{nyuv2[0]}?index=x")
        (folder / "nyu_depth_v2_labeled.mat").unlink()
        with pytest.raises(InputError, match=r"cs\.nyu\.edu"):
            load_dataset(f"nyuv2:{nyuv2[0]}")

    def test_it_can_be_sent_to_a_worker(self, nyuv2):
        dataset = load_dataset(f"nyuv2:{nyuv2[0]}")
        copy = pickle.loads(pickle.dumps(dataset))
        np.testing.assert_array_equal(copy[1].target, dataset[1].target)


class TestDiml:
    def test_the_last_tenth_of_each_training_scene_is_validation(self, diml):
        assert len(load_dataset(f"diml:{diml}")) == 2
        assert len(load_dataset(f"diml:{diml}", "train")) == 9 + 9
        val = load_dataset(f"diml:{diml}", "val")
        assert names(val) == {"bath/in_k_09", "bath/in_k_10", "shop/in_k_09"}

    @pytest.mark.parametrize(
        ("split", "option", "hole"),
        [("test", "", False), ("train", "", True), ("val", "", True), ("test", "?zeros=holes", True),
         ("train", "?zeros=valid", False)],
    )  # fmt: skip
    def test_zeros_are_holes_in_training_and_values_in_the_test_as_in_the_authors_code(self, diml, split, option, hole):
        half = load_dataset(f"diml:{diml}{option}", split)[0].target[:378]
        assert np.isnan(half).all() if hole else (half == 0).all()

    def test_other_words_for_zeros_are_refused(self, diml):
        with pytest.raises(InputError, match="use auto, holes or valid"):
            load_dataset(f"diml:{diml}?zeros=yes")

    def test_frames_are_resized_and_zero_may_be_a_hole(self, diml):
        dataset = load_dataset(f"diml:{diml}?zeros=holes")
        for i in range(2):
            assert dataset[i].size == (756, 1344)
            assert np.isnan(dataset[i].target[:378]).all()
            assert (dataset[i].target[378:] == 1000 + i).all()
            assert (dataset[i].guide == i).all()

    def test_a_frame_without_partner_is_named(self, diml):
        (diml / "DIML/test/HR/cafe/color/in_k_01_c.png").unlink()
        with pytest.raises(InputError, match=r"in_k_01.*dimlrgbd"):
            load_dataset(f"diml:{diml}")


@pytest.mark.parametrize("kind", ["middlebury", "nyuv2", "diml"])
class TestAnyReader:
    def test_an_empty_root_says_what_was_looked_for_and_where_to_get_it(self, kind, tmp_path):
        with pytest.raises(InputError, match=r"there is no folder .* in it\. Get .* from https://"):
            load_dataset(f"{kind}:{tmp_path}")
        with pytest.raises(InputError, match="not a folder"):
            load_dataset(f"{kind}:{tmp_path / 'nowhere'}")

    def test_it_keeps_the_promise_of_a_data_set(self, kind, request):
        root = request.getfixturevalue(kind)
        dataset = load_dataset(f"{kind}:{root[0] if kind == 'nyuv2' else root}", "val")
        assert isinstance(dataset, Dataset)
        assert dataset.quantity == "depth mm"
        assert dataset.unit == {"middlebury": 1122.7, "nyuv2": 1386.05, "diml": 1154.29}[kind]
        assert dataset[-1].name == dataset[len(dataset) - 1].name
        with pytest.raises(IndexError):
            dataset[len(dataset)]

    def test_an_unknown_split_is_refused(self, kind, request):
        root = request.getfixturevalue(kind)
        with pytest.raises(InputError, match="train, val or test"):
            load_dataset(f"{kind}:{root[0] if kind == 'nyuv2' else root}", "validation")


class TestText:
    @pytest.mark.parametrize("text", ["other:/x", "scenes", "scenes:", "", "painted:", "painted:x", "painted:1,2,3"])
    def test_what_is_not_understood_is_refused_with_what_there_is(self, text):
        with pytest.raises(InputError, match="painted:SEED"):
            load_dataset(text)

    @pytest.mark.parametrize(("query", "message"), [("index", "NAME=VALUE"), ("unit=mm", "no option unit, but cache")])
    def test_wrong_options_are_refused(self, nyuv2, query, message):
        with pytest.raises(InputError, match=message):
            load_dataset(f"nyuv2:{nyuv2[0]}?{query}")

    def test_a_text_may_name_its_own_split(self, nyuv2):
        assert [pair.name for pair in load_dataset(f"nyuv2:{nyuv2[0]}?split=val", "test")] == [
            pair.name for pair in load_dataset(f"nyuv2:{nyuv2[0]}", "val")
        ]

    def test_painted_scenes_have_seed_count_and_size(self):
        dataset = load_dataset("painted:3,20?size=64")
        assert len(dataset) == 20
        assert dataset[0].size == (64, 64)

    def test_painted_scenes_may_open_to_the_distance(self):
        assert load_dataset("painted:3?far=0.5").far == 0.5
        with pytest.raises(InputError, match="far is a share"):
            load_dataset("painted:3?far=2")
        with pytest.raises(InputError, match=r"far=0\.5"):
            load_dataset("painted:3?far=much")


class TestCache:
    def test_pairs_are_the_same_and_decoded_once(self, diml, tmp_path):
        text = f"diml:{diml}?cache={tmp_path / 'cache'}"
        plain, cached = load_dataset(f"diml:{diml}"), load_dataset(text)
        first = cached[1]
        (diml / "DIML/test/HR/cafe/color/in_k_01_c.png").write_bytes(b"")
        again = load_dataset(text)[1]
        np.testing.assert_array_equal(first.guide, again.guide)
        np.testing.assert_array_equal(first.target, again.target)
        assert first.name == again.name == "cafe/in_k_01"
        assert (cached.name, cached.unit, cached.quantity, len(cached)) == (
            *(plain.name, plain.unit, plain.quantity),
            len(plain),
        )

    def test_splits_do_not_share_files(self, diml, tmp_path):
        train, val = (load_dataset(f"diml:{diml}?cache={tmp_path / 'cache'}", split) for split in ("train", "val"))
        assert train[0].name != val[0].name

    def test_an_interrupted_write_is_made_good(self, diml, tmp_path):
        dataset = load_dataset(f"diml:{diml}?cache={tmp_path / 'cache'}")
        dataset.folder.mkdir(parents=True)
        (dataset.folder / "000000.guide.npy").write_bytes(b"half")
        assert dataset[0].size == (756, 1344)
