"""An image is bounded by what it takes once decoded, in every format; the environment raises the limit."""

import resource
import struct
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import rasterio

from dada.errors import InputError
from dada.io import read_image, write_image
from dada.io.size import VARIABLE

FUZZ = Path(__file__).parents[1] / "fuzz"
FOUND, SEEDS = FUZZ / "found", FUZZ / "seeds"
TAGS = {"width": 256, "height": 257, "compression": 259}
FAX = {"fax3": 3, "fax4": 4}


def tiff_with(seed: str, **values: int) -> bytes:
    """A seed with other values in its first directory."""
    data = (SEEDS / seed).read_bytes()
    order, changed = {b"II": "<", b"MM": ">"}[data[:2]], bytearray(data)
    (start,) = struct.unpack_from(order + "I", data, 4)
    (count,) = struct.unpack_from(order + "H", data, start)
    wanted = {TAGS[name]: value for name, value in values.items()}
    for field in range(start + 2, start + 2 + 12 * count, 12):
        tag, kind = struct.unpack_from(order + "HH", data, field)
        if tag in wanted:
            struct.pack_into(order + {3: "H", 4: "I"}[kind], changed, field + 8, wanted[tag])
    return bytes(changed)


@pytest.fixture(scope="module")
def almost_empty(tmp_path_factory) -> Path:
    """A true image of 66 MiB in a few kilobytes: zeros, packed by ZSTD."""
    path = tmp_path_factory.mktemp("sparse") / "empty.tif"
    size = {"height": 4160, "width": 4160, "count": 1}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)
        with rasterio.open(path, "w", driver="GTiff", dtype="float32", compress="zstd", tiled=True, **size) as file:
            file.write(np.zeros((4160, 4160), np.float32), 1)
    return path


@pytest.mark.parametrize("seed", ["guide_fax3.tif", "guide_fax4.tif", "guide_rle.tif", "guide_one_bit.tif"])
@pytest.mark.parametrize("compression", FAX)
def test_a_small_tiff_of_bits_is_not_decoded_to_a_huge_image(tmp_path: Path, seed, compression):
    path = tmp_path / "a.tif"
    path.write_bytes(tiff_with(seed, width=20_000, height=20_000, compression=FAX[compression]))
    with pytest.raises(InputError, match=VARIABLE):
        read_image(path, role="guide")


@pytest.mark.parametrize("path", sorted(FOUND.iterdir()), ids=lambda path: path.name)
def test_what_the_fuzzer_found_is_refused_without_taking_memory(path: Path, capfd, monkeypatch):
    unraised: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", unraised.append)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(InputError):
        read_image(path, role="guide" if path.name.startswith("guide") else "source")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2**17  # KiB: 128 MiB
    assert capfd.readouterr() == ("", "")
    assert not unraised


def test_more_blocks_than_the_file_can_list_are_not_looked_for():
    with pytest.raises(InputError, match=r"16777216 blocks of 1 x 1 pixels, more than the 563 bytes"):
        read_image(FOUND / "source_lerc_16_million_blocks.tif")


def test_a_header_that_states_thousands_of_bands_is_refused():
    with pytest.raises(InputError, match=r"41098 bands; at most 4096 are read"):
        read_image(FOUND / "source_lzma_41098_bands.tif")


def test_an_openexr_file_decoded_at_once_is_bounded_apart(tmp_path: Path):
    data = bytearray((SEEDS / "guide_lines_dwaa.exr").read_bytes() + bytes(800_000))
    at = data.index(b"dataWindow\0box2i\0") + len(b"dataWindow\0box2i\0") + 4
    data[at : at + 16] = struct.pack("<4i", 0, 0, 49_999_999, 3)  # 1.1 GiB in one piece
    path = tmp_path / "a.exr"
    path.write_bytes(data)
    with pytest.raises(InputError, match="chunks of 4 rows of 50000000 pixels"):
        read_image(path, role="guide")


def test_what_is_far_smaller_on_disk_needs_the_users_word(almost_empty: Path, monkeypatch):
    with pytest.raises(InputError, match=r"more than 2000 times.*DADA_MAX_IMAGE_GIB=1\b"):
        read_image(almost_empty)
    monkeypatch.setenv(VARIABLE, "1")
    assert read_image(almost_empty).values.shape == (4160, 4160)


@pytest.mark.parametrize("suffix", [".png", ".tif", ".pfm", ".npy", ".npz", ".exr"])
def test_the_environment_sets_the_limit_of_every_format(tmp_path: Path, monkeypatch, suffix):
    path = tmp_path / f"a{suffix}"
    write_image(path, np.ones((32, 32), np.uint16 if suffix == ".png" else np.float32))
    monkeypatch.setenv(VARIABLE, "1e-6")  # 1073 bytes
    with pytest.raises(InputError, match=r"limit is 9.99e-07 GiB.*DADA_MAX_IMAGE_GIB=1;"):
        read_image(path)
    monkeypatch.setenv(VARIABLE, "0.001")
    assert read_image(path).values.shape == (32, 32)


def test_more_than_the_usual_limit_can_be_allowed(tmp_path: Path, monkeypatch):
    path = tmp_path / "a.pfm"
    path.write_bytes(b"Pf\n65536 32768\n-1\n")  # 8 GiB
    with pytest.raises(InputError, match=r"8 GiB of memory once decoded; the limit is 4 GiB.*DADA_MAX_IMAGE_GIB=8;"):
        read_image(path)
    monkeypatch.setenv(VARIABLE, "8")
    with pytest.raises(InputError, match="truncated"):
        read_image(path)


@pytest.mark.parametrize("text", ["much", "0", "-1", "inf", "nan"])
def test_a_limit_that_is_no_number_is_refused(monkeypatch, text):
    monkeypatch.setenv(VARIABLE, text)
    with pytest.raises(InputError, match=f"{VARIABLE} is '{text}'"):
        read_image(SEEDS / "source_m.npy")


def test_channels_of_an_openexr_file_are_counted_as_they_are(tmp_path: Path, monkeypatch):
    monkeypatch.setenv(VARIABLE, "1e-6")
    with pytest.raises(InputError, match=r"with 3 channel\(s\)"):
        read_image(SEEDS / "guide_rgb.exr", role="guide")
