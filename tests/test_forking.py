"""A forked process computes on one thread: torch's others did not come with it, and it would wait for them for ever."""

import multiprocessing
import os
import subprocess
import sys

import pytest

from dada import forking

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")

CHILD = """
import os, sys, warnings
import numpy as np
import torch
{before}
torch.set_num_threads(2)
torch.nn.functional.conv2d(torch.rand(1, 8, 512, 512), torch.rand(8, 8, 3, 3))  # starts torch's threads
source, guide = np.linspace(1, 2, 1200, dtype=np.float32).reshape(30, 40), np.zeros((240, 320, 3), np.uint8)
guide[:, 160:] = 200
{parent}

def work():
    import dada
    from dada.diffusion import coefficients, equilibrium

    result = dada.upsample(source, guide)
    solution = equilibrium(torch.from_numpy(source)[None, None], coefficients(torch.rand(1, 3, 240, 320), 0.3))
    return result.report.consistency_max < 1e-6 and bool(solution.converged.all()) and torch.get_num_threads() == 1

warnings.simplefilter("ignore")
{child}
"""
BY_FORK = """
child = os.fork()
if child == 0:
    os._exit(0 if work() else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
BY_POOL = """
import multiprocessing
with multiprocessing.get_context("fork").Pool(1) as pool:
    sys.exit(0 if pool.apply(work) else 1)
"""
CASES = {
    "after the parent has used both": ("import dada", "dada.upsample(source, guide)", BY_FORK),
    "where dada is imported in the child": ("", "", BY_POOL),
}


@pytest.mark.parametrize("case", CASES)
def test_a_forked_child_never_waits_for_threads(case):
    if "in the child" in case and not sys.platform.startswith("linux"):
        pytest.skip("how a process began is only known on Linux")
    before, parent, child = CASES[case]
    script = CHILD.format(before=before, parent=parent, child=child)
    environment = {k: v for k, v in os.environ.items() if k != "OMP_NUM_THREADS"}
    ran = subprocess.run([sys.executable, "-c", script], timeout=240, env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize(("way", "forked"), [("spawn", False), ("fork", True)])
def test_only_a_process_that_was_forked_counts_as_such(way, forked):
    if forked and not sys.platform.startswith("linux"):
        pytest.skip("how a process began is only known on Linux")
    with multiprocessing.get_context(way).Pool(1) as pool:
        assert pool.apply(forking._forked_by_multiprocessing) == forked
