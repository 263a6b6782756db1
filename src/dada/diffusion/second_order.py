"""The derivative of the gradient of an equilibrium (equilibrium.py), by two more systems with the same matrix.

With D = slack n^2 (`shift`) or slack n^2 down(y)^2 / S (`ratio`), g = m or m y, mu = 0 for `shift`, and X[c] = c dot X
over edges, the gradient is what a and k of the adjoint T (a, k) = (v, 0) give, T = [[L - mu, m], [g', -D]]. A change of
anything in T or in these formulas changes the gradient by an inner product with (b, l), where T' (b, l) is the
derivative by (a, k). Images are solved one by one in float64, by a sparse factorisation: exact, but not for large ones.
"""

from __future__ import annotations

import numpy as np
import torch
from scipy.sparse import block_array, coo_array, csgraph, diags_array
from scipy.sparse.linalg import splu
from torch import Tensor

from .blocks import spread
from .coefficients import Coefficients, laplacian
from .measurement import Adjust, Given, Measurement

LOOSE = 1e-12  # of the largest coefficient: what ties a measured pixel without any edge


def gradient_of_gradient(
    cotangents: list[Tensor], v: Tensor, y: Tensor, given: Given, measurement: Measurement, adjust: Adjust
) -> tuple[Tensor, ...]:
    """Derive <cotangents, gradient>, the gradient being that by source, vertical, horizontal and weight.

    Returns:
        The derivatives by v, y, source, vertical, horizontal and weight, which are what the gradient depends on.
    """
    ratio = adjust == "ratio"
    hs, hv, hh, hw, v, y, cv, ch, S, w, n = (
        t.detach().cpu().double()
        for t in (*cotangents, v, y, *given[1:3], measurement.source, measurement.weight, measurement.count)
    )
    blocks, used = measurement.blocks, n > 0
    m = torch.ones_like(y) if measurement.measured is None else measurement.measured.cpu().double()
    cells = Measurement(blocks, S, w, n, m)
    c, soft = Coefficients(cv, ch), used & torch.isfinite(w)
    S, w, n, d = (torch.where(used, t, 1.0) for t in (S, torch.where(soft, w, 1.0), n, cells.down(y)))
    hard = (used & ~soft).double()
    soft = soft.double()
    share = torch.where(soft > 0, d / S, 1.0) if ratio else torch.ones_like(d)
    D = soft * n**2 / w * (d**2 / S if ratio else 1)
    mu = torch.where(soft > 0, w * (S - d) / (n * d), cells.down(laplacian(y, c)) / d) * used * ratio
    g = m * y if ratio else m
    owner = spread(torch.arange(used[0].numel()).reshape(used[0].shape), blocks).flatten().numpy()
    D = torch.where(used, D, 1.0)  # where k is 0
    systems = [_Factored(owner, *image) for image in zip(cv, ch, spread(mu, blocks) * m, m, g, D, strict=True)]
    a, k = _solutions(systems, v, 0 * D, "N")
    flux = n * k * share
    hs = hs + hw * soft * (S - d) / w
    h = Coefficients(hv, hh)
    b, l = _solutions(systems, -laplacian(y, h), hs * n * share * used, "T")
    to_S, to_d, to_w = soft * hw * flux / w, -soft * hw * flux / w, -soft * hw * flux * (S - d) / w**2
    to_y, edges = -laplacian(a, h), [-b.diff(dim=dim) * a.diff(dim=dim) for dim in (-2, -1)]
    to_w = to_w - l * k * D / w
    if ratio:
        q = n * cells.down(a * b) / (n * d)  # of dmu / (n d)
        pull = spread(hard * q, blocks) * m
        to_y = to_y - spread(l, blocks) * m * a + laplacian(pull, c) - spread(mu, blocks) * pull
        edges = [e + pull.diff(dim=dim) * y.diff(dim=dim) for e, dim in zip(edges, (-2, -1), strict=True)]
        to_S = to_S + soft * (q * w - hs * flux / S) - l * k * D / S
        to_d = to_d + soft * (hs * n * k / S - q * w * S / d) + 2 * l * k * D / d
        to_w = to_w + soft * q * (S - d)
    to_y = to_y + spread(to_d * used / n, blocks) * m
    return tuple(part.to(given.source) for part in (b, to_y, to_S * used, *edges, to_w * used))


def _solutions(systems: list[_Factored], f: Tensor, q: Tensor, transposed: str) -> tuple[Tensor, Tensor]:
    found = [system.solve(*right, transposed) for system, *right in zip(systems, f, q, strict=True)]
    pixels, cells = zip(*found, strict=True)
    return torch.stack(pixels), torch.stack(cells)


class _Factored:
    """T of one image, and parts of it that no coefficient ties to a measurement, which keep their mean."""

    def __init__(self, owner: np.ndarray, cv: Tensor, ch: Tensor, mu: Tensor, m: Tensor, g: Tensor, D: Tensor) -> None:
        (size, cells), pixel = (mu.numel(), D.numel()), np.arange(mu.numel()).reshape(mu.shape)
        ends = [
            np.r_[down.ravel(), right.ravel()]
            for down, right in ((pixel[:-1], pixel[:, :-1]), (pixel[1:], pixel[:, 1:]))
        ]
        edges = np.r_[cv.numpy().ravel(), ch.numpy().ravel()]
        graph = coo_array((edges, ends), (size, size)).tocsr()
        graph.eliminate_zeros()
        self.part = csgraph.connected_components(graph, directed=False)[1]
        self.pixels = np.bincount(self.part)
        self.floating = np.bincount(self.part, m.numpy().ravel()) == 0
        first, tied = np.unique(self.part, return_index=True)[1], np.zeros(size)
        tied[first[self.floating]] = 1.0
        tied[first[~self.floating & (self.pixels == 1)]] = LOOSE * edges.max(initial=LOOSE)
        L = csgraph.laplacian(graph + graph.T) + diags_array(tied - mu.numpy().ravel())
        column, row = (coo_array((t.numpy().ravel(), (pixel.ravel(), owner)), (size, cells)) for t in (m, g))
        self.shapes = mu.shape, D.shape
        self.factors = splu(block_array([[L, column], [row.T, diags_array(-D.numpy().ravel())]], format="csc"))

    def solve(self, f: Tensor, q: Tensor, transposed: str) -> tuple[Tensor, Tensor]:
        """Solve T (a, k) = (f, q), or that of the transpose."""
        right = f.numpy().ravel()
        mean = np.where(self.floating, np.bincount(self.part, right) / self.pixels, 0.0)
        right = np.where(self.pixels[self.part] == 1, 0.0, right - mean[self.part])
        found = torch.from_numpy(self.factors.solve(np.r_[right, q.numpy().ravel()], transposed))
        return found[: right.size].reshape(self.shapes[0]), found[right.size :].reshape(self.shapes[1])
