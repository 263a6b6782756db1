"""Facts about what is kept of compiled functions: processes that compile at the same time never mix their code."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dada.jit import NamedFiles

MODULE = """
import sys
import numpy as np
from dada.jit import jit

@jit()
def double(value):
    return value + value

if __name__ == "__main__":
    print(double(np.dtype(sys.argv[1]).type(3)))
    print(sum(double.stats.cache_hits.values()), sum(double.stats.cache_misses.values()))
"""


@pytest.fixture
def module(tmp_path, monkeypatch) -> Path:
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    path = tmp_path / "module_numba.py"
    path.write_text(MODULE)
    return path


def run(module: Path, kind: str) -> list[str]:
    ran = subprocess.run([sys.executable, module, kind], capture_output=True, text=True, check=True)
    return ran.stdout.splitlines()


def test_the_second_process_compiles_nothing(module):
    assert run(module, "float32") == ["6.0", "0 1"]
    assert run(module, "float32") == ["6.0", "1 0"]
    assert run(module, "int64") == ["6", "0 1"]


def test_processes_that_compile_at_the_same_time_keep_their_own_code(tmp_path, monkeypatch):
    first, second = (NamedFiles(str(tmp_path), "function.py311", "stamp") for _ in range(2))
    write = first._save_data

    def write_late(name, data):
        monkeypatch.setattr(second, "_load_index", dict)  # as it was when the first one looked
        second.save("float64", "code for float64")
        write(name, data)

    monkeypatch.setattr(first, "_save_data", write_late)
    first.save("float32", "code for float32")
    later = NamedFiles(str(tmp_path), "function.py311", "stamp")
    assert later.load("float32") in (None, "code for float32")
    assert later.load("float64") in (None, "code for float64")
    assert later.load("float32") or later.load("float64")


def test_what_is_listed_is_there(tmp_path, monkeypatch):
    files = NamedFiles(str(tmp_path), "function.py311", "stamp")

    def killed(overloads):
        raise KeyboardInterrupt

    monkeypatch.setattr(files, "_save_index", killed)
    with pytest.raises(KeyboardInterrupt):
        files.save("float32", "code")
    assert NamedFiles(str(tmp_path), "function.py311", "stamp").load("float32") is None


def test_a_change_beside_a_function_compiles_it_anew(module):
    run(module, "float32")
    (module.parent / "rows_numba.py").write_text("# the function might take code from here\n")
    assert run(module, "float32") == ["6.0", "0 1"]


def test_what_was_kept_of_another_version_is_removed(module):
    run(module, "float32")
    run(module, "int64")
    assert len(list(module.parent.glob("__pycache__/*.nbc"))) == 2
    module.write_text(MODULE.replace("value + value", "2 * value"))
    assert run(module, "float32") == ["6.0", "0 1"]
    assert len(list(module.parent.glob("__pycache__/*.nbc"))) == 1


def test_without_a_folder_to_write_to_nothing_is_kept(module, monkeypatch):
    from numba.core import caching

    monkeypatch.setattr(caching.CacheImpl, "_locator_classes", [])
    found = importlib.util.spec_from_file_location("module_numba", module)
    loaded = importlib.util.module_from_spec(found)
    found.loader.exec_module(loaded)
    assert loaded.double(np.float32(3)) == 6


def test_the_solver_is_compiled_so():
    from dada.diffusion import _numba_joined

    assert isinstance(_numba_joined.descend._cache._cache_file, NamedFiles)


TUPLES = """
import sys
from typing import NamedTuple
import numpy as np
from dada.jit import jit

class {name}(NamedTuple):
    value: float

@jit()
def double(given):
    return 2 * given.value

if __name__ == "__main__":
    import module_numba
    print(module_numba.double(module_numba.{name}(3.0)))
"""


def test_a_list_that_names_what_is_gone_is_not_read(tmp_path, monkeypatch):
    """A type that another version had: its list cannot be read, and is written anew."""
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    module = tmp_path / "module_numba.py"
    for name in ("Before", "After"):
        module.write_text(TUPLES.format(name=name))
        assert run(module, "") == ["6.0"]
    assert run(module, "") == ["6.0"]
