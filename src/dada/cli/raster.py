"""`dada raster SOURCE GUIDE -o OUT.tif`: georeferenced rasters of any size and place."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from tyro.conf import Positional, arg

from dada.errors import InputError

if TYPE_CHECKING:
    from dada.rasters.run import Progress, RasterReport

BYTES = {"": 1, "K": 1e3, "KB": 1e3, "M": 1e6, "MB": 1e6, "G": 1e9, "GB": 1e9, "T": 1e12, "TB": 1e12}
StoredType = Literal["uint8", "int8", "uint16", "int16", "uint32", "int32", "float32", "float64"]


@dataclass(frozen=True, kw_only=True)
class Raster:
    """Make a georeferenced raster as fine as its guide, whatever their sizes.

    Source and guide may differ in extent, pixel size, origin and projection. The result is a cloud-optimised GeoTIFF on
    the grid of the guide. A run that was interrupted goes on where it stopped when it is started again.

    For example: `dada raster height.tif orthophoto.tif -o fine.tif`

    On a cluster: `dada raster height.tif orthophoto.tif -o fine.tif --scheduler tcp://10.0.0.1:8786`
    """

    source: Annotated[Positional[str], arg(metavar="SOURCE", help_behavior_hint="")]
    """The coarse raster of measurements: a GeoTIFF, or another raster that GDAL reads."""
    guide: Annotated[Positional[str], arg(metavar="GUIDE", help_behavior_hint="")]
    """The fine raster of the same area, of any number of bands."""
    output: Annotated[Path, arg(aliases=["-o"], metavar="FILE", help_behavior_hint="")]
    """Where to write the result: a file that ends in .tif, or in .zarr."""
    band: Annotated[int | None, arg(metavar="NUMBER", help_behavior_hint="(default: the only one)")] = None
    """Band of the source, from 1."""
    invalid: Annotated[float | None, arg(metavar="VALUE", help_behavior_hint="")] = None
    """Value that marks cells without a measurement, beside the nodata value of the file."""
    dtype: Annotated[StoredType | None, arg(metavar="TYPE", help_behavior_hint="(default: that of the source)")] = None
    """Type of the stored result: uint8, int8, uint16, int16, uint32, int32, float32 or float64."""
    nodata: Annotated[
        float | None, arg(metavar="VALUE", help_behavior_hint="(default: that of the source; NaN for floats)")
    ] = None
    """Nodata value of the result."""
    scale: Annotated[float | None, arg(metavar="NUMBER", help_behavior_hint="(default: that of the source)")] = None
    """Scale of the result: value = scale * stored + offset."""
    offset: Annotated[float | None, arg(metavar="NUMBER", help_behavior_hint="(default: that of the source)")] = None
    """Offset of the result."""
    fill: Annotated[bool, arg(help_behavior_hint="")] = False
    """Also give values to cells without a measurement; by default they stay nodata."""
    model: Annotated[str, arg(metavar="NAME|PATH")] = "default"
    """Which model: default (learned, or dynamic where that does not fit), learned, fast (two of its three rounds),
    dynamic or none (both without weights), a file or folder of weights, or a JSON file of settings."""
    adjust: Literal["auto", "ratio", "shift"] = "auto"
    """How cells are held to their measurement: ratio (positive values), shift (any), auto."""
    sampling: Annotated[str, arg(metavar="mean|point|point:ROWS,COLUMNS|bicubic")] = "mean"
    """How the source was made: its cells are means, single pixels (point: at the centre), or resized bicubically."""
    tolerance: Annotated[float | None, arg(metavar="NUMBER", help_behavior_hint="(default: 2e-4)")] = None
    """Of the equilibrium, for tiles and seams."""
    workers: Annotated[int | None, arg(aliases=["-j"], metavar="NUMBER", help_behavior_hint="(default: all cores)")] = (
        None
    )
    """Processes on this machine."""
    scheduler: Annotated[str | None, arg(metavar="ADDRESS", help_behavior_hint="")] = None
    """Address of a dask scheduler that you run, whose workers see the same files."""
    memory: Annotated[str | None, arg(metavar="SIZE", help_behavior_hint="(default: most of what is free)")] = None
    """Memory that all processes on this machine may take together, such as 8GB. It decides the size of tiles."""
    tile: Annotated[int | None, arg(metavar="PIXELS", help_behavior_hint="(default: by the memory)")] = None
    """Side of a tile, without its halo."""
    work: Annotated[Path | None, arg(metavar="FOLDER", help_behavior_hint="(default: FILE.tiles)")] = None
    """Folder for tiles; removed at the end."""
    resume: Annotated[bool, arg(help_behavior_hint="")] = True
    """Compute all tiles again; by default those of an interrupted run are kept."""
    quiet: Annotated[bool, arg(aliases=["-q"], help_behavior_hint="")] = False
    """Print only errors."""

    def run(self) -> int:
        """Run the command; return its exit code."""
        from dada.rasters import Settings, upsample_raster
        from dada.upsampling.solver import Solver

        settings = Settings(
            model=self.model,
            adjust=self.adjust,
            tolerance=Solver.of("equilibrium", self.tolerance, None).tolerance,
            sampling=self.sampling,
            band=self.band,
            invalid=self.invalid,
            dtype=self.dtype,
            nodata=self.nodata,
            scale=self.scale,
            offset=self.offset,
            fill=self.fill,
            tile=self.tile,
        )
        with shown_progress(not self.quiet) as progress:
            report = upsample_raster(
                self.source,
                self.guide,
                self.output,
                settings=settings,
                workers=self.workers,
                scheduler=self.scheduler,
                memory=None if self.memory is None else parse_bytes(self.memory),
                resume=self.resume,
                work=self.work,
                progress=progress,
            )
        if not self.quiet:
            print("\n".join(summary(self.source, self.output, report)))
            for text in report.warnings:
                print(f"warning: {text}", file=sys.stderr)
        return 0


def parse_bytes(text: str) -> float:
    """Return a number of bytes of a text such as 8GB.

    Raises:
        InputError: it is none.
    """
    wanted = text.strip().upper().replace("IB", "B")
    number = wanted.rstrip("KMGTB")
    try:
        return float(number) * BYTES[wanted[len(number) :].strip()]
    except (KeyError, ValueError):
        raise InputError(f"memory {text!r} is no size. Write a number with a unit, such as 8GB or 900MB.") from None


@contextmanager
def shown_progress(shown: bool) -> Iterator[Progress]:
    """A bar for each phase, with its rate and the time left."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: Task) -> Text:
            speed = task.finished_speed or task.speed
            return Text("" if not speed else f"{speed / 1e6:.2g} Mpixel/s")

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:.0f} %"), Rate())
    console = Console(stderr=True)
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=True, disable=not shown) as bar:
        task = bar.add_task("reading", total=None)
        now = "reading"

        def progress(phase: str, done: int, total: int) -> None:
            nonlocal now
            if phase != now:
                bar.reset(task, description=phase, completed=done, total=total)
                now = phase
            bar.update(task, completed=done, total=total)

        yield progress


