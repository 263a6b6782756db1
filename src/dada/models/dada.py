"""DADA, the paper's network: guide and source -> features -> coefficients (Eq. 2) -> diffusion and adjustment."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from dada.diffusion import Coefficients, Solution, equilibrium, iterate
from dada.diffusion.coefficients import at_least_float32
from dada.diffusion.measurement import Adjust
from dada.errors import InputError
from dada.features import build
from dada.features.standardising import standardise
from dada.models.config import DadaConfig, Solver
from dada.models.learned_guidance import Known, LearnedGuidance
from dada.models.model import LIFT, HalfPrecision, Round, TrainedAdjust
from dada.models.refinement import RefinementNetwork
from dada.sample import DataUnit, Sample
from dada.sample.data_unit import parse_data_unit

EPSILON = 1e-8  # added to the divisor of Eq. 3 in the loop, as in the released code
RESULT_WEIGHT = 1.0  # of the last result in deviations of the source, at the start of training
INFRARED = 4  # bands: red, green, blue and near infrared
DIRECT_WEIGHTS = (0.5, 0.5, 8.0)  # of guide, source and result compared directly: about those of `Dynamic`


class DADA(nn.Module):
    """Guided super-resolution by diffusion with learned coefficients.

    Attributes:
        config: what it is made of.
        extractor: the feature network.
        refinement: the network that looks at results, where `config.feedback` asks for one.
        logk: logarithm of kappa, trained.
        name: what tables and reports call it.
        half_precision: see `dada.models.model.half_precision_of`.
    """

    half_precision: HalfPrecision = "asked"

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
        channels, made = config.bands + 1, config.features + 2 * config.edges
        self.extractor = build(config.extractor, channels, made, config.pretrained, config.upsample)
        self.logk = nn.Parameter(torch.tensor(math.log(config.kappa)))
        guide, source, result = DIRECT_WEIGHTS
        if config.direct:
            self.log_guide_weight = nn.Parameter(torch.tensor(math.log(guide)))
            self.log_source_weight = nn.Parameter(torch.tensor(math.log(source)))
        if config.rounds > 1:
            begin = math.log(result if config.direct else RESULT_WEIGHT)
            self.log_result_weights = nn.Parameter(torch.full((config.rounds - 1,), begin))
        self.refinement: RefinementNetwork | None = None
        if config.rounds > 1 and config.feedback == "refinement":
            seen = (channels if config.direct else 0) + made
            self.refinement = RefinementNetwork(seen, config.rounds - 1, config.refinement)

    @property
    def kappa(self) -> Tensor:
        """How large a difference of the features counts as an edge (Eq. 2)."""
        return self.logk.exp()

    @property
    def rounds(self) -> int:
        """How many solutions there are; all but the first depend on the result before."""
        return self.config.rounds

    @property
    def adjust(self) -> TrainedAdjust:
        """What it was trained with."""
        return self.config.adjust

    @property
    def takes(self) -> tuple[int, ...]:
        """How many bands a guide may have."""
        bands = self.config.bands
        return (1, 3, INFRARED) if bands == INFRARED else (1,) if bands == 1 else (1, bands)

    @property
    def data_unit(self) -> DataUnit | None:
        """That of the training data, which samples should have; None: the network measures each source by itself."""
        return DataUnit(self.config.mean, self.config.unit) if self.config.source == "dataset" else None

    def carry(self, unit: DataUnit) -> None:
        """Note the unit of the training data, to be stored with the weights."""
        self.config = replace(self.config, unit=unit.deviation, mean=unit.mean)

    def accept(self, **settings: str) -> None:
        """Take settings that stand beside the file, as in "FILE?unit=middlebury".

        Args:
            settings: "unit" of the training data, see `dada.sample.data_unit.parse_data_unit`.

        Raises:
            InputError: there is no such setting, or it cannot be.
        """
        for name, text in settings.items():
            if name != "unit":
                raise InputError(f"DADA has no setting {name!r} beside its weights. There is unit.")
            if self.data_unit is None:
                raise InputError("unit was given, but these weights take any unit. Leave it out.")
            self.carry(parse_data_unit(text))

    def first_rounds(self, count: int) -> DADA:
        """Return a network with these weights that stops after so many rounds.

        Raises:
            InputError: it has no such number of rounds.
        """
        if not 1 <= count <= self.rounds:
            raise InputError(f"rounds is {count}: model {self.name!r} has {self.rounds}. Use 1 to {self.rounds}.")
        feedback = self.config.feedback if count > 1 else "coefficients"
        config = replace(self.config, rounds=count, feedback=feedback)
        shorter = DADA(replace(config, pretrained=False))
        shorter.config, shorter.name = config, self.name
        weights = self.state_dict()
        for name in ("log_result_weights", "refinement.offsets"):
            if name in weights:
                weights[name] = weights[name][: count - 1]
        shorter.load_state_dict({name: weights[name] for name in shorter.state_dict()})
        return shorter.to(self.logk).train(self.training)

    def forward(
        self,
        sample: Sample,
        *,
        solver: Solver | None = None,
        n_pre: int | None = None,
        n_grad: int = 0,
        every_round: bool = False,
    ) -> Tensor:
        """Return the fine images [B, 1, H, W] in the sample's unit; of every round [R, B, 1, H, W].

        Args:
            sample: the problems; their truth is not looked at.
            solver: "equilibrium" with its implicit gradient, or "iterate", the unrolled loop; the config's by default.
            n_pre: steps of the loop without gradient; the config's steps, less n_grad, by default.
            n_grad: steps of the loop after these, with gradient.
            every_round: return the results of all rounds, instead of the last one's.
        """
        solver = solver or self.config.solver
        steps = n_grad + (max(self.config.steps - n_grad, 0) if n_pre is None else n_pre)
        unit = self._unit(sample)
        guidance, result, before = LearnedGuidance(self, Known.of(self, sample, unit)), sample.initial, None
        results = []
        for number in range(self.rounds):
            c = guidance.coefficients(before)
            result = self._solve(sample, unit, c, result, solver, steps, n_grad).to(sample.initial.dtype)
            before = Round(number, c, result)
            results.append(result)
        return torch.stack(results) if every_round else result

    def prepare(self, sample: Sample) -> LearnedGuidance:
        """Run the extractor; see `dada.models.model.Model`.

        Args:
            sample: the problems, in the unit of the training data where `data_unit` asks for that; a guide of a single
                band serves a network for RGB too.

        Raises:
            InputError: the guide has another number of bands than the network.
        """
        return LearnedGuidance(self, Known.of(self, sample, self._unit(sample)))

    def coefficients(self, sample: Sample) -> Coefficients:
        """Return those of the first round, of the H x W target grid; see `prepare`."""
        return self.prepare(sample).coefficients()

    def features(self, guide: Tensor, source: Tensor) -> Tensor:
        """Return what Eq. 2 compares [B, F, H, W], and last the two logarithms of `config.edges`.

        Args:
            guide: [B, C, H, W] in 0..1.
            source: [B, 1, H, W], interpolated, in the network's unit and about 0.
        """
        image = self._image(guide, source)
        return self._beside(image, self.extractor(image))

    def features_in_bands(self, guide: Tensor, source: Tensor) -> Iterator[tuple[int, Tensor]]:
        """Yield the same in bands of rows from the top; one where gradients are kept, see `Framed.in_bands`."""
        image = self._image(guide, source)
        for start, features in self.extractor.in_bands(image):
            yield start, self._beside(image[..., start : start + features.shape[-2], :], features)

    def _image(self, guide: Tensor, source: Tensor) -> Tensor:
        """What the extractor looks at."""
        return torch.cat([self._standardised(guide).to(self.logk.dtype), source], dim=1)

    def _beside(self, image: Tensor, features: Tensor) -> Tensor:
        """What is compared of the image itself, and the features."""
        if not self.config.direct:
            return at_least_float32(features)
        logarithms = [self.log_guide_weight.expand(self.config.bands), self.log_source_weight[None]]
        return torch.cat([image * torch.cat(logarithms).exp()[:, None, None], features], dim=1)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> DADA:
        """Read a network: a folder of `save_pretrained`, its .safetensors file, or a checkpoint of the authors.

        Raises:
            InputError: it is none of these; the message says what was found.
        """
        from dada.models.files import load

        return load(Path(path))

    def save_pretrained(self, folder: str | PathLike[str]) -> None:
        """Write weights, settings and a model card to a folder, which is made."""
        from dada.models.files import save_folder

        save_folder(self, Path(folder))

    @classmethod
    def from_pretrained(cls, name: str | PathLike[str], **hub: Any) -> DADA:
        """Read a folder of `save_pretrained`, or a repository of the Hugging Face hub.

        Args:
            name: the folder, or "OWNER/NAME" on the hub.
            hub: what `huggingface_hub.hf_hub_download` takes, such as `revision` and `token`.

        Raises:
            InputError: it is none of our networks, or huggingface_hub is not installed.
        """
        from dada.models.hub import download

        return cls.load(name if Path(name).is_dir() else download(str(name), **hub))

    def push_to_hub(self, name: str, **hub: Any) -> str:
        """Upload the network to a repository of the Hugging Face hub, which is made if need be.

        Args:
            name: "OWNER/NAME".
            hub: what `huggingface_hub.HfApi.upload_folder` takes, such as `revision` and `token`.

        Returns:
            the address of what was written.

        Raises:
            InputError: huggingface_hub is not installed.
        """
        from dada.models.hub import upload

        return upload(self, name, **hub)

    def _unit(self, sample: Sample) -> Tensor:
        """What the source channel is measured in, [B, 1, 1, 1]."""
        unit = sample.deviation() if self.config.source == "own" else torch.ones_like(sample.source[:, :, :1, :1])
        return torch.where(unit > 0, unit, 1.0).to(sample.source)

    def _standardised(self, guide: Tensor) -> Tensor:
        """The bands of the network; a fourth one that the guide has not is 0, which is no edge."""
        given, wanted = guide.shape[1], self.config.bands
        if given not in self.takes:
            counts = " or ".join(str(count) for count in self.takes if count > 1)
            raise InputError(
                f"the guide has {given} bands, model {self.name!r} was made for {counts}. Give the {counts} bands it "
                "was trained on or a single one, or use model none, which takes any number."
            )
        if wanted != INFRARED:
            return standardise(guide.expand(-1, wanted, -1, -1))
        colours = standardise(guide[:, :3].expand(-1, 3, -1, -1))
        fourth = standardise(guide[:, 3:]) if given == INFRARED else torch.zeros_like(colours[:, :1])
        return torch.cat([colours, fourth], dim=1)

    def _solve(
        self, sample: Sample, unit: Tensor, c: Coefficients, start: Tensor, solver: Solver, steps: int, n_grad: int
    ) -> Tensor:
        """Diffuse and adjust, each image in the way that suits its values."""
        ratio = _positive(sample) if self.config.adjust == "auto" else [self.config.adjust == "ratio"]
        if any(ratio) and not all(ratio):
            rows = [slice(i, i + 1) for i in range(len(sample))]
            parts = [(sample[i], unit[i], Coefficients(*(edges[i] for edges in c)), start[i]) for i in rows]
            return torch.cat([self._solve(*part, solver, steps, n_grad) for part in parts])
        adjust: Adjust = "ratio" if all(ratio) else "shift"
        released = solver == "iterate" and self.config.source == "dataset"
        lift = _lift(sample.source, unit, released) if adjust == "ratio" else 0.0
        c = Coefficients(*(edges.to(sample.source.dtype) for edges in c))
        source, initial, mask = sample.source + lift, start + lift, sample.source_mask

        def run(source: Tensor, initial: Tensor, coverage: Tensor | None, exactly: bool) -> Solution:
            how: Adjust = "shift" if exactly else adjust
            if solver == "iterate":
                return iterate(
                    source, c, initial=initial, adjust=how, mask=mask, coverage=coverage, steps=steps,
                    grad_steps=n_grad, epsilon=EPSILON,
                )  # fmt: skip
            # a network at the start of its training may ask for what is hard to solve; the result is near enough
            return equilibrium(
                source, c, initial=initial, adjust=how, mask=mask, coverage=coverage,
                tolerance=self.config.tolerance, warn=not self.training,
            )  # fmt: skip

        solution = sample.sampling.solved(run, source, mask, initial, quick=self.training)
        return solution.values - lift


def _positive(sample: Sample) -> list[bool]:
    """Whether all that was measured is, for each image."""
    return ((sample.source > 0) | ~sample.source_mask).flatten(1).all(1).tolist()


def _lift(source: Tensor, unit: Tensor, over_batch: bool) -> Tensor:
    """What is added before ratios are taken, [B, 1, 1, 1]: nothing, or LIFT units for images with a cell below that.

    As in the released code, that includes cells without a measurement, which hold 0.

    Args:
        source: [B, 1, h, w].
        unit: [B, 1, 1, 1].
        over_batch: lift all images if one has such a cell, as the released loop does.
    """
    low = source.amin(dim=(-2, -1), keepdim=True) <= LIFT * unit
    return torch.where(low.any() if over_batch else low, LIFT * unit, 0.0)
