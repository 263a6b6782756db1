"""Every kind of bad input: one paragraph that names file, problem and remedy, exit code 2, and nothing is
written."""

from __future__ import annotations

import io
import os
import re
import struct
import tempfile
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from dada.io import write_image

Image = pytest.importorskip("PIL.Image")

random = np.random.default_rng(5)
DEPTH = random.integers(500, 4000, (12, 16), dtype=np.uint16)
RGB = random.integers(0, 255, (96, 128, 3), dtype=np.uint8)
FLOAT = (DEPTH / 1000).astype(np.float32)
INTRINSICS = ["--intrinsics", "100,100,64,48"]

Prepare = Callable[[Path], list]


def put(folder: Path, name: str, content: bytes | np.ndarray, **options) -> Path:
    path = folder / name
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        write_image(path, content, **options)
    return path


def content_of(name: str, values: np.ndarray) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        return put(Path(folder), name, values).read_bytes()


def picture(values: np.ndarray, kind: str, mode: str | None = None, **options) -> bytes:
    buffer = io.BytesIO()
    image = Image.fromarray(values)
    (image.convert(mode) if mode else image).save(buffer, kind, **options)
    return buffer.getvalue()


def npy(values: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, values, allow_pickle=True)
    return buffer.getvalue()


def npz(**arrays: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def animated() -> bytes:
    frames = [Image.fromarray(RGB[i:, ..., 0].copy()).resize((16, 12)) for i in range(3)]
    buffer = io.BytesIO()
    frames[0].save(buffer, "PNG", save_all=True, append_images=frames[1:])
    return buffer.getvalue()


def png_of_size(width: int, height: int) -> bytes:
    data = bytearray(content_of("a.png", DEPTH))
    data[16:24] = struct.pack(">II", width, height)
    data[29:33] = struct.pack(">I", zlib.crc32(data[12:29]))
    return bytes(data)


PNG, RGB_PNG = content_of("a.png", DEPTH), content_of("a.png", RGB)
JPEG = picture(RGB, "JPEG")


def source(name: str, content: bytes | np.ndarray, *options) -> Prepare:
    """A bad source with a good guide."""
    return lambda folder: [put(folder, name, content), put(folder, "rgb.png", RGB), *options]


def guide(name: str, content: bytes | np.ndarray, *options) -> Prepare:
    """A good source with a bad guide."""
    return lambda folder: [put(folder, "depth.png", DEPTH), put(folder, name, content), *options]


def both(*options: object) -> Prepare:
    """A good pair with bad options; a text that begins with @ is a path in the folder."""

    def prepare(folder: Path) -> list:
        resolved = [folder / o[1:] if isinstance(o, str) and o.startswith("@") else o for o in options]
        return [put(folder, "depth.png", DEPTH), put(folder, "rgb.png", RGB), *resolved]

    return prepare


def confidence(content: bytes | np.ndarray, name: str = "confidence.npy") -> Prepare:
    return lambda folder: [*both()(folder), "--confidence", put(folder, name, content)]


def with_folder(name: str, *rest: object) -> Prepare:
    def prepare(folder: Path) -> list:
        (folder / name).mkdir()
        return both(*rest)(folder)

    return prepare


def swapped(folder: Path) -> list:
    return both()(folder)[::-1]


def swapped_grey(folder: Path) -> list:
    return [put(folder, "fine.png", RGB[..., 0]), put(folder, "coarse.png", DEPTH)]


def missing(which: int) -> Prepare:
    def prepare(folder: Path) -> list:
        arguments = both()(folder)
        arguments[which] = folder / "nowhere.png"
        return arguments

    return prepare


def folder_as_source(folder: Path) -> list:
    return [folder, both()(folder)[1]]


def pipe(folder: Path) -> list:
    os.mkfifo(folder / "pipe.png")
    return [folder / "pipe.png", put(folder, "rgb.png", RGB)]


BAD: dict[str, tuple[Prepare, str]] = {
    # files
    "no such source": (missing(0), "nowhere.png: there is no such file"),
    "no such guide": (missing(1), "nowhere.png: there is no such file"),
    "empty source": (source("depth.png", b""), "empty"),
    "empty guide": (guide("rgb.png", b""), "empty"),
    "truncated source": (source("depth.png", PNG[: len(PNG) // 2]), "truncated"),
    "truncated guide": (guide("rgb.png", RGB_PNG[:-500]), "truncated"),
    "truncated JPEG guide": (guide("rgb.jpg", JPEG[: len(JPEG) // 2]), "truncated"),
    "wrong magic": (source("depth.png", b"\x00" + PNG[1:]), "named wrongly"),
    "another format than its name": (source("depth.tiff", PNG), "content is PNG"),
    "zero size": (source("depth.png", png_of_size(0, 12)), "no image"),
    "absurd size": (source("depth.png", png_of_size(2**31 - 1, 2**31 - 1)), "GiB"),
    "a bomb": (source("depth.png", png_of_size(40_000, 20_000)), "can hold"),
    "text as source": (source("depth.txt", b"1.0 2.0\n3.0 4.0\n"), "text file"),
    "text as guide": (guide("rgb.csv", b"1,2\n3,4\n"), "text file"),
    "noise": (source("depth.bin", bytes(range(256)) * 4), "unknown format"),
    "GIF": (guide("rgb.gif", picture(RGB[..., 0], "GIF")), "GIF"),
    "WebP": (guide("rgb.webp", picture(RGB, "WEBP")), "WebP"),
    "folder as source": (folder_as_source, "folder, not an image"),
    "pipe": (pipe, "pipe"),
    "animated source": (source("depth.png", animated()), "animated"),
    "animated guide": (guide("rgb.png", animated()), "animated"),
    "CMYK guide": (guide("rgb.jpg", picture(RGB, "JPEG", "CMYK")), "CMYK"),
    "CMYK TIFF guide": (guide("rgb.tif", picture(RGB, "TIFF", "CMYK")), "CMYK"),
    "JPEG as source": (source("depth.jpg", JPEG), "JPEG cannot carry measurements"),
    "pickled array": (source("depth.npy", npy(np.array([[{}, {}]]))), "not numbers"),
    "several arrays, none named": (source("depth.npz", npz(x=FLOAT, y=FLOAT)), "'x', 'y'"),
    "an array that is not there": (source("depth.npz", npz(x=FLOAT), "--source-key", "z"), "no array 'z'"),
    "a key for PNG": (both("--source-key", "depth"), "single image"),
    # what they hold
    "swapped, colours": (swapped, "swap the two files"),
    "swapped, grey": (swapped_grey, "smaller than the source.*Swap"),
    "guide smaller in one direction": (guide("rgb.png", RGB[:, :15]), "smaller than the source"),
    "colours as depth": (source("depth.png", RGB[:12, :16]), "3 channels"),
    "five channels as depth": (source("depth.npy", np.dstack([FLOAT] * 5)), "5 channels"),
    "NaN everywhere": (source("depth.npy", FLOAT * np.nan), "nothing but NaN"),
    "infinite everywhere": (source("depth.npy", FLOAT * np.inf), "nothing but NaN or infinities"),
    "all zeros": (source("depth.png", DEPTH * 0), "all zeros"),
    "all nodata": (source("d.npy", FLOAT * 0 + 7, "--invalid", 7), "invalid marker 7"),
    "negative under ratio": (source("depth.npy", FLOAT - 2, "--adjust", "ratio"), "adjust shift"),
    "zero under ratio": (source("depth.npy", FLOAT * 0, "--adjust", "ratio"), "positive values"),
    "guide of NaN": (guide("rgb.npy", np.full((96, 128), np.nan)), "nothing but NaN"),
    "boolean source": (source("depth.npy", DEPTH > 1000), "bool"),
    "one axis": (source("depth.npy", npy(FLOAT[0])), "shape"),
    "a stack of guides": (guide("rgb.npy", npy(RGB[None])), "shape"),
    "confidence of another size": (confidence(FLOAT[:5]), "one value for each source cell"),
    "confidence above 1": (confidence(FLOAT * 9), "0 .no measurement. to 1"),
    "confidence of NaN": (confidence(FLOAT * np.nan), "0 where it is NaN"),
    "confidence all zero": (confidence(FLOAT * 0), "confidence 0"),
    "confidence in colours": (confidence(RGB[:12, :16], "c.png"), "3 channels"),
    # options
    "unknown unit": (both("--unit", "feet"), "mm, cm, m, tum, raw"),
    "negative scale": (both("--depth-scale=-5"), "how many stored units"),
    "unit that cannot be converted": (both("--unit", "raw", "--output-unit", "m"), "cannot be converted"),
    "unknown model": (both("--model", "best"), "default, learned, fast, dynamic and none"),
    "a picture as model": (both("--model", "@rgb.png"), "neither a .safetensors file nor a checkpoint"),
    "steps without the loop": (both("--steps", 9), "has no steps"),
    "no steps": (both("--solver", "iterate", "--steps", 0), "1 or more"),
    "tolerance 0": (both("--tolerance", 0), "between 0 and 1"),
    "unknown format": (both("-o", "@fine.bmp"), "ends in .png, .tiff"),
    "JPEG as output": (both("-o", "@fine.jpg"), "ends in .png, .tiff"),
    "no suffix": (both("-o", "@fine"), "a file without suffix"),
    "no such folder": (both("-o", "@nowhere/fine.png"), "Make the folder first"),
    "a folder as output": (with_folder("fine.png", "-o", "@fine.png"), "not a folder"),
    "a folder as report": (with_folder("r.json", "--report", "@r.json"), "not a folder"),
    "a name too long": (both("-o", "@" + "x" * 300 + ".png"), "shorter name"),
    "overwriting the source": (both("-o", "@depth.png"), "overwrite an input"),
    "overwriting the guide": (both("-o", "@rgb.png"), "overwrite an input"),
    "two results, one file": (both("-o", "@a.png", "--preview", "--report", "@a.txt"), "ends in .json"),
    "preview onto the guide": (guide("a_preview.png", RGB, "-o", "a.png", "--preview"), "overwrite an input"),
    "PNG for raw floats": (source("depth.npy", FLOAT, "--unit", "raw", "-o", "fine.png"), "--dtype uint16"),
    "does not fit its type": (both("--dtype", "uint8"), "does not fit uint8.*--dtype uint16"),
    "does not fit the unit": (source("depth.npy", FLOAT * 1e6, "-o", "fine.png"), "does not fit uint16"),
    "not even float32": (source("depth.npy", FLOAT * np.float64(1e60), "--dtype", "float32"), "does not fit float32"),
    "a type the format lacks": (both("--dtype", "float32"), "PNG"),
    "unknown adjustment": (both("--adjust", "scale"), "scale"),
    "points without camera": (both("--point-cloud", "@a.ply"), "--intrinsics"),
    "camera without points": (both(*INTRINSICS), "--point-cloud"),
    "camera of three numbers": (both("--point-cloud", "@a.ply", "--intrinsics", "1,2,3"), "four numbers"),
    "points as OBJ": (both("--point-cloud", "@a.obj", *INTRINSICS), "ends in .ply"),
    "points of raw depth": (both("--point-cloud", "@a.ply", *INTRINSICS, "--unit", "raw"), "metric unit"),
    "two units": (both("--unit", "mm", "--depth-scale=5000"), "mm and as 5000"),
    "a marker below the type": (both("--invalid", -1), "--invalid -1 .*uint16"),
    "a marker between integers": (both("--invalid", 0.5), "--invalid 0.5 .*uint16"),
    "empty range": (both("--preview", "--range", 5, 5), "range"),
    "an option that does not exist": (both("--sharper"), "--sharper"),
    "a number that is none": (both("--tolerance", "fast"), "fast"),
    "a type that is none": (both("--dtype", "uint12"), "uint12"),
}  # fmt: skip


def test_there_are_many_kinds_of_bad_input():
    assert len(BAD) >= 40


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_a_clear_answer_and_nothing_is_written(dada, tmp_path, monkeypatch, case):
    prepare, said = BAD[case]
    arguments = prepare(tmp_path)
    monkeypatch.chdir(tmp_path)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    ran = dada("upsample", *arguments)
    assert (ran.code, ran.out) == (2, ""), ran
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before
    assert "Traceback" not in ran.err
    if ran.err.startswith("╭"):  # the parser of arguments explains in a box
        assert said in ran.err
        return
    assert re.fullmatch(r"error: [^\n]+\.\n", ran.err), ran.err
    assert re.search(said, ran.err), ran.err
    assert re.search(rf"{tmp_path}|fine.png|a_preview.png|model|unit|intrinsics", ran.err)


@pytest.fixture
def unprivileged(tmp_path):
    """A folder that this process may read but not write to, also when the tests run as root."""
    folder = Path(tempfile.mkdtemp())
    put(folder, "depth.png", DEPTH)
    put(folder, "rgb.png", RGB)
    put(folder, "secret.png", DEPTH).chmod(0)
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


def test_missing_permission_is_explained(dada, unprivileged):
    ran = dada("upsample", unprivileged / "secret.png", unprivileged / "rgb.png", "-o", "/tmp/never.png")
    assert (ran.code, "permissions" in ran.err) == (2, True)
    ran = dada("upsample", unprivileged / "depth.png", unprivileged / "rgb.png")
    assert (ran.code, "may write to" in ran.err) == (2, True)
    assert {path.name for path in unprivileged.iterdir()} == {"depth.png", "rgb.png", "secret.png"}


def test_what_does_not_fit_memory_is_refused(dada, tmp_path, monkeypatch):
    monkeypatch.setattr("dada.upsampling.memory.available_memory", lambda: 1_000_000)
    ran = dada("upsample", *both()(tmp_path))
    assert ran.code == 2
    assert re.search(r"128 x 96 pixels .* needs about 0.0 GB of memory, and 0.0 GB are available", ran.err)


def test_a_full_disk_leaves_the_old_result_and_nothing_else(dada, tmp_path):
    import resource

    arguments = [*both()(tmp_path), "-o", tmp_path / "fine.tiff", "--report", tmp_path / "report.json"]
    (tmp_path / "fine.tiff").write_text("old")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, limits[1]))
    try:
        ran = dada("upsample", *arguments)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert ran.code == 2
    assert re.fullmatch(r"error: .*fine.tiff: the file cannot be written .*\.\n", ran.err)
    assert {path.name for path in tmp_path.iterdir()} == {"depth.png", "rgb.png", "fine.tiff"}
    assert (tmp_path / "fine.tiff").read_text() == "old"
