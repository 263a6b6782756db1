"""A problem as every method sees it, how it is made, and what a method is."""

from dada.sample.interpolation import Interpolation, bicubic, fill, initialise, within
from dada.sample.sample import Method, Sample, make_sample
from dada.sample.sampling import MEAN, Sampling

__all__ = [
    "MEAN",
    "Interpolation",
    "Method",
    "Sample",
    "Sampling",
    "bicubic",
    "fill",
    "initialise",
    "make_sample",
    "within",
]
