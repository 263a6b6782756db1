"""SD: the static/dynamic filter (Ham, Cho, Ponce: Robust Guided Image Filtering Using Nonconvex Potentials, 2017).

Edges of the guide (static) and of the result itself (dynamic) both cut the smoothness. Each round weighs the edges by
the last result u and minimises  sum_c (u_c - f_c)^2 + lambda sum_e w_e (u_p - u_n)^2  anew, where c runs over the
pixels that carry a measurement: one for each valid source cell, the one at its centre.

Since every u_p is then a weighted mean of measurements, the filter cannot leave their range. The paper's numbers for
it seem to (its MSE at x32 is 28 times bicubic's), as they would if u_c stood for the mean over the block.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from dada.diffusion import Coefficients, equilibrium, partition
from dada.sample import Sample

FLOOR = 1e-5  # least weight of an edge, of each of the two kinds: no pixel is ever cut off
TOLERANCE = 1e-9  # of each solve: the authors eliminate, and a round passes on what the one before left over
MAX_ITERATIONS = 20_000

# The authors' Lab: red, green and blue are those of Rec. 709 with its transfer curve (OpenCV undoes that of sRGB, up
# to 8 units of Lab apart), the white is D65, the inverse of the matrix is printed in their tool box.
XYZ_TO_RGB = (
    (3.240479, -1.53715, -0.498535),
    (-0.969256, 1.875992, 0.041556),
    (0.055648, -0.204043, 1.057311),
)
WHITE = (0.950456, 1.0, 1.088754)
LINEAR_BELOW, LINEAR_SLOPE = 0.018, 4.5138  # of the transfer curve; Rec. 709 itself has a slope of 4.5
CUBE_ROOT_FROM = 0.008856  # below it, Lab's cube root is a line


@dataclass(frozen=True)
class StaticDynamic:
    """Repeated smoothing of the measured pixels along a 4-connected grid, starting from a constant.

    Attributes:
        smoothness: lambda, of the smoothness beside the data.
        sigma_guide: how fast an edge's weight falls with the squared difference in the guide, in Lab; the largest
            squared difference in the image counts as 1.
        sigma_result: the same for the result of the last round.
        rounds: of weighing and solving.
        measured: what a source cell tells: the value of the "pixel" at its centre, or the mean over its "block".
        tolerance: of the solve of each round.
        name: what tables call it.
    """

    smoothness: float = 0.1
    sigma_guide: float = 60.0
    sigma_result: float = 30.0
    rounds: int = 20
    measured: Literal["pixel", "block"] = "pixel"
    tolerance: float = TOLERANCE
    name: str = "SD"

    def __post_init__(self) -> None:
        if not self.smoothness > 0 or self.rounds < 1:
            raise ValueError(f"need smoothness > 0 and rounds >= 1, got {self.smoothness} and {self.rounds}")
        if self.measured not in ("pixel", "block"):
            raise ValueError(f'measured must be "pixel" or "block", got {self.measured!r}')

    def __call__(self, sample: Sample) -> Tensor:
        """Return [B, 1, H, W], see `dada.sample.Method`."""
        # (C + lambda L) u = C f is the equilibrium of weight 1 / lambda, where C is one pixel or the mean over a block.
        # Weights span ten orders of magnitude, and rounds add up what rounding leaves: hence float64.
        source = sample.source.double()
        pixels = centres(sample.source, sample.size).to(source.device) if self.measured == "pixel" else None
        weight = torch.full_like(source, 1 / self.smoothness)
        static = edge_weights(lab(sample.guide.double()), self.sigma_guide)
        result, edges = sample.initial.double(), static  # the first u is a constant, which has no edges of its own
        for _ in range(self.rounds):
            result = equilibrium(
                source,
                edges,
                initial=result,
                adjust="shift",
                mask=sample.source_mask,
                coverage=pixels,
                weight=weight,
                tolerance=self.tolerance,
                max_iterations=MAX_ITERATIONS,
            ).values
            dynamic = edge_weights(result, self.sigma_result)
            edges = Coefficients(*(s * d for s, d in zip(static, dynamic, strict=True)))
        return result.to(sample.initial)


def centres(source: Tensor, target_size: tuple[int, int]) -> Tensor:
    """[1, 1, H, W] bool: the pixel at the centre of each block, or the one before it where that is between two."""
    blocks = partition(tuple(source.shape[-2:]), target_size)
    marks = torch.zeros(blocks.target_size, dtype=torch.bool)
    rows, cols = (torch.from_numpy((starts[:-1] + starts[1:] - 1) // 2) for starts in (blocks.rows, blocks.cols))
    marks[rows[:, None], cols[None, :]] = True
    return marks[None, None]


def edge_weights(image: Tensor, sigma: float) -> Coefficients:
    """Return exp(-sigma d) + 1e-5, d the squared difference of neighbours in units of the image's largest."""
    squares = [image.diff(dim=dim).square().sum(dim=1) for dim in (-2, -1)]
    largest = torch.stack([square.flatten(1).amax(dim=1) for square in squares if square.numel()]).amax(dim=0)
    unit = torch.where(largest > 0, largest, 1)[:, None, None]
    return Coefficients(*(torch.exp(-sigma * square / unit) + FLOOR for square in squares))


def lab(guide: Tensor) -> Tensor:
    """Convert RGB [B, 3, H, W] in 0..1 to the authors' CIE Lab; a guide of other bands stays as it is."""
    if guide.shape[1] != 3:
        return guide
    rgb = guide.double()
    light = ((rgb + 0.099) / 1.099) ** (1 / 0.45)
    light = torch.where(light < LINEAR_BELOW, rgb / LINEAR_SLOPE, light)
    to_xyz = torch.linalg.inv(rgb.new_tensor(XYZ_TO_RGB)) / rgb.new_tensor(WHITE)[:, None]
    xyz = torch.einsum("ij,bjhw->bihw", to_xyz, light)
    root = torch.where(xyz < CUBE_ROOT_FROM, xyz * (841 / 108) + 4 / 29, xyz.clamp(min=0) ** (1 / 3))
    x, y, z = root.unbind(dim=1)
    return torch.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], dim=1).to(guide)
