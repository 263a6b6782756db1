"""Every notebook of the documentation runs from its first cell to its last, and shows pictures and numbers."""

from pathlib import Path

import pytest

from docsite.notebooks import FOLDER, executed

NOTEBOOKS = sorted(FOLDER.glob("*.py"))


def test_there_are_notebooks():
    assert len(NOTEBOOKS) >= 3


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path):
    outputs = [output for cell in executed(path).cells for output in cell.get("outputs", [])]
    assert any("image/png" in output.get("data", {}) for output in outputs)
    printed = "".join(output.text for output in outputs if output.get("name") == "stdout")
    assert "averaged back down within" in printed or "largest difference" in printed
    assert not [output.text for output in outputs if output.get("name") == "stderr" and "compiling" not in output.text]
