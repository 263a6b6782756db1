"""A start for large images: their tiles, each solved by one thread as an image of its own while a cache holds it.

What was measured far away hardly matters, as every cell between has a mean of its own to keep. So a tile, cut out of
the image with a margin that is dropped afterwards, ends about where the whole image will. Near the seams it does not;
there other tiles follow, which lie across the seams and take the values around them as given. Where blocks are wide,
a third set follows in the same way, for the places where seams of the first meet borders of the second. The whole
image then needs a few iterations more, or none. Tiles cost less than the image for two reasons: their arrays fit into
a cache, and each takes the iterations that it needs, where the image takes those of its hardest part everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from . import _cpu_descent, solver
from ._cpu_descent import Measurement
from ._cpu_system import CpuSystem
from ._levels import widest, widest_block
from ._tiles import Tile, tiles

LARGE = 1 << 19  # pixels from which an image is solved in tiles first
# What the tiles of each set may leave of r'z, for each pixel, in units of what the image may: of two sets, or of three.
LEFT = {2: (16.0, 0.5), 3: (64.0, 4.0, 0.8)}
WIDEST_HOLE = 128  # pixels, of the largest square in it that the sizes 1, 2, 4, 8 ... of cells can tell
# How much of an image's limit of iterations each set may take; the rest is left to the whole, and small limits are all.
SHARES, LEAST_LIMIT = {2: (0.4, 0.3), 3: (0.4, 0.2, 0.1)}, 100

# Solves a tile from what the image holds: given the tile, its system, whether it sees the values around it, the r'z to
# reach, and the limit of iterations; returns r'z, iterations, and the values of all its pixels.
Solved = tuple[float, int, np.ndarray]
Run = Callable[[Tile, CpuSystem, bool, float, int], Solved]


def worth_it(system: CpuSystem, limit: int) -> bool:
    """Whether tiles save time, and are safe: not with soft cells or wide holes, as measurements reach farther there.

    With `ratio` not with any pixel that was not measured: what hardly holds on to a measurement within its tile may
    shrink to nothing there, at which its flow, which scales with it, vanishes too.
    """
    m = system.measurement
    large = system.r.size > max(LARGE, _cpu_descent.KEPT_PIXELS)  # memory is kept for one image at a time
    if not large or limit < LEAST_LIMIT or (system.ratio and m.measured is not None):
        return False
    sets = tiles(m.blocks)
    if system.loose:
        hole = widest(~system.hard) * widest_block(m.blocks)
        empty = any(not m.count[tile.cells].any() for parts in sets for tile in parts)
        if system.soft.any() or hole > WIDEST_HOLE or empty:
            return False
    return bool(sets)


def approach(system: CpuSystem, limit: int) -> solver.Approach | None:
    """How to bring a large image near to its end; None where that does not pay."""
    if not worth_it(system, limit):
        return None
    solve = solver.ratio if system.ratio else solver.shift

    def run(y: np.ndarray, tile: Tile, part: CpuSystem, sees: bool, goal: float, most: int) -> Solved:
        values, m, far = _cut(y, tile), part.measurement, float("inf")
        if sees:
            part.beyond = tile.beyond(system.cv, system.ch, y)
        else:
            source = m.source[m.count > 0]
            far = solver.far(source.min(), source.max(), part.nearest_energy())
        return *solve(part, values, goal, most, far), values

    return lambda y, target: _each(system, y, target, limit, partial(run, y))


def approach_adjoint(system: CpuSystem, y: np.ndarray, v: np.ndarray, limit: int) -> solver.Approach | None:
    """The same for its adjoint at the equilibrium y, for the gradient v."""
    if not worth_it(system, limit):
        return None

    def run(a: np.ndarray, tile: Tile, part: CpuSystem, sees: bool, goal: float, most: int) -> Solved:
        values, gradient = _cut(a, tile), _cut(v, tile)
        if sees:
            part.beyond = tile.beyond(system.cv, system.ch, y)
        if system.ratio:
            part.hold(_cut(y, tile))
            part.linearise()
        else:
            part.assemble(None)
        if sees:  # from here on it is a that flows
            part.beyond = tile.beyond(system.cv, system.ch, a)
        if system.ratio:
            rz = part.adjoint_residual(values, gradient)
            return *solver.ratio_adjoint_to(part, values, gradient, rz, goal, most), values
        part.right_hand_side(gradient, values)
        rz, count = part.descend(part.begin(), goal, most)
        part.add_to(values)
        return rz, count, values

    return lambda a, target: _each(system, a, target, limit, partial(run, a))


def _each(system: CpuSystem, image: np.ndarray, target: float, limit: int, run: Run) -> tuple[int, bool]:
    """Solve the tiles of one set after the other; one that does not get there stays as it was."""
    whole, kind = system.measurement, "ratio" if system.ratio else "shift"
    work, well = 0, True
    sets = tiles(whole.blocks)
    for stage, parts in enumerate(sets):
        pixels = sum(tile.blocks.target_size[0] * tile.blocks.target_size[1] for tile in parts)
        most = int(SHARES[len(sets)][stage] * limit * image.size / pixels)
        out = image.copy()  # tiles read what others write

        def one(tile: Tile, stage: int = stage, most: int = most, out: np.ndarray = out) -> tuple[int, bool]:
            part = CpuSystem(*tile.edges(system.cv, system.ch), _measured(whole, tile), kind)
            goal = LEFT[len(sets)][stage] * target * part.r.size / image.size
            rz, count, values = run(tile, part, stage > 0, goal, most)
            if rz <= goal:
                out[tile.core] = values[tile.inner]
            return count * part.r.size, bool(rz <= goal)

        system.disband()
        done = [one(tile) for tile in parts] if system.pool is None else list(system.pool.map(one, parts))
        work += sum(count for count, _ in done)
        well = well and all(reached for _, reached in done)
        image[:] = out
    return round(work / image.size), well


def _cut(image: np.ndarray, tile: Tile) -> np.ndarray:
    return np.ascontiguousarray(image[tile.pixels])


def _measured(whole: Measurement, tile: Tile) -> Measurement:
    source, slack, count = (np.ascontiguousarray(v[tile.cells]) for v in (whole.source, whole.slack, whole.count))
    measured = None if whole.measured is None else _cut(whole.measured, tile)
    return Measurement(tile.blocks, source, slack, count, measured)
