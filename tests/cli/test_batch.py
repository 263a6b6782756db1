"""Facts about `dada batch`: pairs by name, failures do not spread, and a killed run resumes to the same
files."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from dada.cli.pairing import pair, pair_confidence
from dada.errors import InputError
from dada.io import read_image, write_image
from dada.pairs import workers
from dada.pairs.job import Job
from dada.pairs.options import Options


def touch(folder: Path, *names: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name in names:
        (folder / name).write_bytes(b"x")
    return folder


@pytest.fixture
def data(tmp_path, scene, millimetres) -> Path:
    """Folders depth and rgb of four pairs that differ a little."""
    for name in ("depth", "rgb"):
        (tmp_path / name).mkdir()
    for i in range(4):
        write_image(tmp_path / "depth" / f"depth_{i:04}.png", millimetres + np.uint16(10 * i))
        write_image(tmp_path / "rgb" / f"rgb_{i:04}.png", scene.guide)
    return tmp_path


def digests(folder: Path) -> dict[str, str]:
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in sorted(folder.glob("*.png"))}


# ---- pairs by name -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "guide"),
    [
        ("depth_0001.png", "rgb_0001.png"),
        ("0001_depth.png", "0001_color.jpg"),
        ("cat.png", "cat.png"),
        ("1305031102.160407.png", "1305031102.160407.png"),
        ("office-3-disp.pfm", "office-3-rgb.png"),
        ("frame-000001.depth.png", "frame-000001.color.png"),
        ("tile_7_DSM.tif", "tile_7_ortho.tif"),
        ("LR_0803.npy", "HR_0803.png"),
    ],
)
def test_usual_names_are_paired(tmp_path, source, guide):
    sources = touch(tmp_path / "a", source, "other_9.png", "notes.txt", ".hidden.png")
    guides = touch(tmp_path / "b", guide, "unrelated.png")
    found = pair(sources, guides)
    assert [(a.name, b.name) for a, b in found.matched] == [(source, guide)]
    assert [path.name for path in found.alone] == ["other_9.png"]
    if source != guide:
        same = touch(tmp_path / "c", source, guide)
        assert [(a.name, b.name) for a, b in pair(same, same).matched] == [(source, guide)]


def test_patterns_decide_where_words_cannot(tmp_path):
    folder = touch(tmp_path / "a", "1_d.png", "1_left.png", "1_right.png", "2_d.png", "2_left.png")
    found = pair(folder, folder, "*_d.png", "*_left.png")
    assert [(a.name, b.name) for a, b in found.matched] == [("1_d.png", "1_left.png"), ("2_d.png", "2_left.png")]


def test_confidences_are_found_beside_their_sources_or_in_a_folder_of_their_own(tmp_path):
    names = [f"{kind}_{i}.png" for kind in ("depth", "rgb", "conf") for i in (1, 2)]
    folder = touch(tmp_path / "a", *names)
    found = pair(folder, folder)
    assert [(a.name, b.name) for a, b in found.matched] == [("depth_1.png", "rgb_1.png"), ("depth_2.png", "rgb_2.png")]
    assert found.alone == []
    sources = [source for source, _ in found.matched]
    assert [p.name for p in pair_confidence(sources, folder).values()] == ["conf_1.png", "conf_2.png"]
    other = touch(tmp_path / "confidence", "1.png", "2.png")
    assert [p.name for p in pair_confidence(sources, other).values()] == ["1.png", "2.png"]
    named = touch(tmp_path / "c", "1-c.tif", "2-c.tif")
    assert len(pair_confidence(sources, named, "depth_*.png", "*-c.tif")) == 2


@pytest.mark.parametrize(
    ("sources", "guides", "options", "said"),
    [
        (["a.png"], ["b.png"], {}, "none of its 1 images has a partner.*--source-pattern"),
        (["a.png", "a.tiff"], ["a.png"], {}, "a.png and a.tiff are both 'a'"),
        (["notes.txt"], ["b.png"], {}, "holds no images"),
        (["a.png"], ["a.png"], {"source_pattern": "a.png"}, "exactly one"),
        (["a.png"], ["a.png"], {"guide_pattern": "*_rgb.png"}, "no images called"),
    ],
)
def test_what_cannot_be_paired_is_explained(tmp_path, sources, guides, options, said):
    with pytest.raises(InputError, match=said):
        pair(touch(tmp_path / "s", *sources), touch(tmp_path / "g", *guides), **options)
    with pytest.raises(InputError, match="not a folder"):
        pair(tmp_path / "nowhere", tmp_path / "g")


# ---- the command -------------------------------------------------------------------------------------------


def test_failures_are_listed_at_the_end_and_stop_nothing(dada, data, scene):
    (data / "depth" / "depth_0001.png").write_bytes(b"damaged")
    write_image(data / "depth" / "depth_0007.png", np.ones((12, 16), np.uint16))
    ran = dada("batch", data / "depth", data / "rgb", data / "out")
    assert ran.code == 1
    assert ran.out.splitlines()[0] == f"{data / 'out'}: 3 of 4 done, 2 failed"
    failures = ran.err.splitlines()
    assert len(failures) == 2
    assert failures[0].startswith("failed: depth_0001.png: ")
    assert "text file" in failures[0]
    assert failures[1] == f"failed: depth_0007.png: no guide of this name in {data / 'rgb'}."
    assert set(digests(data / "out")) == {"depth_0000.png", "depth_0002.png", "depth_0003.png"}
    # mended, the next run does what is left and nothing else
    before = {p.name: p.stat().st_mtime_ns for p in (data / "out").glob("*.png")}
    write_image(data / "depth" / "depth_0001.png", read_image(data / "depth" / "depth_0000.png").values)
    (data / "depth" / "depth_0007.png").unlink()
    ran = dada("batch", data / "depth", data / "rgb", data / "out", "--jobs", 1)
    assert (ran.code, ran.err) == (0, "")
    assert "1 of 1 done, 3 complete from before" in ran.out
    after = {p.name: p.stat().st_mtime_ns for p in (data / "out").glob("*.png")}
    assert {name: after[name] for name in before} == before
    assert digests(data / "out")["depth_0001.png"] == digests(data / "out")["depth_0000.png"]


def test_confidence_preview_and_points_of_each_pair(dada, data, millimetres):
    for i in range(3):
        levels = np.full(millimetres.shape, 2, np.uint8)
        levels[i, 0], levels[5, 5] = 0, 1
        (data / "conf").mkdir(exist_ok=True)
        write_image(data / "conf" / f"conf_{i:04}.png", levels)
    beside = ["--confidence", data / "conf", "--preview", "--point-cloud", "--intrinsics", "123,123,63.5,47.5"]
    command = ["batch", data / "depth", data / "rgb", data / "out", "--jobs", 1]
    ran = dada(*command, *beside)
    assert ran.code == 1
    assert ran.err.splitlines() == [f"failed: depth_0003.png: no confidence of this name in {data / 'conf'}."]
    assert "warning: confidence has levels 0 to 2, taken as 0 to 1 (1: exact) (3 of 3 pairs)" in ran.out
    for i in range(3):
        values = read_image(data / "out" / f"depth_{i:04}.png").values
        assert (values == 0).sum() == 64
        assert (values[8 * i : 8 * i + 8, :8] == 0).all()
        assert (data / "out" / f"depth_{i:04}_preview.png").exists()
        assert b"element vertex 12224" in (data / "out" / f"depth_{i:04}.ply").read_bytes()[:300]
    # a picture that is gone, and a confidence that changed, are done again
    (data / "out" / "depth_0000_preview.png").unlink()
    write_image(data / "conf" / "conf_0001.png", np.full(millimetres.shape, 2, np.uint8))
    assert "2 of 2 done, 1 complete from before" in dada(*command, *beside).out
    assert (read_image(data / "out" / "depth_0001.png").values > 0).all()
    ran = dada(*command, "--point-cloud")
    assert (ran.code, "--intrinsics" in ran.err) == (2, True)


def test_results_are_those_of_single_commands(dada, data):
    assert dada("batch", data / "depth", data / "rgb", data / "out", "--format", "npy", "--quiet") == (0, "", "")
    single, threads = data / "single.npy", torch.get_num_threads()
    torch.set_num_threads(1)  # as each job has; with more, sums are rounded in another order
    dada("upsample", data / "depth" / "depth_0002.png", data / "rgb" / "rgb_0002.png", "-o", single)
    torch.set_num_threads(threads)
    np.testing.assert_array_equal(read_image(data / "out" / "depth_0002.npy").values, read_image(single).values)


def test_other_settings_need_another_folder(dada, data):
    (data / "out").mkdir()
    settings = {"dada": "0", "fill": True}
    (data / "out" / "dada-batch.json").write_text(json.dumps(settings))
    ran = dada("batch", data / "depth", data / "rgb", data / "out")
    assert ran.code == 2
    assert "fill was True, now False" in ran.err
    assert "--no-resume" in ran.err
    assert [path.name for path in (data / "out").iterdir()] == ["dada-batch.json"]


def test_a_pair_of_other_files_is_done_again(dada, data, scene, millimetres):
    depth, rgb, out = data / "depth", data / "rgb", data / "out"
    again = lambda guides=rgb: dada("batch", depth, guides, out, "-j", 2).out  # noqa: E731
    assert "4 of 4 done" in again()
    assert "0 of 0 done, 4 complete" in again()
    old = depth / "depth_0002.png"
    write_image(old, millimetres + np.uint16(77))
    os.utime(old, ns=(10**18, 10**18))  # replaced by an older file
    assert "1 of 1 done, 3 complete" in again()
    os.utime(rgb / "rgb_0001.png", ns=(10**18, 10**18))
    assert "1 of 1 done, 3 complete" in again()
    (data / "other").mkdir()
    for path in rgb.iterdir():
        write_image(data / "other" / path.name, scene.guide[::-1])
        os.utime(data / "other" / path.name, ns=(10**18, 10**18))
    before = digests(out)
    assert "4 of 4 done" in again(data / "other")
    assert not before.items() & digests(out).items()


def test_an_old_result_is_not_taken_for_the_one_that_a_killed_run_planned(dada, data, monkeypatch):
    depth, rgb, out = data / "depth", data / "rgb", data / "out"
    assert dada("batch", depth, rgb, out, "-j", 2).code == 0
    wanted = digests(out)
    os.utime(depth / "depth_0003.png", ns=(10**18, 10**18))
    monkeypatch.setattr(workers, "run_all", lambda jobs, count: iter(()))  # killed after planning
    dada("batch", depth, rgb, out)
    monkeypatch.undo()
    monkeypatch.chdir(data)  # the same folder by another name
    assert "1 of 1 done, 3 complete" in dada("batch", "depth", "rgb", "out", "-j", 2).out
    assert digests(out) == wanted


@pytest.mark.parametrize("outdir", ["depth", "rgb"])
def test_results_never_go_where_the_inputs_are(dada, data, outdir):
    before = digests(data / outdir)
    ran = dada("batch", data / "depth", data / "rgb", data / outdir)
    assert (ran.code, "overwrite" in ran.err) == (2, True)
    assert digests(data / outdir) == before


def test_two_runs_do_not_share_a_folder(dada, data):
    fcntl = pytest.importorskip("fcntl")
    (data / "out").mkdir()
    with (data / "out" / ".dada-batch.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        ran = dada("batch", data / "depth", data / "rgb", data / "out")
    assert (ran.code, "another run" in ran.err) == (2, True)


@pytest.mark.parametrize("number", [0, -1])
def test_no_processes_is_a_mistake(dada, data, number):
    ran = dada("batch", data / "depth", data / "rgb", data / "out", "--jobs", number)
    assert (ran.code, "1 or more" in ran.err) == (2, True)
    assert not (data / "out").exists()


# ---- processes that die ------------------------------------------------------------------------------------


def children(process: int) -> list[int]:
    listed = Path(f"/proc/{process}/task/{process}/children")
    return [int(child) for child in listed.read_text().split()] if listed.exists() else []


def alive(process: int) -> bool:
    status = Path(f"/proc/{process}/stat")
    return status.exists() and status.read_text().rsplit(")", 1)[1].split()[0] != "Z"


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc to find the workers")
def test_a_killed_run_leaves_whole_files_and_resumes_to_the_same(dada, data):
    assert dada("batch", data / "depth", data / "rgb", data / "straight") == (0, f"{data}/straight: 4 of 4 done\n", "")
    out = data / "out"
    command = [sys.executable, "-m", "dada.cli", "batch", data / "depth", data / "rgb", out, "-j", "1"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not list(out.glob("*.png")) and time.monotonic() < deadline:
        time.sleep(0.002)
    family = children(process.pid)
    process.send_signal(signal.SIGKILL)
    process.wait()
    while any(alive(child) for child in family) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert family
    assert not any(alive(child) for child in family)  # nobody goes on without its parent
    wanted = digests(data / "straight")
    done = digests(out)
    assert done
    assert done.items() <= wanted.items()
    (out / ".dada-0123456789abcdef.tmp").write_bytes(b"half a resul")
    kept = {path.name: path.stat().st_mtime_ns for path in out.glob("*.png")}
    assert dada("batch", data / "depth", data / "rgb", out).code == 0
    assert digests(out) == wanted
    assert {name: (out / name).stat().st_mtime_ns for name in kept} == kept
    assert {path.name for path in out.iterdir()} == {*wanted, "dada-batch.json"}


def die_on_second(job: Job) -> workers.Done:
    """Stands for a job that the system kills for lack of memory."""
    if job.source.name == "2":
        os.kill(os.getpid(), signal.SIGKILL)
    return workers.Done(job, None, [])


def test_a_job_that_kills_its_process_is_the_only_one_to_fail(monkeypatch):
    monkeypatch.setattr(workers, "run_one", die_on_second)
    jobs = [Job(Path(str(i)), Path("g"), Path("o"), Options()) for i in range(5)]
    done = list(workers.run_all(jobs, 2))
    assert sorted(result.job.source.name for result in done) == ["0", "1", "2", "3", "4"]
    assert [result.job.source.name for result in done if result.failure] == ["2"]
