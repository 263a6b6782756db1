"""Damaged files are refused or read within bounds: no other exception, crash, hang or flood of memory."""

import resource
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

from dada.errors import InputError
from dada.io import Georeference, read_image, write_image
from tests.fuzz.mutation import mutate, with_valid_checksums

MUTATIONS = 300
SMOOTH = np.add.outer(np.arange(33) * 20.0, np.arange(47) * 13.0).astype(np.float32)
PLACE = Georeference(None, (0.5, 0.0, 7.0, 0.0, -0.5, 9.0))


def grey_jpeg(path: Path) -> None:
    cv2 = pytest.importorskip("cv2")
    cv2.imwrite(str(path), (SMOOTH % 256).astype(np.uint8))


def compressed_exr(compression: str, tiled: bool):
    def write(path: Path) -> None:
        exr = pytest.importorskip("OpenEXR")
        header = {"compression": getattr(exr, compression), "type": exr.scanlineimage}
        if tiled:
            header |= {"type": exr.tiledimage, "tiles": exr.TileDescription()}
        with exr.File(header, {"Z": SMOOTH}) as file:
            file.write(str(path))

    return write


SEEDS = {
    "a.png": lambda path: write_image(path, SMOOTH.astype(np.uint16)),
    "checked.png": lambda path: write_image(path, SMOOTH.astype(np.uint16)),
    "a.jpg": grey_jpeg,
    "integers.tif": lambda path: write_image(path, SMOOTH.astype(np.uint16), nodata=0, georeference=PLACE),
    "floats.tif": lambda path: write_image(path, np.dstack([SMOOTH] * 3), georeference=PLACE),
    "a.pfm": lambda path: write_image(path, SMOOTH),
    "a.npy": lambda path: write_image(path, SMOOTH),
    "a.npz": lambda path: write_image(path, SMOOTH),
    "a.exr": lambda path: write_image(path, SMOOTH),
    "plain.exr": compressed_exr("NO_COMPRESSION", tiled=False),
    "tiled.exr": compressed_exr("ZIPS_COMPRESSION", tiled=True),
    "piz.exr": compressed_exr("PIZ_COMPRESSION", tiled=True),
    "dwaa.exr": compressed_exr("DWAA_COMPRESSION", tiled=False),
}


@pytest.mark.parametrize("name", SEEDS)
def test_damaged_files_are_refused_or_read_within_bounds(tmp_path: Path, capfd, name: str):
    random = np.random.default_rng(sum(name.encode()))
    path = tmp_path / name
    SEEDS[name](path)
    seed = path.read_bytes()
    role = "guide" if name.endswith("jpg") or name.startswith("floats") else "source"
    read_image(path, role=role)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    refused = 0
    for _ in range(MUTATIONS):
        damaged = mutate(seed, random)
        path.write_bytes(damaged if name == "a.png" or path.suffix != ".png" else with_valid_checksums(damaged))
        start = time.perf_counter()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                values = read_image(path, role=role).values
            assert values.nbytes < 2**28
        except InputError:
            refused += 1
        assert time.perf_counter() - start < 10
    assert refused > MUTATIONS // 5
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak < 2**20  # KiB: one GiB
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("name", ["a.png", "a.jpg", "integers.tif", "a.pfm", "a.npy", "a.npz", "a.exr", "plain.exr"])
def test_a_file_cut_anywhere_is_refused(tmp_path: Path, name: str):
    path = tmp_path / name
    SEEDS[name](path)
    whole = path.read_bytes()
    for length in np.linspace(0, len(whole) - 1, 40).astype(int):
        path.write_bytes(whole[:length])
        with pytest.raises(InputError):
            read_image(path, role="guide")
