"""Read the reference vectors, and make the weights that their rule describes; see README.md beside this file."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from dada.sample import Sample

FOLDER = Path(__file__).parent


def load(name: str) -> dict[str, Tensor]:
    """The numbers of a file; its texts (`keys`, `shapes`) are read by `entries`."""
    with np.load(FOLDER / f"{name}.npz") as data:
        return {key: torch.from_numpy(np.asarray(data[key])) for key in data.files if data[key].dtype.kind != "U"}


def entries(name: str) -> list[tuple[str, list[int]]]:
    """Keys of the authors' state dict in order, with their shapes."""
    with np.load(FOLDER / f"{name}.npz") as data:
        shapes = ([int(n) for n in str(text).split(",") if n] for text in data["shapes"])
        return list(zip(map(str, data["keys"]), shapes, strict=True))


def filled(state: Iterable[tuple[str, list[int]]], dtype: type = np.float32) -> dict[str, Tensor]:
    """Weights by the rule of the vectors: from random numbers seeded by the place of the key."""
    made = {}
    for place, (key, shape) in enumerate(state):
        if key.endswith("num_batches_tracked"):
            made[key] = torch.zeros((), dtype=torch.int64)
            continue
        v = np.random.RandomState(place).standard_normal(int(np.prod(shape))).reshape(shape)
        if key.startswith("prelu"):  # of MSG's own description
            v = 0.25 + 0.1 * v
        elif key.endswith("running_var"):
            v = 1 + 0.1 * abs(v)
        elif v.size == 1:
            v = np.full(shape, 0.25)
        elif v.ndim == 1:
            v = 1 + 0.1 * v if key.endswith("weight") else 0.1 * v
        else:
            v = v / np.sqrt(v[0].size)
        made[key] = torch.from_numpy(v.astype(dtype))
    return made


def sample_of(vector: dict[str, Tensor], dtype: torch.dtype = torch.float32) -> Sample:
    """The problem of a vector: guide, source, where it is valid, bicubic."""
    guide = vector["guide_uint8"].permute(2, 0, 1)[None].to(dtype) / 255
    source = vector["source"][None, None].to(dtype)
    mask = vector["source_valid"][None, None] > 0 if "source_valid" in vector else torch.ones_like(source).bool()
    initial = (
        vector["bicubic"][None, None].to(dtype) if "bicubic" in vector else guide.new_zeros(1, 1, *guide.shape[2:])
    )
    return Sample(guide, source, mask, initial)


def relative(values: Tensor, expected: Tensor) -> float:
    """Largest difference, relative to the largest expected number."""
    return float((values.detach() - expected).abs().max() / expected.abs().max())
