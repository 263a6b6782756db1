"""Small networks to export."""

from dataclasses import replace

import torch

from dada.models.config import DadaConfig
from dada.models.dada import DADA

from ..models.samples import opinionated

REFINED = DadaConfig(
    features=4, rounds=3, feedback="refinement", edges=True, direct=True, source="own", refinement="narrow",
    adjust="shift",
)  # fmt: skip
CONFIGS = {
    "refined": REFINED,
    "four bands": replace(REFINED, bands=4, rounds=2),
    "one band": replace(REFINED, bands=1, rounds=2, edges=False, direct=False),
    "compared": DadaConfig(features=4, rounds=2, distance="mean_absolute", source="own"),
    "published": DadaConfig(features=4, upsample=True, distance="mean_absolute", unit=1122.7),
}


def network(name: str) -> DADA:
    torch.manual_seed(0)
    return opinionated(DADA(CONFIGS[name])).eval()
