"""`dada upsample SOURCE GUIDE`: one pair of files."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import Positional, arg

from dada.pairs.options import Options

if TYPE_CHECKING:
    from dada.pairs.job import Outcome


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
    quiet: Annotated[bool, arg(aliases=["-q"], help_behavior_hint="")] = False
    """Print only errors."""

    def run(self) -> int:
        """Run the command; return its exit code."""
        from dada.pairs.job import Job, run_job

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
        )
        outcome = run_job(job)
        if not self.quiet:
            print("\n".join(summary(self.source, output, outcome)))
            for text in outcome.warnings:
                print(f"warning: {text}", file=sys.stderr)
        return 0


def default_output(source: Path) -> Path:
    """Beside the source, in its format."""
    from dada.io.detect import SUFFIXES, detect_format

    kind = detect_format(source)
    suffix = source.suffix if source.suffix.lower() in SUFFIXES else f".{kind}"
    return source.with_name(f"{source.stem}_upsampled{'.png' if kind == 'jpeg' else suffix}")


def summary(source: Path, output: Path, outcome: Outcome) -> list[str]:
    """What a person wants to know of a result, in two to four lines."""
    report, storage = outcome.report, outcome.storage
    (h, w), (H, W) = report.source_size, report.target_size
    down, across = report.factors
    factor = f"x{across:.4g}" if round(across, 3) == round(down, 3) else f"x{across:.4g} across, x{down:.4g} down"
    lines = [f"{source.name} {w} x {h} -> {output} {W} x {H} ({factor}), {storage.words}"]
    unit = f" {storage.label}" if storage.label else ""
    if outcome.misfit[0] is not None:
        lines.append(
            f"averaged back down it differs from the source by at most {outcome.misfit[0]:.2g}{unit} (mean "
            f"{outcome.misfit[1]:.2g}{unit})"
        )
    steps = "iterations" if report.solver == "equilibrium" else "steps"
    lines.append(f"model {report.model}, adjust {report.adjust}, {report.iterations} {steps}, {outcome.seconds:.1f} s")
    lines += _about_invalid(outcome)
    return lines


def _about_invalid(outcome: Outcome) -> list[str]:
    report, lines = outcome.report, []
    if report.invalid_cells:
        cells = report.source_size[0] * report.source_size[1]
        fate = (
            f"{report.filled_pixels} pixels filled"
            if report.filled_pixels
            else f"{report.invalid_pixels} pixels stay invalid (--fill gives them values)"
        )
        lines.append(f"{report.invalid_cells} of {cells} source cells are invalid: {fate}")
    if report.bounded_pixels:
        lines.append(f"{report.bounded_pixels} pixels would have gone far from all measurements, and were kept back")
    if outcome.moved:
        lines.append(f"{outcome.moved} pixels moved by one unit off the value that means invalid")
    if outcome.points is not None:
        lines.append(f"{outcome.points} points written")
    return lines
