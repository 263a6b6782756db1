"""Read the files of data sets: guides and targets through `dada.io`, with errors that name the download."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from dada.errors import InputError
from dada.io import ImageWarning, read_image


def read_guide(path: Path, key: str | None = None) -> np.ndarray:
    """Read a guide as (H, W, C): 8 and 16 bits as stored, all else stretched to float32 in 0..1."""
    with _quiet():
        values = read_image(path, key=key, role="guide").values
    values = values[..., None] if values.ndim == 2 else values
    return values if values.dtype in (np.uint8, np.uint16) else _stretched(values)


def read_target(path: Path, key: str | None = None) -> np.ndarray:
    """Read measurements as (H, W) float32 as stored, with NaN for infinities; other marks of holes stay."""
    with _quiet():
        values = read_image(path, key=key).values.astype(np.float32)
    return np.where(np.isfinite(values), values, np.float32(np.nan))


def read_json(path: Path) -> Any:
    """Read a JSON file."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file.") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: this cannot be read as JSON ({error}).") from None


def find_root(root: Path, folder: str, remedy: str) -> Path:
    """Return ROOT/FOLDER, or ROOT where it is that folder itself.

    Args:
        root: as given by the user.
        folder: what the data set's own folder is called, such as "NYU Depth v2".
        remedy: where to get the data and how to lay them out, in one sentence.

    Raises:
        InputError: there is neither.
    """
    if not root.is_dir():
        raise InputError(f"{root}: this is not a folder. {remedy}")
    if (root / folder).is_dir():
        return root / folder
    if root.resolve().name == folder:
        return root
    raise InputError(f"{root}: there is no folder {folder!r} in it. {remedy}")


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress warnings about a file's format: users do not edit published data sets."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ImageWarning)
        yield


def _stretched(values: np.ndarray) -> np.ndarray:
    import torch

    from dada.sample.guide import unit_range

    bands, _ = unit_range(np.moveaxis(values, -1, 0), torch.device("cpu"), lambda text: None)
    return np.ascontiguousarray(bands.permute(1, 2, 0).numpy())
