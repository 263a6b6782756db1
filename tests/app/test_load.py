"""Facts about many requests at a time; `benchmarks/app.py` sends 200 of them."""

import importlib.util
import sys
from pathlib import Path

import pytest

from tests.app.conftest import Running


@pytest.fixture(scope="module")
def bench():
    path = Path(__file__).parents[2] / "benchmarks" / "app.py"
    if not path.exists():
        pytest.skip(f"no {path}: this is not a checkout")
    spec = importlib.util.spec_from_file_location("app_bench", path)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is read from /proc")
def test_all_are_answered_memory_is_steady_and_no_file_is_left(bench, server: Running):
    before = set(server.folders())
    bench.load(server.url, 8, 0, 8)  # every worker has begun
    first = bench.memory(server.process.pid)
    answers = bench.load(server.url, 30, 10, 8)
    assert answers == {"done": 20, "refused": 10}
    assert bench.memory(server.process.pid) < first + 80e6
    assert server.forgets(before)
    assert server.process.poll() is None
