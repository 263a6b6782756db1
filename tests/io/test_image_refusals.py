"""Every kind of bad file gets one paragraph that names file, problem and remedy, and nothing is printed."""

import io
import os
import re
import struct
import tempfile
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest

from dada.errors import InputError
from dada.io import Georeference, read_image, write_image

cv2 = pytest.importorskip("cv2")
OpenEXR = pytest.importorskip("OpenEXR")
tifffile = pytest.importorskip("tifffile")
Image = pytest.importorskip("PIL.Image")

random = np.random.default_rng(7)
DEPTH = random.integers(0, 65535, (64, 80), dtype=np.uint16)
RGB = random.integers(0, 255, (64, 80, 3), dtype=np.uint8)
FLOAT = random.random((64, 80), dtype=np.float32)


def encoded(suffix: str, values: np.ndarray) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        write_image(Path(folder) / f"a{suffix}", values)
        return (Path(folder) / f"a{suffix}").read_bytes()


def saved(picture, kind: str, **options) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, kind, **options)
    return buffer.getvalue()


def png(width: int, height: int, bits: int = 16, colour: int = 0, pixels: bytes = b"", extra: bytes = b"") -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, 0))
    pixels = chunk(b"IDAT", zlib.compress(pixels))
    return b"\x89PNG\r\n\x1a\n" + header + extra + pixels + chunk(b"IEND", b"")


def jpeg_of_size(width: int, height: int) -> bytes:
    data = bytearray(saved(Image.fromarray(RGB), "JPEG"))
    at = data.index(b"\xff\xc0")
    data[at + 5 : at + 9] = struct.pack(">HH", height, width)
    return bytes(data)


def npy(header: str, data: bytes = b"", version: bytes = b"\x01\x00") -> bytes:
    text = header.encode()
    return b"\x93NUMPY" + version + struct.pack("<H" if version[0] == 1 else "<I", len(text)) + text + data


def npz(**members: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name + ".npy", data)
    return buffer.getvalue()


def exr_of_window(x0: int, y0: int, x1: int, y1: int) -> bytes:
    data = bytearray(encoded(".exr", FLOAT))
    at = data.index(b"dataWindow\0box2i\0") + len(b"dataWindow\0box2i\0") + 4
    data[at : at + 16] = struct.pack("<4i", x0, y0, x1, y1)
    return bytes(data)


def exr(**options) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        channels = options.pop("channels", {"Z": FLOAT})
        header = {"compression": OpenEXR.ZIP_COMPRESSION, "type": OpenEXR.scanlineimage} | options
        with OpenEXR.File(header, channels) as file:
            file.write(f"{folder}/a.exr")
        return Path(f"{folder}/a.exr").read_bytes()


def exr_of_two_parts() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        parts = [OpenEXR.Part({"name": name}, {"Z": FLOAT}) for name in ("left", "right")]
        with OpenEXR.File(parts) as file:
            file.write(f"{folder}/a.exr")
        return Path(f"{folder}/a.exr").read_bytes()


def tiff(values: np.ndarray, **options) -> bytes:
    buffer = io.BytesIO()
    tifffile.imwrite(buffer, values, **options)
    return buffer.getvalue()


def object_array() -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.array([[{}, []], [1, 2]], dtype=object), allow_pickle=True)
    return buffer.getvalue()


def flip(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :]


