"""Facts about memory that a command keeps: the next array finds it."""

import platform
import subprocess
import sys

import pytest

COUNT = """
import resource
import torch
from dada import machine

def faults(run):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    run()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

def array():
    torch.ones(1 << 25)  # 128 MB: 32,768 pages

def arrays():
    for _ in range(16):  # a small object beside a freed array may send the next one elsewhere, but not for ever
        array()

array()
plain = faults(arrays)
machine.keep_memory()
arrays()
print(plain, faults(arrays))
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries are left alone")
def test_freed_memory_is_used_again() -> None:
    done = subprocess.run([sys.executable, "-c", COUNT], capture_output=True, text=True, check=True)
    plain, kept = (int(text) for text in done.stdout.split())
    assert plain > 16 * 30_000  # each page is cleared anew
    assert kept < plain / 4


def test_on_other_systems_nothing_happens() -> None:
    code = "import sys\nsys.platform = 'darwin'\nfrom dada import machine\nmachine.keep_memory()\nprint('fine')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "fine\n"
