"""What is said of a result, and how it is called."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dada.pairs.job import Outcome


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
