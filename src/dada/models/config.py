"""What a DADA is made of, beside its weights."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args, get_origin, get_type_hints

from dada.diffusion.coefficients import Distance
from dada.diffusion.equilibrium import TOLERANCE
from dada.diffusion.loop import STEPS
from dada.errors import InputError
from dada.features.standardising import KAPPA
from dada.models.model import TrainedAdjust

Solver = Literal["equilibrium", "iterate"]
RefinementName = Literal["wide", "narrow"]


@dataclass(frozen=True)
class DadaConfig:
    """Settings of a DADA, stored with its weights.

    Attributes:
        extractor: a name of `dada.features.build`.
        features: how many the extractor makes.
        bands: of the guide; 4 takes a guide of one or three bands too, whose fourth (near infrared) is then 0.
        pretrained: whether training starts (or started) from ImageNet, where there are such weights.
        upsample: enlarge the extractor's input twice, as in the paper; four times the work.
        kappa: of Eq. 2, at the start of training.
        distance: of Eq. 2; "euclidean" as in the paper, "mean_absolute" as in the released code and its weights.
        edges: let the network also change each coefficient directly, beside what the features say.
        direct: compare the guide and the bicubic source themselves too, each with a learned weight, so that training
            starts from what works without learning; the features add to that, and `edges` can take away.
        source: unit of the source channel: "dataset" is that of the sample (the paper), which should be that of the
            training data; "own" is the deviation of the source itself: then the unit of the data does not matter.
        unit: of "dataset", the standard deviation of the training data in mm; 0 where it is not known. Training notes
            it. A source of a stated physical unit is divided by it.
        mean: of the training data in mm, which DADA does not use; 0 where it is not known.
        rounds: solutions; from the second on, the coefficients also depend on the last result (dynamic guidance).
        feedback: how a round uses the last result: "coefficients" adds it to the features of Eq. 2 with a learned
            weight for each round; "refinement" does that too, and has the refinement network look at the result and
            change each pixel's weight and coefficients. Either way the extractor runs once.
        refinement: which refinement network: "wide" with four convolutions at half the resolution, or "narrow" with one
            there and fewer channels below, for half the operations.
        adjust: "ratio" (Eq. 3), "shift" for any values, or "auto": ratio for images that are positive.
        solver: "equilibrium", or "iterate" for the paper's loop.
        tolerance: of the equilibrium.
        steps: of the loop, in use; training states its own.
    """

    extractor: str = "light"
    features: int = 16
    bands: int = 3
    pretrained: bool = False
    upsample: bool = False
    kappa: float = KAPPA
    distance: Distance = "euclidean"
    edges: bool = False
    direct: bool = False
    source: Literal["dataset", "own"] = "dataset"
    unit: float = 0.0
    mean: float = 0.0
    rounds: int = 1
    feedback: Literal["coefficients", "refinement"] = "coefficients"
    refinement: RefinementName = "wide"
    adjust: TrainedAdjust = "ratio"
    solver: Solver = "equilibrium"
    tolerance: float = TOLERANCE
    steps: int = STEPS

    def __post_init__(self) -> None:
        for name, kind in get_type_hints(type(self)).items():
            value = getattr(self, name)
            if get_origin(kind) is Literal:
                if value not in get_args(kind):
                    raise InputError(f"{name} {value!r} is unknown. Use one of: {', '.join(get_args(kind))}.")
            elif name in ("unit", "mean"):
                if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
                    raise InputError(f"{name} must be a length in mm, or 0 where it is not known; got {value!r}.")
            elif kind in (int, float) and not (isinstance(value, int | kind) and value is not True and value > 0):
                raise InputError(f"{name} must be a positive {'whole ' * (kind is int)}number, got {value!r}.")
            elif kind in (bool, str) and not isinstance(value, kind):
                raise InputError(f"{name} must be {'true or false' if kind is bool else 'a text'}, got {value!r}.")
        if self.feedback == "refinement" and self.distance != "euclidean":
            raise InputError(
                f'feedback "refinement" weighs each pixel on its own, which distance {self.distance!r} cannot. '
                'Use distance "euclidean".'
            )


PAPER = DadaConfig(
    extractor="unet-resnet50", features=64, pretrained=True, upsample=True, distance="mean_absolute", solver="iterate"
)
"""As published: 32.53 M parameters, the loop of 9024 steps."""
