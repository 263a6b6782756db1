"""The painter: a data set of procedural scenes with exact depth, the same for the same seed."""

from dada.datasets.painted.dataset import Painted, has_jump

__all__ = ["Painted", "has_jump"]
