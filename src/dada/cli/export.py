"""`dada export MODEL`: a model's networks as ONNX graphs, for other programs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg


@dataclass(frozen=True, kw_only=True)
class Export:
    """Write the networks of a model as ONNX graphs of any image size, and a manifest that says how to run them.

    For example: `dada export -o graphs`

    Weights of your own: `dada export runs/train/best.safetensors -o graphs`
    """

    model: Annotated[Positional[str], arg(metavar="MODEL")] = "default"
    """What to write: default (or learned), fast, or a file or folder of weights of DADA."""
    output: Annotated[Path, arg(aliases=["-o"], metavar="FOLDER", help_behavior_hint="(required)")]
    """Folder for the graphs and manifest.json; must not exist, or be empty."""
    quiet: Annotated[bool, arg(aliases=["-q"], help_behavior_hint="")] = False
    """Print only errors."""

    def run(self) -> int:
        """Run the command; return its exit code."""
        from dada.export import export

        files = export(self.model, self.output)
        if not self.quiet:
            for file in files:
                print(f"{file}  {file.stat().st_size / 1e6:.1f} MB")
        return 0
