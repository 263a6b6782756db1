"""Facts about `dada upsample`: what comes in keeps its unit, type, invalid pixels and place on the ground."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import dada as package
from dada.cli import main
from dada.io import Georeference, read_image, write_image
from dada.upsampling.result import consistency

WGS = 'GEOGCS["WGS 84",DATUM["WGS_1984",SPHEROID["WGS 84",6378137,298.257223563]],PRIMEM["Greenwich",0],UNIT["degree",0.0174532925199433],AUTHORITY["EPSG","4326"]]'  # noqa: E501


def agrees(values: np.ndarray, source: np.ndarray, within: float) -> bool:
    largest, _ = consistency(values.astype(np.float64), source, np.ones(source.shape, bool))
    return largest <= within


def test_millimetres_in_millimetres_out(dada, pair, millimetres):
    ran = dada("upsample", *pair)
    assert ran.code == 0
    output = read_image(pair[0].parent / "depth_upsampled.png").values
    assert (output.dtype, output.shape) == (np.uint16, (96, 128))
    assert agrees(output, millimetres.astype(float), 0.5)
    lines = ran.out.splitlines()
    assert 2 <= len(lines) <= 4
    for part in ("16 x 12", "128 x 96", "x8", "uint16 millimetres", "depth_upsampled.png"):
        assert part in lines[0]
    assert "averaged back down" in lines[1]
    assert ran.err == ""


def test_quiet_prints_nothing(dada, pair):
    assert dada("upsample", *pair, "--quiet") == (0, "", "")


@pytest.mark.parametrize(
    ("options", "factor"), [(["--unit", "tum"], 5), (["--depth-scale", "5000"], 5), (["--unit", "cm"], 0.1)]
)
def test_other_units_keep_their_numbers(dada, pair, millimetres, options, factor):
    stored = np.rint(millimetres * factor).astype(np.uint16)
    write_image(pair[0], stored)
    ran = dada("upsample", *pair, *options, "-o", pair[0].parent / "fine.png")
    assert ran.code == 0
    assert agrees(read_image(pair[0].parent / "fine.png").values, stored.astype(float), 0.5)
    assert ("1/5000 m" in ran.out) or ("centimetres" in ran.out)


@pytest.mark.parametrize("suffix", [".tiff", ".pfm", ".exr", ".npy", ".npz"])
def test_float_metres_stay_float_metres(dada, pair, metres, suffix):
    source = pair[0].with_suffix(suffix)
    holed = metres.astype(np.float32)
    holed[2, 3] = np.nan
    write_image(source, holed)
    ran = dada("upsample", source, pair[1])
    assert ran.code == 0, ran.err
    result = read_image(source.with_name(f"depth_upsampled{suffix}"))
    assert result.values.dtype == np.float32
    assert np.isnan(result.values[16:24, 24:32]).all()
    assert np.isnan(result.values).sum() == 64
    assert "float32 metres" in ran.out
    assert "1 of 192 source cells are invalid: 64 pixels stay invalid" in ran.out


@pytest.mark.parametrize(
    ("suffix", "dtype", "unit_of_output"),
    [(".tiff", np.uint16, 1000), (".npy", np.uint16, 1000), (".pfm", np.float32, 1), (".exr", np.float32, 1)],
)
def test_the_suffix_decides_the_format_and_the_type_the_unit(dada, pair, metres, suffix, dtype, unit_of_output):
    output = pair[0].with_name(f"fine{suffix}")
    assert dada("upsample", *pair, "-o", output).code == 0
    values = read_image(output).values
    assert values.dtype == dtype
    assert agrees(values, metres * unit_of_output, 1.1e-3 * unit_of_output)


def test_float_metres_become_millimetres_in_png(dada, pair, metres):
    write_image(pair[0].with_suffix(".pfm"), metres.astype(np.float32))
    ran = dada("upsample", pair[0].with_suffix(".pfm"), pair[1], "-o", pair[0].with_name("fine.png"))
    assert "uint16 millimetres" in ran.out
    assert agrees(read_image(pair[0].with_name("fine.png")).values, metres * 1000, 0.5)


def test_type_and_unit_of_the_output_can_be_chosen(dada, pair, metres):
    output = pair[0].with_name("fine.tiff")
    assert dada("upsample", *pair, "-o", output, "--dtype", "float32", "--output-unit", "cm").code == 0
    values = read_image(output).values
    assert values.dtype == np.float32
    assert agrees(values, metres * 100, 0.06)


def test_invalid_pixels_stay_invalid_unless_they_are_to_be_filled(dada, pair, millimetres):
    holed = millimetres.copy()
    holed[4:6, 5] = 0
    write_image(pair[0], holed)
    output = pair[0].with_name("depth_upsampled.png")
    assert "128 pixels stay invalid" in dada("upsample", *pair).out
    assert (read_image(output).values == 0).sum() == 128
    assert "128 pixels filled" in dada("upsample", *pair, "--fill").out
    assert (read_image(output).values > 0).all()


def test_a_stated_invalid_value_is_kept(dada, pair, millimetres):
    holed = millimetres.astype(np.int16)
    holed[0, :4] = -999
    write_image(pair[0].with_suffix(".tiff"), holed)
    assert dada("upsample", pair[0].with_suffix(".tiff"), pair[1], "--invalid", "-999").code == 0
    result = read_image(pair[0].with_name("depth_upsampled.tiff"))
    assert (result.values == -999).sum() == 4 * 64
    assert (result.values.dtype, result.nodata) == (np.int16, -999)


def test_the_georeference_of_the_guide_is_carried_over(dada, tmp_path, scene, metres):
    place = Georeference(WGS, (0.001, 0.0, 8.0, 0.0, -0.001, 47.0))
    coarse = Georeference(WGS, (0.008, 0.0, 8.0, 0.0, -0.008, 47.0))
    heights = np.rint(metres * 100 - 300).astype(np.int16)
    heights[1, 1] = -32768
    write_image(tmp_path / "dsm.tif", heights, nodata=-32768, georeference=coarse)
    write_image(tmp_path / "ortho.tif", scene.guide, georeference=place)
    ran = dada("upsample", tmp_path / "dsm.tif", tmp_path / "ortho.tif")
    assert (ran.code, ran.err) == (0, "")
    result = read_image(tmp_path / "dsm_upsampled.tif")
    assert (result.values.dtype, result.nodata) == (np.int16, -32768)
    assert (result.values == -32768).sum() == 64
    assert result.georeference.transform == place.transform
    assert "4326" in result.georeference.crs
    assert "adjust shift" in ran.out
    assert "int16 metres" in ran.out
    # without a georeference of its own, the guide takes the source's
    write_image(tmp_path / "plain.png", scene.guide)
    dada("upsample", tmp_path / "dsm.tif", tmp_path / "plain.png", "-o", tmp_path / "b.tif")
    np.testing.assert_allclose(read_image(tmp_path / "b.tif").georeference.transform, place.transform)


def test_the_report_holds_every_warning_once(dada, tmp_path, scene, metres):
    source, guide, report = tmp_path / "dsm.tif", tmp_path / "ortho.tif", tmp_path / "report.json"
    three = np.stack([metres[:, :15]] * 3, axis=-1)  # read with a warning
    write_image(source, three, georeference=Georeference(WGS, (0.008, 0.0, 8.0, 0.0, -0.006, 47.0)))  # of odd factors
    write_image(guide, scene.guide, georeference=Georeference(WGS, (0.001, 0.0, 8.0, 0.0, -0.001, 47.0)))
    ran = dada("upsample", source, guide, "-o", tmp_path / "fine.npy", "--report", report)
    assert ran.code == 0
    written = json.loads(report.read_text())["warnings"]
    assert [f"warning: {text}" for text in written] == ran.err.splitlines()
    for said in (
        "cut to the area that both cover: 15 x 12 of 15 x 12",
        "channels of the source are equal",
        "factors differ",
        "it is dropped",
    ):
        assert sum(said in text for text in written) == 1, said


def test_a_16_bit_guide_with_nodata_is_scaled_as_one_without(dada, pair, tmp_path, scene):
    guide = scene.guide.astype(np.uint16) * np.uint16(257)
    guide[:10, :20] = 0
    ranges = []
    for nodata in (None, 0):
        write_image(tmp_path / "ortho.tif", guide, nodata=nodata)
        assert dada("upsample", pair[0], tmp_path / "ortho.tif", "--report", tmp_path / "r.json").code == 0
        ranges.append(json.loads((tmp_path / "r.json").read_text())["guide_range"])
    assert ranges == [[0, 65535]] * 2


def test_nodata_of_the_guide_is_no_edge(dada, pair, tmp_path, scene):
    guide = scene.guide.copy()
    guide[:10, :20] = 0
    write_image(tmp_path / "ortho.tif", guide, nodata=0)
    ran = dada("upsample", pair[0], tmp_path / "ortho.tif")
    assert ran.code == 0
    assert "warning: 200 guide pixels have no value" in ran.err


@pytest.mark.parametrize("levels", [1, 2, 255, 65535])
def test_confidence_files(dada, pair, millimetres, levels):
    confidence = np.full((12, 16), levels, np.uint16 if levels == 65535 else np.uint8)
    confidence[3, 3] = 0
    write_image(pair[0].with_name("confidence.png"), confidence)
    ran = dada("upsample", *pair, "--confidence", pair[0].with_name("confidence.png"))
    assert ran.code == 0, ran.err
    assert (read_image(pair[0].with_name("depth_upsampled.png")).values == 0).sum() == 64
    assert ("taken as 0 to 1" in ran.err) == (levels <= 2)


def test_pictures_points_and_report(dada, pair, scene):
    folder = pair[0].parent
    ran = dada(
        "upsample", *pair, "-o", folder / "fine.tiff", "--preview", "--compare", "--range", 1000, 4000,
        "--report", folder / "report.json", "--point-cloud", folder / "fine.ply", "--intrinsics",
        "123,123,63.5,47.5",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    names = {path.name for path in folder.iterdir()}
    assert names == {
        "depth.png", "rgb.png", "fine.tiff", "fine_preview.png", "fine_compare.png", "report.json",
        "fine.ply",
    }  # fmt: skip
    assert (folder / "fine_preview.png").read_bytes()[:4] == b"\x89PNG"
    report = json.loads((folder / "report.json").read_text())
    assert report["source_size"] == [12, 16]
    assert report["stored"]["unit"] == "mm"
    assert report["stored"]["consistency_max"] <= 0.5
    assert report["converged"] is True
    head, _, body = (folder / "fine.ply").read_bytes().partition(b"end_header\n")
    assert b"element vertex 12288" in head
    points = np.frombuffer(body, np.dtype([("xyz", "<f4", 3), ("rgb", "u1", 3)]))
    np.testing.assert_array_equal(points["rgb"].reshape(96, 128, 3), scene.guide)
    depth = read_image(folder / "fine.tiff").values / 1000
    np.testing.assert_allclose(points["xyz"][:, 2].reshape(96, 128), depth, atol=6e-4)


def test_named_arrays(dada, pair, tmp_path, metres):
    np.savez(tmp_path / "both.npz", depth=metres, other=metres)
    assert dada("upsample", tmp_path / "both.npz", pair[1], "--source-key", "depth").code == 0
    assert read_image(tmp_path / "both_upsampled.npz", key="values").values.dtype == np.float64


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: (d / 40).astype(np.uint8), "256 levels"),
        (lambda d: d[:, :15], "factors differ"),
        (lambda d: d.repeat(8, 0).repeat(8, 1), "nothing to upsample"),
    ],
)
def test_oddities_are_warned_of_in_one_line(dada, pair, millimetres, change, said):
    write_image(pair[0], change(millimetres))
    ran = dada("upsample", *pair)
    assert ran.code == 0
    lines = ran.err.splitlines()
    assert any(said in line for line in lines)
    assert all(line.startswith("warning: ") for line in lines)


def test_equal_commands_give_equal_bytes(dada, pair):
    for suffix in (".png", ".tiff", ".npz", ".exr"):
        files = [pair[0].with_name(f"{name}{suffix}") for name in "ab"]
        for file in files:
            dada("upsample", *pair, "-o", file)
        assert files[0].read_bytes() == files[1].read_bytes()


# ---- the command itself ------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", [[], ["upsample"], ["batch"], ["demo"]])
def test_every_help_has_an_example(dada, command):
    ran = dada(*command, "--help")
    assert ran.code == 0
    assert f"For example: `dada {' '.join(command) or 'upsample'}" in ran.out


def test_without_arguments_the_help_is_shown(dada):
    assert dada() == dada("--help")


def test_version(dada):
    assert dada("--version") == (0, f"dada {package.__version__}\n", "")


def test_importing_the_commands_imports_nothing_heavy():
    code = (
        "import sys; from dada.cli import main; main(['--help']); "
        "print([m for m in ('torch', 'numba', 'cv2', 'matplotlib', 'rasterio') if m in sys.modules])"
    )
    begin = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    print(f"dada --help took {time.perf_counter() - begin:.2f} s")
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_real_process_works_and_refuses(pair):
    command = [sys.executable, "-m", "dada.cli", "upsample"]
    done = subprocess.run([*command, *pair], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    done = subprocess.run([*command, pair[1], pair[0]], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.stderr


def test_an_interrupt_ends_quietly(pair, tmp_path):
    command = [sys.executable, "-m", "dada.cli", "upsample", *map(str, pair)]
    # compile the loop first: the interrupt is meant for the loop, and LLVM may abort on one
    warm = tmp_path / "warm.png"
    subprocess.run([*command, "-o", str(warm), "--solver", "iterate", "--steps", "2"], check=True, capture_output=True)
    warm.unlink()
    process = subprocess.Popen(
        [*command, "--solver", "iterate", "--steps", "5000000"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a suite in the background ignores it
    )
    time.sleep(4)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, b"", b"")
    assert {path.name for path in tmp_path.iterdir()} == {"depth.png", "rgb.png"}


@pytest.mark.parametrize("old", [["--method", "iterate"], ["--method=iterate"]])
def test_the_old_name_of_the_solver_is_still_taken_and_not_shown(dada, pair, tmp_path, old):
    ran = dada("upsample", *pair, "-o", tmp_path / "fine.png", *old, "--steps", 3, "--report", tmp_path / "r.json")
    assert ran.code == 0
    assert json.loads((tmp_path / "r.json").read_text())["solver"] == "iterate"
    assert "--method" not in dada("upsample", "--help").out


def test_an_interrupt_anywhere_is_130(monkeypatch, pair):
    def interrupted(job):
        raise KeyboardInterrupt

    monkeypatch.setattr("dada.pairs.job.run_job", interrupted)
    assert main(["upsample", *map(str, pair)]) == 130


def test_a_closed_pipe_is_no_error(pair):
    command = [sys.executable, "-m", "dada.cli", "upsample", *map(str, pair)]
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    assert done.stderr == b""
    assert Path(pair[0].parent / "depth_upsampled.png").exists()


def test_the_first_call_says_once_that_it_compiles(tmp_path, monkeypatch):
    """On the standard error of the command; the second process finds what was compiled."""
    files = tmp_path / "source.npy", tmp_path / "guide.npy", tmp_path / "out.npy"
    np.save(files[0], np.random.default_rng(0).random((4, 4)).astype(np.float32) + 1)
    np.save(files[1], np.random.default_rng(1).random((16, 16, 3)).astype(np.float32))
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    command = [sys.executable, "-m", "dada.cli", "upsample", *map(str, files[:2]), "-o", str(files[2])]
    errors = [subprocess.run(command, capture_output=True, text=True, check=True).stderr for _ in range(2)]
    assert [text.count("compiling for this machine, which may take a minute and happens once") for text in errors] == [
        1,
        0,
    ]


def test_threads_must_be_some(dada, pair):
    ran = dada("upsample", *pair, "--threads", 0)
    assert ran.code == 2
    assert "threads 0 is not a number of threads" in ran.err
