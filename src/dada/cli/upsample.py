"""`dada upsample SOURCE GUIDE`: one pair of files."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from dada.errors import InputError
from dada.pairs.options import Options


@dataclass(frozen=True, kw_only=True)
class Upsample(Options):
    """Make one coarse image as fine as its guide.

    For example: `dada upsample depth.png rgb.png -o fine.png --preview`

    Depth of TUM RGB-D, 5000 a metre: `dada upsample depth.png rgb.png --unit tum`
    """

    source: Annotated[Positional[Path], arg(metavar="SOURCE", help_behavior_hint="")]
    """The coarse image: PNG, TIFF, PFM, NPY, NPZ or OpenEXR."""
    guide: Annotated[Positional[Path], arg(metavar="GUIDE", help_behavior_hint="")]
    """The fine image of the same scene: the same formats, or JPEG."""
    output: Annotated[
        Path | None,
        arg(
            aliases=["-o"],
            metavar="FILE",
            help_behavior_hint="(default: SOURCE_upsampled, beside the source)",
        ),
    ] = None
    """Where to write the result, in the format of its suffix."""
    confidence: Annotated[Path | None, arg(metavar="FILE", help_behavior_hint="")] = None
    """Image of the source's size: 0 no measurement, 1 (or 255, 65535) exact, between them held softly."""
    preview: Annotated[bool, arg(help_behavior_hint="")] = False
    """Also write OUTPUT_preview.png, in colours."""
    compare: Annotated[bool, arg(help_behavior_hint="")] = False
    """Also write OUTPUT_compare.png: guide, source, bicubic and result side by side."""
    range: Annotated[
        tuple[float, float] | None,
        arg(metavar="LOW HIGH", help_behavior_hint="(default: 1st to 99th percentile)"),
    ] = None
    """Values of the first and last colour, in the unit of the result."""
    report: Annotated[Path | None, arg(metavar="FILE.json", help_behavior_hint="")] = None
    """Also write how the result was reached."""
    point_cloud: Annotated[Path | None, arg(metavar="FILE.ply", help_behavior_hint="")] = None
    """Also write the result as coloured points in metres."""
    intrinsics: Annotated[str | None, arg(metavar="FX,FY,CX,CY", help_behavior_hint="")] = None
    """Camera of the guide in its pixels, for the point cloud."""
    without_flying: Annotated[bool, arg(help_behavior_hint="")] = False
    """Leave pixels that float between two surfaces out of the point cloud."""
    threads: Annotated[int | None, arg(metavar="NUMBER", help_behavior_hint="(default: all cores)")] = None
    """How many threads compute; with 1 the result is, bit for bit, that of `dada batch` and of the page."""
    quiet: Annotated[bool, arg(aliases=["-q"], help_behavior_hint="")] = False
    """Print only errors."""

    def run(self) -> int:
        """Run the command; return its exit code."""
        from dada.pairs.job import Job, run_job
        from dada.pairs.words import default_output, summary
        from dada.pairs.workers import use_threads

        if self.threads is not None:
            if self.threads < 1:
                raise InputError(f"threads {self.threads} is not a number of threads. Use 1 or more.")
            use_threads(self.threads)
        output = self.output or default_output(self.source)
        job = Job(
            self.source,
            self.guide,
            output,
            self.shared(),
            confidence=self.confidence,
            preview=output.with_name(f"{output.stem}_preview.png") if self.preview else None,
            compare=output.with_name(f"{output.stem}_compare.png") if self.compare else None,
            range=self.range,
            report=self.report,
            point_cloud=self.point_cloud,
            intrinsics=self.intrinsics,
            without_flying=self.without_flying,
        )
        outcome = run_job(job)
        if not self.quiet:
            print("\n".join(summary(self.source, output, outcome)))
            for text in outcome.warnings:
                print(f"warning: {text}", file=sys.stderr)
        return 0
