"""Models that learn nothing: the paper's, and ours, whose coefficients also depend on the result."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from dada.diffusion import Coefficients, coefficients
from dada.diffusion.coefficients import Distance
from dada.features.standardising import KAPPA, standardise
from dada.models.model import Round, TrainedAdjust
from dada.sample import Sample

SOURCE_SCALE = 4.0
BLURRED = 16.0


@dataclass(frozen=True)
class LearningFree:
    """The paper's variant without learning: the features are the guide itself and the bicubic source.

    Attributes:
        kappa: of Eq. 2; smaller takes weaker changes of the guide for edges.
        distance: of Eq. 2, "euclidean" as in the paper or "mean_absolute" as in the released code.
        source_scale: one unit of the source channel, in standard deviations of the source.
        name: what reports call it.
    """

    kappa: float = KAPPA
    distance: Distance = "mean_absolute"
    source_scale: float = SOURCE_SCALE
    name: str = "none"

    @property
    def rounds(self) -> int:
        """One: its coefficients do not depend on a result."""
        return 1

    @property
    def adjust(self) -> TrainedAdjust:
        """Either: it was not trained."""
        return "auto"

    def prepare(self, sample: Sample) -> Fixed:
        """Compute coefficients that do not depend on the unit of the source; see `dada.models.model.Model`."""
        features, unit = standardise(sample.guide), sample.deviation()
        if bool((unit > 0).all()):
            features = torch.cat([features, sample.initial / (self.source_scale * unit).to(features)], dim=1)
        return Fixed(coefficients(features, self.kappa, self.distance))


@dataclass(frozen=True)
class Fixed:
    """The same coefficients in every round."""

    fixed: Coefficients

    def coefficients(self, before: Round | None = None) -> Coefficients:
        """See `dada.models.model.Guidance`."""
        return self.fixed


@dataclass(frozen=True)
class Dynamic:
    """Ours, without learning: solve, then solve again with coefficients that also see the result.

    A difference of the result between neighbours makes an edge, as one of the guide does. The next round therefore
    blurs less across what the last one found, and more along it: iteratively reweighted least squares for an energy
    that keeps edges, started from the convex problem of the paper. The settings were chosen on scenes other than
    those reported in docs/results/benchmark.md.

    Attributes:
        kappa: of Eq. 2, for colours in standard deviations of natural images.
        source_weight: of the bicubic source beside the guide, in standard deviations of the source; less beyond x16,
            where it is blurred too far to say where edges are.
        result_weight: of the result, in the same unit.
        rounds: solutions, with the first.
        smooth_from: factor from which the guide's fine texture is smoothed (bilaterally); where one measurement
            covers that much, what the grain of a surface ties together matters more than its last pixel.
        name: what reports call it.
    """

    kappa: float = 0.015
    source_weight: float = 1.0
    result_weight: float = 24.0
    rounds: int = 3
    smooth_from: float = 12.0
    name: str = "dynamic"

    @property
    def adjust(self) -> TrainedAdjust:
        """Either: it was not trained."""
        return "auto"

    def prepare(self, sample: Sample) -> DynamicGuidance:
        """See `dada.models.model.Model`."""
        return DynamicGuidance(self, sample)


@dataclass(frozen=True)
class DynamicGuidance:
    """Coefficients that depend neither on the unit of the source nor on the number of bands."""

    model: Dynamic
    sample: Sample

    def coefficients(self, before: Round | None = None) -> Coefficients:
        """See `dada.models.model.Guidance`."""
        features = self._features
        if before is not None and not self._constant:
            features = torch.cat(
                [features, before.result * (self.model.result_weight / self._unit).to(features)], dim=1
            )
        kappa = self.model.kappa * 4 / features.shape[1]  # whatever their number
        return coefficients(features, kappa, "mean_absolute")

    @cached_property
    def _unit(self) -> Tensor:
        return self.sample.deviation()

    @cached_property
    def _constant(self) -> bool:
        """Whether some source of the batch is: then there is no unit to compare results in."""
        return not bool((self._unit > 0).all())

    @cached_property
    def _features(self) -> Tensor:
        """Those of guide and source, [B, F, H, W]."""
        sample, model = self.sample, self.model
        smooth = sample.factor >= model.smooth_from
        guide = standardise(bilateral(sample.guide) if smooth else sample.guide)
        guide = guide * (3 / guide.shape[1])  # any number of bands weighs as much as RGB
        if self._constant:
            return guide
        weight = model.source_weight * min(1.0, BLURRED / sample.factor)
        return torch.cat([guide, sample.initial * (weight / self._unit).to(guide)], dim=1)


def bilateral(guide: Tensor, diameter: int = 7, colour: float = 0.03, space: float = 3.0) -> Tensor:
    """Smooth [B, C, H, W] in 0..1 where neighbours differ by little more than `colour`: grain and noise."""
    import cv2

    images = guide.detach().float().cpu().permute(0, 2, 3, 1).numpy()  # [B, H, W, C]
    together = 3 if guide.shape[1] == 3 else 1  # the filter takes three bands, or one
    smooth = [
        np.concatenate(
            [
                np.atleast_3d(cv2.bilateralFilter(np.ascontiguousarray(part), diameter, colour, space))
                for part in np.split(image, image.shape[2] // together, axis=2)
            ],
            axis=2,
        )
        for image in images
    ]
    return torch.from_numpy(np.stack(smooth)).permute(0, 3, 1, 2).contiguous().to(guide)
