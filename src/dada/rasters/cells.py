"""The source as tiles read it: windows of files that the plan wrote."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dada.rasters.plan import FILLED, VALID, VALUES, Plan
from dada.rasters.tile import Cells, Window, margin_of


def read_cells(plan: Plan, folder: Path, window: Window) -> Cells:
    """The source of a window and of the cells that its interpolation looks at."""
    (a, b), (c, d) = (
        margin_of(span, limit) for span, limit in zip(plan.geometry.cells_of(window), plan.geometry.cells, strict=True)
    )
    part = np.s_[a:b, c:d]
    values, valid, filled = (np.array(np.load(folder / name, mmap_mode="r")[part]) for name in (VALUES, VALID, FILLED))
    return Cells(values, valid, filled)


def inner_cells(plan: Plan, window: Window, cells: Cells) -> Cells:
    """Without the margin."""
    spans = plan.geometry.cells_of(window)
    cut = tuple(
        slice(s[0] - margin_of(s, n)[0], s[1] - margin_of(s, n)[0])
        for s, n in zip(spans, plan.geometry.cells, strict=True)
    )
    return Cells(cells.values[cut], cells.valid[cut], cells.filled[cut])
