"""What `import dada` asks of the threads of torch."""

import os
import subprocess
import sys

import pytest

ASK = "import os; print(os.environ.get('GOMP_SPINCOUNT'), os.environ.get('OMP_WAIT_POLICY'))"


@pytest.mark.parametrize(
    ("before", "chosen", "expected"),
    [
        ("", {}, "10000 None"),
        ("", {"GOMP_SPINCOUNT": "7"}, "7 None"),
        ("", {"OMP_WAIT_POLICY": "active"}, "None active"),
        ("import torch", {}, "None None"),  # too late: torch has read it
    ],
)
def test_threads_wait_shortly_unless_the_user_chose(before: str, chosen: dict[str, str], expected: str) -> None:
    others = {k: v for k, v in os.environ.items() if k not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")}
    code = f"{before}\nimport dada\n{ASK}"
    ran = subprocess.run([sys.executable, "-c", code], env=others | chosen, capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == expected
