"""Do source and guide show the same scene? A cheap test of whether their edges lie in the same places.

On the source grid, the edges of the source are correlated with those of the averaged guide, as they lie and
with the guide moved by every other offset. A registered pair agrees far better as it lies than moved; the
agreement is how many standard deviations better. On 98 real pairs at x4, x8 and x16 (indoor depth, stereo,
rendered, thermal, vegetation height) 1 % of the true pairs fall below MIN_AGREEMENT, and 73 % of pairs with
another scene's guide do.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d

from dada.diffusion import down

MIN_AGREEMENT = 1.8
MIN_CELLS = 20  # a side: fewer cells say nothing
MAX_CELLS = 512  # a side: more are averaged first
NEAR = 1  # cells by which a pair may be off and still count as registered
FAR = 4  # cells by which a moved guide must be off
MIN_CONTRAST = 4.0  # 99th percentile over median of the source's edges: below, it has none to compare


def edge_agreement(source: Tensor, valid: Tensor, guide: Tensor) -> float | None:
    """Measure how well the edges of a pair agree.

    Args:
        source: [h, w].
        valid: [h, w] bool.
        guide: [C, H, W], finite.

    Returns:
        The agreement in standard deviations, below MIN_AGREEMENT if the pair is probably not registered; None
        if the pair is too small or has too few edges to tell.
    """
    h, w = (min(n, MAX_CELLS) for n in source.shape)
    if min(h, w) < MIN_CELLS:
        return None
    coarse = down(torch.where(valid, source, 0).double(), (h, w), coverage=valid)
    first, second = _edges(coarse[None]), _edges(down(guide, (h, w)).double())
    known = torch.isfinite(first)
    if int(known.sum()) < MIN_CELLS**2 or not _has_edges(first[known]) or not bool((second > 0).any()):
        return None
    a, b = _relief(first, known), _relief(second, torch.ones_like(known))
    moved = torch.fft.irfft2(torch.fft.rfft2(a) * torch.fft.rfft2(b).conj(), s=a.shape)
    row, column = (torch.minimum(torch.arange(n), n - torch.arange(n)).to(a.device) for n in a.shape)
    offset = torch.maximum(row[:, None], column[None, :])
    others = moved[offset > FAR]
    return float((moved[offset <= NEAR].max() - others.mean()) / others.std())


def _edges(image: Tensor) -> Tensor:
    """Length of the gradient over all bands, [C, h, w] to [h - 1, w - 1]; NaN beside invalid cells."""
    below, right = image.diff(dim=-2)[..., :-1], image.diff(dim=-1)[..., :-1, :]
    return (below.square() + right.square()).sum(dim=0).sqrt()


def _has_edges(lengths: Tensor) -> bool:
    median, high = torch.quantile(lengths, lengths.new_tensor([0.5, 0.99]))
    return bool(high > MIN_CONTRAST * median)


def _relief(edges: Tensor, known: Tensor) -> Tensor:
    """Edges on a logarithmic scale minus their local mean, so that busy regions do not count as agreement."""
    typical = edges[known].median().clamp(min=float(edges[known].max()) * 1e-3)
    level = torch.where(known, torch.log1p(torch.where(known, edges, 0) / typical), 0)
    window = [2 * max(2, n // 16) + 1 for n in edges.shape]

    def local(values: Tensor) -> Tensor:
        padding = [n // 2 for n in window]
        return avg_pool2d(values[None], window, 1, padding, count_include_pad=False)[0]

    mean = local(level)
    if not bool(known.all()):
        mean = mean / local(known.double()).clamp(min=1e-6)
    return torch.where(known, level - mean, 0)
