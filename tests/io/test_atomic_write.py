"""A file is written whole or not at all."""

import resource
from pathlib import Path

import numpy as np
import pytest

from dada.errors import InputError
from dada.io import atomic_path, read_image, write_image

NOISE = np.random.default_rng(1).random((300, 300), dtype=np.float32)
SUFFIXES = [".png", ".tif", ".pfm", ".exr", ".npy", ".npz"]


def fitting(suffix: str) -> np.ndarray:
    return (NOISE * 65535).astype(np.uint16) if suffix == ".png" else NOISE


@pytest.fixture
def full_disk():
    """Files of this process cannot grow beyond 20 kB."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_when_the_disk_is_full_the_old_file_stays_and_nothing_is_left(tmp_path: Path, request, suffix: str):
    path = tmp_path / f"a{suffix}"
    write_image(path, fitting(suffix)[:9, :9])
    before = path.read_bytes()
    request.getfixturevalue("full_disk")
    with pytest.raises(InputError) as refused:
        write_image(path, fitting(suffix))
    assert str(path) in str(refused.value)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_bad_places_are_refused(tmp_path: Path, suffix: str):
    (tmp_path / f"folder{suffix}").mkdir()
    (tmp_path / "file").write_text("")
    for place, said in {
        tmp_path / f"folder{suffix}": "Name a file",
        tmp_path / "missing" / f"a{suffix}": "Make the folder",
        tmp_path / "file" / f"a{suffix}": "Name a folder",
        tmp_path / f"{'x' * 300}{suffix}": "shorter name",
        Path(f"/proc/a{suffix}"): "cannot be written",
    }.items():
        with pytest.raises(InputError, match=said):
            write_image(place, fitting(suffix))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", f"folder{suffix}"]


def test_an_interruption_leaves_the_old_file_and_nothing_else(tmp_path: Path):
    (tmp_path / "a").write_text("old")

    def interrupted() -> None:
        with atomic_path(tmp_path / "a") as temporary:
            temporary.write_text("half of the ne")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("a", "old")]


def test_the_result_is_as_readable_as_any_new_file(tmp_path: Path):
    (tmp_path / "plain").write_text("")
    write_image(tmp_path / "a.npy", NOISE)
    assert (tmp_path / "a.npy").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_name_of_the_greatest_length_works(tmp_path: Path):
    path = tmp_path / f"{'x' * 251}.npy"
    write_image(path, NOISE)
    np.testing.assert_array_equal(read_image(path).values, NOISE)
