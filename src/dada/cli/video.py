"""`dada video GUIDE DEPTH -o OUT`: the frames of one camera, one after another."""

from __future__ import annotations

import sys
import time
from collections import Counter
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from tyro.conf import Positional, arg

from dada.pairs.options import Options

if TYPE_CHECKING:
    from dada.streams.film import Done, Film


@dataclass(frozen=True, kw_only=True)
class Video:
    """Upsample a depth video with a colour video of the same frames.

    What does not change from frame to frame is computed once. Frames that moved are computed as by `dada upsample`.

    For example: `dada video rgb.mp4 depth/ -o fine/ --preview fine.mp4`
    """

    guide: Annotated[Positional[Path], arg(metavar="GUIDE", help_behavior_hint="")]
    """Video in colour, or a folder of images in the order of their names."""
    depth: Annotated[Positional[Path], arg(metavar="DEPTH", help_behavior_hint="")]
    """Folder of depth images in the order of their names, or a lossless video of 16 bits of grey."""
    output: Annotated[Path, arg(aliases=["-o"], metavar="FOLDER|FILE.mkv", help_behavior_hint="")]
    """Folder for 16-bit PNG, one a frame; or a lossless video (FFV1)."""
    confidence: Annotated[Path | None, arg(metavar="FOLDER", help_behavior_hint="")] = None
    """Confidences, one for each depth image. Levels 0, 1 and 2, as phones write them, are 0, 1/2 and 1."""
    preview: Annotated[Path | None, arg(metavar="FILE.mp4", help_behavior_hint="")] = None
    """Also write guide, source and result side by side, in colours."""
    temporal_weight: Annotated[float, arg(metavar="NUMBER")] = 0.0
    """From 0 (off) to below 1: how far pixels where nothing moved are pulled towards the last result."""
    keep: Annotated[bool, arg(help_behavior_hint="")] = True
    """Compute coefficients for each frame, also where nothing moved."""
    unit: Annotated[
        str | None, arg(aliases=["--depth-scale"], metavar="UNIT", help_behavior_hint="(default: mm for 16 bits)")
    ] = None
    """Unit of the depth: mm, cm, m, tum (5000 a metre), raw, or stored units in a metre."""
    invalid: Annotated[float | None, arg(metavar="VALUE", help_behavior_hint="(default: 0 for integers)")] = None
    """Value that marks pixels without a measurement."""
    model: Annotated[str, arg(metavar="NAME|PATH")] = "default"
    """Which model; see `dada upsample`."""
    adjust: Literal["auto", "ratio", "shift"] = "auto"
    """How cells are held to their measurement."""
    tolerance: Annotated[float | None, arg(metavar="NUMBER", help_behavior_hint="(default: 2e-4)")] = None
    """Of the equilibrium."""
    sampling: Annotated[str, arg(metavar="mean|point|point:ROWS,COLUMNS|bicubic|auto")] = "mean"
    """How the depth was made; see `dada upsample`."""
    fill: Annotated[bool, arg(help_behavior_hint="")] = False
    """Also give values to pixels without a measurement."""
    noise: Annotated[str | None, arg(metavar="AMOUNT", help_behavior_hint="")] = None
    """Standard deviation of the depth, as 20mm; cells may then differ from their measurement by about as much."""
    device: Annotated[str | None, arg(metavar="DEVICE", help_behavior_hint="(default: cpu)")] = None
    """Device of torch on which models are computed."""
    quiet: Annotated[bool, arg(aliases=["-q"], help_behavior_hint="")] = False
    """Print only errors."""

    def run(self) -> int:
        """Run the command; return its exit code."""
        from dada.cli.progress import progress
        from dada.streams.film import Film, count, run_film

        shared = {field.name: getattr(self, field.name) for field in fields(Options) if hasattr(self, field.name)}
        film = Film(
            self.guide,
            self.depth,
            self.output,
            Options(**shared),
            self.confidence,
            self.preview,
            self.temporal_weight,
            self.keep,
        )
        begin = time.perf_counter()
        done = list(progress(run_film(film), count(film), shown=not self.quiet and sys.stderr.isatty()))
        if not self.quiet:
            print("\n".join(_summary(film, done, time.perf_counter() - begin)))
            for text, times in Counter(text for one in done for text in one.warnings).most_common(10):
                print(f"warning: {text} ({times} of {len(done)} frames)", file=sys.stderr)
        return 0


def _summary(film: Film, done: list[Done], seconds: float) -> list[str]:
    """What was written, how much was kept, and how still static parts are."""
    storage, kept = done[0].storage, sum(one.frame.kept for one in done)
    lines = [f"{film.output}: {len(done)} frames, {storage.words}, {seconds / len(done):.2g} s a frame"]
    lines.append(f"{kept} frames with the coefficients of an earlier one, {len(done) - kept} computed anew")
    both = [(f.flicker_before, f.flicker) for f in (one.frame for one in done) if f.flicker is not None]
    if both:
        before, after = (storage.factor * sum(pair[i] or 0.0 for pair in both) / len(both) for i in (0, 1))
        change = f"{after:.3g}" if before == after else f"{before:.3g} without the temporal weight, {after:.3g} with it"
        lines.append(f"mean change from frame to frame where nothing moved: {change} {storage.label}".rstrip())
    return lines
