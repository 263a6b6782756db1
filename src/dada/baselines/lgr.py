"""LGR: a learned graph regulariser (de Lutio et al., Learning Graph Regularisation for Guided Super-Resolution, 2022).

The target minimises  |down(x) - s|^2 + x'Lx  over the valid cells. L is the Laplacian of affinities between
neighbours, from learned features or, in the learning-free variant, from the colours and the bicubic source themselves.

There are two solvers. "authors" is that of their released code (`lgr_solver.py`). "equilibrium" is ours, which comes
closer to the minimum: the energy is that of our `shift` equilibrium with a soft constraint of weight 1 in every cell,
1/2 x'Lx + 1/2 sum w (down(x) - s)^2, twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from pathlib import Path
from typing import Any, Literal, Self

import torch
from torch import Tensor, nn

from dada.baselines import lgr_solver
from dada.baselines.learned import Learned, three_bands
from dada.diffusion import Coefficients, equilibrium
from dada.diffusion.equilibrium import TOLERANCE
from dada.errors import InputError
from dada.features.standardising import standardise
from dada.io.weights import State
from dada.sample import BATCH, DataUnit, Sample
from dada.sample.data_unit import parse_data_unit, with_mean

LAMBDA, MU = 1.0, 0.1  # where the authors' training starts; their logarithms are what is trained
MU_FLOOR = 1e-6  # added to mu^2
CHANNELS = 64
BANDS = 4  # red, green, blue, bicubic source
MAX_ITERATIONS = 5000
WEAKEST = 1e-12  # affinity for which the equilibrium is solved; float32 rounds smaller ones to 0, which cuts pixels off
AUTHORS_PARTS = ("encoder", "decoder", "segmentation_head")
"""What the authors' network of features is made of, by key."""

Solver = Literal["authors", "equilibrium"]


def affinities(features: Tensor, strength: float | Tensor, mu: float | Tensor) -> Coefficients:
    """Compute lambda exp(-mean over channels of (f_p - f_n)^2 / (1e-6 + mu^2)) for each pair of neighbours.

    Args:
        features: [B, C, H, W], any number of channels.
        strength: lambda > 0, of the smoothness beside the data.
        mu: how large a difference counts as an edge, in the unit of the features.
    """
    squares = (features.diff(dim=dim).square().mean(dim=1) for dim in (-2, -1))
    return Coefficients(*(strength * torch.exp(-square / (MU_FLOOR + mu**2)) for square in squares))


def solved(sample: Sample, edges: Coefficients, centre: Tensor | float, solver: Solver) -> Tensor:
    """Return the image [B, 1, H, W] that a solver gives, with gradients to the edges.

    Args:
        sample: the problems.
        edges: affinities.
        centre: about which the authors' solver begins, in the sample's unit; the equilibrium does not depend on it.
        solver: see the head of this file.
    """
    if solver == "equilibrium":
        return regularised(sample, edges)
    values, _ = lgr_solver.solve(sample.source - centre, sample.source_mask, edges)
    return (values + centre).to(sample.initial.dtype)


def regularised(sample: Sample, edges: Coefficients, tolerance: float = TOLERANCE) -> Tensor:
    """Return the x [B, 1, H, W] that minimises |down(x) - s|^2 + x'Lx, with gradients to the edges.

    An exponential makes weak edges next to nothing (1e-11 is common), and the pixels behind them take up whatever a
    block has left over: values that float32 does not resolve beside the others.
    """
    source = sample.source.double()
    solution = equilibrium(
        source,
        Coefficients(*(edge.double().clamp(min=WEAKEST) for edge in edges)),
        initial=sample.initial.double(),
        adjust="shift",
        mask=sample.source_mask,
        weight=torch.ones_like(source),
        tolerance=tolerance,
        max_iterations=MAX_ITERATIONS,
    )
    return solution.values.to(sample.initial.dtype)


def centre_of(sample: Sample, unit: DataUnit | None = None) -> Tensor | float:
    """The mean depth in the sample's unit: that of its data set where it is known, else that of each image.

    Args:
        sample: its unit tells the paper's data sets.
        unit: of another data set.
    """
    known = unit if unit is not None and unit.deviation == sample.unit else with_mean(sample.unit)
    return known.mean / known.deviation if known.mean else sample.initial.mean(dim=(-2, -1), keepdim=True)


@dataclass(frozen=True)
class LgrFree:
    """The graph regulariser on the inputs themselves: standardised colours and the bicubic source.

    Attributes:
        strength: lambda. Where training would begin, at 1, the result is smoother than its source: the means of its
            blocks are further from it than bicubic's. From 0.01 down the result hardly changes.
        mu: how large a difference of the inputs counts as an edge.
        solver: "authors", theirs, or "equilibrium", ours, which comes closer to the minimum.
        batch: problems that the bench gives the authors' solver at a time: they share its stopping rule.
        name: what tables call it.
    """

    strength: float = 0.01
    mu: float = MU
    solver: Solver = "authors"
    batch: int = BATCH
    name: str = "LGR-free"

    def __post_init__(self) -> None:
        _check_solver(self.solver)
        if self.batch < 1:
            raise ValueError(f"batch {self.batch}: it takes one problem or more at a time")

    @property
    def together(self) -> int:
        """See `dada.sample.Method`."""
        return self.batch if self.solver == "authors" else 1

    def __call__(self, sample: Sample) -> Tensor:
        """Return [B, 1, H, W], see `dada.sample.Method`."""
        features = torch.cat([standardise(sample.guide), sample.initial], dim=1)
        return solved(sample, affinities(features, self.strength, self.mu), centre_of(sample), self.solver)


