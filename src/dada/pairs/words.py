"""The sentences about a result, and the name of its file."""

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
    """What a person wants to know of a result, in a few lines."""
    report, storage = outcome.report, outcome.storage
    (h, w), (H, W) = report.source_size, report.target_size
    down, across = report.factors
    factor = f"x{across:.4g}" if round(across, 3) == round(down, 3) else f"x{across:.4g} across, x{down:.4g} down"
    lines = [f"{source.name} {w} x {h} -> {output} {W} x {H} ({factor}), {storage.words}{_about_unit(outcome)}"]
    aligned = (h, w) == (H, W) and report.sampling == "point"
    if aligned:
        points = f"{h * w - report.invalid_cells} points on the grid of the guide"
        lines = [f"{source.name}, {points} -> {output} {W} x {H}, {storage.words}"]
    lines += _about_consistency(outcome)
    steps = "iterations" if report.solver == "equilibrium" else "steps"
    how = f"model {report.model}, adjust {report.adjust}"
    if report.sampling != "mean":
        how += f", sampling {report.sampling}"
    lines.append(f"{how}, {report.iterations} {steps}, {outcome.seconds:.1f} s")
    return lines + (_about_storage(outcome) if aligned else _about_invalid(outcome))


def completion_summary(source: Path, output: Path, outcome: Outcome, robust: bool) -> list[str]:
    """The same of sparse measurements."""
    report, storage = outcome.report, outcome.storage
    height, width = report.target_size
    points = height * width - report.invalid_cells
    share = f"{100 * points / (height * width):.2g} %"
    made = f"{source.name}, {points} measured pixels ({share}) -> {output} {width} x {height}"
    lines = [f"{made}, {storage.words}{_about_unit(outcome)}"]
    if robust:
        lines.append(f"{report.outliers} points contradict all their neighbours and weigh little")
    if outcome.misfit[0] is not None:
        unit = f" {storage.label}" if storage.label else ""
        where = "measured pixels that are held exactly" if report.uncertain_cells else "measured pixels"
        lines.append(f"at the {where} it differs by at most {outcome.misfit[0]:.2g}{unit}")
    lines.append(f"model {report.model}, adjust {report.adjust}, {outcome.seconds:.1f} s")
    lines += _about_storage(outcome)
    return lines


def _about_unit(outcome: Outcome) -> str:
    """What a unit that nobody stated makes of the source, for the reader to see whether it can be."""
    from dada.pairs.storage import unit_words

    unit = outcome.storage.unit
    if not outcome.storage.assumed or unit.per_metre is None:
        return ""
    low, high = (end / unit.per_metre for end in outcome.source_range)
    return f"; taken as {unit_words(unit)}, {low:.3g} to {high:.3g} m (--unit states another: tum, K, raw, ...)"


def _about_consistency(outcome: Outcome) -> list[str]:
    """How far what the source would measure is from it: of exact cells, and of those that are held softly."""
    promise = outcome.report.promise
    unit = f" {outcome.storage.label}" if outcome.storage.label else ""
    (most, mean), (soft, soft_mean) = outcome.misfit, outcome.soft_misfit
    if soft is None:
        exact = "it differs from the source by"
        return [] if most is None else [f"{promise} {exact} at most {most:.2g}{unit} (mean {mean:.2g}{unit})"]
    assert soft_mean is not None
    count, by = outcome.report.uncertain_cells, f"by up to {_short(soft)}{unit} (mean {_short(soft_mean)}{unit})"
    if most is None:
        return [f"{promise}, its {count} cells, all uncertain, differ from the source {by}"]
    exact = f"exact cells differ from the source by at most {most:.2g}{unit} (mean {mean:.2g}{unit})"
    return [f"{promise}, {exact}, the {count} uncertain ones {by}"]


def _short(number: float) -> str:
    return f"{number:.2g}" if number < 100 else f"{number:.0f}"


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
    return lines + _about_storage(outcome)


def _about_storage(outcome: Outcome) -> list[str]:
    lines = []
    if outcome.report.bounded_pixels:
        count = outcome.report.bounded_pixels
        lines.append(f"{count} pixels would have gone far from all measurements, and were kept back")
    if outcome.kept_within:
        lines.append(
            f"{outcome.kept_within} pixels would have left the range of {outcome.storage.dtype} and were kept within it"
        )
    if outcome.moved:
        lines.append(f"{outcome.moved} pixels moved by one unit off the value that means invalid")
    if outcome.points is not None:
        lines.append(f"{outcome.points} points written")
    return lines
