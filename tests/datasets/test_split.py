"""The fixed split: no training reads what results are reported on."""

from dataclasses import replace
from pathlib import Path

import pytest

from dada.datasets import load_dataset
from dada.datasets.split import REST, fixed_split, role_of
from dada.errors import InputError
from dada.training import read_config
from dada.training.data import Batches, for_role

CONFIGS = sorted((Path(__file__).parents[2] / "configs").glob("*.toml"))


def test_twins_of_test_scenes_are_not_trained_on():
    for name in ("Art", "Books", "Dolls", "Laundry", "Moebius"):
        assert role_of(Path("data/middlebury_2005_full") / name) == "test"
        assert role_of(Path("data/middlebury_2005_2006_third") / name) == "unused"


def test_every_role_of_a_scene_is_one_and_known():
    for table in fixed_split().values():
        assert set(table.values()) <= {"train", "val", "test", "unused"}
        assert REST in table


def test_a_set_is_known_by_its_folder_and_the_one_above():
    assert role_of(Path("x/nyuv2/train/1001")) == "train"
    assert role_of(Path("x/nyuv2/val/1023")) == "val"
    assert role_of(Path("mine/train/1023")) is None


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_no_configuration_learns_from_or_is_chosen_by_a_test_scene(path, data):
    config = replace(read_config(path), root=str(data))
    for texts, role in (([entry.dataset for entry in config.data], "train"), (config.validation.data, "val")):
        for text in texts:
            if not text.startswith("scenes:"):
                continue
            entries = load_dataset(for_role(config.located(text), role), split=role).entries
            assert {role_of(entry.folder) for entry in entries} == {role}


def test_scenes_that_the_split_names_exist(data):
    for name, table in fixed_split().items():
        assert (data / name).is_dir()
        assert {scene for scene in table if scene != REST} <= {folder.name for folder in (data / name).iterdir()}


def test_a_training_refuses_a_set_of_tests(data):
    config = replace(read_config(CONFIGS[0].parent / "default.toml"), root=str(data))
    bench = replace(config.data[3], dataset="scenes:middlebury_2005_full")
    with pytest.raises(InputError, match="or is for train"):
        Batches(replace(config, data=(bench,)))
    with pytest.raises(InputError, match="or is for train"):
        Batches(replace(config, data=(replace(bench, split="test"),)))


def test_an_unknown_role_is_refused(data):
    with pytest.raises(InputError, match="role 'exam' is unknown"):
        load_dataset(f"scenes:{data / 'sintel'}?role=exam")
