"""Notebooks, kept as Python files in the percent format, executed and turned into pages with their outputs."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import jupytext
import nbformat
from nbclient import NotebookClient
from nbconvert import MarkdownExporter
from traitlets.config import Config

FOLDER = Path(__file__).parents[1] / "docs" / "notebooks"
SECONDS = 300  # of a cell
NO_WIDGETS = "IProgress not found"  # tqdm asks for a bar that a page cannot show


def executed(path: Path) -> nbformat.NotebookNode:
    """A notebook with its outputs.

    Raises:
        CellExecutionError: of a cell that fails; it is not shown as a page.
    """
    notebook = jupytext.read(path)
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook.metadata["kernelspec"] = kernel
    with tempfile.TemporaryDirectory() as folder:  # a socket in it instead of a port that others can read
        config = Config({"KernelManager": {"transport": "ipc", "ip": f"{folder}/kernel"}})
        client = NotebookClient(notebook, timeout=SECONDS, config=config)
        client.resources = {"metadata": {"path": str(path.parent)}}
        client.execute(env=os.environ | {"PYTHONWARNINGS": f"ignore:{NO_WIDGETS}"})
    return notebook


def notebook_files() -> dict[str, str | bytes]:
    """Paths within the site, and what they hold: pages, their pictures, and the notebooks to download."""
    made: dict[str, str | bytes] = {}
    for path in sorted(FOLDER.glob("*.py")):
        notebook = executed(path)
        body, resources = MarkdownExporter(
            config=Config(
                {"ExtractOutputPreprocessor": {"output_filename_template": path.stem + "_{index}{extension}"}}
            )
        ).from_notebook_node(notebook)
        link = f"[Download this notebook]({path.stem}.ipynb), or run `docs/notebooks/{path.name}` as a script.\n"
        made[f"notebooks/{path.stem}.md"] = f"{body.rstrip()}\n\n{link}"
        made[f"notebooks/{path.stem}.ipynb"] = nbformat.writes(notebook)
        made |= {f"notebooks/{name}": content for name, content in resources["outputs"].items()}
    return made
