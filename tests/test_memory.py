"""Facts about memory that is kept: the next array finds it, and in the end it goes back to the system."""

import platform
import subprocess
import sys

import pytest

COUNT = """
import resource
import torch
from dada import memory

def faults(run):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    run()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

def resident():
    lines = open("/proc/self/status").read().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) // 1024

def array():
    torch.ones(1 << 25)  # 128 MB: 32,768 pages

def arrays():
    for _ in range(16):  # a small object beside a freed array may send the next one elsewhere, but not for ever
        array()

array()
plain, before = faults(arrays), resident()
with memory.kept_memory():
    arrays()
    with memory.kept_memory():
        pass
    kept, held = faults(arrays), resident()
after = resident()
print(plain, kept, held - before, after - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries are left alone")
def test_freed_memory_is_used_again_within_the_block_and_given_back_after_it() -> None:
    done = subprocess.run([sys.executable, "-c", COUNT], capture_output=True, text=True, check=True)
    plain, kept, held, after = (int(text) for text in done.stdout.split())
    assert plain > 16 * 30_000  # each page is cleared anew
    assert kept < plain / 4
    assert held > 100
    assert after < 30


def test_on_other_systems_nothing_happens() -> None:
    code = "import sys\nsys.platform = 'darwin'\nfrom dada import memory\nwith memory.kept_memory(): print('fine')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "fine\n"
