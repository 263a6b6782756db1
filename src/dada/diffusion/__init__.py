"""The heart: diffusion coefficients (Eq. 2), the paper's loop (Eq. 1 and 3), and its equilibrium solved directly."""

from .blocks import Blocks, down, partition, up
from .coefficients import Coefficients, coefficients
from .equilibrium import equilibrium
from .loop import iterate
from .solution import ConvergenceWarning, Solution

__all__ = [
    "Blocks",
    "Coefficients",
    "ConvergenceWarning",
    "Solution",
    "coefficients",
    "down",
    "equilibrium",
    "iterate",
    "partition",
    "up",
]
