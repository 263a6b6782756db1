"""What a coarse sensor would have measured, and where."""

import numpy as np
import torch

from dada.diffusion import down


def averaged(fine: np.ndarray, h: int, w: int) -> np.ndarray:
    """The image averaged down to h x w, in float32."""
    return down(torch.from_numpy(fine).double(), (h, w)).float().numpy()


def holes(shape=(24, 32)) -> np.ndarray:
    """False in a few cells."""
    valid = np.random.default_rng(3).random(shape) > 0.1
    valid[5:12, 8:20] = False
    return valid
