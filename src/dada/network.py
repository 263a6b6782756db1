"""DADA, the paper's network: guide and source -> features -> coefficients (Eq. 2) -> diffusion and adjustment."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import torch
from huggingface_hub import ModelHubMixin
from torch import Tensor, nn

from dada.diffusion import Coefficients, coefficients, equilibrium, iterate
from dada.diffusion.coefficients import Distance
from dada.diffusion.equilibrium import TOLERANCE
from dada.diffusion.loop import STEPS
from dada.diffusion.measurement import Adjust
from dada.errors import InputError
from dada.features import build
from dada.features.review import Kind, Review, hold
from dada.learning_free import KAPPA, standardise
from dada.sample import Sample, Solve

LIFT = 0.1  # units by which values near zero are lifted before ratios are taken, as in the released code
EPSILON = 1e-8  # added to the divisor of Eq. 3 in the loop, as in the released code
RESULT_WEIGHT = 1.0  # of the last result in deviations of the source, at the start of training
DIRECT_WEIGHTS = (0.5, 0.5, 8.0)  # of guide, source and result compared directly: about those of `Dynamic`
STRONGEST = 5.0  # largest |logarithm| by which the network may change a coefficient directly


@dataclass(frozen=True)
class DadaConfig:
    """What a DADA is made of, beside its weights.

    Attributes:
        extractor: a name of `dada.features.build`.
        features: how many the extractor makes.
        bands: of the guide.
        pretrained: whether training starts (or started) from ImageNet, where there are such weights.
        upsample: enlarge the extractor's input twice, as in the paper; four times the work.
        kappa: of Eq. 2, at the start of training.
        distance: of Eq. 2; "euclidean" as in the paper, "mean_absolute" as in the released code and its weights.
        edges: let the network also change each coefficient directly, beside what the features say.
        direct: compare the guide and the bicubic source themselves too, each with a learned weight, so that training
            starts from what works without learning; the features add to that, and `edges` can take away.
        source: unit of the source channel: "dataset" is that of the sample (the paper), "own" is the
            deviation of the source itself: then the unit of the data does not matter.
        rounds: solutions; from the second on, the coefficients also see the last result (dynamic guidance).
        sees: where it enters: "coefficients" adds it to the features of Eq. 2 with a learned weight for each round, so
            that the network runs once; "review" does that too, and has a small network look at the result and change
            each pixel's weight and coefficients; "features" gives it to the network, which runs again for each round.
        review: which one: "near" sees 22 pixels, "wide" 46, "deep" some 150, and also how hard each measurement pulls
            at the result.
        adjust: "ratio" (Eq. 3), "shift" for any values, or "auto": ratio for images that are positive.
        method: "equilibrium", or "iterate" for the paper's loop.
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
    rounds: int = 1
    sees: Literal["coefficients", "review", "features"] = "coefficients"
    review: Kind = "near"
    adjust: Literal["ratio", "shift", "auto"] = "ratio"
    method: Literal["equilibrium", "iterate"] = "equilibrium"
    tolerance: float = TOLERANCE
    steps: int = STEPS

    def __post_init__(self) -> None:
        for name, kind in get_type_hints(type(self)).items():
            value = getattr(self, name)
            if get_origin(kind) is Literal:
                if value not in get_args(kind):
                    raise InputError(f"{name} {value!r} is unknown. Use one of: {', '.join(get_args(kind))}.")
            elif kind in (int, float) and not (isinstance(value, int | kind) and value is not True and value > 0):
                raise InputError(f"{name} must be a positive {'whole ' * (kind is int)}number, got {value!r}.")
            elif kind in (bool, str) and not isinstance(value, kind):
                raise InputError(f"{name} must be {'true or false' if kind is bool else 'a text'}, got {value!r}.")
        if self.sees == "review" and self.distance != "euclidean":
            raise InputError(
                f'sees "review" weighs each pixel on its own, which distance {self.distance!r} cannot. '
                'Use distance "euclidean".'
            )
        if self.sees != "review" and self.review != "near":
            raise InputError(f'review {self.review!r} needs sees "review", and sees is {self.sees!r}.')


