"""Several processes: the same bytes as one, also when a worker is killed, and on workers that the user started."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import pytest

from dada.cli import main
from dada.rasters import Settings, upsample_raster
from dada.rasters.engine import engine

distributed = pytest.importorskip("distributed")
SETTINGS = Settings(model="none", tile=64)


@pytest.fixture
def calm(tmp_path, pair) -> bytes:
    """What one process writes."""
    upsample_raster(*pair, tmp_path / "calm.tif", settings=SETTINGS, workers=1)
    return (tmp_path / "calm.tif").read_bytes()


def test_two_processes_one_of_them_killed_give_the_same_bytes(tmp_path, pair, calm, monkeypatch):
    """A worker is killed as soon as some tiles are there; dask starts another, and the tile under way again."""
    from dada.rasters import run

    killed: list[int] = []

    @contextmanager
    def watched(*given):
        with engine(*given) as machine:

            def kill() -> None:
                folder = tmp_path / "out.tif.tiles"
                while len(list(folder.glob("tile-*.npz"))) < 2:
                    time.sleep(0.01)
                killed.append(next(iter(machine.client.run(os.getpid).values())))
                os.kill(killed[0], signal.SIGKILL)

            thread = threading.Thread(target=kill, daemon=True)
            thread.start()
            yield machine
            thread.join(timeout=30)

    monkeypatch.setattr(run, "engine", watched)
    upsample_raster(*pair, tmp_path / "out.tif", settings=SETTINGS, workers=2, memory=4e9)
    assert killed
    assert (tmp_path / "out.tif").read_bytes() == calm


def test_workers_that_the_user_started_give_the_same_bytes(tmp_path, pair, calm):
    """`dask scheduler` and two `dask worker` processes on loopback addresses, and the command with --scheduler."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    dask = [sys.executable, "-m", "dask"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": tmp_path}
    host, port = address.split(":")
    started = [subprocess.Popen([*dask, "scheduler", "--host", host, "--port", port, "--no-dashboard"], **quiet)]
    worker = [*dask, "worker", f"tcp://{address}", "--nthreads", "1", "--no-dashboard", "--no-nanny"]
    try:
        worker += ["--local-directory", str(tmp_path), "--host"]
        started += [subprocess.Popen([*worker, local], **quiet) for local in ("127.0.0.1", "127.0.0.2")]
        with distributed.Client(f"tcp://{address}", timeout="60s") as client:
            client.wait_for_workers(2, timeout=120)
        options = ["--scheduler", f"tcp://{address}", "--model", "none", "--tile", "64"]
        assert main(["raster", *map(str, pair), "-o", str(tmp_path / "out.tif"), *options]) == 0
        assert (tmp_path / "out.tif").read_bytes() == calm
    finally:
        for process in reversed(started):
            process.kill()
            process.wait()


def test_the_command_killed_goes_on_and_gives_the_same_bytes(tmp_path, pair, calm):
    out = tmp_path / "out.tif"
    command = [sys.executable, "-m", "dada.cli", "raster", *map(str, pair), "-o", str(out), "--model", "none"]
    command += ["--tile", "64", "--workers", "1"]
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while len(list((tmp_path / "out.tif.tiles").glob("tile-*.npz"))) < 3 and running.poll() is None:
        time.sleep(0.005)
    running.kill()
    running.wait()
    assert not out.exists()
    report = upsample_raster(*pair, out, settings=SETTINGS, workers=1)
    assert report.resumed >= 3
    assert out.read_bytes() == calm
