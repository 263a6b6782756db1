"""Models that learn nothing: the paper's, and ours, whose coefficients also see the result."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from dada.diffusion import Coefficients, coefficients
from dada.diffusion.coefficients import Distance
from dada.sample import Sample, Solve

SOURCE_SCALE = 4.0
BLURRED = 16.0
KAPPA = 0.03  # of the paper's learning-free variant
RGB_MEAN, RGB_DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of ImageNet, as in the paper
BAND_MEAN, BAND_DEVIATION = 0.449, 0.226  # their means, for guides that are not RGB


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

    def diffuse(self, sample: Sample, solve: Solve) -> Tensor:
        """Solve once; see `dada.model.Model`."""
        return solve(self.coefficients(sample), sample.initial)

    def coefficients(self, sample: Sample) -> Coefficients:
        """Return coefficients that do not depend on the unit of the source."""
        features, unit = standardise(sample.guide), sample.deviation()
        if bool((unit > 0).all()):
            features = torch.cat([features, sample.initial / (self.source_scale * unit).to(features)], dim=1)
        return coefficients(features, self.kappa, self.distance)


@dataclass(frozen=True)
class Dynamic:
    """Ours, without learning: solve, then solve again with coefficients that also see the result.

    A difference of the result between neighbours makes an edge, as one of the guide does. The next round therefore
    blurs less across what the last one found, and more along it: iteratively reweighted least squares for an energy
    that keeps edges, started from the convex problem of the paper. The settings were chosen on scenes other than
    those reported in docs/choosing.md.

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

    def diffuse(self, sample: Sample, solve: Solve) -> Tensor:
        """Solve, and again with what was found; see `dada.model.Model`."""
        result = solve(self.coefficients(sample), sample.initial)
        for _ in range(self.rounds - 1):
            result = solve(self.coefficients(sample, result), result)
        return result

    def coefficients(self, sample: Sample, result: Tensor | None = None) -> Coefficients:
        """Return coefficients that depend neither on the unit of the source nor on the number of bands.

        Args:
            sample: the problem.
            result: [B, 1, H, W], that of the round before.
        """
        smooth = sample.factor >= self.smooth_from
        guide = standardise(bilateral(sample.guide) if smooth else sample.guide)
        channels = [guide * (3 / guide.shape[1])]  # any number of bands weighs as much as RGB
        unit = sample.deviation()
        if bool((unit > 0).all()):
            weight = self.source_weight * min(1.0, BLURRED / sample.factor)
            channels.append(sample.initial * (weight / unit).to(guide))
            if result is not None:
                channels.append(result * (self.result_weight / unit).to(guide))
        features = torch.cat(channels, dim=1)
        return coefficients(features, self.kappa * 4 / features.shape[1], "mean_absolute")  # whatever their number


def standardise(guide: Tensor) -> Tensor:
    """Bring bands [B, C, H, W] in 0..1 to the mean 0 and deviation 1 of natural images."""
    if guide.shape[1] != 3:
        return (guide - BAND_MEAN) / BAND_DEVIATION
    mean, deviation = (guide.new_tensor(v)[:, None, None] for v in (RGB_MEAN, RGB_DEVIATION))
    return (guide - mean) / deviation


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
