"""The paper's loop: Eq. 1 (diffuse) and Eq. 3 (adjust), many times. The oracle for everything faster.

A soft cell of weight w is drawn towards its measurement instead of set to it: the mean d of the block moves to
(d + theta S) / (1 + theta) with theta = step_size w / n. The loop then ends exactly where the solver does.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from .blocks import Blocks, spread
from .coefficients import Coefficients, at_least_float32, laplacian
from .measurement import Adjust, Given, Measurement, extremes, measure, read_given
from .solution import Solution, misfit
from .system import backend_of

STEP_SIZE = 0.24  # lambda of Eq. 1; stable below 1/4
STEPS = 9024  # the paper's 8000 + 1024 at test time


def diffuse(y: Tensor, coefficients: Coefficients, step_size: float = STEP_SIZE) -> Tensor:
    """One diffusion step, y + lambda sum c (y_n - y_p) over the four neighbours (Eq. 1); y is [N, H, W]."""
    return y - step_size * laplacian(y, coefficients)


def adjustment(
    y: Tensor, measurement: Measurement, adjust: Adjust, step_size: float = STEP_SIZE, epsilon: float = 0.0
) -> Tensor:
    """Return y adjusted to the measurement: Eq. 3 (`ratio`), or the same by addition (`shift`); y is [N, H, W]."""
    mean = measurement.down(y)
    wanted = mean + _pull(measurement, step_size) * (measurement.source - mean)
    if adjust == "ratio":
        change = torch.where(measurement.count > 0, wanted / (mean + epsilon), torch.ones_like(mean))
    else:
        change = wanted - mean
    change = spread(change, measurement.blocks)
    changed = y * change if adjust == "ratio" else y + change
    return changed if measurement.measured is None else torch.where(measurement.measured, changed, y)


def _pull(measurement: Measurement, step_size: float) -> Tensor:
    """Share of the misfit removed in one step: 1 for hard cells, 0 for those without a measurement."""
    theta = step_size * measurement.weight / measurement.count.clamp(min=1)
    return torch.where(torch.isinf(theta), 1.0, theta / (1 + theta))


def iterate(  # noqa: D417
    source: Tensor,
    coefficients: Coefficients,
    *,
    initial: Tensor | None = None,
    adjust: Adjust = "ratio",
    steps: int = STEPS,
    grad_steps: int = 0,
    step_size: float = STEP_SIZE,
    epsilon: float = 0.0,
    mask: Tensor | None = None,
    coverage: Tensor | None = None,
    weight: Tensor | None = None,
    blocks: Blocks | None = None,
) -> Solution:
    """Run the paper's diffusion-adjustment loop.

    Args:
        source: [B, K, h, w] measurements; the K channels share the coefficients. See `equilibrium` for the types.
        coefficients: of the H x W target grid, H >= h and W >= w.
        initial: [B, K, H, W] start; nearest-neighbour upsampling of the source where not given.
        adjust: "ratio" (Eq. 3, positive values only) or "shift" (any values).
        steps: number of steps in all.
        grad_steps: how many of them, the last ones, are differentiable (the paper's N_grad); memory grows with it.
        step_size: lambda of Eq. 1, in (0, 1/4); divided by the largest coefficient if that is above 1.
        epsilon: added to the divisor of Eq. 3; the authors' released code uses 1e-8.
        mask: this, coverage, weight and blocks as in `equilibrium`.

    Returns:
        Solution. Its residual is the largest change in the last step relative to the source's range.
    """
    if steps < 0 or not 0 <= grad_steps <= steps:
        raise ValueError(f"need 0 <= grad_steps <= steps, got grad_steps={grad_steps}, steps={steps}")
    if not 0 < step_size < 0.25:
        raise ValueError(f"step_size must lie in (0, 1/4) for the loop to be stable (Eq. 1), got {step_size}")
    given = read_given(source, coefficients, mask, coverage, weight, blocks)
    measurement = measure(given, adjust)
    flat = Coefficients(given.vertical, given.horizontal)
    # those of Eq. 2 are at most 1; the loop ends at the same image with smaller steps, which larger ones need
    step_size /= max([1.0, *(extremes(edges)[1] for edges in flat if edges.numel())])
    how = measurement, adjust, step_size, epsilon
    before = y = start(flat_initial(initial, source.shape[:2], given), measurement).detach()
    with torch.no_grad():
        if steps == 0:
            y = adjustment(y, measurement, adjust)
        elif grad_steps == 0:  # the last step on its own, to see how much it still changes
            before = _run(y, flat, *how, steps - 1)
            y = _run(before, flat, *how, 1)
        else:
            y = _run(y, flat, *how, steps - grad_steps)
    for _ in range(grad_steps):
        before, y = y, adjustment(diffuse(y, flat, step_size), *how)
    count = torch.full((y.shape[0],), steps)
    change = _relative_change(before.detach(), y.detach(), measurement)
    still = change < 10 * torch.finfo(y.dtype).eps
    return Solution.of(source.shape[:2], y, count, change, still, *misfit(y, measurement))


def flat_initial(initial: Tensor | None, shape: tuple[int, ...], given: Given) -> Tensor | None:
    """The start that a user gives for B x K images, [N, H, W]; only its shape and type are checked."""
    if initial is None:
        return None
    initial, expected = at_least_float32(initial), (*shape, given.horizontal.shape[-2], given.vertical.shape[-1])
    if initial.shape != expected or initial.dtype != given.source.dtype:
        raise ValueError(
            f"initial must be {expected} of {given.source.dtype}, got {tuple(initial.shape)} of {initial.dtype}"
        )
    return initial.flatten(0, 1)


def start(initial: Tensor | None, measurement: Measurement) -> Tensor:
    """The image to start from, [N, H, W]; holes of a start made here hold the mean of the measured cells."""
    if initial is not None:
        if not all(map(math.isfinite, extremes(initial))):
            raise ValueError("initial holds NaN or infinite values; fill them first")
        return initial
    return spread(measurement.filled(), measurement.blocks)


def _run(
    y: Tensor, c: Coefficients, measurement: Measurement, adjust: Adjust, step_size: float, epsilon: float, steps: int
) -> Tensor:
    """`steps` steps without gradient, by the operators of the solver: compiled on the CPU, torch elsewhere."""
    backend = backend_of(y)(Coefficients(*(step_size * edges for edges in c)), measurement)
    given = measurement.source, measurement.count.clamp(min=1), _pull(measurement, step_size), measurement.count > 0
    source, count, pull, used = (backend.cells(values) for values in given)
    image = backend.field(y)
    with np.errstate(all="ignore"):
        for _ in range(steps):
            image -= backend.flow(image, None, None)
            mean = backend.block_sums(image) / count
            change = pull * (source - mean)
            if adjust == "ratio":
                change = (change - epsilon) / (backend.xp.where(used > 0, mean, 1.0) + epsilon)
            backend.add(image, image if adjust == "ratio" else None, change, None)
    return backend.tensor(image)  # type: ignore[no-any-return]


def _relative_change(before: Tensor, after: Tensor, measurement: Measurement) -> Tensor:
    """Largest change in a step, as a share of the range of the measured source, [N]."""
    used, s = measurement.count > 0, measurement.source.detach()
    high = torch.where(used, s, -torch.inf).flatten(1).amax(1)
    low = torch.where(used, s, torch.inf).flatten(1).amin(1)
    scale = torch.where(high > low, high - low, high.abs()).clamp(min=torch.finfo(s.dtype).tiny)
    return (after - before).abs().flatten(1).amax(1) / scale
