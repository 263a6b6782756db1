"""The derivative of the gradient of an equilibrium (equilibrium.py): two more systems with the matrix of its adjoint.

The adjoint is T (a, k) = (v, 0) with T = [[L - mu, m], [g', -D]], where mu = 0, g = m and D = slack n^2 for `shift`,
and g = m y and D = slack n^2 down(y)^2 / S for `ratio`. The gradient is a formula in a, k, y, S and w. Let T' (b, l) be
the derivative of <h, gradient> by (a, k). Then a change of T adds -(b, l)' dT (a, k), and one of v adds b' dv.

Systems are factored in float64, image by image: exact, for images of some 100,000 pixels, not for the largest.
"""

from __future__ import annotations

import numpy as np
import torch
from scipy.sparse import block_array, coo_array, csgraph, diags_array
from scipy.sparse.linalg import SuperLU, splu
from torch import Tensor

from .blocks import Blocks, spread
from .coefficients import Coefficients, laplacian
from .measurement import Adjust, Given, Measurement


def gradient_of_gradient(
    h: list[Tensor], v: Tensor, y: Tensor, given: Given, measurement: Measurement, adjust: Adjust
) -> tuple[Tensor, ...]:
    """Derive <h, gradient> by v, y, source, vertical, horizontal and weight; h and the gradient are of the last four.

    Raises:
        ValueError: coefficients of 0 cut the image in two.
    """
    ratio, blocks = adjust == "ratio", measurement.blocks
    hs, hv, hh, hw, v, y, cv, ch, S, w, n = (
        t.detach().cpu().double()
        for t in (*h, v, y, *given[1:3], measurement.source, measurement.weight, measurement.count)
    )
    m = torch.ones_like(y) if measurement.measured is None else measurement.measured.cpu().double()
    cells, used, soft = Measurement(blocks, S, w, n, m), n > 0, (w > 0) & torch.isfinite(w)
    S, w, n, d = (torch.where(used, t, 1.0) for t in (S, torch.where(soft, w, 1.0), n, cells.down(y)))
    c, along = Coefficients(cv, ch), Coefficients(hv, hh)
    share = torch.where(soft, d / S, 1.0) if ratio else torch.ones_like(d)
    D = soft * n**2 / w * (d**2 / S if ratio else 1) + ~used  # so that k is 0 where nothing was measured
    mu = torch.where(soft, w * (S - d) / (n * d), cells.down(laplacian(y, c)) / d) * used * ratio
    systems = [
        _factored(blocks, *t) for t in zip(cv, ch, spread(mu, blocks) * m, m, m * y if ratio else m, D, strict=True)
    ]
    a, k = _solve(systems, v, 0 * D, "N")
    flux, hs = n * k * share, hs + soft * hw * (S - d) / w
    b, l = _solve(systems, -laplacian(y, along), hs * n * share * used, "T")
    to_S = soft * hw * flux / w
    to_d, to_w = -to_S, -to_S * (S - d) / w - soft * l * k * D / w
    to_y, edges = -laplacian(a, along), [-b.diff(dim=dim) * a.diff(dim=dim) for dim in (-2, -1)]
    if ratio:
        q = cells.down(a * b) / d  # dmu changes <h, gradient> by n d q dmu
        pull = spread(q * (used & ~soft), blocks) * m
        to_y = to_y - spread(l, blocks) * m * a + laplacian(pull, c) - spread(mu, blocks) * pull
        edges = [e + pull.diff(dim=dim) * y.diff(dim=dim) for e, dim in zip(edges, (-2, -1), strict=True)]
        to_S = to_S + soft * (q * w - hs * flux / S - l * k * D / S)
        to_d = to_d + soft * (hs * n * k / S - q * w * S / d + 2 * l * k * D / d)
        to_w = to_w + soft * q * (S - d)
    to_y = to_y + spread(to_d * used / n, blocks) * m
    return tuple(part.to(given.source) for part in (b, to_y, to_S, *edges, to_w))


def _factored(blocks: Blocks, cv: Tensor, ch: Tensor, mu: Tensor, m: Tensor, g: Tensor, D: Tensor) -> SuperLU:
    """T of one image."""
    pixel, cell = (np.arange(t.numel()).reshape(t.shape) for t in (mu, D))
    owner = spread(torch.from_numpy(cell), blocks).numpy().ravel()
    ends = [
        np.r_[down.ravel(), right.ravel()] for down, right in ((pixel[:-1], pixel[:, :-1]), (pixel[1:], pixel[:, 1:]))
    ]
    graph = coo_array((np.r_[cv.numpy().ravel(), ch.numpy().ravel()], ends), (pixel.size, pixel.size)).tocsr()
    graph.eliminate_zeros()
    if csgraph.connected_components(graph, directed=False)[0] > 1:
        raise ValueError("second derivatives need coefficients above 0: those given cut some pixels off from the rest")
    L = csgraph.laplacian(graph + graph.T) - diags_array(mu.numpy().ravel())
    column, row = (coo_array((t.numpy().ravel(), (pixel.ravel(), owner)), (pixel.size, cell.size)) for t in (m, g))
    return splu(block_array([[L, column], [row.T, diags_array(-D.numpy().ravel())]], format="csc"))


def _solve(systems: list[SuperLU], f: Tensor, q: Tensor, transposed: str) -> tuple[Tensor, Tensor]:
    """Solve T (a, k) = (f, q) for each image, or that of the transpose."""
    right = torch.cat([f.flatten(1), q.flatten(1)], dim=1).numpy()
    found = torch.from_numpy(np.stack([T.solve(one, transposed) for T, one in zip(systems, right, strict=True)]))
    return found[:, : f[0].numel()].reshape(f.shape), found[:, f[0].numel() :].reshape(q.shape)
