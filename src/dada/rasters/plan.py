"""The manifest: everything that tiles share, decided once for the whole raster and written beside them."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dada.diffusion.measurement import Adjust
from dada.errors import InputError
from dada.io.atomic import write_bytes_atomically
from dada.rasters.axis import Axis
from dada.rasters.files import Info, Six
from dada.rasters.tile import Geometry, Window
from dada.sample import Sampling, Whole
from dada.upsampling.adjust import Choice

MANIFEST = "manifest.json"
FINER, FINEST = 0.1, 1e-5  # of the tolerance, at which tiles are solved; what numbers of 32 bits hold
VALUES, VALID, FILLED = "values.npy", "valid.npy", "filled.npy"


@dataclass(frozen=True)
class Settings:
    """What a user asks for.

    Attributes:
        model: a name or file, as in `dada.upsample`.
        adjust: as in `dada.upsample`.
        tolerance: of the equilibrium.
        sampling: how the source was made, as in `dada.upsample`; but not "auto".
        band: of the source, from 1.
        invalid: value that marks invalid cells in the source, beside its nodata.
        dtype: of the result; that of the source where not given.
        nodata: of the result; that of the source, or what suits the dtype, where not given.
        scale: of the result, value = scale * stored + offset; that of the source where not given.
        offset: the same.
        fill: also give values to cells without a measurement.
        tile: pixels a side; chosen by the memory where not given.
    """

    model: str = "default"
    adjust: Choice = "auto"
    tolerance: float = 2e-4
    sampling: str = "mean"
    band: int | None = None
    invalid: float | None = None
    dtype: str | None = None
    nodata: float | None = None
    scale: float | None = None
    offset: float | None = None
    fill: bool = False
    tile: int | None = None

    def __post_init__(self) -> None:
        """Refuse a sampling that is none, or that would have to be guessed."""
        if self.sampling == "auto":
            raise InputError(
                "sampling auto: how a raster was made is not guessed. State mean, point, point:ROWS,COLUMNS or "
                "bicubic; dada upsample --sampling auto on a part of it tells which of mean and point it looks like."
            )
        Sampling.of(self.sampling)


@dataclass(frozen=True)
class Stored:
    """How the result is stored: stored = gain * (value as the source stores it) + bias."""

    dtype: str
    nodata: float | None
    scale: float
    offset: float
    gain: float
    bias: float


@dataclass(frozen=True)
class Halo:
    """What a tile looks at beyond its core.

    Attributes:
        reach: pixels that the model looks at around a pixel.
        step: pixels between the places at which it may begin.
        cells: of the halo beside the reach.
        seam: cells on either side of a seam that are solved again.
    """

    reach: int
    step: int
    cells: int
    seam: int


@dataclass(frozen=True)
class Plan:
    """See the module. Sizes are (rows, columns)."""

    key: str
    settings: Settings
    source: Info
    guide: Info
    rows: Axis
    cols: Axis
    first_cell: tuple[int, int]
    first_pixel: tuple[int, int]
    transform: Six
    crs: str | None
    warp: dict[str, Any] | None
    guide_range: tuple[float, float]
    whole: Whole
    model: str
    adjust: Adjust
    halo: Halo
    stored: Stored
    row_cuts: tuple[int, ...]
    col_cuts: tuple[int, ...]
    notes: tuple[str, ...]

    @property
    def geometry(self) -> Geometry:
        """The target grid and its cells."""
        return Geometry(self.rows, self.cols)

    @property
    def tiles(self) -> tuple[int, int]:
        """How many there are, down and across."""
        return len(self.row_cuts) - 1, len(self.col_cuts) - 1

    @property
    def sampling(self) -> Sampling:
        """How the source was made."""
        return Sampling.of(self.settings.sampling)

    @property
    def parts(self) -> tuple[int, ...]:
        """How many images a solution is the sum of: of points, a solution for means and one for what is left."""
        return (2,) if self.sampling.kind == "point" else ()

    def core(self, row: int, col: int) -> Window:
        """The pixels that a tile gives."""
        rows, cols = self.row_cuts[row : row + 2], self.col_cuts[col : col + 2]
        return self.geometry.pixels_of((rows[0], rows[1]), (cols[0], cols[1]))

    def window(self, row: int, col: int) -> Window:
        """A tile with its halo."""
        halo = self.halo
        return self.geometry.around(self.core(row, col), halo.reach, halo.cells, halo.step)

    def scaling(self) -> tuple[float, float]:
        """Offset and unit of the numbers that tiles are solved in; see `dada.upsampling.problem.Scaled`."""
        kind = np.float32 if self.working == "float32" else np.float64
        offset = float(kind(self.whole.mean)) if self.adjust == "shift" else 0.0
        largest = max(abs(self.whole.low - offset), abs(self.whole.high - offset))
        return offset, float(2.0 ** np.floor(np.log2(largest))) if largest > 0 else 1.0

    @property
    def inner_tolerance(self) -> float:
        """Of tiles and seams: finer than asked for, so that what tiles add is less than what the tolerance leaves."""
        return min(self.settings.tolerance, max(FINER * self.settings.tolerance, FINEST))

    @property
    def working(self) -> str:
        """The dtype of computation."""
        kind = np.dtype(self.source.dtype)
        return "float32" if kind.itemsize <= (2 if kind.kind in "ui" else 4) else "float64"

    def write(self, folder: Path, files: list[str]) -> None:
        """Write the manifest, with the files that make up the result."""
        content = json.dumps({**asdict(self), "files": files}, indent=1, allow_nan=True)
        write_bytes_atomically(folder / MANIFEST, f"{content}\n".encode())


def read_plan(folder: Path) -> Plan | None:
    """The plan of a manifest; None if there is none that can be read."""
    try:
        content = json.loads((folder / MANIFEST).read_text())
        content.pop("files")
        parts: dict[str, Any] = {
            "settings": Settings(**content["settings"]),
            "source": _info(content["source"]),
            "guide": _info(content["guide"]),
            "rows": Axis(**content["rows"]),
            "cols": Axis(**content["cols"]),
            "whole": Whole(**{**content["whole"], "factors": tuple(content["whole"]["factors"])}),
            "halo": Halo(**content["halo"]),
            "stored": Stored(**content["stored"]),
        }
        tuples = {name: tuple(value) for name, value in content.items() if isinstance(value, list)}
        return Plan(**{**content, **tuples, **parts})
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _info(content: dict[str, Any]) -> Info:
    parts: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in content.items()}
    return Info(**parts)


def key_of(settings: Settings, source: Info, guide: Info) -> str:
    """What tells whether tiles of before are of the same job: settings, inputs, weights and version."""
    from dada import __version__

    weights = Path(settings.model)
    stamp = weights.stat().st_mtime_ns if weights.is_file() else 0
    content = json.dumps([__version__, asdict(settings), asdict(source), asdict(guide), stamp], allow_nan=True)
    return hashlib.sha256(content.encode()).hexdigest()[:32]