class Lgr(Learned):
    """The graph regulariser on learned features; lambda and mu are learned too, as their logarithms.

    Unlike the other networks it has no scale of its own: it works in the sample's unit, which should be that of the
    data it was trained on.

    Args:
        features: which network makes them, one of `dada.features.NAMES`.
        channels: how many.
        pretrained: whether the encoder starts from ImageNet.
        centre: what is taken off the bicubic source that the features see, and off the source where the authors'
            solver begins: the mean of the image, or that of the data set as in the authors' training and for their
            weights (see `centre_of`).
        strength: lambda at the start of training. The authors' 1 suits their network, whose features differ by more
            than mu at once. Features that begin alike ("light") make it a smoother than bicubic: the first steps then
            only drive them apart, until every affinity is 0 and nothing is learned any more. Use 0.01 there.
        solver: "authors", theirs, or "equilibrium", ours, which comes closer to the minimum.
        unit: standard deviation of the training data in mm; 0 where it is not known.
        mean: of the training data in mm; 0 where it is not known.
    """

    name = "LGR"
    key = "lgr"

    def __init__(
        self,
        features: str = "unet-resnet50",
        channels: int = CHANNELS,
        pretrained: bool = False,
        centre: Literal["image", "dataset"] = "image",
        strength: float = LAMBDA,
        solver: Solver = "authors",
        unit: float = 0.0,
        mean: float = 0.0,
    ) -> None:
        from dada.features import build

        super().__init__()
        if centre not in ("image", "dataset"):
            raise ValueError(f"centre {centre!r}: there are image and dataset")
        if not strength > 0:
            raise ValueError(f"strength {strength}: lambda is positive")
        if not (unit >= 0 and mean >= 0):
            raise ValueError(f"unit {unit} and mean {mean}: lengths in mm, or 0")
        _check_solver(solver)
        # `pretrained` and `strength` are no settings of the file: what they stood for is in the weights.
        self.config: dict[str, Any] = {
            "features": features, "channels": channels, "centre": centre, "solver": solver, "unit": unit, "mean": mean
        }  # fmt: skip
        self.feature_extractor = build(features, BANDS, channels, pretrained, upsample=False)
        self.log_lambda = nn.Parameter(torch.tensor([log(strength)]))
        self.log_mu = nn.Parameter(torch.tensor([log(MU)]))

    def forward(self, sample: Sample) -> Tensor:
        """Return [B, 1, H, W], see `dada.sample.Method`; with gradients to the parameters.

        Raises:
            InputError: the guide has two bands.
        """
        centre = self._centre(sample)
        inputs = torch.cat([standardise(three_bands(sample.guide)), sample.initial - centre], dim=1)
        features = self.feature_extractor(inputs.to(self.log_mu.dtype))
        return solved(
            sample, affinities(features, self.log_lambda.exp(), self.log_mu.exp()), centre, self.config["solver"]
        )

    @property
    def together(self) -> int:
        """See `dada.sample.Method`."""
        return BATCH if self.config["solver"] == "authors" else 1

    @property
    def data_unit(self) -> DataUnit:
        """That of the data it was trained on."""
        return DataUnit(self.config["mean"], self.config["unit"])

    def accept(self, **settings: str) -> None:
        """See `Learned.accept`: "unit" of the training data (`parse_data_unit`) and "solver"."""
        for name, text in settings.items():
            if name == "unit":
                self.carry(parse_data_unit(text))
            elif name == "solver":
                try:
                    _check_solver(text)
                except ValueError as error:
                    raise InputError(f"{error}.") from None
                self.config["solver"] = text
            else:
                raise InputError(f"{self.name} has no setting {name!r} beside its weights. There are unit and solver.")

    def carry(self, unit: DataUnit) -> None:
        """Note the unit of the data it is trained on, to be stored with its weights."""
        self.config |= {"mean": unit.mean, "unit": unit.deviation}

    def _centre(self, sample: Sample) -> Tensor | float:
        if self.config["centre"] == "dataset":
            return centre_of(sample, self.data_unit)
        return sample.initial.mean(dim=(-2, -1), keepdim=True)

    @classmethod
    def config_of(cls, state: State, path: Path) -> dict[str, Any]:
        """See `Learned.config_of`: files of the authors, and others with the same network."""
        return {"centre": "dataset" if our_keys(state).keys() != state.keys() else "image"}

    @classmethod
    def of_state(cls, state: State, config: dict[str, Any], path: Path) -> Self:
        """See `Learned.of_state`; the keys may be the authors'."""
        return super().of_state(our_keys(state), config, path)


def our_keys(state: State) -> State:
    """The key map: the authors' network is `feature_extractor` itself, ours is `net` in it, with padding around."""
    theirs = tuple(f"feature_extractor.{part}." for part in AUTHORS_PARTS)
    return {
        key.replace("feature_extractor.", "feature_extractor.net.", 1) if key.startswith(theirs) else key: tensor
        for key, tensor in state.items()
    }


def _check_solver(solver: str) -> None:
    if solver not in ("authors", "equilibrium"):
        raise ValueError(f"solver {solver!r} is unknown: use authors or equilibrium")
