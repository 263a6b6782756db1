"""How far a model looks: measured, by cutting an image and watching where its coefficients notice."""

from __future__ import annotations

import torch

from dada.diffusion import Coefficients
from dada.errors import InputError
from dada.models.dada import DADA
from dada.models.model import Model, Round
from dada.sample import Sample, Whole

NEAR = 4  # pixels that models without a network look at: windows of 7 x 7
STEP = 32  # pixels between the places at which a network may begin: the largest stride of our extractors
HEIGHT, WIDTH, CUT = 128, 1536, 1024  # of the image that is cut
CELL = 8  # pixels of its cells
NOTICED = 1e-3  # change of the logarithm of a coefficient
MARGIN = 32  # pixels that are added to what was measured


def reach_of(model: Model, bands: int) -> tuple[int, int]:
    """Return how many pixels a model looks at around a pixel, and at which multiples of pixels it may begin.

    Raises:
        InputError: it looks at the whole image.
    """
    if not isinstance(model, DADA):
        return NEAR, 1
    random = torch.Generator().manual_seed(0)
    guide = torch.rand(1, bands, HEIGHT, WIDTH, generator=random)
    source = torch.rand(1, 1, HEIGHT // CELL, WIDTH // CELL, generator=random)
    result = torch.rand(1, 1, HEIGHT, WIDTH, generator=random)
    whole = Whole(0.0, 1.0, 0.5, 0.29, 0.5, (CELL, CELL))
    with torch.no_grad():
        far = [0]
        for wide, narrow in zip(
            _each_round(model, guide, source, result, whole, WIDTH),
            _each_round(model, guide, source, result, whole, CUT),
            strict=True,
        ):
            change = (wide.vertical[..., :CUT].log() - narrow.vertical.log()).abs().amax(dim=(0, 1))
            noticed = (change > NOTICED).nonzero()
            far.append(CUT - int(noticed.min()) if len(noticed) else 0)
    reach = -(-max(far) // STEP) * STEP + MARGIN
    if reach >= CUT - STEP:
        raise InputError(
            f"model {model.name} looks at the whole image, so that tiles would not fit together. Use model default, "
            "dynamic or none."
        )
    return reach, STEP


def _each_round(
    model: DADA, guide: torch.Tensor, source: torch.Tensor, result: torch.Tensor, whole: Whole, width: int
) -> list[Coefficients]:
    """The coefficients of every round, of the first columns of an image."""
    coarse = source[..., : width // CELL]
    initial = torch.nn.functional.interpolate(coarse, scale_factor=CELL, mode="nearest")
    mask = torch.ones_like(coarse, dtype=torch.bool)
    guidance = model.prepare(Sample(guide[..., :width], coarse, mask, initial, whole=whole))
    found = [guidance.coefficients()]
    for number in range(model.rounds - 1):
        found.append(guidance.coefficients(Round(number, found[-1], result[..., :width])))
    return found
