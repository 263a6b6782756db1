"""Compiled kernels are kept for the next process, whatever happens to the cache, and whoever else compiles."""

import logging
import os
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from dada import compiling
from dada.diffusion import equilibrium

from .diffusion.problems import random_problem

MODULE = """
import logging, sys
import numpy as np
from dada import compiling

@compiling.kernel
def double(values):
    for i in range(values.shape[0]):
        values[i] *= 2

if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    for kind in sys.argv[1:]:
        values = np.ones(3, kind)
        double(values)
        print(values.sum(), values.dtype)
"""
BOTH = ["6.0 float32", "6.0 float64"]


@pytest.fixture
def module(tmp_path) -> Path:
    folder = tmp_path / "package" / "kernels"
    folder.mkdir(parents=True)
    (folder / "double.py").write_text(MODULE)
    return folder / "double.py"


def run(module: Path, *kinds: str, **environment: str) -> tuple[list[str], bool]:
    """What the module prints, and whether it says that it compiles."""
    variables = {k: v for k, v in os.environ.items() if k not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")} | environment
    ran = subprocess.run([sys.executable, module, *kinds], capture_output=True, text=True, check=True, env=variables)
    assert ran.stderr.count("compiling for this machine") <= 1
    return ran.stdout.splitlines(), "compiling for this machine" in ran.stderr


@pytest.fixture
def load(module, tmp_path, monkeypatch, caplog):
    """Load the module and call its kernel, as `run` does, but in this process; whether it was compiled."""

    def load() -> bool:
        monkeypatch.setattr(compiling.settings, "CACHE_DIR", str(tmp_path / "cache"))
        monkeypatch.setattr(compiling._Announce, "done", False)
        compiling.cache_folder.cache_clear()
        caplog.clear()
        loaded = runpy.run_path(str(module), run_name="loaded")
        with caplog.at_level(logging.INFO, "dada"):
            values = np.ones(3, np.float32)
            loaded["double"](values)
        assert values.tolist() == [2, 2, 2]
        return bool(caplog.records)

    yield load
    compiling.cache_folder.cache_clear()


def cache_files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.nb[ic]"))


def test_the_second_process_compiles_nothing_and_says_nothing(module, tmp_path):
    cache = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    assert run(module, "float32", **cache) == (BOTH[:1], True)
    assert run(module, "float32", **cache) == (BOTH[:1], False)
    assert run(module, "float32", "float64", **cache) == (BOTH, True)
    assert len({file.parents[1] for file in cache_files(tmp_path / "cache")}) == 2  # a folder for each type


def test_a_cache_that_numba_was_told_of_is_used(module, tmp_path):
    run(module, "float32", NUMBA_CACHE_DIR=str(tmp_path / "told"))
    assert cache_files(tmp_path / "told")


@pytest.mark.parametrize("ending", [".nbi", ".nbc"])
def test_a_damaged_cache_is_built_anew(load, tmp_path, ending):
    load()
    (file,) = (file for file in cache_files(tmp_path / "cache") if file.suffix == ending)
    for damaged in (b"", b"garbage", file.read_bytes()[: file.stat().st_size // 2]):
        file.write_bytes(damaged)
        assert load()
    assert not load()


def test_processes_that_compile_at_the_same_time_do_not_harm_each_other(module, tmp_path):
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    environment.pop("NUMBA_CACHE_DIR", None)
    orders = [("float32", "float64"), ("float64", "float32")] * 2
    started = [
        subprocess.Popen([sys.executable, module, *order], stdout=subprocess.PIPE, text=True, env=environment)
        for order in orders
    ]
    for process, order in zip(started, orders, strict=True):
        printed, _ = process.communicate(timeout=120)
        assert printed.splitlines() == [f"6.0 {kind}" for kind in order]
    assert run(module, "float32", "float64", XDG_CACHE_HOME=str(tmp_path / "cache")) == (BOTH, False)


def test_without_a_home_the_folder_for_temporary_files_serves(module, tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "temporary").mkdir()
    nowhere = {"HOME": str(tmp_path / "file"), "TMPDIR": str(tmp_path / "temporary")}
    assert run(module, "float32", **nowhere) == (BOTH[:1], True)
    assert run(module, "float32", **nowhere) == (BOTH[:1], False)
    assert cache_files(tmp_path / "temporary")


def test_the_source_may_be_read_only(module, load):
    for path in (module, module.parent, module.parent.parent):
        path.chmod(0o555)
    try:
        assert load()
        assert not list(module.parent.glob("__pycache__"))
    finally:
        module.parent.parent.chmod(0o755)
        module.parent.chmod(0o755)


def test_a_changed_file_beside_or_above_compiles_anew(module, load):
    load()
    for changed in (module.parent / "rows.py", module.parent.parent / "constants.py"):
        changed.write_text("OMEGA = 0.9\n")
        assert load()


def test_old_versions_are_removed_in_the_end(load, tmp_path):
    root = tmp_path / "cache" / "dada"
    for number in range(compiling.KEPT + 3):
        (root / f"kernels-{number}").mkdir(parents=True)
    load()
    assert len(list(root.iterdir())) == compiling.KEPT


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="folders have no owner on this system")
def test_a_folder_that_others_may_write_to_is_not_read(tmp_path):
    assert compiling._is_ours(tmp_path)
    tmp_path.chmod(0o777)
    assert not compiling._is_ours(tmp_path)


def test_the_solver_says_so_once_when_it_compiles(caplog, monkeypatch):
    monkeypatch.setattr(compiling._Announce, "done", False)
    monkeypatch.setattr(compiling, "cache_folder", lambda source: None)

    @compiling.kernel
    def first(values):
        values[0] = 1

    @compiling.kernel
    def second(values):
        values[0] = 2

    with caplog.at_level(logging.INFO, "dada"):
        first(np.zeros(2))
        second(np.zeros(2))
    assert [record.message for record in caplog.records] == [
        "compiling for this machine, which may take a minute and happens in every process: no cache folder can be "
        "written"
    ]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_solves_with_threads_of_its_own(monkeypatch):
    """Those of the parent do not survive: the child would wait for them for ever."""
    monkeypatch.setattr(compiling, "LARGE", 1)
    source, c = random_problem((128, 96), (16, 12), dtype=torch.float32)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        expected = equilibrium(source, c).values
        child = os.fork()
        if child == 0:
            os._exit(0 if torch.equal(equilibrium(source, c).values, expected) else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        torch.set_num_threads(before)