def summary(source: str, output: Path, report: RasterReport) -> list[str]:
    """What a person wants to know of a result."""
    (h, w), (H, W), (down, across) = report.source_size, report.target_size, report.factors
    factor = f"x{across:.4g}" if round(across, 3) == round(down, 3) else f"x{across:.4g} across, x{down:.4g} down"
    lines = [f"{Path(source).name} {w} x {h} -> {output} {W} x {H} ({factor})"]
    measured = report.measured
    lines.append(
        f"read again: {report.promise}, it differs from the source by at most {measured.consistency_max:.2g} stored "
        f"units (mean {measured.consistency_mean:.2g}) over {measured.cells} cells"
    )
    tiles = f"{report.tiles[0] * report.tiles[1]} tiles"
    if measured.seam_ratio is not None:
        tiles += (
            f", {report.sweeps} sweeps over their seams; jumps across seams are {measured.seam_ratio:.3f} times those "
            "one cell beside them"
        )
    lines.append(tiles)
    lines.append(f"model {report.model}, adjust {report.adjust}, {report.seconds:.1f} s")
    if report.resumed:
        lines.append(f"{report.resumed} tiles and seams were complete from before (--no-resume computes them again)")
    if report.invalid_pixels:
        lines.append(f"{report.invalid_pixels} pixels have no measurement and stay nodata (--fill gives them values)")
    if report.bounded_pixels:
        lines.append(f"{report.bounded_pixels} pixels would have gone far from all measurements, and were kept back")
    if report.moved_pixels:
        lines.append(f"{report.moved_pixels} pixels moved by one unit off the nodata value")
    return lines
