"""A DADA on one problem: its features, computed once, and the coefficients of each round."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from dada.diffusion import Coefficients, coefficients
from dada.features.bands import placed
from dada.models.model import Round
from dada.models.refinement import measurement_pull
from dada.sample import Sample

if TYPE_CHECKING:
    from dada.models.dada import DADA

STRONGEST = 5.0  # largest |logarithm| by which the network may change a coefficient directly


class LearnedGuidance:
    """What a DADA computes for a problem; see `dada.models.model.Guidance`."""

    def __init__(self, network: DADA, sample: Sample, unit: Tensor) -> None:
        """Run the extractor.

        Args:
            network: what computes.
            sample: the problem.
            unit: [B, 1, 1, 1], what the source channel is measured in.
        """
        self.network, self.sample, self.unit = network, sample, unit
        self.mean = sample.mean_initial()
        self.initial = self.centred(sample.initial)
        height = sample.guide.shape[-2]
        heights = (height - 1, height, height, height, -(-height // 2))
        kept: list[Tensor | None] = [None] * len(heights)
        for start, rows in network.features_in_bands(sample.guide, self.initial):
            starts, parts = (start, start, start, start, start // 2), self._band(start, rows)
            kept = [placed(*each) for each in zip(kept, parts, starts, heights, strict=True)]
        vertical, horizontal, logarithms, compared, prepared = (part for part in kept if part is not None)
        self.plain, self.logarithms = Coefficients(vertical, horizontal), logarithms
        self.compared, self._prepared = compared, prepared

    def _band(self, start: int, features: Tensor) -> tuple[Tensor, ...]:
        """What is kept of the features of some rows, which may be many.

        Returns:
            Coefficients of Eq. 2 down and right, the logarithms of `config.edges`, the features where a later round
            needs them, and what the refinement network needs of them, in the unit of Eq. 2.
        """
        network, config = self.network, self.network.config
        count, rows = features.shape[1] - 2 * config.edges, features.shape[-2]
        own = rows - (start + rows < self.sample.guide.shape[-2])  # the last one is the next band's first
        c = coefficients(features[:, :count], network.kappa, config.distance)
        features = features[..., :own, :]
        compared = features[:, : count if config.rounds > 1 and config.distance != "euclidean" else 0]
        prepared = compared[..., ::2, :]
        if network.refinement is not None:
            others = network.kappa.new_ones(features.shape[1] - count)
            prepared = network.refinement.prepare(features, torch.cat([(1 / network.kappa).expand(count), others]))
        return c.vertical, c.horizontal[..., :own, :], features[:, count:], compared, prepared

    def centred(self, image: Tensor) -> Tensor:
        """An image [B, 1, H, W] as the network sees it: in `unit`, about 0."""
        return ((image - self.mean) / self.unit).to(self.network.logk.dtype)

    def coefficients(self, before: Round | None = None) -> Coefficients:
        """Return those of the round after `before`."""
        if before is None:
            return _strengthened(self.plain, self.logarithms)
        result, logarithms = self.centred(before.result), self.logarithms
        log_weight = self.network.log_result_weights[before.number]
        if self.network.refinement is not None:
            pull = measurement_pull(before.coefficients, result, self.sample.source_mask, self.sample.blocks)
            change = self.network.refinement(self._prepared, result, self.initial, pull, before.number)
            logarithms = change[:, :2] + logarithms if self.network.config.edges else change[:, :2]
            log_weight = log_weight + _bounded(change[:, 2])
        return _strengthened(self._with_result(result, log_weight.exp()), logarithms)

    def _with_result(self, result: Tensor, weight: Tensor) -> Coefficients:
        """Eq. 2 of the features and of a result [B, 1, H, W] beside them.

        The weight of the result is one number, or one for each pixel [B, H, W], for its edges down and right.
        """
        kappa, distance = self.network.kappa, self.network.config.distance
        if distance != "euclidean":
            return coefficients(torch.cat([self.compared, weight * result], dim=1), kappa, distance)
        # squared distances add up: 1 / c = 1 / c_features + (weighted difference of the result / kappa)^2
        share = weight / kappa
        down, right = (share[:, :-1], share[..., :-1]) if share.dim() else (share, share)
        steps = (down * result.diff(dim=-2)[:, 0], right * result.diff(dim=-1)[:, 0])
        return Coefficients(*(c / (1 + c * step.square()) for c, step in zip(self.plain, steps, strict=True)))


def _strengthened(c: Coefficients, logarithms: Tensor) -> Coefficients:
    """Multiply coefficients by exp of two logarithms [B, 2, H, W], of each pixel's edges down and right, if any."""
    if not logarithms.shape[1]:
        return c
    factor = _bounded(logarithms).exp()
    return Coefficients(c.vertical * factor[:, 0, :-1], c.horizontal * factor[:, 1, :, :-1])


def _bounded(logarithm: Tensor) -> Tensor:
    return STRONGEST * torch.tanh(logarithm / STRONGEST)