PAPER = DadaConfig(
    extractor="unet-resnet50", features=64, pretrained=True, upsample=True, distance="mean_absolute", method="iterate"
)
"""As published: 32.53 M parameters, the loop of 9024 steps."""


CARD = """---
{{ card_data }}
---

A network for [dada](https://pypi.org/project/dada/), guided super-resolution that never contradicts the measurement.
Read it with `dada.DADA.from_pretrained("NAME")`, or save the files to a folder and use `dada upsample --model FOLDER`.
"""


class DADA(nn.Module, ModelHubMixin, library_name="dada", tags=["guided-super-resolution"], model_card_template=CARD):
    """Guided super-resolution by diffusion with learned coefficients.

    Attributes:
        config: what it is made of.
        extractor: the feature network.
        logk: logarithm of kappa, trained.
        name: what tables and reports call it.
    """

    def __init__(self, config: DadaConfig | None = None) -> None:
        """Make a network with fresh weights.

        Args:
            config: the light U-Net by default.

        Raises:
            InputError: the extractor, its package or its ImageNet weights cannot be had.
        """
        super().__init__()
        self.config = config = config or DadaConfig()
        self.name = "dada"
        self.again = config.rounds > 1 and config.sees == "features"  # does the network run in every round?
        channels = config.bands + 1 + self.again
        self.extractor = build(
            config.extractor, channels, config.features + 2 * config.edges, config.pretrained, config.upsample
        )
        self.logk = nn.Parameter(torch.tensor(math.log(config.kappa)))
        guide, source, result = DIRECT_WEIGHTS
        if config.direct:
            self.logg = nn.Parameter(torch.tensor(math.log(guide)))
            self.logs = nn.Parameter(torch.tensor(math.log(source)))
        if config.rounds > 1 and not self.again:
            begin = math.log(result if config.direct else RESULT_WEIGHT)
            self.logw = nn.Parameter(torch.full((config.rounds - 1,), begin))
        self.review: Review | None = None
        if config.rounds > 1 and config.sees == "review":
            known = (channels if config.direct else 0) + config.features + 2 * config.edges
            self.review = Review(known, config.review, config.rounds - 1)

    @property
    def kappa(self) -> Tensor:
        """How large a difference of the features counts as an edge (Eq. 2)."""
        return self.logk.exp()

    @property
    def rounds(self) -> int:
        """How often features are computed and solved for; all but the first see the result before."""
        return self.config.rounds

    def forward(
        self,
        sample: Sample,
        *,
        method: Literal["equilibrium", "iterate"] | None = None,
        n_pre: int | None = None,
        n_grad: int = 0,
    ) -> Tensor:
        """Return the fine images [B, 1, H, W] in the sample's unit.

        Args:
            sample: the problems; their truth is not looked at.
            method: "equilibrium" with its implicit gradient, or "iterate", the unrolled loop; the config's by default.
            n_pre: steps of the loop without gradient; the config's steps, less n_grad, by default.
            n_grad: steps of the loop after these, with gradient.
        """
        unit = sample.deviation() if self.config.source == "own" else torch.ones_like(sample.source[:, :, :1, :1])
        unit = torch.where(unit > 0, unit, 1.0).to(sample.source)
        how = method or self.config.method
        steps = n_grad + (max(self.config.steps - n_grad, 0) if n_pre is None else n_pre)

        def solve(c: Coefficients, start: Tensor) -> Tensor:
            return self._solve(sample, unit, c, start, how, steps, n_grad)

        return self._diffuse(sample, unit, solve)

    def diffuse(self, sample: Sample, solve: Solve) -> Tensor:
        """Compute coefficients and have them solved for, in rounds, as `dada.model.Model` asks for.

        Data may come in any unit here: the deviation of the source stands for that of a data set.

        Args:
            sample: the problems; a guide of a single band serves a network for RGB too.
            solve: what solves.

        Raises:
            InputError: the guide has another number of bands than the network.
        """
        unit = sample.deviation()
        return self._diffuse(sample, torch.where(unit > 0, unit, 1.0).to(sample.initial), solve)

    def coefficients(self, sample: Sample) -> Coefficients:
        """Return those of the first round, of the H x W target grid; see `diffuse`."""
        first: list[Coefficients] = []

        def solve(c: Coefficients, start: Tensor) -> Tensor:
            first.append(c)
            return start

        self.diffuse(sample, solve)
        return first[0]

    def _diffuse(self, sample: Sample, unit: Tensor, solve: Solve) -> Tensor:
        mean = sample.initial.mean(dim=(-2, -1), keepdim=True)

        def seen(image: Tensor) -> Tensor:
            return ((image - mean) / unit).to(self.logk.dtype)

        result, compared, prepared, solved = sample.initial, None, None, None
        for number in range(self.rounds):
            if compared is None or self.again:
                features = self._features(sample, seen, result)
                count = features.shape[1] - 2 * self.config.edges
                compared, logarithms = features[:, :count], features[:, count:]
                plain = coefficients(compared, self.kappa, self.config.distance)
            c, said = plain, logarithms
            if number and not self.again:
                last, weight = seen(result), self.logw[number - 1]
                if self.review:
                    if prepared is None:
                        scale = torch.cat(
                            [(1 / self.kappa).expand(count), self.kappa.new_ones(features.shape[1] - count)]
                        )
                        prepared = self.review.prepare(features, scale)
                    held = None
                    if self.config.review == "deep":
                        assert solved is not None
                        held = hold(solved, last, sample.source_mask)
                    change = self.review(prepared, last, seen(sample.initial), held, number - 1)
                    said = change[:, :2] + said if self.config.edges else change[:, :2]
                    weight = weight + _bounded(change[:, 2])
                c = self._with_result(plain, compared, last, weight.exp())
            if said.shape[1]:
                c = Coefficients(*(x * f for x, f in zip(c, _factors(said), strict=True)))
            result, solved = solve(c, result).to(sample.initial.dtype), c
        return result

    def _with_result(self, plain: Coefficients, compared: Tensor, last: Tensor, weight: Tensor) -> Coefficients:
        """Eq. 2 of the features and of a result [B, 1, H, W] beside them; `plain` is that of the features alone.

        The weight of the result is one number, or one for each pixel [B, H, W], for its edges down and right.
        """
        if self.config.distance != "euclidean":
            return coefficients(torch.cat([compared, weight * last], dim=1), self.kappa, self.config.distance)
        # squared distances add up: 1 / c = 1 / c_features + (weighted difference of the result / kappa)^2
        share = weight / self.kappa
        down, right = (share[:, :-1], share[..., :-1]) if share.dim() else (share, share)
        steps = (down * last.diff(dim=-2)[:, 0], right * last.diff(dim=-1)[:, 0])
        return Coefficients(*(c / (1 + c * step.square()) for c, step in zip(plain, steps, strict=True)))

    def _features(self, sample: Sample, seen: Callable[[Tensor], Tensor], result: Tensor) -> Tensor:
        """Of guide, source and, for networks that run in every round, the last result."""
        channels = [standardise(self._bands(sample.guide)).to(self.logk.dtype), seen(sample.initial)]
        image = torch.cat([*channels, seen(result)] if self.again else channels, dim=1)
        features = self.extractor(image)
        if self.config.direct:
            weights = torch.cat([self.logg.expand(self.config.bands), self.logs[None]]).exp()
            compared = image[:, : self.config.bands + 1] * weights[:, None, None]
            features = torch.cat([compared, features], dim=1)  # those for `edges` stay last
        return features

    @classmethod
    def load(cls, path: str | PathLike[str]) -> DADA:
        """Read a network: a folder of `save_pretrained`, its .safetensors file, or a checkpoint of the authors.

        Raises:
            InputError: it is none of these; the message says what was found.
        """
        from dada.checkpoint import load

        return load(Path(path))

    def _save_pretrained(self, save_directory: Path) -> None:
        """What `save_pretrained` calls: weights in the type they have, and config.json."""
        from dada.checkpoint import save_folder

        save_folder(self, save_directory)

    @classmethod
    def _from_pretrained(cls, *, model_id: str, **hub: Any) -> DADA:
        """What `from_pretrained` calls: a folder, or a repository of the Hugging Face hub."""
        if Path(model_id).is_dir():
            return cls.load(model_id)
        from huggingface_hub import hf_hub_download

        where = {name: hub[name] for name in ("revision", "cache_dir", "force_download", "local_files_only", "token")}
        return cls.load(hf_hub_download(model_id, "model.safetensors", **where))  # which holds the config too

    def _bands(self, guide: Tensor) -> Tensor:
        given, wanted = guide.shape[1], self.config.bands
        if given not in (1, wanted):
            raise InputError(
                f"the guide has {given} bands, model {self.name!r} was made for {wanted}. Give the {wanted} bands it "
                "was trained on or a single one, or use model none, which takes any number."
            )
        return guide.expand(-1, wanted, -1, -1)

    def _solve(
        self, sample: Sample, unit: Tensor, c: Coefficients, start: Tensor, how: str, steps: int, n_grad: int
    ) -> Tensor:
        """Diffuse and adjust, each image in the way that suits its values."""
        ratio = _positive(sample) if self.config.adjust == "auto" else [self.config.adjust == "ratio"]
        if any(ratio) and not all(ratio):
            rows = [slice(i, i + 1) for i in range(len(sample))]
            parts = [(sample[i], unit[i], Coefficients(*(edges[i] for edges in c)), start[i]) for i in rows]
            return torch.cat([self._solve(*part, how, steps, n_grad) for part in parts])
        adjust: Adjust = "ratio" if all(ratio) else "shift"
        lift = _lift(sample.source, unit) if adjust == "ratio" else 0.0
        c = Coefficients(*(edges.to(sample.source.dtype) for edges in c))
        source, initial, mask = sample.source + lift, start + lift, sample.source_mask
        if how == "iterate":
            solution = iterate(
                source, c, initial=initial, adjust=adjust, mask=mask, steps=steps, grad_steps=n_grad, epsilon=EPSILON
            )
        else:  # a network at the start of its training may ask for what is hard to solve; the result is near enough
            solution = equilibrium(
                source, c, initial=initial, adjust=adjust, mask=mask, tolerance=self.config.tolerance,
                warn=not self.training,
            )  # fmt: skip
        return solution.values - lift


def _positive(sample: Sample) -> list[bool]:
    """Whether all that was measured is, for each image."""
    return ((sample.source > 0) | ~sample.source_mask).flatten(1).all(1).tolist()


def _lift(source: Tensor, unit: Tensor) -> Tensor:
    """What is added to each image before ratios are taken, [B, 1, 1, 1]: nothing, or LIFT units if some cell is below.

    As in the released code, that includes cells without a measurement, which hold 0.
    """
    return torch.where(source.amin(dim=(-2, -1), keepdim=True) <= LIFT * unit, LIFT * unit, 0.0)


def _factors(logarithm: Tensor) -> tuple[Tensor, Tensor]:
    """What the network multiplies coefficients by: exp of what it says of each pixel's edges down and right."""
    factor = _bounded(logarithm).exp()
    return factor[:, 0, :-1], factor[:, 1, :, :-1]


def _bounded(logarithm: Tensor) -> Tensor:
    return STRONGEST * torch.tanh(logarithm / STRONGEST)
