"""`dada complete SPARSE GUIDE`: sparse measurements on the guide's own grid, made dense."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from dada.pairs.options import FileOptions


@dataclass(frozen=True, kw_only=True)
class Complete(FileOptions):
    """Give every pixel of a guide a value, from measurements at some of them.

    For example: `dada complete lidar.png rgb.png --unit kitti -o dense.png`

    A list of points, x, y, value in each line: `dada complete points.csv rgb.png -o dense.tiff`
    """

    sparse: Annotated[Positional[Path], arg(metavar="SPARSE", help_behavior_hint="")]
    """Image of the guide's size, invalid (0 or NaN) where nothing was measured; or a text of x, y, value."""
    guide: Annotated[Positional[Path], arg(metavar="GUIDE", help_behavior_hint="")]
    """The image of the same scene."""
    output: Annotated[
        Path | None,
        arg(aliases=["-o"], metavar="FILE", help_behavior_hint="(default: SPARSE_completed, beside it)"),
    ] = None
    """Where to write the result, in the format of its suffix."""
    confidence: Annotated[Path | None, arg(metavar="FILE", help_behavior_hint="")] = None
    """Image of the guide's size: 0 no measurement, 1 (or 255, 65535) exact, between them held softly."""
    robust: Annotated[bool, arg(help_behavior_hint="")] = False
    """Let points that contradict all their neighbours weigh little."""
    preview: Annotated[bool, arg(help_behavior_hint="")] = False
    """Also write OUTPUT_preview.png, in colours."""
    report: Annotated[Path | None, arg(metavar="FILE.json", help_behavior_hint="")] = None
    """Also write how the result was reached."""
    point_cloud: Annotated[Path | None, arg(metavar="FILE.ply", help_behavior_hint="")] = None
    """Also write the result as coloured points in metres."""
    intrinsics: Annotated[str | None, arg(metavar="FX,FY,CX,CY", help_behavior_hint="")] = None
    """Camera of the guide in its pixels, for the point cloud."""
    without_flying: Annotated[bool, arg(help_behavior_hint="")] = False
    """Leave pixels that float between two surfaces out of the point cloud."""
    quiet: Annotated[bool, arg(aliases=["-q"], help_behavior_hint="")] = False
    """Print only errors."""

    def run(self) -> int:
        """Run the command; return its exit code."""
        from dada.io.detect import SUFFIXES
        from dada.pairs.job import Job, run_job
        from dada.pairs.words import completion_summary

        suffix = self.sparse.suffix if self.sparse.suffix.lower() in SUFFIXES else ".tiff"
        output = self.output or self.sparse.with_name(f"{self.sparse.stem}_completed{suffix}")
        job = Job(
            self.sparse,
            self.guide,
            output,
            self.shared(),
            confidence=self.confidence,
            preview=output.with_name(f"{output.stem}_preview.png") if self.preview else None,
            report=self.report,
            point_cloud=self.point_cloud,
            intrinsics=self.intrinsics,
            without_flying=self.without_flying,
            complete=True,
            robust=self.robust,
        )
        outcome = run_job(job)
        if not self.quiet:
            print("\n".join(completion_summary(self.sparse, output, outcome, self.robust)))
            for text in outcome.warnings:
                print(f"warning: {text}", file=sys.stderr)
        return 0
