"""LGR's linear system, solved as its authors solve it: plain conjugate gradients in float32, ended early.

(D'CD + L) x = D'C s, where D averages over blocks, C marks the valid cells and L is the Laplacian of the affinities.
The authors' result is where conjugate gradients stand after a tolerance of 1e-5 or 1500 iterations, from zero. That
is short of the minimum where affinities are next to nothing, and better for it: the pixels behind such edges have
hardly moved, where the minimum sends them far off to take up what a block has left over.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from dada.diffusion import Blocks, Coefficients, partition
from dada.diffusion.blocks import block_sum, spread
from dada.diffusion.coefficients import laplacian

TOLERANCE = 1e-5  # |residual| / |right side|, over the whole batch
MAX_ITERATIONS = 1500


def solve(source: Tensor, mask: Tensor, edges: Coefficients) -> tuple[Tensor, int]:
    """Return x [B, 1, H, W] in float32, with gradients to the edges, and the number of iterations.

    The images of a batch are one system, as in the authors' code: they share the step lengths and the stopping rule.

    Args:
        source: [B, 1, h, w], centred: the iteration starts at 0.
        mask: [B, 1, h, w] bool, valid cells.
        edges: affinities of the H x W target grid.
    """
    x, iterations = _Solve.apply(source[:, 0].float(), mask[:, 0], *(edge.float() for edge in edges))  # type: ignore[no-untyped-call]
    return x[:, None], iterations


class _Solve(torch.autograd.Function):
    """The solution, and its gradient by the implicit function theorem: one more system with the same matrix."""

    @staticmethod
    def forward(ctx: Any, source: Tensor, mask: Tensor, vertical: Tensor, horizontal: Tensor) -> tuple[Tensor, int]:
        matrix = _Matrix(Coefficients(vertical, horizontal), mask)
        x, iterations = conjugate_gradients(matrix, matrix.spread_back(torch.where(mask, source, 0)))
        ctx.matrix = matrix
        ctx.save_for_backward(x)
        return x, iterations

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[None, None, Tensor, Tensor]:
        (x,) = ctx.saved_tensors
        pull, _ = conjugate_gradients(ctx.matrix, gradients[0].contiguous())
        return None, None, -pull.diff(dim=-2) * x.diff(dim=-2), -pull.diff(dim=-1) * x.diff(dim=-1)


class _Matrix:
    """D'CD + L of images [B, H, W]."""

    def __init__(self, edges: Coefficients, mask: Tensor) -> None:
        self.edges, self.mask = edges, mask
        self.blocks: Blocks = partition((mask.shape[-2], mask.shape[-1]), edges.size)
        self.area = torch.from_numpy(self.blocks.area).to(edges.vertical)

    def spread_back(self, cells: Tensor) -> Tensor:
        """D' of [B, h, w]."""
        return spread(cells / self.area, self.blocks)

    def __call__(self, x: Tensor) -> Tensor:
        mean = block_sum(x, self.blocks) / self.area
        return laplacian(x, self.edges) + self.spread_back(torch.where(self.mask, mean, 0))


def conjugate_gradients(matrix: _Matrix, right: Tensor) -> tuple[Tensor, int]:
    """Solve for the right side [B, H, W] from zero, to the authors' tolerance; also return the number of iterations."""
    x, residual, direction = torch.zeros_like(right), right.clone(), right.clone()
    squared = torch.dot(residual.flatten(), residual.flatten())
    enough, iterations = TOLERANCE * squared.sqrt(), 0
    while iterations < MAX_ITERATIONS and bool(squared.sqrt() > enough):
        product = matrix(direction)
        curvature = torch.dot(direction.flatten(), product.flatten())
        if not bool(curvature > 0):  # pixels that no affinity ties to a measurement: the system does not tell them
            break
        length = squared / curvature
        x.add_(length * direction)
        residual.sub_(length * product)
        before, squared = squared, torch.dot(residual.flatten(), residual.flatten())
        direction = residual + (squared / before) * direction
        iterations += 1
    return x, iterations