def half(data: bytes) -> bytes:
    return data[: len(data) // 2]


PNG, TIFF, EXR = encoded(".png", DEPTH), encoded(".tif", DEPTH), encoded(".exr", FLOAT)
PFM, NPY, NPZ = encoded(".pfm", FLOAT), encoded(".npy", FLOAT), encoded(".npz", FLOAT)
JPEG = saved(Image.fromarray(RGB), "JPEG")
SMOOTH_EXR = encoded(".exr", np.repeat(FLOAT[:, :1], 80, axis=1))  # else it is stored without checksums
ACTL = struct.pack(">I", 8) + b"acTL" + bytes(8) + struct.pack(">I", zlib.crc32(b"acTL" + bytes(8)))
HUGE = "{'descr': '<f4', 'fortran_order': False, 'shape': (1000000, 1000000), }"

BAD = {
    # name: (file name, content, what the message must say)
    "empty": ("a.png", b"", "empty"),
    "text": ("a.txt", b"depth in metres\n1 2 3\n", "text file"),
    "text named png": ("a.png", b"depth in metres\n", "text file"),
    "noise": ("a.dat", bytes(range(256)), "unknown format"),
    "noise named tif": ("a.tif", bytes(range(256)), "no TIFF"),
    "jpeg named png": ("a.png", JPEG, "content is JPEG"),
    "png named npy": ("a.npy", PNG, "content is PNG"),
    "gif": ("a.gif", saved(Image.fromarray(DEPTH.astype(np.uint8)), "GIF"), "GIF"),
    "webp": ("a.webp", saved(Image.fromarray(RGB), "WEBP"), "WebP"),
    "bmp": ("a.bmp", saved(Image.fromarray(RGB), "BMP"), "BMP"),
    "pgm": ("a.pgm", saved(Image.fromarray(RGB).convert("L"), "PPM"), "PGM"),
    "matlab": ("a.mat", b"MATLAB 5.0 MAT-file" + bytes(100), "MATLAB"),
    "hdf5": ("a.h5", b"\x89HDF\r\n\x1a\n" + bytes(100), "HDF5"),
    "png, half": ("a.png", half(PNG), "truncated"),
    "png without its end": ("a.png", PNG[:-12], "truncated"),
    "png header only": ("a.png", PNG[:20], "truncated"),
    "png, a byte flipped": ("a.png", flip(PNG, len(PNG) // 2), "checksum"),
    "png with too few pixels": ("a.png", png(64, 64, pixels=bytes(2000)), "damaged"),
    "png, zero size": ("a.png", png(0, 64, pixels=b"x"), "no image"),
    "png, absurd size": ("a.png", png(2**31 - 1, 2**31 - 1, pixels=b"x"), "GiB"),
    "png bomb": ("a.png", png(30_000, 30_000, pixels=bytes(1000)), "can hold"),
    "png, animated": ("a.png", png(8, 8, 8, pixels=bytes(72), extra=ACTL), "animated"),
    "png, colours as source": ("a.png", saved(Image.fromarray(RGB), "PNG"), "3 channels"),
    "jpeg as source": ("a.jpg", JPEG, "JPEG cannot carry measurements"),
    "pfm, half": ("a.pfm", half(PFM), "truncated"),
    "pfm, absurd size": ("a.pfm", b"Pf\n999999 999999\n-1\n", "GiB"),
    "pfm, zero size": ("a.pfm", b"Pf\n0 9\n-1\n", "no image"),
    "pfm, negative size": ("a.pfm", b"Pf\n-3 9\n-1\n", "malformed"),
    "pfm, endless digits": ("a.pfm", b"Pf\n" + b"9" * 4000, "malformed"),
    "pfm, scale 0": ("a.pfm", b"Pf\n2 2\n0.0\n" + bytes(16), "scale"),
    "pfm, scale no number": ("a.pfm", b"Pf\n2 2\n--e\n" + bytes(16), "scale"),
    "pfm, too long": ("a.pfm", PFM + bytes(8), "header wrong"),
    "npy, half": ("a.npy", half(NPY), "truncated"),
    "npy, header cut": ("a.npy", NPY[:40], "header"),
    "npy, absurd size": ("a.npy", npy(HUGE), "GiB"),
    "npy, negative size": ("a.npy", npy(HUGE.replace("1000000", "-5")), "header"),
    "npy, header no literal": ("a.npy", npy("__import__('os')"), "header"),
    "npy, header nested deeply": ("a.npy", npy("(" * 9000), "header"),
    "npy, header endless": ("a.npy", npy(HUGE + " " * 200_000, version=b"\x02\x00"), "header"),
    "npy, version 9": ("a.npy", npy(HUGE, version=b"\x09\x00"), "header"),
    "npy, pickled": ("a.npy", object_array(), "not numbers"),
    "npy, complex": ("a.npy", npy(HUGE.replace("<f4", "<c8")), "not numbers"),
    "npy, text": ("a.npy", npy(HUGE.replace("<f4", "<U4")), "not numbers"),
    "npy, one axis": ("a.npy", npy(HUGE.replace("1000000, 1000000", "5,"), bytes(20)), "shape"),
    "npy, five channels": ("a.npy", encoded(".npy", np.dstack([FLOAT] * 5)), "5 channels"),
    "npz, half": ("a.npz", half(NPZ), "damaged"),
    "npz, a byte flipped": ("a.npz", flip(NPZ, len(NPZ) // 2), "damaged"),
    "npz without arrays": ("a.npz", npz()[:22], "no NumPy array"),
    "npz, a bomb": ("a.npz", npz(a=npy(HUGE, bytes(5_000_000))), "GiB"),
    "npz, several": ("a.npz", npz(left=NPY, right=NPY), "'left', 'right'"),
    "tiff, half": ("a.tif", half(TIFF), "damaged"),
    "tiff, header only": ("a.tif", TIFF[:8], "damaged"),
    "tiff, pages": ("a.tif", tiff(np.stack([DEPTH] * 3), photometric="minisblack"), "3 pages"),
    "tiff, complex": ("a.tif", tiff(FLOAT.astype(np.complex64)), "complex64"),
    "tiff, five bands": ("a.tif", encoded(".tif", np.dstack([DEPTH] * 5)), "5 bands"),
    "tiff, CMYK": ("a.tif", saved(Image.fromarray(RGB).convert("CMYK"), "TIFF"), "CMYK"),
    "tiff, lossy": ("a.tif", saved(Image.fromarray(RGB[..., 0]), "TIFF", compression="jpeg"), "loss"),
    "exr, half": ("a.exr", half(EXR), "truncated"),
    "exr, header cut": ("a.exr", EXR[:60], "header"),
    "exr, chunk damaged": ("a.exr", flip(SMOOTH_EXR, len(SMOOTH_EXR) - 90), "damaged"),
    "exr, absurd size": ("a.exr", exr_of_window(0, 0, 2**30, 2**30), "GiB"),
    "exr, empty window": ("a.exr", exr_of_window(5, 5, 0, 0), "no image"),
    "exr, bomb": ("a.exr", exr_of_window(0, 0, 20_000, 20_000), "can hold"),
    "exr, several channels": ("a.exr", exr(channels={"Z": FLOAT, "A": FLOAT}), "'A', 'Z'"),
    "exr, parts": ("a.exr", exr_of_two_parts(), "several parts"),
    "exr, new compression": ("a.exr", exr(compression=OpenEXR.HTJ2K32_COMPRESSION), "compression"),
}  # fmt: skip
BAD_GUIDES = {
    "jpeg, half": ("a.jpg", half(JPEG), "truncated"),
    "jpeg, half with an end": ("a.jpg", half(JPEG) + b"\xff\xd9", "damaged"),
    "jpeg, header only": ("a.jpg", JPEG[:30], "damaged|truncated"),
    "jpeg, start and end": ("a.jpg", b"\xff\xd8\xff\xd9", "no image"),
    "jpeg, CMYK": ("a.jpg", saved(Image.fromarray(RGB).convert("CMYK"), "JPEG"), "CMYK"),
    "jpeg, zero size": ("a.jpg", jpeg_of_size(0, 10), "no image"),
    "jpeg, absurd size": ("a.jpg", jpeg_of_size(65_000, 65_000), "GiB"),
    "jpeg bomb": ("a.jpg", jpeg_of_size(20_000, 20_000), "can hold"),
    "exr without colours": ("a.exr", exr(channels={"X": FLOAT, "Y": FLOAT}), "R, G and B"),
}  # fmt: skip


def is_a_clean_answer(error: InputError, path: Path, said: str) -> None:
    message = str(error)
    assert str(path) in message
    assert re.search(said, message), message
    assert "\n" not in message
    assert message.rstrip().endswith(".")
    assert error.__suppress_context__ or error.__context__ is None


@pytest.mark.parametrize(
    ("role", "case"), [("source", case) for case in BAD] + [("guide", case) for case in BAD_GUIDES]
)
def test_bad_files_are_refused(tmp_path: Path, capfd, role, case):
    name, content, said = (BAD if role == "source" else BAD_GUIDES)[case]
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError) as refused:
        read_image(path, role=role)
    is_a_clean_answer(refused.value, path, said)
    assert capfd.readouterr() == ("", "")


def test_missing_files_folders_and_pipes_are_refused(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe.png")
    (tmp_path / "folder.png").mkdir()
    (tmp_path / "link.png").symlink_to("nowhere.png")
    for name, said in {
        "missing.png": "no such file",
        "folder.png": "folder",
        "pipe.png": "pipe",
        "link.png": "no such file",
        "missing/a.png": "no such file",
        "a\0b.png": "cannot be reached",
        "x" * 300 + ".png": "cannot be reached",
    }.items():
        with pytest.raises(InputError) as refused:
            read_image(tmp_path / name)
        is_a_clean_answer(refused.value, tmp_path / name, said)
    with pytest.raises(InputError, match="device"):
        read_image("/dev/zero")


@pytest.fixture
def unprivileged_folder():
    """A folder that this process may enter but not write to, also when the tests run as root."""
    folder = Path(tempfile.mkdtemp())
    (folder / "a.png").write_bytes(PNG)
    (folder / "a.png").chmod(0)
    folder.chmod(0o555)
    privileged = os.geteuid() == 0
    if privileged:
        os.seteuid(65534)
    yield folder
    if privileged:
        os.seteuid(0)
    folder.chmod(0o755)
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()


def test_files_and_folders_without_permission_are_refused(unprivileged_folder: Path):
    with pytest.raises(InputError, match="permissions"):
        read_image(unprivileged_folder / "a.png")
    with pytest.raises(InputError, match="may write"):
        write_image(unprivileged_folder / "b.png", DEPTH)
    assert [path.name for path in unprivileged_folder.iterdir()] == ["a.png"]


@pytest.mark.parametrize("name", ["a.png", "a.pfm", "a.npy"])
def test_a_key_where_there_is_nothing_to_pick_is_refused(tmp_path: Path, name: str):
    write_image(tmp_path / name, DEPTH if name == "a.png" else FLOAT)
    with pytest.raises(InputError, match="key 'depth'"):
        read_image(tmp_path / name, key="depth")


@pytest.mark.parametrize("name", ["depth", "depth.dat"])
def test_without_a_known_suffix_the_content_decides(tmp_path: Path, name: str):
    (tmp_path / name).write_bytes(PNG)
    np.testing.assert_array_equal(read_image(tmp_path / name).values, DEPTH)


def test_names_that_gdal_would_interpret_are_plain_names(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("GTIFF_DIR:1:a.tif", "zip+file:a!b.tif", "größe ü.tif"):
        write_image(name, DEPTH, georeference=Georeference(None, (2.0, 0.0, 0.0, 0.0, 2.0, 0.0)))
        np.testing.assert_array_equal(read_image(name).values, DEPTH)
