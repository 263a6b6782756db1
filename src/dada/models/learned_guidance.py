"""A DADA on one problem: its features, computed once, and the coefficients of each round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from dada.diffusion import Blocks, Coefficients, coefficients
from dada.features.bands import placed
from dada.models.model import Round
from dada.models.refinement import measurement_pull
from dada.sample import Sample

if TYPE_CHECKING:
    from dada.models.dada import DADA

STRONGEST = 5.0  # largest |logarithm| by which the network may change a coefficient directly


@dataclass(frozen=True)
class Known:
    """What a DADA knows of a problem before any result is there.

    Attributes:
        mask: [B, 1, h, w] bool, valid cells.
        blocks: which pixels each cell covers; None: `partition` of the two sizes.
        mean: of the interpolated source, [B, 1, 1, 1].
        unit: what the source channel is measured in, [B, 1, 1, 1].
        initial: the interpolated source as the network takes it, [B, 1, H, W].
        plain: coefficients of Eq. 2 by the features alone.
        logarithms: of `config.edges`, [B, 2, H, W]; without, [B, 0, H, W].
        compared: the features, where the distance of a later round needs them; else [B, 0, H, W].
        prepared: what the refinement network needs of the features, [B, WIDTH, H / 2, W / 2]; without, empty.
    """

    mask: Tensor
    blocks: Blocks | None
    mean: Tensor
    unit: Tensor
    initial: Tensor
    plain: Coefficients
    logarithms: Tensor
    compared: Tensor
    prepared: Tensor

    @classmethod
    def of(cls, network: DADA, sample: Sample, unit: Tensor) -> Known:
        """Run the extractor.

        Args:
            network: what computes.
            sample: the problem.
            unit: [B, 1, 1, 1], what the source channel is measured in.
        """
        mean = sample.mean_initial()
        initial = ((sample.initial - mean) / unit).to(network.logk.dtype)
        height = sample.guide.shape[-2]
        heights = (height - 1, height, height, height, (height + 1) // 2)
        kept: list[Tensor | None] = [None] * len(heights)
        for start, rows in network.features_in_bands(sample.guide, initial):
            starts, parts = (start, start, start, start, start // 2), _band(network, start, rows, height)
            kept = [placed(*each) for each in zip(kept, parts, starts, heights, strict=True)]
        vertical, horizontal, *others = (part for part in kept if part is not None)
        return cls(sample.source_mask, sample.blocks, mean, unit, initial, Coefficients(vertical, horizontal), *others)


def _band(network: DADA, start: int, features: Tensor, height: int) -> tuple[Tensor, ...]:
    """What is kept of the features of some rows of an image, which may be many.

    Returns:
        Coefficients of Eq. 2 down and right, the logarithms of `config.edges`, the features where a later round
        needs them, and what the refinement network needs of them, in the unit of Eq. 2.
    """
    config = network.config
    count, rows = features.shape[1] - 2 * config.edges, features.shape[-2]
    own = rows - int(start + rows < height)  # the last one is the next band's first
    c = coefficients(features[:, :count], network.kappa, config.distance)
    features = features[..., :own, :]
    compared = features[:, : count if config.rounds > 1 and config.distance != "euclidean" else 0]
    prepared = compared[..., ::2, :]
    if network.refinement is not None:
        others = network.kappa.new_ones(features.shape[1] - count)
        prepared = network.refinement.prepare(features, torch.cat([(1 / network.kappa).expand(count), others]))
    return c.vertical, c.horizontal[..., :own, :], features[:, count:], compared, prepared


class LearnedGuidance:
    """What a DADA computes for a problem; see `dada.models.model.Guidance`."""

    def __init__(self, network: DADA, known: Known) -> None:
        """Take what is known of the problem.

        Args:
            network: what computes.
            known: from `Known.of`.
        """
        self.network, self.known = network, known

    def centred(self, image: Tensor) -> Tensor:
        """An image [B, 1, H, W] as the network sees it: in `unit`, about 0."""
        return ((image - self.known.mean) / self.known.unit).to(self.network.logk.dtype)

    def coefficients(self, before: Round | None = None) -> Coefficients:
        """Return those of the round after `before`."""
        if before is None:
            return _strengthened(self.known.plain, self.known.logarithms)
        known, result, logarithms = self.known, self.centred(before.result), self.known.logarithms
        log_weight = self.network.log_result_weights[before.number]
        if self.network.refinement is not None:
            pull = measurement_pull(before.coefficients, result, known.mask, known.blocks)
            change = self.network.refinement(known.prepared, result, known.initial, pull, before.number)
            logarithms = change[:, :2] + logarithms if self.network.config.edges else change[:, :2]
            log_weight = log_weight + _bounded(change[:, 2])
        return _strengthened(self._with_result(result, log_weight.exp()), logarithms)

    def _with_result(self, result: Tensor, weight: Tensor) -> Coefficients:
        """Eq. 2 of the features and of a result [B, 1, H, W] beside them.

        The weight of the result is one number, or one for each pixel [B, H, W], for its edges down and right.
        """
        kappa, distance = self.network.kappa, self.network.config.distance
        if distance != "euclidean":
            return coefficients(torch.cat([self.known.compared, weight * result], dim=1), kappa, distance)
        # squared distances add up: 1 / c = 1 / c_features + (weighted difference of the result / kappa)^2
        share = weight / kappa
        down, right = (share[:, :-1], share[..., :-1]) if share.dim() else (share, share)
        steps = (down * result.diff(dim=-2)[:, 0], right * result.diff(dim=-1)[:, 0])
        return Coefficients(*(c / (1 + c * step.square()) for c, step in zip(self.known.plain, steps, strict=True)))


def _strengthened(c: Coefficients, logarithms: Tensor) -> Coefficients:
    """Multiply coefficients by exp of two logarithms [B, 2, H, W], of each pixel's edges down and right, if any."""
    if not logarithms.shape[1]:
        return c
    factor = _bounded(logarithms).exp()
    return Coefficients(c.vertical * factor[:, 0, :-1], c.horizontal * factor[:, 1, :, :-1])


def _bounded(logarithm: Tensor) -> Tensor:
    return STRONGEST * torch.tanh(logarithm / STRONGEST)
